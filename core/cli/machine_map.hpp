// Who holds which CPU, drawn in letters.
#pragma once

#include <string>

#include "core/simulate/simulation.hpp"

namespace topolet::cli {

/// A line for each NUMA node with its cores in brackets and a sign for each CPU by ascending OS index, at most 100
/// columns wide, and what the signs mean.
std::string machine_map(const simulate::Snapshot& snapshot);

}  // namespace topolet::cli
