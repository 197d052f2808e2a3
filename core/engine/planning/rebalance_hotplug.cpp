// Plans for containers when CPUs go, and for those that share when some come.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/text.hpp"
#include "core/engine/planning/crash_hold.hpp"
#include "core/engine/planning/rebalance_planner.hpp"
#include "core/placement/candidates.hpp"
#include "core/placement/exclusive_claim.hpp"
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

/// The reserved CPUs of a container of a reserved namespace, which has them wherever it was placed.
CpuSet RebalancePlanner::cpus_besides_candidate(const Allocation& allocation) const {
  const bool has_reserved =
      allocation.placement.mode == placement::Mode::kReserved && allocation.squeeze == Squeeze::kNone;
  return has_reserved ? ledger_.inventory().reserved : CpuSet();
}

std::vector<placement::ContainerKey> RebalancePlanner::restricted(
    const CpuSet& allowed, const std::vector<placement::Candidate>& candidates) const {
  std::vector<placement::ContainerKey> keys;
  std::map<std::pair<CpuSet::Words, bool>, bool> are_candidates;  // many containers have the same CPUs
  for (const auto& [key, allocation] : ledger_.allocations()) {
    const CpuSet within = allocation.within & allowed;
    if (within.empty() || allocation.restricted) continue;
    const CpuSet besides = cpus_besides_candidate(allocation) & allowed;
    const auto [has_all, is_new] = are_candidates.try_emplace({within.words(), !besides.empty()});
    if (is_new) {
      has_all->second = std::any_of(candidates.begin(), candidates.end(), [&](const placement::Candidate& candidate) {
        return besides.empty() ? candidate.cpus == within : (candidate.cpus | besides) == within;
      });
    }
    if (!has_all->second) keys.push_back(key);
  }
  return keys;
}

std::vector<std::pair<placement::ContainerKey, CpuSet>> RebalancePlanner::widened(
    const CpuSet& allowed_before, const std::vector<placement::Candidate>& before,
    const std::vector<placement::ContainerKey>& restricted) const {
  std::vector<std::pair<placement::ContainerKey, CpuSet>> changed;
  std::map<std::tuple<CpuSet::Words, bool, bool>, CpuSet> after_change;  // many containers have the same CPUs
  for (const auto& [key, allocation] : ledger_.allocations()) {
    if (!allocation.is_movable_in_pool() || allocation.restricted) continue;
    if (std::binary_search(restricted.begin(), restricted.end(), key)) continue;
    const CpuSet& within = allocation.within;
    const bool anywhere = allocation.workload.demand.cpu_request_milli == 0;
    const CpuSet besides = cpus_besides_candidate(allocation) & allowed_before;
    const auto [known, is_new] = after_change.try_emplace({within.words(), anywhere, !besides.empty()});
    if (is_new) {
      known->second =
          placement::cpus_after_change(within, allowed_before, before, placer_.candidates(), anywhere, besides);
    }
    if (known->second != within) changed.emplace_back(key, known->second);
  }
  return changed;
}

/// Plans the CPUs that are left for a container, depending on those it had; if none is left, the kernel chooses.
Plan RebalancePlanner::plan_vacate(const Allocation& before) const {
  Plan plan = before.is_exclusive() ? plan_other_exclusive_cpus(before) : plan_other_shared_cpus(before);
  if (plan.squeeze != Squeeze::kNone) plan.audit_event = AuditEvent::kSqueezed;
  plan.decision.reason_code = placement::reason_code::kCpusUnavailable;
  plan.arrived_cpus = before.arrived_cpus;
  if (plan.squeeze == Squeeze::kLeftToKernel) {
    plan.preferred = before.preferred;
    return plan;
  }
  plan.preferred = preferred_of(before, *placer_.topology());
  // It would crowd into the first CPU that comes back, while all policies agree to where it is.
  if (!before.preferred) plan.preferred->waits_for_all = plan.squeeze == Squeeze::kNone || before.is_exclusive();
  return plan;
}

