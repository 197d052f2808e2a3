// The candidates of one decision from the best to the worst.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/placement/votes.hpp"

namespace topolet {

/// One candidate on its way to a verdict.
struct Ranked {
  std::size_t position = 0;  ///< in PolicyRequest::candidates
  CpuSet usable;             ///< what the workload could use of it
  std::size_t width = 0;     ///< its nodes
  std::size_t room = 0;      ///< CPUs in `usable`
  std::int64_t sum = 0;
  bool scored = false;
  bool rejected = false;
  bool lowered = false;  ///< less what policies scored that cannot have their way there
  std::vector<CandidateVerdict::Word> words;
};

inline constexpr std::size_t kAuditedCandidates = 8;

/// How the workload runs if it gets no CPUs of its own.
Mode shared_mode(const PolicyRequest& request, const DecideRules& rules);
/// What a workload without CPUs of its own may run on.
CpuSet shared_cpus_open_to(const PolicyRequest& request, const DecideRules& rules);

/// How many CPUs a candidate must have for the workload.
std::size_t needed_cpus(const PolicyRequest& request);
/// Whether `cpus` are enough for the workload, what it has to keep included.
bool are_enough(const PolicyRequest& request, const CpuSet& cpus);

/// Asks all voters for their verdicts and puts them and the best candidates into the decision. By score; then fewer
/// nodes, smaller distance, the fullest that still fits, the lowest nodes. If nobody scored, the machine comes first.
std::vector<Ranked> rank(const PolicyRequest& request, const DecideRules& rules, const std::vector<Voter>& voters,
                         Votes& votes, Decision& decision);

/// Takes that much from one candidate and puts it where it then belongs. Returns whether it is still where it was.
bool lower(const PolicyRequest& request, std::vector<Ranked>& ranking, std::size_t place, std::int64_t by);

}  // namespace topolet
