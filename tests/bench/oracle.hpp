// Placements that would have been possible.
#pragma once

#include <cstdint>
#include <vector>

namespace topolet::bench {

/// Returns true if all `sizes` fit into `bins`, each of which holds sizes that add up to its number at most. Exact:
/// branch and bound over the contents of one bin after the other, which remembers dead ends. Meant for few different
/// sizes and little waste, where it takes microseconds.
bool fits(std::vector<std::uint32_t> bins, std::vector<std::uint32_t> sizes);

}  // namespace topolet::bench