/// Others, if the policies agree; else some around those that are left; else these alone; else the nearest others,
/// whatever the policies say of them; else none of its own.
Plan RebalancePlanner::plan_other_exclusive_cpus(const Allocation& before) const {
  const CpuSet& allowed = ledger_.inventory().allowed;
  const auto is_possible = [&](const Plan& plan) {
    return !plan.decision.denied && plan.decision.placement.mode == placement::Mode::kExclusive &&
           leaves_others_cpus(before, plan);
  };
  const auto finish = [&](Plan plan, const std::string& why, Squeeze squeeze) {
    plan.squeeze = squeeze;
    plan.decision.reason = unavailable(before.placement.cpus - allowed) + why + plan.decision.reason +
                           describe_withheld_change(before.placement, plan.decision.placement);
    return plan;
  };
  Placer::Constraints others;
  others.occasion = placement::Occasion::kRepair;
  Plan plan = reclaim_and_plan(placer_, ledger_, before.workload, others);
  if (is_possible(plan)) return finish(std::move(plan), "", Squeeze::kNone);
  const std::string why_not = plan.decision.denied ? plan.decision.reason : "while it moved, others would have no CPUs";
  if (before.placement.cpus.intersects(allowed)) {
    // It does not have to leave the CPUs that it keeps.
    Placer::Constraints around = others;
    around.keep = before.placement;
    around.keep.cpus &= allowed;
    around.must_retain = true;
    plan = reclaim_and_plan(placer_, ledger_, before.workload, around);
    if (is_possible(plan)) return finish(std::move(plan), "", Squeeze::kNone);
  }
  const std::string wanted = wanted_text(before, why_not);
  if (before.placement.cpus.intersects(allowed)) {
    plan = {};
    plan.decision.placement = before.placement;
    plan.decision.placement.cpus &= allowed;
    plan.decision.nodes = placer_.topology()->nodes_of(plan.decision.placement.cpus);
    plan.decision.reason = "it keeps its other CPUs";
    return finish(std::move(plan), wanted, Squeeze::kPlaced);
  }
  Placer::Constraints anywhere = others;
  anywhere.stay_near = nodes_of(before, *placer_.topology());
  plan = reclaim_and_plan(placer_, ledger_, before.workload, anywhere);
  if (is_possible(plan)) {
    return finish(std::move(plan), wanted + "as it runs, it gets the nearest CPUs nevertheless: ", Squeeze::kPlaced);
  }
  plan = plan_shared_cpus(before, placement::Occasion::kRepair);
  const Squeeze squeeze = plan.squeeze == Squeeze::kLeftToKernel ? Squeeze::kLeftToKernel : Squeeze::kPlaced;
  return finish(std::move(plan), wanted, squeeze);
}

Plan RebalancePlanner::plan_other_shared_cpus(const Allocation& before) const {
  Plan plan = plan_shared_cpus(before, placement::Occasion::kRepair);
  const bool are_gone = !before.within.intersects(ledger_.inventory().allowed);
  const bool may_use_reserved = before.placement.mode == placement::Mode::kReserved;
  plan.decision.reason = (are_gone ? unavailable(before.within)
                                   : fmt::format("none of {} is left in the shared pool{}; ",
                                                 named("CPU", before.within), may_use_reserved ? " or reserved" : "")) +
                         plan.decision.reason;
  return plan;
}

