// What would have been possible.
#pragma once

#include <cstdint>
#include <vector>

namespace topolet::bench {

/// Whether every one of `sizes` fits into one of `bins`, each of which holds what adds up to its number. Exact: branch
/// and bound over what goes into one bin after the other, which remembers what led nowhere. Meant for few different
/// sizes and little waste, where it takes microseconds.
bool fits(std::vector<std::uint32_t> bins, std::vector<std::uint32_t> sizes);

}  // namespace topolet::bench
