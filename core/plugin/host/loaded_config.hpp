// The configuration together with the plugins it enables.
//
// The room core/plugin/host, namespace topolet::plugin: loads plugins, makes instances of them, swaps them at a reload
// and describes them. Start with load_config(); in the daemon it leads to RunningPlugins. Only load.cpp may include
// Boost.DLL. Of core/plugin it sees call, which asks plugins within a deadline, and guard, which protects topoletd from
// them; neither sees this room. All three may include core/base, and host and call also config, placement and topology,
// the interface of store/plugin_state_store.hpp, and the SDK's headers; they do not know for whom plugins are loaded
// and asked.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/log_fwd.hpp"
#include "core/base/result.hpp"
#include "core/config/options.hpp"
#include "core/plugin/call/policy_thread.hpp"
#include "core/plugin/guard/control_thread.hpp"
#include "core/plugin/guard/crash_log.hpp"
#include "core/plugin/host/load.hpp"
#include "core/topology/topology.hpp"
#include "store/plugin_state_store.hpp"

namespace topolet::plugin {

struct LoadedConfig {
  config::RawConfig raw;
  config::ValidatedConfig config;
  LoadedLibraries plugins;
  std::vector<std::string> not_loaded;  ///< enabled, but loading them has crashed the daemon too often

  /// Every mistake, one line each.
  std::vector<std::string> mistakes() const;
};

/// The parts that loading uses besides the configuration.
struct LoadDeps {
  ControlThread* thread = nullptr;    ///< null: plugins are loaded on the calling thread, without a limit
  const CrashLog* crashes = nullptr;  ///< null: earlier crashes do not matter
};

/// Checks `raw` and loads the plugins that it enables, except those that are in `loaded` already. A plugin of `loaded`
/// whose file has changed since is a mistake.
LoadedConfig load_config(config::RawConfig raw, const std::vector<PluginLibrary>& loaded = {},
                         const LoadDeps& deps = {});

/// Makes an instance of each enabled plugin that was loaded, to simulate, in the order of the configuration, and
/// returns their votes by in_order_of_votes(). As PluginLibrary::create() does it, on the calling thread and without a
/// limit; an error of one is returned at once.
Result<std::vector<PluginVote>> make_votes(const LoadedConfig& setup, const std::shared_ptr<Log>& log,
                                           const std::shared_ptr<store::PluginStateStore>& state,
                                           const std::shared_ptr<const topology::Topology>& machine);

/// Returns the entries without the secrets of the plugins of `setup`.
std::vector<config::ConfigEntry> shown_entries(const LoadedConfig& setup, std::vector<config::ConfigEntry> entries);

/// The options of the plugins, as the configuration knows them.
std::vector<config::PluginSection> sections_of(const LoadedLibraries& plugins);

}  // namespace topolet::plugin
