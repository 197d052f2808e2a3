#include "core/conformance/subject.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "core/plugin/barrier.hpp"
#include "core/plugin/request_view.hpp"
#include "core/plugin/state_store.hpp"

namespace topolet {

Result<Subject> Subject::load(const std::filesystem::path& file) {
  if (file.extension() != ".so") {
    return Error{Code::kInvalidArgument, fmt::format("{}: a plugin's file is called NAME.so", file.native())};
  }
  const std::filesystem::path dir = file.has_parent_path() ? file.parent_path() : ".";
  auto library = PluginLibrary::load(dir, file.stem().native());
  if (!library) return library.error();
  // It is loaded already; this only finds it again, to see its entry past what the loader shows.
  void* handle = ::dlopen(library->path().c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  const void* entry = handle == nullptr ? nullptr : ::dlsym(handle, TOPOLET_ENTRY_SYMBOL);
  if (entry == nullptr) return Error{Code::kInternal, fmt::format("{} was loaded and is gone", file.native())};
  return Subject(*std::move(library), static_cast<const topolet_plugin_entry*>(entry));
}

Result<std::shared_ptr<PluginPolicy>> Subject::create(const OptionValues& values) const {
  return library_.create(values, make_silent_log(), std::make_shared<StateInMemory>());
}

Result<ProxiedInstance> Subject::create_proxied() const {
  std::vector<topolet_kv> defaults;
  for (const DeclaredOption& option : library_.options()) {
    defaults.push_back({view_of(option.name), view_of(option.default_value)});
  }
  RawCreation created = create_raw(defaults);
  if (created.thrown || created.status != TOPOLET_OK || created.instance == nullptr) {
    return Error{Code::kInternal, created.thrown ? "create " + *created.thrown : "create failed: " + created.error};
  }
  auto proxy = std::make_unique<InstanceProxy>(created.instance);
  auto policy = PluginPolicy::adopt(library_.id(), std::move(created.host), proxy->view());
  if (!policy) return policy.error();
  return ProxiedInstance{std::move(proxy), *std::move(policy)};
}

RawCreation Subject::create_raw(const std::vector<topolet_kv>& options) const {
  static constexpr topolet_instance kNotTouched{};
  RawCreation created;
  created.host = std::make_unique<PluginHost>(library_.id(), make_silent_log(), std::make_shared<StateInMemory>());
  const topolet_create_request request{sizeof(request), 0, created.host->view(), {options.data(), options.size()}, {}};
  const auto set_error = [](const topolet_error_sink* sink, topolet_str message) -> std::int32_t {
    *static_cast<std::string*>(sink->context) = clean_text(message);
    return TOPOLET_OK;
  };
  const topolet_error_sink sink{sizeof(sink), 0, &created.error, set_error};
  const topolet_instance* instance = &kNotTouched;
  created.thrown = thrown_by([&] {
    const PluginHost::Writing writing(*created.host);
    created.status = entry_->create(&request, &sink, &instance);
  });
  created.touched_instance = instance != &kNotTouched;
  created.instance = created.touched_instance ? instance : nullptr;
  return created;
}

}  // namespace topolet
