// The options of one plugin that the policies of the others must go by, too.
#pragma once

#include <vector>

#include "core/config/options.hpp"
#include "core/placement/besteffort_share.hpp"
#include "core/placement/policy.hpp"
#include "core/plugin/call/policy_thread.hpp"

namespace topolet::plugin {

/// Returns those that are in force by this plugin's section.
placement::CommonOptions common_options_of(const config::PluginOptions& plugin);

/// Returns what its section says of how far BestEffort containers give way, as PluginVote has it.
placement::BestEffortShare besteffort_share_of(const config::PluginOptions& plugin);
/// Returns the first of those that plugins which are asked say; `known`: of PolicyThread::states().
placement::BestEffortShare besteffort_share_of(const std::vector<PluginVote>& votes,
                                               const std::vector<PluginStatistics>& known);

}  // namespace topolet::plugin
