// Scores of candidates, so that a device more counts for more than tidy packing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace topolet::gpu {

/// What a candidate is to the devices.
struct Rank {
  std::size_t local = 0;       ///< devices
  double nearness = 0;         ///< 0 to 1, of all of them
  std::int32_t shortfall = 0;  ///< points; among equals
  std::size_t width = 0;       ///< nodes
  bool has_room = false;       ///< the container could be there
};

/// One score for each. Those that more devices are local to have more, and so much more, as far as the scale has room,
/// that the best of them outweighs with the plugin's own weight what `numa` takes for more nodes and longer ways. As
/// many devices: by nearness. As near: less by what they fall short of the best.
std::vector<std::int32_t> scores_of(const std::vector<Rank>& ranks);

}  // namespace topolet::gpu
