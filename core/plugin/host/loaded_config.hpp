// The configuration together with the plugins it enables.
//
// The room core/plugin, namespace topolet::plugin, in two parts: host loads plugins, watches how they behave and
// quarantines them; call asks them within a deadline. Start here with load_config(); RunningPlugins are what it
// leads to in the daemon. Only load.cpp may include Boost.DLL. The room may include core/base, config, placement and
// topology, the interface of store/plugin_state_store.hpp, and the SDK's headers; it does not know for whom plugins are
// loaded and asked.
#pragma once

#include <string>
#include <vector>

#include "core/config/options.hpp"
#include "core/plugin/host/control_thread.hpp"
#include "core/plugin/host/crash_log.hpp"
#include "core/plugin/host/load.hpp"

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

/// The options of the plugins, as the configuration knows them.
std::vector<config::PluginSection> sections_of(const LoadedLibraries& plugins);

}  // namespace topolet::plugin
