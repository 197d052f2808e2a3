// What becomes of containers when CPUs go, and of those who share when some come.
#include <fmt/format.h>

#include <algorithm>
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
  take_up(key);
}

void Lifecycle::note_who_is_narrowed(const CpuSet& allowed, const std::vector<Candidate>& candidates) {
  std::vector<ContainerKey> narrowed;
  for (const auto& [key, holding] : room_.bookings.ledger().holdings()) {
    const CpuSet within = holding.within & allowed;
    if (within.empty() || holding.narrowed) continue;
    const bool has_all = std::any_of(candidates.begin(), candidates.end(),
                                     [&within](const Candidate& candidate) { return candidate.cpus == within; });
    if (!has_all) narrowed.push_back(key);
  }
  for (const ContainerKey& key : narrowed) room_.bookings.note_narrowed(key);
}

void Lifecycle::take_up_what_came(const CpuSet& allowed_before, const std::vector<Candidate>& before) {
  const Placer& placer = room_.placer;
  std::vector<std::pair<Holding, CpuSet>> wider;
  for (const auto& [key, holding] : room_.bookings.ledger().holdings()) {
    if (!may_be_moved(holding) || holding.placement.mode == Mode::kExclusive || holding.narrowed) continue;
    const bool anywhere = holding.workload.demand.cpu_request_milli == 0;
    CpuSet within = followed(holding.within, allowed_before, before, placer.candidates(), anywhere);
    if (within != holding.within) wider.emplace_back(holding, std::move(within));
  }
  take_up();
  for (const auto& entry : wider) {
    move(entry.first, [this, old = entry.first.within, within = entry.second](const Holding& now) {
      return now.within == old ? plan_wider(now, within) : std::nullopt;
    });
  }
}

std::optional<Plan> Lifecycle::plan_wider(const Holding& before, const CpuSet& within) const {
  const Candidate* candidate = candidate_of(within);
  if (candidate != nullptr && !before.workload.settings.empty()) {
    if (std::optional<Plan> narrower = plan_narrower(before, *candidate)) return narrower;
  }
  Plan plan;
  plan.decision.placement = before.placement;
  plan.decision.within = within;
  plan.decision.nodes = room_.placer.topology()->nodes_of(within);
  plan.decision.reason =
      fmt::format("CPUs {} have come back, it may use them too", (within - before.within).to_string());
  plan.home = before.home;
  plan.came = before.came;
  return plan;
}

/// For a container that holds CPUs which are gone: other ones, else those that are left, else the pool. For one that
/// shared CPUs none of which is left: others.
std::optional<Plan> Lifecycle::plan_without(const Holding& before, const CpuSet& allowed) const {
  const Ledger& ledger = room_.bookings.ledger();
  Placer::Terms shared;
  shared.only_shared = true;
  Home home = home_of(before, *room_.placer.topology());
  if (!before.home) home.whole = true;
  if (before.placement.mode != Mode::kExclusive) {
    Plan plan = room_.placer.plan(ledger, before.workload, shared);
    if (plan.decision.denied) return std::nullopt;
    plan.decision.reason = "CPUs " + before.within.to_string() + " are gone; " + plan.decision.reason;
    plan.home = std::move(home);
    plan.came = before.came;
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
  plan.decision.reason = gone + plan.decision.reason + told_of_withheld(before.placement, plan.decision.placement);
  plan.home = std::move(home);
  plan.came = before.came;
  return plan;
}

}  // namespace topolet
