// The part of the draft that brings the containers which share CPUs to where the pool of the draft lets them be.
#include "core/engine/state/draft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/text.hpp"
#include "core/engine/state/shared_load.hpp"
#include "core/placement/reason_codes.hpp"
#include "core/placement/validate.hpp"

namespace topolet::engine {

/// Shared containers go back where CPUs are free again that they had to leave; one that was just moved does so later.
void Draft::return_displaced() {
  std::vector<const Allocation*> back;
  for_each([&](const placement::ContainerKey&, const Allocation& allocation) {
    if (!allocation.preferred || allocation.was_exclusive() || allocation.stuck) return;
    const Preferred& preferred = *allocation.preferred;
    // One that had to go to the reserved CPUs returns to the pool only.
    const bool is_there = !preferred.waits_for_all || preferred.within.is_subset_of(inventory().allowed);
    if (!is_there || !is_open(preferred.placement.mode, preferred.within)) return;
    // One that is due already goes on waiting.
    if (!preferred.is_due || !waits_to_return(allocation)) back.push_back(&allocation);
  });
  keep_from_crowding(back);
  for (const Allocation* displaced : back) {
    Allocation allocation = *displaced;
    if (waits_to_return(allocation)) {
      allocation.preferred->is_due = true;
      put(std::move(allocation));
      continue;
    }
    const Preferred preferred = *std::exchange(allocation.preferred, std::nullopt);
    allocation.last_move = LastMove{transition_.wall_time, MoveCause::kReturn};
    allocation.moved_from.reset();
    allocation.placement.mode = preferred.placement.mode;
    allocation.placement.cpus = allocation.within = allocation.evaluated_cpus = preferred.within;
    allocation.widening.reset();
    allocation.arrived_cpus = {};
    allocation.restricted = false;
    allocation.squeeze = Squeeze::kNone;
    allocation.nodes = preferred.nodes;
    const std::string why = "CPUs that it had to leave are free again: it returns to " + named("CPU", preferred.within);
    allocation.reason = why;
    put(std::move(allocation),
        {AuditEvent::kReplaced, why, preferred.nodes, std::nullopt, placement::reason_code::kReturned});
  }
}

/// Returns true if a container of this mode may run on some of these CPUs.
bool Draft::is_open(placement::Mode mode, const CpuSet& cpus) const {
  const bool is_reserved = mode == placement::Mode::kReserved;
  return cpus.intersects(transition_.pool) || (is_reserved && cpus.intersects(transition_.free_reserved));
}

/// Returns the shared CPUs of a container that follows the pool.
CpuSet Draft::shared_cpus_of(const Allocation& allocation) const {
  if (allocation.conflict) return allocation.placement.cpus;
  CpuSet cpus = home_cpus_of(allocation);
  // One that yields leaves its home rather than run where the others need the CPUs. Nobody is left without any.
  if (const CpuSet left_over = narrowed_to(allocation) & transition_.pool; !left_over.empty()) {
    CpuSet at_home = cpus & left_over;
    return at_home.empty() ? left_over : at_home;
  }
  if (allocation.is_widened()) cpus |= allocation.widening->cpus & transition_.pool;
  return cpus;
}

/// Returns what it is to be narrowed to; nothing if it is not.
CpuSet Draft::narrowed_to(const Allocation& allocation) const {
  if (!allocation.yields()) return {};
  return transition_.besteffort ? *transition_.besteffort : ledger_.besteffort();
}

/// The same without those that it is widened by.
CpuSet Draft::home_cpus_of(const Allocation& allocation) const {
  return home_cpus_of(allocation, allocation.placement.mode, allocation.within);
}

/// The same, if it had this mode and might use these CPUs.
CpuSet Draft::home_cpus_of(const Allocation& allocation, placement::Mode mode, const CpuSet& within) const {
  return shared_cpus(mode, within, transition_.pool, transition_.free_reserved,
                     !allocation.workload.kubelet_cpus.empty());
}

/// Returns false if it may stay for now: it is where the policies agree to, and has CPUs there.
bool Draft::has_to_return(const Allocation& allocation) const {
  const placement::Mode mode = allocation.placement.mode;
  const Allocation* before = ledger_.find(allocation.workload.key);
  const bool can_move_again = before != nullptr && before->stuck && !allocation.stuck;
  return can_move_again || allocation.squeeze != Squeeze::kNone || mode != allocation.preferred->placement.mode ||
         !is_open(mode, allocation.within);
}

/// Returns true if it may stay and was moved so short a time ago that it does.
bool Draft::waits_to_return(const Allocation& allocation) const {
  return was_just_moved(allocation, transition_.wall_time) && !has_to_return(allocation);
}

/// Returns true if it is as well off where it is as where it would go back to.
bool Draft::may_stay_displaced(const Allocation& allocation) const {
  return !has_to_return(allocation) && shared_request_milli(allocation) > 0;
}

/// Such a container goes back only when CPUs that it had to leave become free, and if there is room: where too much
/// would be requested, it would have to move once more.
void Draft::keep_from_crowding(std::vector<const Allocation*>& back) const {
  const CpuSet gained = (transition_.pool - ledger_.pool()) | (transition_.free_reserved - ledger_.free_reserved());
  std::erase_if(back, [&](const Allocation* displaced) {
    const bool is_called_back = displaced->preferred->is_due || displaced->preferred->within.intersects(gained);
    return may_stay_displaced(*displaced) && !transition_.inventory && !is_called_back;
  });
  if (std::none_of(back.begin(), back.end(), [this](const auto* a) { return may_stay_displaced(*a); })) return;
  SharedLoadSum sum;
  for_each([&](const placement::ContainerKey&, const Allocation& allocation) {
    if (!allocation.follows_pool()) return;
    const CpuSet cpus = allocation.conflict ? allocation.placement.cpus : home_cpus_of(allocation);
    sum.add(cpus, shared_request_milli(allocation));
  });
  SharedLoad load = sum.load();
  std::erase_if(back, [&](const Allocation* displaced) {
    const Allocation& allocation = *displaced;
    const Preferred& preferred = *allocation.preferred;
    const CpuSet now = allocation.conflict ? allocation.placement.cpus : home_cpus_of(allocation);
    const CpuSet home = allocation.conflict ? allocation.placement.cpus
                                            : home_cpus_of(allocation, preferred.placement.mode, preferred.within);
    const std::int64_t milli = shared_request_milli(allocation);
    const SharedLoad::Load mean = load.mean(now);
    load.remove(now, milli);
    load.add(home, milli);
    if (!may_stay_displaced(allocation) || load.mean(home) <= std::max(mean, SharedLoad::kWholeCpu)) return false;
    load.remove(home, milli);
    load.add(now, milli);
    return true;
  });
}

/// Whoever does not leave CPUs is given no others: it would not leave those either, and nobody could have them alone.
void Draft::hold_stuck() {
  std::vector<Allocation> held;
  for_each([&](const placement::ContainerKey&, const Allocation& allocation) {
    if (!allocation.stuck || !allocation.is_movable_in_pool()) return;
    const CpuSet stays_on = allocation.placement.cpus | allocation.vacating | allocation.stuck->cpus;
    const CpuSet cpus = shared_cpus_of(allocation);
    if (cpus.is_subset_of(stays_on) || !cpus.intersects(stays_on)) return;
    held.push_back(allocation);
    Allocation& kept = held.back();
    if (!kept.preferred) kept.preferred = Preferred{{kept.placement.mode, {}, {}, {}}, kept.within, kept.nodes};
    kept.within &= stays_on;
    if (kept.widening) kept.widening->cpus &= stays_on;
  });
  for (Allocation& allocation : held) {
    allocation.reason = fmt::format("it cannot be moved, so that it is given no CPUs besides {} until it can be",
                                    named("CPU", shared_cpus_of(allocation)));
    AuditEntry audit{AuditEvent::kReplaced, allocation.reason, allocation.nodes};
    audit.reason_code = placement::reason_code::kStuckKept;
    put(std::move(allocation), std::move(audit));
  }
}

/// Returns true if a container that does not change otherwise has the same CPUs after the change of the pool: it is at
/// home, and nothing comes or goes there. What a store or the machine has told is looked at whole.
bool Draft::is_left_alone(const Allocation& allocation, const CpuSet& coming_or_going) const {
  if (transition_.inventory || transition_.writes_pool || reconsiders_all_) return false;
  if (allocation.is_widened() || allocation.yields()) return false;
  const CpuSet& within = allocation.within;
  return !within.intersects(coming_or_going) && !allocation.placement.cpus.empty() &&
         allocation.placement.cpus.is_subset_of(within);
}

void Draft::follow_pool() {
  const auto changed_cpus = [](const CpuSet& before, const CpuSet& now) { return (before - now) | (now - before); };
  const CpuSet coming_or_going =
      changed_cpus(ledger_.pool(), transition_.pool) | changed_cpus(ledger_.free_reserved(), transition_.free_reserved);
  std::vector<std::pair<placement::ContainerKey, CpuSet>> moved;
  const auto follow = [&](const placement::ContainerKey& key, const Allocation& allocation) {
    if (!allocation.follows_pool() || allocation.conflict) return;
    CpuSet cpus = shared_cpus_of(allocation);
    // Decisions never leave a shared container without CPUs; should one slip through, it stays where it is.
    if (cpus.empty() || cpus == allocation.placement.cpus) return;
    moved.emplace_back(key, std::move(cpus));
  };
  for_each_other([&](const placement::ContainerKey& key, const Allocation& allocation) {
    if (!is_left_alone(allocation, coming_or_going)) follow(key, allocation);
  });
  for_each_changed(follow);
  for (auto& [key, cpus] : moved) change_of(key).after->placement.cpus = std::move(cpus);
  note_narrowed();
}

/// All that change know what they are narrowed to: so does whoever reads them back.
void Draft::note_narrowed() {
  for (auto& [key, change] : changes_) {
    if (change.after) change.after->narrowed_to = narrowed_to(*change.after);
  }
}

/// Gives containers that were left to the kernel their CPUs again as soon as they may use them.
void Draft::end_squeezes() {
  std::vector<Allocation> back;
  for_each([&](const placement::ContainerKey&, const Allocation& allocation) {
    if (allocation.squeeze != Squeeze::kLeftToKernel) return;
    const CpuSet open = pool_for(allocation.placement.mode, transition_.pool, transition_.free_reserved);
    const bool has_cpus = allocation.is_exclusive() ? allocation.placement.cpus.is_subset_of(inventory().allowed)
                                                    : allocation.within.intersects(open);
    if (has_cpus) back.push_back(allocation);
  });
  for (Allocation& allocation : back) {
    allocation.squeeze = allocation.preferred ? Squeeze::kPlaced : Squeeze::kNone;
    allocation.reason =
        fmt::format("CPUs that it may use are available again: it runs on {}", named("CPU", allocation.placement.cpus));
    AuditEntry audit{AuditEvent::kReplaced, allocation.reason, allocation.nodes};
    audit.reason_code = placement::reason_code::kCpusAvailable;
    put(std::move(allocation), std::move(audit));
  }
}

}  // namespace topolet::engine
