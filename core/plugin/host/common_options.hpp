// The options of one plugin that the policies of the others must go by, too.
#pragma once

#include "core/config/options.hpp"
#include "core/placement/policy.hpp"

namespace topolet::plugin {

/// Returns those that are in force by this plugin's section.
placement::CommonOptions common_options_of(const config::PluginOptions& plugin);

}  // namespace topolet::plugin
