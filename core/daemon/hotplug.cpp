// What becomes of containers when CPUs go and come.
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/daemon/lifecycle.hpp"
#include "core/placement/candidates.hpp"

namespace topolet {

void Lifecycle::leave_all_but(const CpuSet& allowed) {
  const Ledger& ledger = room_.bookings.ledger();
  std::vector<ContainerKey> keys;
  for (const auto& [key, holding] : ledger.holdings()) {
    if (holds_what_is_gone(holding, allowed)) keys.push_back(key);
  }
  for (const ContainerKey& key : keys) leave_what_is_gone(key);
}

bool Lifecycle::holds_what_is_gone(const Holding& holding, const CpuSet& allowed) const {
  if (!may_be_moved(holding)) return false;
  const Ledger& ledger = room_.bookings.ledger();
  const CpuSet open = ledger.pool() | (holding.placement.mode == Mode::kReserved ? ledger.rules().reserved : CpuSet());
  const bool alone = holding.placement.mode == Mode::kExclusive;
  // A withheld CPU that is gone is idle all the same, and stays withheld for when it comes back.
  return alone ? !holding.placement.cpus.is_subset_of(allowed) : !holding.within.intersects(open);
}

void Lifecycle::leave_what_is_gone(const ContainerKey& key) {
  const CpuSet allowed = room_.bookings.ledger().rules().allowed;
  const Holding* holding = room_.bookings.ledger().find(key);
  if (holding == nullptr || !holds_what_is_gone(*holding, allowed)) return;
  move(*holding, [this, allowed](const Holding& before) { return plan_without(before, allowed); });
}

void Lifecycle::catch_up(const ContainerKey& key) {
  leave_what_is_gone(key);
  take_up_what_came(key);
}

void Lifecycle::take_up_what_came(const CpuSet& allowed_before, const std::vector<Candidate>& before) {
  const Placer& placer = room_.placer;
  const Ledger& ledger = room_.bookings.ledger();
  const CpuSet came = ledger.rules().allowed - allowed_before;
  if (!came.empty()) {
    came_ = came;
    came_at_ = ledger.generation();
  }
  std::vector<ContainerKey> alone;
  std::vector<std::pair<Holding, CpuSet>> wider;
  for (const auto& [key, holding] : ledger.holdings()) {
    if (!may_be_moved(holding)) continue;
    if (holding.placement.mode == Mode::kExclusive) {
      // Before those that lack some: these could take them from beside somebody.
      const bool first = beside(*placer.topology(), holding.placement.cpus).intersects(came);
      if (!came.empty()) alone.insert(first ? alone.begin() : alone.end(), key);
      continue;
    }
    const bool anywhere = holding.workload.demand.cpu_request_milli == 0;
    CpuSet within = followed(holding.within, allowed_before, before, placer.candidates(), anywhere);
    if (within != holding.within) wider.emplace_back(holding, std::move(within));
  }
  for (const ContainerKey& key : alone) take_up_what_came(key);
  for (const auto& entry : wider) {
    move(entry.first,
         [&placer, old = entry.first.within, within = entry.second](const Holding& now) -> std::optional<Plan> {
           if (now.within != old) return std::nullopt;
           Plan plan;
           plan.decision.placement = now.placement;
           plan.decision.within = within;
           plan.decision.nodes = placer.topology()->nodes_of(within);
           plan.decision.reason =
               fmt::format("CPUs {} have come back, it may use them too", (within - old).to_string());
           return plan;
         });
  }
}

/// Only whom it concerns what came: others would take up what their neighbours left.
void Lifecycle::take_up_what_came(const ContainerKey& key) {
  const Holding* holding = room_.bookings.ledger().find(key);
  if (holding == nullptr || !may_be_moved(*holding) || holding->placement.mode != Mode::kExclusive) return;
  if (holding->generation >= came_at_) return;
  const CpuSet& had = holding->placement.cpus;
  const bool lacks_some = had.size() < cpus_of_its_own(holding->workload, room_.placer.rules());
  if (!lacks_some && !beside(*room_.placer.topology(), had).intersects(came_)) return;
  move(*holding, [this](const Holding& now) { return plan_with_what_came(now); });
}

/// For a container with CPUs of its own: those that it had to do without, and what the policies now keep others off
/// beside them, of what came. It stays where it is, and nothing is let go of.
std::optional<Plan> Lifecycle::plan_with_what_came(const Holding& before) const {
  const Ledger& ledger = room_.bookings.ledger();
  if (before.placement.mode != Mode::kExclusive) return std::nullopt;
  const CpuSet& had = before.placement.cpus;
  const auto has = static_cast<std::uint32_t>(had.size());
  Placer::Terms terms;
  terms.keep = before.placement;
  terms.must_keep = true;
  for (const std::uint32_t count : {cpus_of_its_own(before.workload, room_.placer.rules()), has}) {
    if (count < has) continue;
    terms.exclusive_cpus = count;
    Plan plan = room_.placer.plan(ledger, before.workload, terms);
    Placement& placement = plan.decision.placement;
    placement.withheld |= before.placement.withheld - ledger.rules().allowed;
    const CpuSet held = placement.cpus | placement.withheld;
    const CpuSet held_before = had | before.placement.withheld;
    const bool fits =
        had.is_subset_of(placement.cpus) && held_before.is_subset_of(held) && held.is_subset_of(held_before | came_);
    if (plan.decision.denied || placement.mode != Mode::kExclusive || !fits) continue;
    if (placement.cpus == had && placement.withheld == before.placement.withheld) return std::nullopt;
    if (placement.cpus == had) placement.mems = before.placement.mems;
    plan.decision.reason = "CPUs have come back; " + plan.decision.reason;
    return plan;
  }
  return std::nullopt;
}

/// For a container that holds CPUs which are gone: other ones, else those that are left, else the pool. For one that
/// shared CPUs none of which is left: others.
std::optional<Plan> Lifecycle::plan_without(const Holding& before, const CpuSet& allowed) const {
  const Ledger& ledger = room_.bookings.ledger();
  Placer::Terms shared;
  shared.only_shared = true;
  if (before.placement.mode != Mode::kExclusive) {
    Plan plan = room_.placer.plan(ledger, before.workload, shared);
    if (plan.decision.denied) return std::nullopt;
    plan.decision.reason = "CPUs " + before.within.to_string() + " are gone; " + plan.decision.reason;
    return plan;
  }
  const std::string gone = "CPUs " + (before.placement.cpus - allowed).to_string() + " are gone; ";
  Plan plan = room_.placer.plan(ledger, before.workload);
  if (plan.decision.denied || plan.decision.placement.mode != Mode::kExclusive) {
    const std::string why = plan.decision.reason;
    plan = {};
    plan.decision.placement = before.placement;
    plan.decision.placement.cpus &= allowed;
    plan.decision.nodes = room_.placer.topology()->nodes_of(plan.decision.placement.cpus);
    plan.decision.reason = "it keeps what is left: " + why;
    if (plan.decision.placement.cpus.empty()) plan = room_.placer.plan(ledger, before.workload, shared);
  }
  plan.decision.reason = gone + plan.decision.reason;
  return plan;
}

}  // namespace topolet
