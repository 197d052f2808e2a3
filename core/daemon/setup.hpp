// The configuration together with the plugins it enables.
#pragma once

#include <string>
#include <vector>

#include "core/options.hpp"
#include "core/plugin/load.hpp"

namespace topolet {

struct Setup {
  RawConfig raw;
  CheckedConfig config;
  LoadedLibraries plugins;

  /// Everything that is wrong, a line each.
  std::vector<std::string> mistakes() const;
};

/// Judges `raw` and loads the plugins that it enables, but for those that are in `loaded` already. A plugin of `loaded`
/// whose file has changed since is a mistake.
Setup make_setup(RawConfig raw, const std::vector<PluginLibrary>& loaded = {});

/// The options of the plugins, as the configuration knows them.
std::vector<PluginSection> sections_of(const LoadedLibraries& plugins);

}  // namespace topolet
