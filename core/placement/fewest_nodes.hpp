// How many NUMA nodes a number of CPUs needs.
#pragma once

#include <cstddef>
#include <vector>

namespace topolet::placement {

/// Returns the fewest nodes that together have `count` CPUs, if nobody else had any of them; all nodes where that is
/// not enough. `sizes`: how many CPUs each node has that containers may use.
std::size_t fewest_nodes(std::vector<std::size_t> sizes, std::size_t count);

}  // namespace topolet::placement
