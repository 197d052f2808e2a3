// The configuration together with the plugins it enables.
#pragma once

#include <string>
#include <vector>

#include "core/options.hpp"
#include "core/plugin/control_thread.hpp"
#include "core/plugin/crash_log.hpp"
#include "core/plugin/load.hpp"

namespace topolet {

struct Setup {
  RawConfig raw;
  CheckedConfig config;
  LoadedLibraries plugins;
  std::vector<std::string> not_loaded;  ///< enabled, but loading them has ended the daemon too often

  /// Everything that is wrong, a line each.
  std::vector<std::string> mistakes() const;
};

/// What of a plugin's earlier behaviour matters, and who watches it while it is loaded.
struct Loading {
  ControlThread* thread = nullptr;    ///< null: loaded in line, for as long as it takes
  const CrashLog* crashes = nullptr;  ///< null: nothing is held against anybody
};

/// Judges `raw` and loads the plugins that it enables, but for those that are in `loaded` already. A plugin of `loaded`
/// whose file has changed since is a mistake.
Setup make_setup(RawConfig raw, const std::vector<PluginLibrary>& loaded = {}, const Loading& loading = {});

/// The options of the plugins, as the configuration knows them.
std::vector<PluginSection> sections_of(const LoadedLibraries& plugins);

}  // namespace topolet
