// Finds what load_config() and RunningPlugins would, in processes of their own: whatever a plugin does there ends
// there.
#pragma once

#include <string>
#include <vector>

#include "core/config/options.hpp"
#include "core/placement/annotation_names.hpp"
#include "core/plugin/guard/crash_log.hpp"

namespace topolet::plugin {

struct PluginInspection {
  config::ValidatedConfig config;               ///< with its mistakes
  std::vector<config::ConfigMistake> refused;   ///< plugins that cannot be loaded or created, in their own words
  std::vector<config::ConfigMistake> warnings;  ///< what they warn of when they are created, in their own words
  /// The plugins that the daemon will not start, as they crashed it too often before. They were left alone here too.
  std::vector<std::string> not_started;
  /// The annotations that are read with these plugins. One that could not be created does not say what it reads.
  placement::KnownAnnotations annotations;
};

/// Validates `raw` and has every plugin that it enables loaded and created, each in child processes, which have as much
/// time as placement.plugin-timeout says. Plugins find no values that they kept, and keep none. A plugin whose own
/// section has a mistake is not created. `crashes`: null = earlier crashes do not matter.
PluginInspection inspect_plugins(const config::RawConfig& raw, const CrashLog* crashes = nullptr);

/// The options of the plugins that can be loaded, read in child processes as well.
std::vector<config::PluginSection> inspect_options(const config::RawConfig& raw);

/// `message` with the file and line of what it is about: the option of the plugin that it names, or the line that
/// enables the plugin.
config::ConfigMistake plugin_mistake(const config::RawConfig& raw, const std::string& plugin, std::string message);

}  // namespace topolet::plugin
