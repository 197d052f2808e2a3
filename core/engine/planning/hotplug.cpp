// What becomes of containers when CPUs go, and of those who share when some come.
#include <algorithm>
#include <utility>
#include <vector>

#include "core/engine/planning/rebalance.hpp"
#include "core/placement/candidates.hpp"

namespace topolet::engine {

bool Rebalance::holds_what_is_gone(const Allocation& allocation) const {
  const LedgerRules& rules = ledger_.rules();
  const bool reserved = allocation.placement.mode == Mode::kReserved;
  const CpuSet open = reserved ? ledger_.pool() | ledger_.free_reserved() : ledger_.pool();
  // A withheld CPU that is gone is idle all the same, and stays withheld for when it comes back.
  return allocation.is_exclusive() ? !allocation.placement.cpus.is_subset_of(rules.allowed)
                                   : !allocation.within.intersects(open);
}

std::vector<ContainerKey> Rebalance::restricted(const CpuSet& allowed, const std::vector<Candidate>& candidates) const {
  std::vector<ContainerKey> keys;
  for (const auto& [key, allocation] : ledger_.allocations()) {
    const CpuSet within = allocation.within & allowed;
    if (within.empty() || allocation.restricted) continue;
    const bool has_all = std::any_of(candidates.begin(), candidates.end(),
                                     [&within](const Candidate& candidate) { return candidate.cpus == within; });
    if (!has_all) keys.push_back(key);
  }
  return keys;
}

CpuSet Rebalance::within_now(const Allocation& allocation, const CpuSet& allowed_before,
                             const std::vector<Candidate>& before) const {
  if (allocation.is_exclusive() || allocation.restricted) return allocation.within;
  const bool anywhere = allocation.workload.demand.cpu_request_milli == 0;
  return followed(allocation.within, allowed_before, before, placer_.candidates(), anywhere);
}

/// For a container that holds CPUs which are gone: other ones, else those that are left, else the pool. For one that
/// shared CPUs none of which is left: others.
std::optional<Plan> Rebalance::leave_what_is_gone(const Allocation& before) const {
  const CpuSet& allowed = ledger_.rules().allowed;
  Placer::Terms shared;
  shared.only_shared = true;
  Preferred preferred = preferred_of(before, *placer_.topology());
  if (!before.preferred) preferred.whole = true;
  if (before.placement.mode != Mode::kExclusive) {
    Plan plan = placer_.plan(ledger_, before.workload, shared);
    if (plan.decision.denied) return std::nullopt;
    plan.decision.reason = "CPUs " + before.within.to_string() + " are gone; " + plan.decision.reason;
    plan.preferred = std::move(preferred);
    plan.arrived_cpus = before.arrived_cpus;
    return plan;
  }
  const std::string gone = "CPUs " + (before.placement.cpus - allowed).to_string() + " are gone; ";
  Plan plan = placer_.plan(ledger_, before.workload);
  const bool is_elsewhere = !plan.decision.denied && plan.decision.placement.mode == Mode::kExclusive;
  if (!is_elsewhere || !leaves_others_enough(before, plan)) {
    const std::string why = is_elsewhere ? "others would have no CPUs while it moves" : plan.decision.reason;
    plan = {};
    plan.decision.placement = before.placement;
    plan.decision.placement.cpus &= allowed;
    plan.decision.nodes = placer_.topology()->nodes_of(plan.decision.placement.cpus);
    plan.decision.reason = "it keeps what is left: " + why;
    if (plan.decision.placement.cpus.empty()) plan = placer_.plan(ledger_, before.workload, shared);
  }
  plan.decision.reason = gone + plan.decision.reason + told_of_withheld(before.placement, plan.decision.placement);
  plan.preferred = std::move(preferred);
  plan.arrived_cpus = before.arrived_cpus;
  return plan;
}

}  // namespace topolet::engine
