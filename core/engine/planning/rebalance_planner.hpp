// Where containers would be placed anew: because CPUs came or went, because somebody gave some back, or because a
// plugin wishes it. Plans only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/engine/planning/placer.hpp"
#include "core/engine/state/ledger.hpp"

namespace topolet::engine {

/// Over a ledger and a placer that must outlive it, as they are at each call.
class RebalancePlanner {
 public:
  RebalancePlanner(const Ledger& ledger, const Placer& placer) : ledger_(ledger), placer_(placer) {}

  /// Whom plan_regain() may concern, so that not all are asked.
  bool may_regain(const Allocation& allocation) const;
  /// It has fewer CPUs of its own than its demand entitles it to; none if it shares.
  bool has_fewer_than_promised(const Allocation& allocation) const;
  /// CPUs beside its own came since it was placed.
  bool has_arrived_siblings(const Allocation& allocation) const;
  /// What a container can have by now of what it had to do without: with CPUs of its own, what it lacks of them, the
  /// CPUs it was given if it is worse off elsewhere, and the idle siblings that policies want for it; sharing, the
  /// policies' word on what more of the pool is open to it.
  std::optional<Plan> plan_regain(const Allocation& before) const;

  /// It has CPUs that may not be used any more, or shares none that may.
  bool holds_unavailable_cpus(const Allocation& allocation) const;
  /// Other CPUs for such a container, else those that are left, else the pool.
  std::optional<Plan> plan_vacate(const Allocation& before) const;
  /// Sharing: what it may use when other CPUs than `allowed_before`, with those candidates, are allowed; as it is if it
  /// was restricted.
  CpuSet within_after_change(const Allocation& allocation, const CpuSet& allowed_before,
                             const std::vector<placement::Candidate>& before) const;
  /// Shared containers whose CPUs are those of no candidate: they were narrowed, and stay so.
  std::vector<placement::ContainerKey> restricted(const CpuSet& allowed,
                                                  const std::vector<placement::Candidate>& candidates) const;

  /// Whether all who share have CPUs while the container moves: what it has alone now is nobody's until it has left.
  bool leaves_others_cpus(const Allocation& before, const Plan& plan) const;

  /// As a plugin asked for it. Nothing if it would change the mode, or cannot be.
  std::optional<Plan> plan_requested_move(const Allocation& before, const NodeSet* within,
                                          const std::string& why) const;

 private:
  const placement::Candidate* candidate_of(const CpuSet& within) const;
  std::optional<Plan> plan_return(const Allocation& before) const;
  std::optional<std::string> reason_to_return(const Allocation& before, const Plan& back) const;
  std::optional<Plan> plan_missing_cpus(const Allocation& before) const;
  std::optional<Plan> plan_extension(const Allocation& before, const placement::Placement& keep,
                                     std::uint32_t count) const;
  std::optional<Plan> plan_exclusive_again(const Allocation& before) const;
  std::optional<Plan> plan_narrowing(const Allocation& before, const placement::Candidate& candidate) const;

  const Ledger& ledger_;
  const Placer& placer_;
};

}  // namespace topolet::engine
