// What `topolet simulate --explain` shows of plugins beside their votes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/simulate/plugin_activity.hpp"

namespace topolet::cli {

nlohmann::ordered_json activity_json(const simulate::PluginActivity& activity);

/// Returns a line for each thing, indented like the verdicts.
std::string activity_text(const simulate::PluginActivity& activity);

}  // namespace topolet::cli
