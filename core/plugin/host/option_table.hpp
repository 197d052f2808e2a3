// The options a plugin offers, read from its entry before it is created.
#pragma once

#include <topolet/abi.h>

#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/config/option_table.hpp"

namespace topolet::plugin {

/// Reads the table of the entry of `plugin`. INTERNAL if it is malformed: a name twice, a default that is not allowed.
/// An unknown type counts as a string; unknown flags are ignored.
Result<std::vector<config::OptionSpec>> read_option_table(const topolet_plugin_entry& entry, const std::string& plugin);

}  // namespace topolet::plugin
