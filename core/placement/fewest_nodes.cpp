#include "core/placement/fewest_nodes.hpp"

#include <algorithm>
#include <functional>

namespace topolet::placement {

std::size_t fewest_nodes(std::vector<std::size_t> sizes, std::size_t count) {
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  std::size_t held = 0;
  std::size_t needed = 0;
  while (held < count && needed < sizes.size()) held += sizes[needed++];
  return needed;
}

}  // namespace topolet::placement
