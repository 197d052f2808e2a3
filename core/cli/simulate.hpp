// `topolet simulate`.
#pragma once

#include <string>
#include <vector>

namespace topolet::cli {

/// Returns 0 if every line made sense, 1 if the workload could not be read to its end, 2 for a usage error and for
/// lines that are not valid.
int simulate_command(const std::vector<std::string>& arguments);

}  // namespace topolet::cli
