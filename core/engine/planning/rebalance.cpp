#include "core/engine/planning/rebalance.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "core/placement/candidates.hpp"

namespace topolet::engine {
namespace {

bool was_exclusive(const Allocation& allocation) {
  return allocation.preferred && allocation.preferred->placement.mode == Mode::kExclusive;
}

}  // namespace

bool Rebalance::has_siblings_that_arrived(const Allocation& allocation) const {
  return !allocation.arrived_cpus.empty() &&
         beside(*placer_.topology(), allocation.placement.cpus).intersects(allocation.arrived_cpus);
}

bool Rebalance::lacks_cpus(const Allocation& allocation) const {
  const std::size_t promised = cpus_of_its_own(allocation.workload, placer_.rules());
  return promised > (allocation.is_exclusive() ? allocation.placement.cpus.size() : 0);
}

bool Rebalance::may_reclaim(const Allocation& allocation) const {
  if (was_exclusive(allocation)) return true;
  const CpuSet& cpus = allocation.placement.cpus;
  if (allocation.is_exclusive()) {
    return lacks_cpus(allocation) || has_siblings_that_arrived(allocation);
  }
  // Without annotations of its own a container is treated as all are, however large the pool is.
  const bool has_more = !allocation.workload.settings.empty() && !cpus.is_subset_of(allocation.evaluated_cpus);
  return has_more && !allocation.restricted && candidate_of(allocation.within) != nullptr;
}

std::optional<Plan> Rebalance::reclaim(const Allocation& before) const {
  std::optional<Plan> plan = go_back(before);
  if (!plan && before.is_exclusive()) plan = complete(before);
  if (!plan && !before.is_exclusive() && was_exclusive(before)) plan = alone_again(before);
  if (plan) plan->decision.reason += told_of_withheld(before.placement, plan->decision.placement);
  if (plan || before.is_exclusive() || was_exclusive(before)) return plan;
  const Candidate* candidate = candidate_of(before.within);
  return candidate != nullptr ? narrower(before, *candidate) : std::nullopt;
}

/// Back to just the CPUs that it was given: if it lacks some, or is worse off where it is.
std::optional<Plan> Rebalance::go_back(const Allocation& before) const {
  if (!was_exclusive(before)) return std::nullopt;
  const Placement& former = before.preferred->placement;
  const bool is_there = before.is_exclusive() && before.placement.cpus == former.cpus;
  if (is_there || former.cpus.size() != cpus_of_its_own(before.workload, placer_.rules())) return std::nullopt;
  Placer::Terms terms;
  terms.keep = former;
  terms.must_keep = true;
  Plan plan = placer_.plan(ledger_, before.workload, terms);
  Placement& placement = plan.decision.placement;
  if (plan.decision.denied || placement.mode != Mode::kExclusive || placement.cpus != former.cpus) return std::nullopt;
  if (!leaves_others_enough(before, plan)) return std::nullopt;
  const std::optional<std::string> lost = lost_since(before, plan);
  if (!lost) return std::nullopt;
  const LedgerView others = ledger_.view(&before.workload.key);
  const CpuSet idle = (former.withheld | before.placement.withheld) & beside(*placer_.topology(), former.cpus);
  placement.withheld |= idle - others.allowed - others.exclusive - others.withheld;
  plan.decision.reason = fmt::format("it goes back to the CPUs that it was given, {}{}; {}", former.cpus.to_string(),
                                     *lost, plan.decision.reason);
  plan.arrived_cpus = before.arrived_cpus | (former.withheld - placement.withheld);
  return plan;
}

/// What a container is without as long as it does not go back, as more words of the reason; nothing if it is well off.
std::optional<std::string> Rebalance::lost_since(const Allocation& before, const Plan& back) const {
  const Placement& now = before.placement;
  const Verdicts& verdicts = back.decision.verdicts;
  if (!before.is_exclusive()) return "";
  if (lacks_cpus(before)) {
    const CpuSet held = back.decision.placement.cpus | back.decision.placement.withheld;
    const bool stays_idle = now.withheld.empty() || now.withheld.is_subset_of(held) || verdicts.dropped.empty();
    return stays_idle ? std::optional<std::string>("") : std::nullopt;
  }
  const Topology& topology = *placer_.topology();
  const NodeSet elsewhere = topology.nodes_of(now.cpus) - topology.nodes_of(before.preferred->placement.cpus);
  if (!elsewhere.empty())
    return fmt::format(", and leaves node{} {}", elsewhere.size() == 1 ? "" : "s", elsewhere.to_string());
  Placer::Terms terms;
  terms.keep = now;
  terms.must_keep = true;
  const Decision stays = placer_.plan(ledger_, before.workload, terms).decision;
  if (stays.denied) return ", as where it is would be denied: " + stays.reason;
  if (stays.verdicts.dropped.size() <= verdicts.dropped.size()) return std::nullopt;
  return fmt::format(", where this need not be dropped: {}", fmt::join(stays.verdicts.dropped, "; "));
}

/// Nothing is let go of. What it lacks may come from anywhere, and of what it had first. Of the CPUs beside it what
/// came is withheld, not what neighbours left: that it never had.
std::optional<Plan> Rebalance::complete(const Allocation& before) const {
  const DecideRules& rules = placer_.rules();
  const CpuSet& pool = ledger_.pool();
  const auto has = static_cast<std::uint32_t>(before.placement.cpus.size());
  const std::uint32_t promised = cpus_of_its_own(before.workload, rules);
  const auto open = static_cast<std::uint32_t>(pool.size());
  const std::uint32_t spare = open - std::min(open, rules.min_shared_cpus);
  Placement with_former = before.placement;
  if (before.preferred) with_former.cpus |= before.preferred->placement.cpus & pool;
  const auto with_those = static_cast<std::uint32_t>(with_former.cpus.size());
  for (const std::uint32_t count : std::set<std::uint32_t, std::greater<>>{promised, has + spare, with_those}) {
    if (count > promised || count <= has) continue;
    std::optional<Plan> plan;
    if (count >= with_those && with_those > has) plan = extend(before, with_former, count);
    if (!plan) plan = extend(before, before.placement, count);
    if (plan) return plan;
  }
  return promised < has ? std::nullopt : extend(before, before.placement, has);
}

std::optional<Plan> Rebalance::extend(const Allocation& before, const Placement& keep, std::uint32_t count) const {
  const CpuSet& had = before.placement.cpus;
  Placer::Terms terms;
  terms.keep = keep;
  terms.must_keep = true;
  terms.exclusive_cpus = count;
  Plan plan = placer_.plan(ledger_, before.workload, terms);
  Placement& placement = plan.decision.placement;
  if (plan.decision.denied || placement.mode != Mode::kExclusive) return std::nullopt;
  placement.withheld |= before.placement.withheld - ledger_.rules().allowed;
  const CpuSet held = placement.cpus | placement.withheld;
  const CpuSet held_before = had | before.placement.withheld;
  const bool may_take_any = lacks_cpus(before) || was_exclusive(before);
  const bool keeps_all = had.is_subset_of(placement.cpus) && held_before.is_subset_of(held);
  if (!keeps_all || !(may_take_any || held.is_subset_of(held_before | before.arrived_cpus))) return std::nullopt;
  if (placement.cpus == had && placement.withheld == before.placement.withheld) return std::nullopt;
  if (placement.cpus == had) placement.mems = before.placement.mems;
  const CpuSet took = placement.cpus - had;
  const std::string what = took.empty() ? "CPUs beside it" : "CPUs that it lacked, " + took.to_string() + ',';
  plan.decision.reason = what + " can be had again; " + plan.decision.reason;
  plan.arrived_cpus = before.arrived_cpus;
  if (was_exclusive(before) && placement.cpus != before.preferred->placement.cpus) {
    plan.preferred = before.preferred;
  } else if (before.preferred) {
    plan.arrived_cpus |= before.preferred->placement.withheld - placement.withheld;
  }
  return plan;
}

/// For one that had to share, as all its CPUs were gone.
std::optional<Plan> Rebalance::alone_again(const Allocation& before) const {
  Plan plan = placer_.plan(ledger_, before.workload);
  if (plan.decision.denied || plan.decision.placement.mode != Mode::kExclusive) return std::nullopt;
  plan.decision.reason = "it has CPUs of its own again; " + plan.decision.reason;
  plan.preferred = before.preferred;
  plan.arrived_cpus = before.arrived_cpus;
  return plan;
}

/// The candidate that a container which may use `within` has all of; null if it was narrowed.
const Candidate* Rebalance::candidate_of(const CpuSet& within) const {
  const CpuSet all = within & ledger_.rules().allowed;
  const std::vector<Candidate>& candidates = placer_.candidates();
  const auto own = std::find_if(candidates.begin(), candidates.end(),
                                [&all](const Candidate& candidate) { return candidate.cpus == all; });
  return own == candidates.end() ? nullptr : &*own;
}

/// While little of a candidate was open, to use less than all of that was not to be told from using all.
std::optional<Plan> Rebalance::narrower(const Allocation& before, const Candidate& candidate) const {
  Placer::Terms terms;
  terms.only_shared = true;
  terms.nodes = candidate.nodes;
  Plan plan = placer_.plan(ledger_, before.workload, terms);
  const CpuSet& within = plan.decision.within;
  if (plan.decision.denied || within == candidate.cpus || !within.is_subset_of(candidate.cpus)) return std::nullopt;
  plan.decision.reason = "more CPUs are open to it; " + plan.decision.reason;
  plan.preferred = before.preferred;
  plan.arrived_cpus = before.arrived_cpus;
  return plan;
}

bool Rebalance::leaves_others_enough(const Allocation& before, const Plan& plan) const {
  if (!before.is_exclusive()) return true;
  const CpuSet pool = ledger_.pool() - plan.decision.placement.cpus - plan.decision.placement.withheld;
  if (pool.empty()) return false;
  std::map<ContainerKey, CpuSet> within;
  for (const Move& move : plan.moves) within[move.workload.key] = move.decision.within;
  const CpuSet reserved = ledger_.free_reserved();
  const auto& allocations = ledger_.allocations();
  return std::all_of(allocations.begin(), allocations.end(), [&](const auto& entry) {
    const auto& [key, other] = entry;
    if (!other.follows_pool() || other.conflict || !other.workload.kubelet_cpus.empty()) return true;
    const auto moved = within.find(key);
    const CpuSet& wanted = moved == within.end() ? other.within : moved->second;
    const CpuSet extra = other.placement.mode == Mode::kReserved ? reserved : CpuSet();
    // One that has nowhere to go now is no worse off.
    return wanted.intersects(pool | extra) || !other.within.intersects(ledger_.pool() | extra);
  });
}

std::optional<Plan> Rebalance::replace(const Allocation& before, const NodeSet* within, const std::string& why) const {
  Workload workload = before.workload;
  workload.pod_nodes = ledger_.nodes_of_pod(workload.key.pod_uid, workload.key.sandbox_id);
  Placer::Terms terms;
  terms.only_shared = !before.is_exclusive();
  if (within != nullptr) terms.within = *within;
  Plan plan = placer_.plan(ledger_, workload, terms);
  if (plan.decision.denied || plan.decision.placement.mode != before.placement.mode) return std::nullopt;
  if (!leaves_others_enough(before, plan)) return std::nullopt;
  plan.decision.reason = why + "; " + plan.decision.reason;
  return plan;
}

}  // namespace topolet::engine
