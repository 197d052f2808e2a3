// What becomes of containers when CPUs go, and of those who share when some come.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/text.hpp"
#include "core/engine/planning/rebalance_planner.hpp"
#include "core/placement/candidates.hpp"
#include "core/placement/reason_codes.hpp"

namespace topolet::engine {
namespace {

std::string unavailable(const CpuSet& cpus) {
  return fmt::format("{} {} no longer available; ", named("CPU", cpus), cpus.size() == 1 ? "is" : "are");
}

}  // namespace

bool RebalancePlanner::holds_unavailable_cpus(const Allocation& allocation) const {
  // A withheld CPU that is gone is idle all the same, and stays withheld for when it comes back.
  if (allocation.is_exclusive()) return !allocation.placement.cpus.is_subset_of(ledger_.inventory().allowed);
  // Most containers have CPUs in the pool. The costlier look at the reserved CPUs is for the others only.
  if (allocation.within.intersects(ledger_.pool())) return false;
  return !allocation.within.intersects(pool_for(allocation.placement.mode, ledger_.pool(), ledger_.free_reserved()));
}

std::vector<placement::ContainerKey> RebalancePlanner::restricted(
    const CpuSet& allowed, const std::vector<placement::Candidate>& candidates) const {
  std::vector<placement::ContainerKey> keys;
  for (const auto& [key, allocation] : ledger_.allocations()) {
    const CpuSet within = allocation.within & allowed;
    if (within.empty() || allocation.restricted) continue;
    const bool has_all =
        std::any_of(candidates.begin(), candidates.end(),
                    [&within](const placement::Candidate& candidate) { return candidate.cpus == within; });
    if (!has_all) keys.push_back(key);
  }
  return keys;
}

CpuSet RebalancePlanner::within_after_change(const Allocation& allocation, const CpuSet& allowed_before,
                                             const std::vector<placement::Candidate>& before) const {
  if (allocation.is_exclusive() || allocation.restricted) return allocation.within;
  const bool anywhere = allocation.workload.demand.cpu_request_milli == 0;
  return placement::cpus_after_change(allocation.within, allowed_before, before, placer_.candidates(), anywhere);
}

/// An exclusive container that lost CPUs gets others; if that is impossible, it keeps those that are left; if none are
/// left, it shares the pool. A shared container that lost all its CPUs gets others.
std::optional<Plan> RebalancePlanner::plan_vacate(const Allocation& before) const {
  const CpuSet& allowed = ledger_.inventory().allowed;
  Placer::Constraints shared;
  shared.only_shared = true;
  Preferred preferred = preferred_of(before, *placer_.topology());
  if (!before.preferred) preferred.waits_for_all = true;
  if (before.placement.mode != placement::Mode::kExclusive) {
    Plan plan = placer_.plan(ledger_, before.workload, shared);
    if (plan.decision.denied) return std::nullopt;
    plan.decision.reason = unavailable(before.within) + plan.decision.reason;
    plan.decision.reason_code = placement::reason_code::kCpusUnavailable;
    plan.preferred = std::move(preferred);
    plan.arrived_cpus = before.arrived_cpus;
    return plan;
  }
  const std::string gone = unavailable(before.placement.cpus - allowed);
  Plan plan = placer_.plan(ledger_, before.workload);
  const bool is_elsewhere = !plan.decision.denied && plan.decision.placement.mode == placement::Mode::kExclusive;
  if (!is_elsewhere || !leaves_others_cpus(before, plan)) {
    const std::string why =
        is_elsewhere ? "while it moved, shared containers would have no CPUs" : plan.decision.reason;
    plan = {};
    plan.decision.placement = before.placement;
    plan.decision.placement.cpus &= allowed;
    plan.decision.nodes = placer_.topology()->nodes_of(plan.decision.placement.cpus);
    plan.decision.reason = "it keeps its other CPUs: " + why;
    if (plan.decision.placement.cpus.empty()) plan = placer_.plan(ledger_, before.workload, shared);
  }
  plan.decision.reason_code = placement::reason_code::kCpusUnavailable;
  plan.decision.reason =
      gone + plan.decision.reason + describe_withheld_change(before.placement, plan.decision.placement);
  plan.preferred = std::move(preferred);
  plan.arrived_cpus = before.arrived_cpus;
  return plan;
}

}  // namespace topolet::engine
