#include "core/engine/state/draft.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/placement/decide.hpp"

namespace topolet::engine {

const Allocation* Draft::find(const ContainerKey& key) const {
  const auto changed = changes_.find(key);
  if (changed == changes_.end()) return ledger_.find(key);
  return changed->second.after ? &*changed->second.after : nullptr;
}

Change& Draft::change_of(const ContainerKey& key) {
  const auto [change, is_new] = changes_.try_emplace(key);
  if (!is_new) return change->second;
  order_.push_back(key);
  if (const Allocation* before = ledger_.find(key); before != nullptr) {
    change->second.before = change->second.after = *before;
  }
  return change->second;
}

/// Every allocation as it is in the draft.
template <class Visit>
void Draft::for_each(Visit visit) const {
  for (const auto& [key, allocation] : ledger_.allocations()) {
    if (changes_.count(key) == 0) visit(key, allocation);
  }
  for (const auto& [key, change] : changes_) {
    if (change.after) visit(key, *change.after);
  }
}

void Draft::put(Allocation after) {
  drop_secrets(after.workload);
  Change& change = change_of(after.workload.key);
  change.after = std::move(after);
}

void Draft::put(Allocation after, Audit audit, std::optional<std::int64_t> supersedes) {
  const ContainerKey key = after.workload.key;
  put(std::move(after));
  Change& change = change_of(key);
  change.audit = std::move(audit);
  change.supersedes = supersedes;
  if (!supersedes && change.before) change.supersedes = change.before->decision;
}

void Draft::tell(const ContainerKey& key, Outcome outcome) { change_of(key).outcome = std::move(outcome); }

void Draft::end(const ContainerKey& key, const std::string& cause) {
  const Allocation* ended = find(key);
  if (ended == nullptr) return;
  remember(*ended);
  Change& change = change_of(key);
  change.after.reset();
  change.cause = cause;
}

std::int64_t Draft::remark(Audit audit, std::optional<Allocation> about) {
  transition_.remarks.push_back({std::move(audit), next_decision_, std::move(about)});
  return next_decision_++;
}

/// Its next attempt is given the same CPUs if they are free then.
void Draft::remember(const Allocation& ended) {
  if (!ended.is_exclusive() || ledger_.pods().count(ended.workload.key.sandbox_id) == 0) return;
  Pod known = pod(ended.workload.key.sandbox_id);
  const Former former{ended.placement.cpus, ended.placement.withheld};
  Former& kept = known.former[ended.workload.key.name];
  if (kept == former) return;
  kept = former;
  put_pod(std::move(known));
}

Pod Draft::pod(const std::string& sandbox_id) const {
  for (auto change = transition_.pods.rbegin(); change != transition_.pods.rend(); ++change) {
    if (change->sandbox_id == sandbox_id && change->after) return *change->after;
  }
  if (const auto known = ledger_.pods().find(sandbox_id); known != ledger_.pods().end()) return known->second;
  Pod unknown;
  unknown.sandbox.id = sandbox_id;
  return unknown;
}

void Draft::put_pod(Pod pod) {
  drop_secrets(pod);
  std::string id = pod.sandbox.id;
  transition_.pods.push_back({std::move(id), std::move(pod)});
}

void Draft::forget_pod(const std::string& sandbox_id) { transition_.pods.push_back({sandbox_id, std::nullopt}); }

void Draft::compute_pool() {
  HeldAlone held;
  for_each([&](const ContainerKey&, const Allocation& allocation) { held.add(allocation); });
  transition_.pool = Ledger::pool_of(rules(), held.exclusive, held.withheld);
  free_reserved_ = held.free_reserved_of(rules());
}

/// Shared containers go back where CPUs are free again that they had to leave.
void Draft::return_displaced() {
  std::vector<Allocation> back;
  for_each([&](const ContainerKey&, const Allocation& allocation) {
    if (!allocation.preferred || allocation.preferred->placement.mode == Mode::kExclusive) return;
    const CpuSet& within = allocation.preferred->within;
    const bool reserved = allocation.placement.mode == Mode::kReserved;
    const CpuSet open = reserved ? transition_.pool | free_reserved_ : transition_.pool;
    const bool is_there = !allocation.preferred->whole || within.is_subset_of(rules().allowed);
    if (is_there && within.intersects(open)) back.push_back(allocation);
  });
  for (Allocation& allocation : back) {
    const Preferred preferred = *std::exchange(allocation.preferred, std::nullopt);
    allocation.placement.cpus = allocation.within = allocation.evaluated_cpus = preferred.within;
    allocation.arrived_cpus = {};
    allocation.restricted = false;
    const std::string why = "CPUs that it had to leave are free again: it goes back to " + preferred.within.to_string();
    allocation.reason = why;
    put(std::move(allocation), {"re-placed", why, preferred.nodes, Verdicts()});
  }
}

void Draft::follow_pool() {
  std::vector<Allocation> moved;
  for_each([&](const ContainerKey&, const Allocation& allocation) {
    if (!allocation.follows_pool() || allocation.conflict) return;
    CpuSet cpus = shared_cpus(allocation.placement.mode, allocation.within, transition_.pool, free_reserved_,
                              !allocation.workload.kubelet_cpus.empty());
    // Decisions never leave a shared container without CPUs; should one slip through, it stays where it is.
    if (cpus.empty() || cpus == allocation.placement.cpus) return;
    moved.push_back(allocation);
    moved.back().placement.cpus = std::move(cpus);
  });
  for (Allocation& allocation : moved) put(std::move(allocation));
}

void Draft::drop_unchanged() {
  std::erase_if(order_, [this](const ContainerKey& key) {
    const Change& change = changes_.at(key);
    const bool same = change.before == change.after && !change.audit && !change.outcome;
    if (same) changes_.erase(key);
    return same;
  });
}

/// A container that the runtime has may run where it was until it has been seen elsewhere. Where somebody who follows
/// the pool stays shows once the pool is known.
void Draft::note_vacating(bool pool_is_known) {
  for (auto& [key, change] : changes_) {
    if (!change.after) continue;
    Allocation& after = *change.after;
    if (!after.is_managed()) {
      after.vacating = after.vacating_alone = {};
      continue;
    }
    if (change.before && change.before->is_managed()) after.vacating |= change.before->placement.cpus;
    const bool stays = pool_is_known || !after.follows_pool() || after.conflict;
    if (stays) after.vacating -= after.placement.cpus;
    after.vacating_alone &= after.vacating;
  }
}

void Draft::number() {
  transition_.generation = ledger_.generation() + 1;
  for (const ContainerKey& key : order_) {
    Change& change = changes_.at(key);
    if (change.after) change.after->generation = transition_.generation;
    if (change.after && change.audit) {
      change.after->decision = next_decision_++;
      if (change.after->is_bound() && !change.outcome) change.outcome = Outcome{"bound"};
    }
    transition_.changes.push_back(std::move(change));
  }
  transition_.next_decision = next_decision_;
}

Transition Draft::finish() && {
  transition_.pool_before = transition_.pool = ledger_.pool();
  if (changes_.empty() && !transition_.rules && !transition_.records_pool) {
    number();
    return std::move(transition_);
  }
  note_vacating(false);  // what was had alone and is being left is not in the pool
  compute_pool();
  return_displaced();
  follow_pool();
  note_vacating(true);
  drop_unchanged();
  number();
  return std::move(transition_);
}

}  // namespace topolet::engine
