// Turns the locality of candidates into scores on which one more local device counts for more than tidy packing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace topolet::gpu {

/// A candidate's locality, as far as it counts for the ranking.
struct CandidateRank {
  std::size_t local = 0;      ///< devices that are local
  double nearness = 0;        ///< mean over all devices, 0 to 1
  std::int32_t penalty = 0;   ///< points, to tell apart equals
  std::size_t width = 0;      ///< nodes
  bool has_capacity = false;  ///< the container fits
};

/// Ranks sets of more nodes than the narrowest with capacity below all others, as if fewer of the `devices` were local.
void put_narrow_first(std::vector<CandidateRank>& ranks, std::size_t devices);

/// The nodes of the narrowest set with capacity; nothing if there is none.
std::optional<std::size_t> narrowest_width(const std::vector<CandidateRank>& ranks);

/// One score for each candidate. More local devices score higher: as far as the scale permits by so much that the best
/// of them, times the plugin's default weight, outweighs what `numa` subtracts for more nodes and longer distances.
/// Among candidates with the same number of local devices the nearness decides, and among those of the same nearness
/// the penalty relative to the least of them.
std::vector<std::int32_t> scores_of(const std::vector<CandidateRank>& ranks);

}  // namespace topolet::gpu
