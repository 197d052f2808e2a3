#include "core/plugin_checker/plugin_under_test.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "core/plugin/call/abi_request.hpp"
#include "core/plugin/call/barrier.hpp"
#include "core/plugin/host/in_memory_plugin_state.hpp"

namespace topolet::plugin_checker {

Result<PluginUnderTest> PluginUnderTest::load(const std::filesystem::path& file) {
  if (file.extension() != ".so") {
    return Error{Code::kInvalidArgument, fmt::format("{}: a plugin's file is called NAME.so", file.native())};
  }
  const std::filesystem::path dir = file.has_parent_path() ? file.parent_path() : ".";
  auto library = plugin::PluginLibrary::load(dir, file.stem().native());
  if (!library) return library.error();
  // It is loaded already; this only finds it again, to see its entry past what the loader shows.
  void* handle = ::dlopen(library->path().c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  const void* entry = handle == nullptr ? nullptr : ::dlsym(handle, TOPOLET_ENTRY_SYMBOL);
  if (entry == nullptr) return Error{Code::kInternal, fmt::format("{} was loaded and is gone", file.native())};
  return PluginUnderTest(*std::move(library), static_cast<const topolet_plugin_entry*>(entry));
}

Result<std::shared_ptr<plugin::PluginPolicy>> PluginUnderTest::create(const OptionValues& values) const {
  return library_.create(values, make_silent_log(), std::make_shared<plugin::InMemoryPluginState>());
}

Result<ProxiedInstance> PluginUnderTest::create_proxied() const {
  std::vector<topolet_kv> defaults;
  for (const config::OptionSpec& option : library_.options()) {
    defaults.push_back({plugin::view_of(option.key), plugin::view_of(option.defaults.front())});
  }
  RawCreation created = create_raw(defaults);
  if (created.thrown || created.status != TOPOLET_OK || created.instance == nullptr) {
    return Error{Code::kInternal, created.thrown ? "create " + *created.thrown : "create failed: " + created.error};
  }
  auto proxy = std::make_unique<InstanceProxy>(created.instance);
  auto policy = plugin::PluginPolicy::wrap(library_.id(), std::move(created.host), proxy->view());
  if (!policy) return policy.error();
  return ProxiedInstance{std::move(proxy), *std::move(policy)};
}

RawCreation PluginUnderTest::create_raw(const std::vector<topolet_kv>& options) const {
  static constexpr topolet_instance kNotTouched{};
  RawCreation created;
  created.host = std::make_unique<plugin::PluginHost>(library_.id(), make_silent_log(),
                                                      std::make_shared<plugin::InMemoryPluginState>());
  const topolet_create_request request{sizeof(request), 0, created.host->view(), {options.data(), options.size()}, {}};
  const auto set_error = [](const topolet_error_sink* sink, topolet_str message) -> std::int32_t {
    *static_cast<std::string*>(sink->context) = plugin::sanitize_text(message);
    return TOPOLET_OK;
  };
  const topolet_error_sink sink{sizeof(sink), 0, &created.error, set_error};
  const topolet_instance* instance = &kNotTouched;
  created.thrown = plugin::thrown_by([&] {
    const plugin::PluginHost::StateWriteScope writing(*created.host);
    created.status = entry_->create(&request, &sink, &instance);
  });
  created.touched_instance = instance != &kNotTouched;
  created.instance = created.touched_instance ? instance : nullptr;
  return created;
}

}  // namespace topolet::plugin_checker