/// Shared ones, if the policies agree; else the nearest shared ones; if there are none, the nearest reserved ones; else
/// it stays as it is, left to the kernel.
Plan RebalancePlanner::plan_shared_cpus(const Allocation& before, placement::Occasion occasion) const {
  Placer::Constraints shared;
  shared.occasion = occasion;
  shared.only_shared = true;
  const auto has_cpus = [](const Plan& plan) { return !plan.decision.denied && !plan.decision.placement.cpus.empty(); };
  Plan plan = reclaim_and_plan(placer_, ledger_, before.workload, shared);
  if (has_cpus(plan)) return plan;
  const std::string wanted = before.is_exclusive() ? std::string() : wanted_text(before, plan.decision.reason);
  const auto squeezed = [&wanted](Plan found, const char* into) {
    found.squeeze = Squeeze::kPlaced;
    found.decision.reason =
        fmt::format("{}as it runs, it gets the nearest {}: {}", wanted, into, found.decision.reason);
    return found;
  };
  shared.stay_near = preferred_nodes_of(before);
  plan = placer_.plan(ledger_, before.workload, shared);
  if (has_cpus(plan)) return squeezed(std::move(plan), "shared CPUs nevertheless");
  if (!ledger_.free_reserved().empty()) {
    // They are the system's. But without any CPU, the container would run on those that others have for themselves.
    shared.on_reserved = true;
    plan = placer_.plan(ledger_, before.workload, shared);
    if (has_cpus(plan)) return squeezed(std::move(plan), "reserved CPUs (placement.reserved-cpus)");
  }
  plan.moves.clear();
  plan.squeeze = Squeeze::kLeftToKernel;
  plan.decision.denied = false;
  plan.decision.placement = before.placement;
  plan.decision.within = before.within;
  plan.decision.nodes = before.nodes;
  plan.decision.reason =
      wanted +
      "no CPU is left that it may use: until one is, it runs wherever the kernel lets it, also on the CPUs of "
      "others";
  return plan;
}

bool RebalancePlanner::borrows_reserved_cpus(const Allocation& allocation) const {
  return allocation.placement.mode == placement::Mode::kReserved && allocation.squeeze == Squeeze::kPlaced &&
         shared_mode(allocation.workload, placer_.rules()) == placement::Mode::kShared;
}

/// There are shared CPUs again, but none that the policies agree to, or it wants CPUs of its own.
std::optional<Plan> RebalancePlanner::plan_leaving_reserved_cpus(const Allocation& before) const {
  if (!borrows_reserved_cpus(before) || ledger_.pool().empty()) return std::nullopt;
  Plan plan = plan_shared_cpus(before, placement::Occasion::kMove);
  if (plan.decision.placement.mode != placement::Mode::kShared) return std::nullopt;
  plan.squeeze = Squeeze::kPlaced;
  plan.decision.reason_code = placement::reason_code::kCpusAvailable;
  plan.decision.reason = "it leaves the reserved CPUs, as shared ones are available again; " + plan.decision.reason;
  plan.preferred = before.preferred;
  plan.arrived_cpus = before.arrived_cpus;
  return plan;
}

NodeSet RebalancePlanner::preferred_nodes_of(const Allocation& allocation) const {
  if (!allocation.preferred) return nodes_of(allocation, *placer_.topology());
  const Preferred& preferred = *allocation.preferred;
  if (!preferred.nodes.empty()) return preferred.nodes;
  return placer_.topology()->nodes_of(preferred.placement.cpus | preferred.within);
}

std::string RebalancePlanner::wanted_text(const Allocation& before, std::string why_not) const {
  // A denial begins with the name, which whoever reads about one container knows.
  const std::string name = display_name(before.workload) + ' ';
  if (why_not.starts_with(name)) why_not.replace(0, name.size(), "it ");
  const NodeSet nodes = preferred_nodes_of(before);
  const std::string where = nodes.empty() ? "" : " near " + named("node", nodes);
  const bool wants_exclusive = before.is_exclusive() || before.was_exclusive();
  const CpuSet& within = before.preferred ? before.preferred->within : before.within;
  const std::string what = wants_exclusive
                               ? counted(exclusive_cpus_for(before.workload, placer_.rules()), "exclusive CPU")
                               : "shared CPUs of " + within.to_string();
  return fmt::format("wanted: {}{} ({}); ", what, where, why_not);
}

}  // namespace topolet::engine
