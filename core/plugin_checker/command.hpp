// The plugin check as a command.
#pragma once

#include <string>
#include <vector>

namespace topolet::plugin_checker {

/// `command`: what a person typed before the arguments, such as "topolet plugin check". Writes to stdout and stderr.
/// Returns 0 if all passed, 1 if something failed, 2 for a usage error.
int check_command(const std::string& command, const std::vector<std::string>& arguments);

}  // namespace topolet::plugin_checker
