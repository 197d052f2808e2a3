// The plugin that is checked. Only created in a child process.
#pragma once

#include <topolet/abi.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.hpp"
#include "core/plugin/call/plugin_host.hpp"
#include "core/plugin/host/load.hpp"
#include "core/plugin_checker/instance_proxy.hpp"

namespace topolet::plugin_checker {

/// An instance that sees what a later host would show.
struct ProxiedInstance {
  std::unique_ptr<EnlargedStructs> host;
  std::unique_ptr<InstanceProxy> proxy;
  std::shared_ptr<plugin::PluginPolicy> policy;
};

/// The result of create(), as the plugin gave it.
struct RawCreation {
  std::unique_ptr<plugin::PluginHost> host;
  std::int32_t status = TOPOLET_FAILED;
  const topolet_instance* instance = nullptr;
  bool touched_instance = false;  ///< it wrote to *instance
  std::string error;              ///< what it gave to the sink
  std::optional<std::string> thrown;
};

/// Returns the host that a plugin is shown, made of the real one. Whoever makes it keeps it.
using HostWrapper = std::function<const topolet_host*(const topolet_host* real)>;

using OptionValues = std::vector<std::pair<std::string, std::string>>;

/// Returns every option at its default, as create() is given it; required ones at a value that fits.
OptionValues default_values(const std::vector<config::OptionSpec>& options);

class PluginUnderTest {
 public:
  /// As the daemon loads it, with the file's directory as plugin-dir.
  static Result<PluginUnderTest> load(const std::filesystem::path& file);

  const plugin::PluginLibrary& library() const { return library_; }
  const topolet_plugin_entry& entry() const { return *entry_; }

  /// As the daemon does it; each instance with an empty state of its own.
  Result<std::shared_ptr<plugin::PluginPolicy>> create(const OptionValues& values = {}) const;
  /// The same, with this log and this state.
  Result<std::shared_ptr<plugin::PluginPolicy>> create_with(std::shared_ptr<Log> log,
                                                            std::shared_ptr<store::PluginStateStore> state) const;
  Result<ProxiedInstance> create_proxied(ShownValues values = ShownValues::kKnown) const;
  /// Past the daemon's checks. `enlarged`: makes the structs of the call larger. Whoever calls destroys the instance,
  /// before the host.
  RawCreation create_raw(const OptionValues& options, const HostWrapper& wrap_host = {},
                         EnlargedStructs* enlarged = nullptr) const;
  /// Each option of its table at its default.
  OptionValues default_options() const;

 private:
  PluginUnderTest(plugin::PluginLibrary library, const topolet_plugin_entry* entry)
      : library_(std::move(library)), entry_(entry) {}

  plugin::PluginLibrary library_;
  const topolet_plugin_entry* entry_;
};

}  // namespace topolet::plugin_checker
