// What containers take up of what they had to do without.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/daemon/lifecycle.hpp"

namespace topolet {
namespace {

bool is_alone(const Holding& holding) { return holding.placement.mode == Mode::kExclusive; }

bool had_its_own(const Holding& holding) { return holding.home && holding.home->placement.mode == Mode::kExclusive; }

}  // namespace

void Lifecycle::take_up() {
  const Topology& topology = *room_.placer.topology();
  std::vector<ContainerKey> first;
  std::vector<ContainerKey> lacking;
  std::vector<ContainerKey> sharing;
  for (const auto& [key, holding] : room_.bookings.ledger().holdings()) {
    if (!may_be_moved(holding) || !might_take_up(holding)) continue;
    if (!is_alone(holding) && !had_its_own(holding)) {
      sharing.push_back(key);
      continue;
    }
    // Before those that lack some: these could take them from beside somebody.
    const bool regains = !lacks_cpus(holding) || beside(topology, holding.placement.cpus).intersects(holding.came);
    (regains ? first : lacking).push_back(key);
  }
  for (const std::vector<ContainerKey>& keys : {first, lacking, sharing}) {
    for (const ContainerKey& key : keys) take_up(key);
  }
}

void Lifecycle::take_up(const ContainerKey& key) {
  const Holding* holding = room_.bookings.ledger().find(key);
  if (holding == nullptr || !may_be_moved(*holding) || !might_take_up(*holding)) return;
  move(*holding, [this](const Holding& before) {
    room_.bookings.note_asked(before.workload.key);
    return plan_to_take_up(before);
  });
}

bool Lifecycle::lacks_cpus(const Holding& holding) const {
  const std::size_t promised = cpus_of_its_own(holding.workload, room_.placer.rules());
  return promised > (is_alone(holding) ? holding.placement.cpus.size() : 0);
}

/// Whom it may concern, so that not all are asked.
bool Lifecycle::might_take_up(const Holding& holding) const {
  if (had_its_own(holding)) return true;
  const CpuSet& cpus = holding.placement.cpus;
  if (is_alone(holding)) {
    return lacks_cpus(holding) || beside(*room_.placer.topology(), cpus).intersects(holding.came);
  }
  // Without annotations of its own a container is treated as all are, however large the pool is.
  const bool has_more = !holding.workload.settings.empty() && !cpus.is_subset_of(holding.asked_on);
  return has_more && !holding.narrowed && candidate_of(holding.within) != nullptr;
}

std::optional<Plan> Lifecycle::plan_to_take_up(const Holding& before) const {
  std::optional<Plan> plan = plan_home(before);
  if (!plan && is_alone(before)) plan = plan_where_it_is(before);
  if (!plan && !is_alone(before) && had_its_own(before)) plan = plan_alone_again(before);
  if (plan) plan->decision.reason += told_of_withheld(before.placement, plan->decision.placement);
  if (plan || is_alone(before) || had_its_own(before)) return plan;
  const Candidate* candidate = candidate_of(before.within);
  return candidate != nullptr ? plan_narrower(before, *candidate) : std::nullopt;
}

/// Back to just the CPUs that it was given: if it lacks some, or is worse off where it is.
std::optional<Plan> Lifecycle::plan_home(const Holding& before) const {
  if (!had_its_own(before)) return std::nullopt;
  const Ledger& ledger = room_.bookings.ledger();
  const Placement& home = before.home->placement;
  const bool is_there = is_alone(before) && before.placement.cpus == home.cpus;
  if (is_there || home.cpus.size() != cpus_of_its_own(before.workload, room_.placer.rules())) return std::nullopt;
  Placer::Terms terms;
  terms.keep = home;
  terms.must_keep = true;
  Plan plan = room_.placer.plan(ledger, before.workload, terms);
  Placement& placement = plan.decision.placement;
  if (plan.decision.denied || placement.mode != Mode::kExclusive || placement.cpus != home.cpus) return std::nullopt;
  // Until it has left the CPUs that it has now, they are nobody else's either.
  if ((ledger.pool() - placement.cpus - placement.withheld).empty()) return std::nullopt;
  const std::optional<std::string> lost = lost_since(before, plan);
  if (!lost) return std::nullopt;
  const LedgerView others = ledger.view(&before.workload.key);
  const CpuSet idle = (home.withheld | before.placement.withheld) & beside(*room_.placer.topology(), home.cpus);
  placement.withheld |= idle - others.allowed - others.exclusive - others.withheld;
  plan.decision.reason = fmt::format("it goes back to the CPUs that it was given, {}{}; {}", home.cpus.to_string(),
                                     *lost, plan.decision.reason);
  plan.came = before.came | (home.withheld - placement.withheld);
  return plan;
}

/// What a container is without as long as it does not go home, as more words of the reason; nothing if it is well off.
std::optional<std::string> Lifecycle::lost_since(const Holding& before, const Plan& home) const {
  const Placement& now = before.placement;
  const VerdictsRow& verdicts = home.decision.verdicts;
  if (!is_alone(before)) return "";
  if (lacks_cpus(before)) {
    const CpuSet held = home.decision.placement.cpus | home.decision.placement.withheld;
    const bool stays_idle = now.withheld.empty() || now.withheld.is_subset_of(held) || verdicts.dropped.empty();
    return stays_idle ? std::optional<std::string>("") : std::nullopt;
  }
  const Topology& topology = *room_.placer.topology();
  const NodeSet elsewhere = topology.nodes_of(now.cpus) - topology.nodes_of(before.home->placement.cpus);
  if (!elsewhere.empty())
    return fmt::format(", and leaves node{} {}", elsewhere.size() == 1 ? "" : "s", elsewhere.to_string());
  Placer::Terms terms;
  terms.keep = now;
  terms.must_keep = true;
  const Decision stays = room_.placer.plan(room_.bookings.ledger(), before.workload, terms).decision;
  if (stays.denied) return ", as where it is would be denied: " + stays.reason;
  if (stays.verdicts.dropped.size() <= verdicts.dropped.size()) return std::nullopt;
  return fmt::format(", where this need not be dropped: {}", fmt::join(stays.verdicts.dropped, "; "));
}

/// Nothing is let go of. What it lacks may come from anywhere, and of what it had first. Of the CPUs beside it what
/// came is withheld, not what neighbours left: that it never had.
std::optional<Plan> Lifecycle::plan_where_it_is(const Holding& before) const {
  const DecideRules& rules = room_.placer.rules();
  const CpuSet& pool = room_.bookings.ledger().pool();
  const auto has = static_cast<std::uint32_t>(before.placement.cpus.size());
  const std::uint32_t promised = cpus_of_its_own(before.workload, rules);
  const auto open = static_cast<std::uint32_t>(pool.size());
  const std::uint32_t spare = open - std::min(open, rules.min_shared_cpus);
  Placement with_former = before.placement;
  if (before.home) with_former.cpus |= before.home->placement.cpus & pool;
  const auto with_those = static_cast<std::uint32_t>(with_former.cpus.size());
  for (const std::uint32_t count : std::set<std::uint32_t, std::greater<>>{promised, has + spare, with_those}) {
    if (count > promised || count <= has) continue;
    std::optional<Plan> plan;
    if (count >= with_those && with_those > has) plan = plan_beside(before, with_former, count);
    if (!plan) plan = plan_beside(before, before.placement, count);
    if (plan) return plan;
  }
  return promised < has ? std::nullopt : plan_beside(before, before.placement, has);
}

std::optional<Plan> Lifecycle::plan_beside(const Holding& before, const Placement& keep, std::uint32_t count) const {
  const Ledger& ledger = room_.bookings.ledger();
  const CpuSet& had = before.placement.cpus;
  Placer::Terms terms;
  terms.keep = keep;
  terms.must_keep = true;
  terms.exclusive_cpus = count;
  Plan plan = room_.placer.plan(ledger, before.workload, terms);
  Placement& placement = plan.decision.placement;
  if (plan.decision.denied || placement.mode != Mode::kExclusive) return std::nullopt;
  placement.withheld |= before.placement.withheld - ledger.rules().allowed;
  const CpuSet held = placement.cpus | placement.withheld;
  const CpuSet held_before = had | before.placement.withheld;
  const bool may_take_any = lacks_cpus(before) || had_its_own(before);
  const bool keeps_all = had.is_subset_of(placement.cpus) && held_before.is_subset_of(held);
  if (!keeps_all || !(may_take_any || held.is_subset_of(held_before | before.came))) return std::nullopt;
  if (placement.cpus == had && placement.withheld == before.placement.withheld) return std::nullopt;
  if (placement.cpus == had) placement.mems = before.placement.mems;
  const CpuSet took = placement.cpus - had;
  const std::string what = took.empty() ? "CPUs beside it" : "CPUs that it lacked, " + took.to_string() + ',';
  plan.decision.reason = what + " can be had again; " + plan.decision.reason;
  plan.came = before.came;
  if (had_its_own(before) && placement.cpus != before.home->placement.cpus) {
    plan.home = before.home;
  } else if (before.home) {
    plan.came |= before.home->placement.withheld - placement.withheld;
  }
  return plan;
}

/// For one that had to share, as all its CPUs were gone.
std::optional<Plan> Lifecycle::plan_alone_again(const Holding& before) const {
  const Ledger& ledger = room_.bookings.ledger();
  Plan plan = room_.placer.plan(ledger, before.workload);
  if (plan.decision.denied || plan.decision.placement.mode != Mode::kExclusive) return std::nullopt;
  plan.decision.reason = "it has CPUs of its own again; " + plan.decision.reason;
  plan.home = before.home;
  plan.came = before.came;
  return plan;
}

/// The candidate that a container which may use `within` has all of; null if it was narrowed.
const Candidate* Lifecycle::candidate_of(const CpuSet& within) const {
  const CpuSet all = within & room_.bookings.ledger().rules().allowed;
  const std::vector<Candidate>& candidates = room_.placer.candidates();
  const auto own = std::find_if(candidates.begin(), candidates.end(),
                                [&all](const Candidate& candidate) { return candidate.cpus == all; });
  return own == candidates.end() ? nullptr : &*own;
}

/// While little of a candidate was open, to use less than all of that was not to be told from using all.
std::optional<Plan> Lifecycle::plan_narrower(const Holding& before, const Candidate& candidate) const {
  Placer::Terms terms;
  terms.only_shared = true;
  terms.nodes = candidate.nodes;
  Plan plan = room_.placer.plan(room_.bookings.ledger(), before.workload, terms);
  const CpuSet& within = plan.decision.within;
  if (plan.decision.denied || within == candidate.cpus || !within.is_subset_of(candidate.cpus)) return std::nullopt;
  plan.decision.reason = "more CPUs are open to it; " + plan.decision.reason;
  plan.home = before.home;
  plan.came = before.came;
  return plan;
}

}  // namespace topolet
