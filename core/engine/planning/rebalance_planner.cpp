#include "core/engine/planning/rebalance_planner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "core/base/text.hpp"
#include "core/placement/candidates.hpp"
#include "core/placement/exclusive_claim.hpp"
#include "core/placement/kept_cpus.hpp"
#include "core/placement/reason_codes.hpp"
#include "core/placement/validate.hpp"

namespace topolet::engine {
namespace {

Placer::Constraints to_be_better_off() {
  Placer::Constraints constraints;
  constraints.occasion = placement::Occasion::kMove;
  return constraints;
}

}  // namespace

bool RebalancePlanner::has_arrived_siblings(const Allocation& allocation) const {
  const CpuSet arrived = allocation.arrived_cpus - allocation.placement.cpus;
  const std::vector<CpuSet>& cores = placer_.topology()->cores;
  return !arrived.empty() && std::any_of(cores.begin(), cores.end(), [&](const CpuSet& core) {
    return core.intersects(arrived) && core.intersects(allocation.placement.cpus);
  });
}

bool RebalancePlanner::has_fewer_than_promised(const Allocation& allocation) const {
  const std::size_t promised = exclusive_cpus_for(allocation.workload, placer_.rules());
  return promised > (allocation.is_exclusive() ? allocation.placement.cpus.size() : 0);
}

bool RebalancePlanner::may_regain(const Allocation& allocation) const {
  if (allocation.was_exclusive() || allocation.squeeze == Squeeze::kPlaced) return true;
  const CpuSet cpus = allocation.home_cpus();
  if (allocation.is_exclusive()) {
    return has_fewer_than_promised(allocation) || has_arrived_siblings(allocation);
  }
  // Policies narrow a shared container by its annotations, as a rule: to ask them again about each other one whenever
  // there are more CPUs in the pool would cost more than it brings.
  const bool has_more = !allocation.workload.settings.empty() && !cpus.is_subset_of(allocation.evaluated_cpus);
  return has_more && !allocation.restricted && candidate_of(allocation.within) != nullptr;
}

std::optional<Plan> RebalancePlanner::plan_regain(const Allocation& before) const {
  std::optional<Plan> plan = plan_return(before);
  if (!plan && before.is_exclusive()) plan = plan_partial_return(before);
  if (!plan && before.is_exclusive()) plan = plan_missing_cpus(before);
  if (!plan && !before.is_exclusive() && before.was_exclusive()) plan = plan_exclusive_again(before);
  if (!plan && before.squeeze == Squeeze::kPlaced) plan = plan_as_wanted(before);
  if (!plan) plan = plan_leaving_reserved_cpus(before);
  if (plan) {
    plan->decision.reason += describe_withheld_change(before.placement, plan->decision.placement);
    const bool lacks = before.was_exclusive() &&
                       exclusive_cpus_for(before.workload, placer_.rules()) > plan->decision.placement.cpus.size();
    if (lacks && before.squeeze != Squeeze::kNone) plan->squeeze = Squeeze::kPlaced;
    return plan;
  }
  if (before.is_exclusive() || before.was_exclusive()) return plan;
  const placement::Candidate* candidate = candidate_of(before.within);
  return candidate != nullptr ? plan_narrowing(before, *candidate) : std::nullopt;
}

/// For one that was squeezed: anywhere, if the policies agree to it.
std::optional<Plan> RebalancePlanner::plan_as_wanted(const Allocation& before) const {
  if (before.was_exclusive() && !before.is_exclusive()) return std::nullopt;
  Placer::Constraints constraints = to_be_better_off();
  constraints.only_shared = !before.is_exclusive();
  Plan plan = placer_.plan(ledger_, before.workload, constraints);
  const bool is_exclusive = plan.decision.placement.mode == placement::Mode::kExclusive;
  if (plan.decision.denied || is_exclusive != before.is_exclusive()) return std::nullopt;
  if (plan.decision.placement.cpus.empty() || !leaves_others_cpus(before, plan)) return std::nullopt;
  plan.decision.reason_code = placement::reason_code::kCpusAvailable;
  plan.decision.reason = "a place that no policy rejects is available; " + plan.decision.reason;
  plan.preferred = before.preferred;
  plan.arrived_cpus = before.arrived_cpus;
  return plan;
}

/// Back to just the CPUs that it was given: if it lacks some, or is worse off where it is.
std::optional<Plan> RebalancePlanner::plan_return(const Allocation& before) const {
  if (!before.was_exclusive()) return std::nullopt;
  const placement::Placement& former = before.preferred->placement;
  const bool is_there = before.is_exclusive() && before.placement.cpus == former.cpus;
  if (is_there || former.cpus.size() != exclusive_cpus_for(before.workload, placer_.rules())) return std::nullopt;
  Placer::Constraints constraints = to_be_better_off();
  constraints.keep = former;
  constraints.must_retain = true;
  Plan plan = placer_.plan(ledger_, before.workload, constraints);
  placement::Placement& placement = plan.decision.placement;
  if (plan.decision.denied || placement.mode != placement::Mode::kExclusive || placement.cpus != former.cpus)
    return std::nullopt;
  if (!leaves_others_cpus(before, plan)) return std::nullopt;
  const std::optional<std::string> lost = reason_to_return(before, plan);
  if (!lost) return std::nullopt;
  const placement::LedgerSnapshot others = ledger_.snapshot(&before.workload.key);
  const CpuSet idle =
      (former.withheld | before.placement.withheld) & core_siblings_of(*placer_.topology(), former.cpus);
  placement.withheld |= idle - others.allowed - others.exclusive - others.withheld;
  plan.decision.reason_code = placement::reason_code::kReturned;
  plan.decision.reason = fmt::format("it returns to the CPUs that it was given when placed, {}{}; {}",
                                     former.cpus.to_string(), *lost, plan.decision.reason);
  plan.arrived_cpus = before.arrived_cpus | (former.withheld - placement.withheld);
  return plan;
}

/// Returns true if the CPUs kept idle for it stay so, or policies do not miss them.
bool RebalancePlanner::is_no_loss(const Allocation& before, const Plan& back) {
  const CpuSet& idle = before.placement.withheld;
  const CpuSet held = back.decision.placement.cpus | back.decision.placement.withheld;
  return idle.empty() || idle.is_subset_of(held) || back.decision.verdicts.dropped.empty();
}

/// Some of the CPUs that it was given have come back, in place of others that it has, if it is no more apart then.
std::optional<Plan> RebalancePlanner::plan_partial_return(const Allocation& before) const {
  if (!before.was_exclusive() || has_fewer_than_promised(before)) return std::nullopt;
  const topology::Topology& topology = *placer_.topology();
  const CpuSet& now = before.placement.cpus;
  const CpuSet& former = before.preferred->placement.cpus;
  const CpuSet came = former & before.arrived_cpus & ledger_.pool();
  const CpuSet back = came - now - ledger_.barred_for(&before.workload.key);
  Placer::Constraints constraints = to_be_better_off();
  constraints.keep = before.placement;
  constraints.keep.cpus = (now & former) | back;
  if (back.empty() || constraints.keep.cpus.size() > now.size()) return std::nullopt;
  for (const std::uint32_t cpu : now - former) {
    if (constraints.keep.cpus.size() < now.size()) constraints.keep.cpus.insert(cpu);
  }
  if (!placement::are_as_near(topology, constraints.keep.cpus, now)) return std::nullopt;
  constraints.must_retain = true;
  Plan plan = placer_.plan(ledger_, before.workload, constraints);
  const bool has_them = !plan.decision.denied && plan.decision.placement.mode == placement::Mode::kExclusive &&
                        plan.decision.placement.cpus == constraints.keep.cpus;
  if (!has_them || !is_no_loss(before, plan) || !leaves_others_cpus(before, plan)) return std::nullopt;
  plan.decision.reason_code = placement::reason_code::kReturned;
  plan.decision.reason = fmt::format("it gets {} back, which it was given when placed, available again; {}",
                                     named("CPU", back), plan.decision.reason);
  plan.preferred = before.preferred;
  plan.arrived_cpus = before.arrived_cpus;
  return plan;
}

/// Returns why the container should return, as a continuation of the reason; nothing if it would be worse off.
std::optional<std::string> RebalancePlanner::reason_to_return(const Allocation& before, const Plan& back) const {
  const placement::Placement& now = before.placement;
  const placement::Verdicts& verdicts = back.decision.verdicts;
  if (!before.is_exclusive()) return "";
  if (has_fewer_than_promised(before)) return is_no_loss(before, back) ? std::optional<std::string>("") : std::nullopt;
  const topology::Topology& topology = *placer_.topology();
  const CpuSet& former = before.preferred->placement.cpus;
  const NodeSet elsewhere = topology.nodes_of(now.cpus) - topology.nodes_of(former);
  if (!elsewhere.empty()) return ", and leaves " + named("node", elsewhere);
  const CpuSet outside = topology.cpus_outside_nodes();
  if (now.cpus.intersects(outside) && !former.intersects(outside)) return ", and leaves the CPUs outside any node";
  Placer::Constraints constraints = to_be_better_off();
  constraints.keep = now;
  constraints.must_retain = true;
  const placement::Decision stays = placer_.plan(ledger_, before.workload, constraints).decision;
  if (stays.denied) return ", as staying where it is would be denied: " + stays.reason;
  if (stays.verdicts.dropped.size() <= verdicts.dropped.size()) {
    // A repair: only because some of them were gone does it have others.
    const bool is_as_well_off = is_no_loss(before, back) && placement::are_as_near(topology, former, now.cpus);
    return is_as_well_off ? std::optional<std::string>(", available again") : std::nullopt;
  }
  return fmt::format(", because this is dropped where it is now: {}", fmt::join(stays.verdicts.dropped, "; "));
}

/// Keeps all CPUs that it has. Missing ones may come from anywhere, its former CPUs first. Siblings of its CPUs may be
/// withheld if they came online since, but not if neighbours released them, as it never had those.
std::optional<Plan> RebalancePlanner::plan_missing_cpus(const Allocation& before) const {
  const placement::PlacementRules& rules = placer_.rules();
  const CpuSet& pool = ledger_.pool();
  const std::size_t open = (pool - ledger_.barred_for(&before.workload.key)).size();
  const auto spare = static_cast<std::uint32_t>(std::min(spare_cpus(pool, rules), open));
  const auto has = static_cast<std::uint32_t>(before.placement.cpus.size());
  const std::uint32_t promised = exclusive_cpus_for(before.workload, rules);
  placement::Placement with_former = before.placement;
  if (before.preferred) with_former.cpus |= before.preferred->placement.cpus & pool;
  const auto count_with_former = static_cast<std::uint32_t>(with_former.cpus.size());
  for (const std::uint32_t count : std::set<std::uint32_t, std::greater<>>{promised, has + spare, count_with_former}) {
    if (count > promised || count <= has) continue;
    std::optional<Plan> plan;
    if (count >= count_with_former && count_with_former > has) plan = plan_extension(before, with_former, count);
    if (!plan) plan = plan_extension(before, before.placement, count);
    if (plan) return plan;
  }
  return promised < has ? std::nullopt : plan_extension(before, before.placement, has);
}

std::optional<Plan> RebalancePlanner::plan_extension(const Allocation& before, const placement::Placement& keep,
                                                     std::uint32_t count) const {
  const CpuSet& had = before.placement.cpus;
  Placer::Constraints constraints = to_be_better_off();
  constraints.keep = keep;
  constraints.must_retain = true;
  constraints.exclusive_cpus = count;
  Plan plan = placer_.plan(ledger_, before.workload, constraints);
  placement::Placement& placement = plan.decision.placement;
  if (plan.decision.denied || placement.mode != placement::Mode::kExclusive) return std::nullopt;
  placement.withheld |= before.placement.withheld - ledger_.inventory().allowed;
  const CpuSet held = placement.cpus | placement.withheld;
  const CpuSet held_before = had | before.placement.withheld;
  const bool may_take_any = has_fewer_than_promised(before) || before.was_exclusive();
  const bool keeps_all = had.is_subset_of(placement.cpus) && held_before.is_subset_of(held);
  if (!keeps_all || !(may_take_any || held.is_subset_of(held_before | before.arrived_cpus))) return std::nullopt;
  if (placement.cpus == had && placement.withheld == before.placement.withheld) return std::nullopt;
  if (placement.cpus == had) placement.mems = before.placement.mems;  // it does not move, nor does its memory
  const CpuSet took = placement.cpus - had;
  const std::string what = took.empty()
                               ? "CPUs to withhold beside its own are available again"
                               : fmt::format("it gets {}, since it had fewer CPUs than requested", named("CPU", took));
  plan.decision.reason_code = placement::reason_code::kCpusAvailable;
  plan.decision.reason = what + "; " + plan.decision.reason;
  plan.arrived_cpus = before.arrived_cpus;
  if (before.was_exclusive() && placement.cpus != before.preferred->placement.cpus) {
    plan.preferred = before.preferred;
  } else if (before.preferred) {
    plan.arrived_cpus |= before.preferred->placement.withheld - placement.withheld;
  }
  return plan;
}

/// For one that had to share, as all its CPUs were gone.
std::optional<Plan> RebalancePlanner::plan_exclusive_again(const Allocation& before) const {
  Plan plan = placer_.plan(ledger_, before.workload, to_be_better_off());
  if (plan.decision.denied || plan.decision.placement.mode != placement::Mode::kExclusive) return std::nullopt;
  plan.decision.reason_code = placement::reason_code::kExclusiveAgain;
  plan.decision.reason = "it gets exclusive CPUs again; " + plan.decision.reason;
  plan.preferred = before.preferred;
  plan.arrived_cpus = before.arrived_cpus;
  return plan;
}

/// The candidate that a container which may use `within` has all of; null if it was narrowed.
const placement::Candidate* RebalancePlanner::candidate_of(const CpuSet& within) const {
  const CpuSet all = within & ledger_.inventory().allowed;
  const std::vector<placement::Candidate>& candidates = placer_.candidates();
  const auto own = std::find_if(candidates.begin(), candidates.end(),
                                [&all](const placement::Candidate& candidate) { return candidate.cpus == all; });
  return own == candidates.end() ? nullptr : &*own;
}

/// While only a few of the candidate's CPUs were in the pool, policies may have had nothing to narrow. Now they are
/// asked again.
std::optional<Plan> RebalancePlanner::plan_narrowing(const Allocation& before,
                                                     const placement::Candidate& candidate) const {
  Placer::Constraints constraints = to_be_better_off();
  constraints.only_shared = true;
  constraints.exact_candidate = candidate;
  Plan plan = placer_.plan(ledger_, before.workload, constraints);
  const CpuSet& within = plan.decision.within;
  if (plan.decision.denied || within == candidate.cpus || !within.is_subset_of(candidate.cpus)) return std::nullopt;
  plan.decision.reason_code = placement::reason_code::kCpusAvailable;
  plan.decision.reason = "more CPUs are available to it; " + plan.decision.reason;
  plan.preferred = before.preferred;
  plan.arrived_cpus = before.arrived_cpus;
  return plan;
}

bool RebalancePlanner::leaves_others_cpus(const Allocation& before, const Plan& plan) const {
  if (!before.is_exclusive()) return true;
  const CpuSet pool = ledger_.pool() - plan.decision.placement.cpus - plan.decision.placement.withheld;
  if (pool.empty() && placer_.rules().min_shared_cpus > 0) return false;
  std::map<placement::ContainerKey, CpuSet> within;
  for (const Move& move : plan.moves) within[move.workload.key] = move.decision.within;
  const CpuSet free_reserved = ledger_.free_reserved();
  const auto& allocations = ledger_.allocations();
  return std::all_of(allocations.begin(), allocations.end(), [&](const auto& entry) {
    const auto& [key, other] = entry;
    if (!other.is_movable_in_pool()) return !pool.empty() || !other.follows_pool();
    const auto moved = within.find(key);
    const CpuSet& wanted = moved == within.end() ? other.within : moved->second;
    const placement::Mode mode = other.placement.mode;
    // A container that has nowhere to go now is not worse off.
    return wanted.intersects(pool_for(mode, pool, free_reserved)) ||
           !other.within.intersects(pool_for(mode, ledger_.pool(), free_reserved));
  });
}

std::optional<Plan> RebalancePlanner::plan_requested_move(const Allocation& before, const NodeSet* within,
                                                          const std::string& why) const {
  placement::Workload workload = before.workload;
  workload.pod_nodes = ledger_.nodes_of_pod(workload.key.pod_uid, workload.key.sandbox_id);
  Placer::Constraints constraints = to_be_better_off();
  constraints.only_shared = !before.is_exclusive();
  if (within != nullptr) constraints.within_nodes = *within;
  Plan plan = placer_.plan(ledger_, workload, constraints);
  if (plan.decision.denied || plan.decision.placement.mode != before.placement.mode) return std::nullopt;
  if (!leaves_others_cpus(before, plan)) return std::nullopt;
  plan.decision.reason_code = placement::reason_code::kRequestedByPlugin;
  plan.decision.reason = why + "; " + plan.decision.reason;
  plan.cause = MoveCause::kPlugin;
  return plan;
}

}  // namespace topolet::engine
