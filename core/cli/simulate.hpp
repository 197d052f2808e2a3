// `topolet simulate`.
#pragma once

#include <string>
#include <vector>

namespace topolet::cli {

/// Returns 0 if every line made sense, 2 for a usage error and for bad lines.
int simulate_command(const std::vector<std::string>& arguments);

}  // namespace topolet::cli
