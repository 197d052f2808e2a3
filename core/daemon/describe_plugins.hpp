// The enabled plugins, as the control socket tells of them.
#pragma once

#include <vector>

#include "core/control/control.pb.h"
#include "core/plugin/host/running_plugins.hpp"

namespace topolet::daemon {

/// In the order of `plugins`.
void describe_plugins(const std::vector<plugin::PluginDescription>& plugins,
                      control::v1::ListPluginsResponse& response);

}  // namespace topolet::daemon
