// The candidates of one decision from the best to the worst.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/placement/vote_tally.hpp"
#include "core/placement/votes.hpp"

namespace topolet::placement {

/// One candidate on its way to a verdict.
struct RankedCandidate {
  std::size_t position = 0;      ///< in PolicyRequest::candidates
  CpuSet usable;                 ///< what the workload could use of it
  std::size_t node_count = 0;    ///< its nodes; CPUs outside any node are one
  std::size_t usable_count = 0;  ///< CPUs in `usable`
  std::int64_t sum = 0;
  bool scored = false;
  bool rejected = false;
  std::uint32_t distance_to_stay = 0;  ///< of its farthest node, where PolicyRequest::stay_near is set
  std::uint32_t overruled = 0;         ///< policies that reject it in vain
  bool unfit = false;                  ///< rejected whatever policies say of it
  std::int64_t penalty = 0;            ///< taken off `sum`: points of policies that cannot have their way there
  std::vector<CandidateOpinions::Opinion> opinions;
};

inline constexpr std::size_t kAuditedCandidates = 8;

/// Returns the number of CPUs that a candidate must have for the workload.
std::size_t needed_cpus(const PolicyRequest& request);
/// Returns why `cpus` are not enough for the workload, those that it has to keep included; null if they are.
const char* shortage(const PolicyRequest& request, const CpuSet& cpus);
inline bool fits(const PolicyRequest& request, const CpuSet& cpus) { return shortage(request, cpus) == nullptr; }

/// Asks all policies for verdicts, and records them and the best candidates in the decision. By score; then fewer
/// nodes, smaller distance, the fullest that still fits, the lowest nodes. If nobody scored, the machine comes first.
std::vector<RankedCandidate> rank(const PolicyRequest& request, const Votes& votes, VoteTally& tally,
                                  Decision& decision);

/// Takes back what a policy said of the candidates, which has lost its vote since, and ranks them anew: as if it had
/// not answered. Penalties are forgotten; who still has cause for one is found when the candidate is placed again.
void take_back_opinions(const PolicyRequest& request, const Vote& vote, std::vector<RankedCandidate>& ranking,
                        Decision& decision);

/// Lowers the sum of the candidate at `place` by `by`, once, and moves it to its new rank. Returns whether that is the
/// same.
bool apply_penalty(const PolicyRequest& request, std::vector<RankedCandidate>& ranking, std::size_t place,
                   std::int64_t by);

}  // namespace topolet::placement
