// Where containers would be placed anew: because CPUs came or went, because somebody gave some back, or because a
// plugin wishes it. Plans only.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/planning/placer.hpp"
#include "core/engine/state/ledger.hpp"

namespace topolet::engine {

/// Plans for the current state of `ledger` and `placer`, which must outlive it.
class RebalancePlanner {
 public:
  RebalancePlanner(const Ledger& ledger, const Placer& placer) : ledger_(ledger), placer_(placer) {}

  /// False if plan_regain() can find nothing for the container, so that no policy need be asked.
  bool may_regain(const Allocation& allocation) const;
  /// It has fewer CPUs of its own than its demand entitles it to; none if it shares.
  bool has_fewer_than_promised(const Allocation& allocation) const;
  /// Sibling CPUs of its own came online or were allowed since it was placed.
  bool has_arrived_siblings(const Allocation& allocation) const;
  /// Plans what a container can get back. An exclusive one: CPUs that it lacks, the CPUs that it was first given, or
  /// idle siblings that policies want for it. A shared one: more CPUs of the pool, if the policies agree.
  std::optional<Plan> plan_regain(const Allocation& before) const;

  /// It is exclusive and has CPUs that may no longer be used, or it is shared and may use none of its CPUs.
  bool holds_unavailable_cpus(const Allocation& allocation) const;
  /// Moves such a container to other CPUs. It runs, so that a policy's no only counts while there is another place: in
  /// the end it is squeezed into what is left, or left to the kernel.
  Plan plan_vacate(const Allocation& before) const;
  /// The containers in the pool, but for those of `restricted`, that may use other CPUs since the allowed CPUs and the
  /// candidates changed from `allowed_before` and `before`: each with its new `within`.
  std::vector<std::pair<placement::ContainerKey, CpuSet>> widened(
      const CpuSet& allowed_before, const std::vector<placement::Candidate>& before,
      const std::vector<placement::ContainerKey>& restricted) const;
  /// Shared containers that were given less than a whole candidate. They do not grow with it. By key.
  std::vector<placement::ContainerKey> restricted(const CpuSet& allowed,
                                                  const std::vector<placement::Candidate>& candidates) const;

  /// Returns true if every shared container has CPUs while this one moves: its exclusive CPUs are blocked until it has
  /// left.
  bool leaves_others_cpus(const Allocation& before, const Plan& plan) const;

  /// The move that a plugin requested. Nothing if it is impossible or would change the mode.
  std::optional<Plan> plan_requested_move(const Allocation& before, const NodeSet* within,
                                          const std::string& why) const;

 private:
  Plan plan_other_exclusive_cpus(const Allocation& before) const;
  Plan plan_other_shared_cpus(const Allocation& before) const;
  Plan plan_shared_cpus(const Allocation& before, placement::Occasion occasion) const;
  bool borrows_reserved_cpus(const Allocation& allocation) const;
  CpuSet cpus_besides_candidate(const Allocation& allocation) const;
  std::optional<Plan> plan_leaving_reserved_cpus(const Allocation& before) const;
  NodeSet preferred_nodes_of(const Allocation& allocation) const;
  std::string wanted_text(const Allocation& before, std::string why_not) const;
  const placement::Candidate* candidate_of(const CpuSet& within) const;
  std::optional<Plan> plan_return(const Allocation& before) const;
  static bool is_no_loss(const Allocation& before, const Plan& back);
  std::optional<Plan> plan_partial_return(const Allocation& before) const;
  std::optional<std::string> reason_to_return(const Allocation& before, const Plan& back) const;
  std::optional<Plan> plan_missing_cpus(const Allocation& before) const;
  std::optional<Plan> plan_extension(const Allocation& before, const placement::Placement& keep,
                                     std::uint32_t count) const;
  std::optional<Plan> plan_exclusive_again(const Allocation& before) const;
  std::optional<Plan> plan_as_wanted(const Allocation& before) const;
  std::optional<Plan> plan_narrowing(const Allocation& before, const placement::Candidate& candidate) const;

  const Ledger& ledger_;
  const Placer& placer_;
};

}  // namespace topolet::engine
