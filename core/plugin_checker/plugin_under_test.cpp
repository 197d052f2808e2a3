#include "core/plugin_checker/plugin_under_test.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/plugin/call/abi_request.hpp"
#include "core/plugin/guard/barrier.hpp"
#include "core/plugin/host/in_memory_plugin_state.hpp"

namespace topolet::plugin_checker {
namespace {

/// A write is a crash, or is found if the plugin makes pages writable.
void watch_what_it_is_lent(plugin::PluginPolicy& policy) {
  policy.lend_read_only();
  policy.watch_topology();
}

/// Adds a value for each required option that has none.
OptionValues with_required(const std::vector<config::OptionSpec>& options, OptionValues values) {
  for (const config::OptionSpec& option : options) {
    const auto is_its = [&option](const auto& value) { return value.first == option.key; };
    if (option.required && std::none_of(values.begin(), values.end(), is_its))
      values.emplace_back(option.key, fitting_value(option));
  }
  return values;
}

}  // namespace

OptionValues default_values(const std::vector<config::OptionSpec>& options) {
  OptionValues values;
  for (const config::OptionSpec& option : options) {
    if (option.required) {
      values.emplace_back(option.key, plain_value(option, fitting_value(option)));
      continue;
    }
    for (const std::string& value : option.defaults) values.emplace_back(option.key, plain_value(option, value));
  }
  return values;
}

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
  auto policy = library_.create(with_required(library_.options(), values), make_silent_log(),
                                {.state = std::make_shared<plugin::InMemoryPluginState>(),
                                 .guard = plugin::LentGuard::kReadOnly,
                                 .purpose = TOPOLET_PURPOSE_CHECK});
  if (policy) watch_what_it_is_lent(**policy);
  return policy;
}

Result<std::shared_ptr<plugin::PluginPolicy>> PluginUnderTest::create_with(
    std::shared_ptr<Log> log, std::shared_ptr<store::PluginStateStore> state) const {
  auto policy = library_.create(
      with_required(library_.options(), {}), std::move(log),
      {.state = std::move(state), .guard = plugin::LentGuard::kReadOnly, .purpose = TOPOLET_PURPOSE_CHECK});
  if (policy) watch_what_it_is_lent(**policy);
  return policy;
}

OptionValues PluginUnderTest::default_options() const { return default_values(library_.options()); }

Result<ProxiedInstance> PluginUnderTest::create_proxied(ShownValues values) const {
  auto host = std::make_unique<EnlargedStructs>();
  const auto enlarge_host = [&host](const topolet_host* real) {
    const topolet_host* const larger = host->enlarge_flat(real);
    host->seal();
    return larger;
  };
  EnlargedStructs of_create;
  RawCreation created = create_raw(default_options(), enlarge_host, &of_create);
  if (created.thrown || created.status != TOPOLET_OK || created.instance == nullptr) {
    return Error{Code::kInternal, created.thrown ? "create " + *created.thrown : "create failed: " + created.error};
  }
  auto proxy = std::make_unique<InstanceProxy>(created.instance, values);
  auto policy = plugin::PluginPolicy::wrap(library_.id(), std::move(created.host), proxy->view());
  if (!policy) return policy.error();
  (*policy)->speak({plugin::kValuesByMinor, library_.abi_minor()});
  watch_what_it_is_lent(**policy);
  return ProxiedInstance{std::move(host), std::move(proxy), *std::move(policy)};
}

RawCreation PluginUnderTest::create_raw(const OptionValues& options, const HostWrapper& wrap_host,
                                        EnlargedStructs* enlarged) const {
  static constexpr topolet_instance kNotTouched{};
  RawCreation created;
  created.host = std::make_unique<plugin::PluginHost>(library_.id(), make_silent_log(),
                                                      std::make_shared<plugin::InMemoryPluginState>());
  plugin::LentBlock shown({.guard = plugin::LentGuard::kReadOnly});
  const topolet_kvs shown_options = shown.copy_pairs(options);
  const topolet_host* const host = wrap_host ? wrap_host(created.host->view()) : created.host->view();
  const auto* request = shown.copy_struct(topolet_create_request{
      sizeof(topolet_create_request), TOPOLET_PURPOSE_CHECK, host, shown_options, {}, nullptr, 0, 0});
  const auto set_error = [](const topolet_error_sink* sink, topolet_str message) -> std::int32_t {
    *static_cast<std::string*>(sink->context) = plugin::sanitize_text(message);
    return TOPOLET_OK;
  };
  const auto* sink = shown.copy_struct(topolet_error_sink{sizeof(topolet_error_sink), 0, &created.error, set_error});
  shown.seal();
  if (enlarged != nullptr) {
    request = enlarged->enlarge_flat(request);
    sink = enlarged->enlarge_flat(sink);
    enlarged->seal();
  }
  const topolet_instance* instance = &kNotTouched;
  created.thrown = plugin::thrown_by([&] {
    const plugin::PluginHost::StateWriteScope writing(*created.host);
    created.status = entry_->create(request, sink, &instance);
  });
  created.touched_instance = instance != &kNotTouched;
  created.instance = created.touched_instance ? instance : nullptr;
  return created;
}

}  // namespace topolet::plugin_checker
