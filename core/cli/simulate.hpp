// `topolet simulate`.
#pragma once

#include <string>
#include <vector>

namespace topolet::cli {

/// Exit code 0 if every line made sense, 2 for wrong use and for bad lines.
int simulate_command(const std::vector<std::string>& arguments);

}  // namespace topolet::cli
