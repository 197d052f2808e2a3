// One placement decision, as a pure function: same request, rules and answers of the policies, same decision.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "core/placement/placement_rules.hpp"
#include "core/placement/policy.hpp"
#include "core/placement/verdicts.hpp"

namespace topolet::placement {

/// The times that a decision has taken, as far as they are measured.
struct DecisionTimes {
  std::chrono::microseconds queued{};                              ///< from the request's arrival until it was taken up
  std::chrono::microseconds decide{};                              ///< policies included
  std::map<std::string, std::chrono::microseconds> policies = {};  ///< by name
};

/// The number of the best candidates whose nodes a decision names.
inline constexpr std::size_t kBestNodes = 33;

/// The nodes of a candidate, and its score: the weighted sum over all policies.
struct RankedNodes {
  NodeSet nodes;
  std::int64_t sum = 0;
};

struct Decision {
  bool denied = false;
  bool unpinned = false;                  ///< decided without any policy's answer
  bool conflict = false;                  ///< the kubelet's set overlaps what others hold; applied as it said
  bool shared_because_full = false;       ///< it asked for CPUs of its own that were not there
  Placement placement;                    ///< of a denial: nothing
  CpuSet within;                          ///< shared, reserved: the CPUs it may use when they are in the pool
  NodeSet nodes;                          ///< of the candidate that won; none: the CPUs outside any node
  CpuSet cpus_of_candidate;               ///< with the nodes, these tell it from all others
  std::vector<std::string> used_devices;  ///< that policies say the container uses, each once, in order
  std::string reason;                     ///< for people; of a denial: what was asked, what was free, the way out
  std::string reason_code;                ///< the same in a word, for programs: see reason_codes.hpp
  DecisionTimes times;
  std::int64_t setup = 0;  ///< the number of the configuration and plugins that made it; 0 = none is known
  Verdicts verdicts;
  std::vector<RankedNodes> best_nodes;  ///< of candidates that no policy rejected, the best first: kBestNodes at most
  std::vector<std::string> lost_votes;  ///< names of the policies whose vote was lost
  struct InvalidReply {
    std::string policy;
    std::string what;
  };
  std::vector<InvalidReply> invalid_replies;  ///< those of them that only the core could detect
};

/// Makes the input of decide(): classifies the workload against the rules and the ledger. `ledger` must not hold the
/// workload's own key. `candidates` must come from make_candidates().
PolicyRequest make_request(std::shared_ptr<const topology::Topology> topology, LedgerSnapshot ledger, Workload workload,
                           std::vector<Candidate> candidates, const PlacementRules& rules,
                           bool kubelet_hands_out_cpusets);

/// Decides. Calls the policies one after the other on this thread. If it cannot satisfy all of a request that is
/// flexible (PolicyRequest::keep, ::from), decides again without that part.
Decision decide(const PolicyRequest& request, const PlacementRules& rules, const std::vector<Vote>& votes);

/// Returns OK if `placement` keeps the contracts of the ledger in `view`, or the reason why not: it is not empty,
/// allowed, disjoint from every exclusive and withheld CPU, enough CPUs are left for the pool, and no shared container
/// is left without any.
Status validate(const Placement& placement, const LedgerSnapshot& view, const PlacementRules& rules);

/// The CPUs of a shared or reserved container that may use `within`, for a pool: those of `within` that are in the
/// pool, and in reserved mode all free reserved ones. Where nothing is left, the whole pool. With `keep_within` no
/// others than those of `within`. Empty only if the pool (and for reserved mode the reserved set) is, or with
/// `keep_within`.
CpuSet shared_cpus(Mode mode, const CpuSet& within, const CpuSet& pool, const CpuSet& free_reserved, bool keep_within);

/// Takes `count` of `usable`: first those `order` names, then whole cores (all online threads of the core usable),
/// then threads of cores that are already in part use, each by lowest index. `usable` must hold that many.
CpuSet take_cpus(const topology::Topology& topology, const CpuSet& usable, std::size_t count,
                 const std::vector<std::uint32_t>& order);

/// In which order to take `count` of `usable`.
using OrderOf = std::function<std::vector<std::uint32_t>(const CpuSet& usable, std::size_t count)>;

/// Adds CPUs of `usable` to `taken` until there are `count`: of each share in turn what it still lacks, then any. Each
/// time as take_cpus() does.
CpuSet take_with_minimums(const topology::Topology& topology, const CpuSet& usable, std::size_t count,
                          const std::vector<CpuMinimum>& shares, const OrderOf& order_of, CpuSet taken = {});

/// Its CPU request if it is Guaranteed and asks for whole CPUs, else 0.
std::uint32_t whole_cpus(const Workload& workload);
/// Returns true if the kubelet gave the CPUs that it named to this container alone: as many as it asks for, whole.
bool is_kubelet_cpuset_exclusive(const Workload& workload);

/// The exclusive CPUs that a workload is to get by the rules and its annotations.
struct ExclusiveClaim {
  std::uint32_t cpus = 0;               ///< of its own; 0 = none
  std::optional<NotExclusive> why_not;  ///< set if there are none
};
ExclusiveClaim exclusive_claim(const Workload& workload, const PlacementRules& rules);
std::uint32_t exclusive_cpus_for(const Workload& workload, const PlacementRules& rules);  ///< that claim's

/// Returns the mode of a workload that shares CPUs: in the pool, or on the reserved CPUs too if its namespace is a
/// reserved one.
Mode shared_mode(const Workload& workload, const PlacementRules& rules);

/// Describes, for people, which containers stay on which of the CPUs; empty if none does.
std::string describe_unmovable(const LedgerSnapshot& view, const CpuSet& cpus);

/// Returns the number of CPUs that may be taken out of the pool: the others are kept by min-shared-cpus.
std::size_t spare_cpus(const CpuSet& pool, const PlacementRules& rules);

}  // namespace topolet::placement
