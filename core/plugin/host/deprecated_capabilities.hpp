// Capabilities of the ABI that are served as ever, but that plugins should no longer use.
#pragma once

#include <string>
#include <vector>

#include "core/plugin/call/plugin_policy.hpp"

namespace topolet::plugin {

struct DeprecatedCapability {
  std::string id;       ///< of the host, or of plugins
  std::string instead;  ///< the id of the capability to use, or what else to do
};
using DeprecatedCapabilities = std::vector<DeprecatedCapability>;

/// Returns those of this version.
const DeprecatedCapabilities& deprecated_capabilities();

/// Returns a line that names the plugin, each of these that it has or has asked the host for, and what to use instead.
/// Empty if there is none.
std::string deprecation_warning(const PluginPolicy& policy, const DeprecatedCapabilities& deprecated);

}  // namespace topolet::plugin
