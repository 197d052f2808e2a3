#include "core/engine/state/machine_transitions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/text.hpp"
#include "core/placement/reason_codes.hpp"

namespace topolet::engine {
namespace {

/// Containers of reserved namespaces have the reserved CPUs wherever they are, also those that were offline when they
/// were placed. True if it does not have them all.
bool lacks_reserved(const CpuSet& reserved, const Allocation& allocation) {
  const bool has_them = allocation.placement.mode == placement::Mode::kReserved && allocation.is_movable_in_pool() &&
                        allocation.squeeze == Squeeze::kNone;
  return has_them && !reserved.is_subset_of(allocation.within);
}

}  // namespace

void MachineTransitions::change(const event::MachineChanged& event) {
  for (const placement::ContainerKey& key : event.restricted) {
    const Allocation* before = draft_.find(key);
    if (before == nullptr) continue;
    Allocation after = *before;
    after.restricted = true;
    draft_.put(std::move(after));
  }
  for (const auto& [key, within] : event.widened) {
    const Allocation* before = draft_.find(key);
    if (before == nullptr) continue;
    Allocation after = *before;
    after.reason = fmt::format("it may use {} too, available again", named("CPU", within - before->within));
    after.within = within;
    after.moved_from.reset();
    AuditEntry audit = audit_with_code(AuditEvent::kReplaced, after.reason, placement::reason_code::kCpusAvailable);
    draft_.put(std::move(after), std::move(audit));
  }
  for (const auto& [key, allocation] : ledger_.allocations()) {
    const Allocation& now = *draft_.find(key);
    if (!lacks_reserved(event.inventory.reserved, now)) continue;
    Allocation after = now;
    after.within |= event.inventory.reserved;
    draft_.put(std::move(after));
  }
  note_arrived(event.inventory.allowed - ledger_.inventory().allowed);
  if (event.inventory != ledger_.inventory()) draft_.set_inventory(event.inventory);
  draft_.record_topology(event.topology);
  if (event.topology) capacities_.judge(*event.topology);
}

void MachineTransitions::note_arrived(const CpuSet& arrived) {
  CpuSet not_left_by_others;
  for (const auto& [key, allocation] : ledger_.allocations()) {
    if (!allocation.is_exclusive() || allocation.is_kept()) continue;
    // If a CPU comes back before its container has left it, that one runs on it again: it is nobody else's yet.
    CpuSet not_left = allocation.vacating & arrived;
    if (!not_left.empty()) not_left -= ledger_.dedicated_to_others(key) | not_left_by_others;
    not_left_by_others |= not_left;
    if (arrived.is_subset_of(allocation.arrived_cpus) && not_left.is_subset_of(allocation.vacating_alone)) continue;
    Allocation after = *draft_.find(key);
    after.arrived_cpus |= arrived;
    after.vacating_alone |= not_left;
    draft_.put(std::move(after));
  }
}

template <class Move>
void MachineTransitions::move_waiting(Move moved) {
  for (const auto& [id, pod] : ledger_.pods()) {
    Pod after = pod;
    for (auto& [name, waiting] : after.waiting) waiting.since = moved(waiting.since);
    if (after != pod) draft_.put_pod(std::move(after));
  }
}

/// Whatever was under way when the daemon died is in doubt. A start may still be under way in the runtime, also one
/// that the store does not know of any more.
void MachineTransitions::restart(const event::Restarted& event) {
  draft_.record_pool();
  draft_.record_topology(event.topology);
  if (event.setup) draft_.record_setup(*event.setup);
  move_waiting([this](std::chrono::milliseconds since) { return std::min(since, now_); });
  for (const auto& [key, allocation] : ledger_.allocations()) {
    Allocation after = allocation;
    if (after.phase == Phase::kPending) {
      after.phase = Phase::kInDoubt;
      if (after.doubt_since.count() == 0) after.doubt_since = after.phase_since;
    }
    if (event.store_regressed && after.phase == Phase::kCreated) after.phase = Phase::kStarting;
    if (after.phase == Phase::kStarting) after.phase_since = now_;
    // The wall clock may have been set back meanwhile.
    after.phase_since = std::min(after.phase_since, now_);
    after.doubt_since = std::min(after.doubt_since, now_);
    if (after.overruled) {
      after.overruled->since = std::min(after.overruled->since, now_);
      // Nobody has looked meanwhile.
      after.overruled->ours_since = {};
    }
    if (after.hand) after.hand->repaired_at = std::min(after.hand->repaired_at, now_);
    if (after.last_move) after.last_move->at = std::min(after.last_move->at, now_);
    if (after.stuck) {
      after.stuck->since = std::min(after.stuck->since, now_);
      after.stuck->next_trial = std::min<std::chrono::milliseconds>(after.stuck->next_trial, now_ + kLongestTrial);
    }
    if (after.widening) {
      after.widening->at = std::min(after.widening->at, now_);
      after.widening->not_before =
          std::min<std::chrono::milliseconds>(after.widening->not_before, now_ + kBetweenMovesOfOne);
    }
    if (lacks_reserved(ledger_.inventory().reserved, after)) after.within |= ledger_.inventory().reserved;
    if (after != allocation) draft_.put(std::move(after));
  }
  if (!event.arrived_cpus.empty()) note_arrived(event.arrived_cpus);
  if (event.topology) capacities_.judge(*event.topology);
}

void MachineTransitions::set_clock(const event::ClockSet& event) {
  capacities_.set_clock(event.by);
  move_waiting([&event](std::chrono::milliseconds since) { return since + event.by; });
  RecentSizes sizes = ledger_.recent_sizes();
  sizes.shift(event.by);
  if (sizes != ledger_.recent_sizes()) draft_.put_recent_sizes(std::move(sizes));
  for (const auto& [key, allocation] : ledger_.allocations()) {
    Allocation after = allocation;
    if (after.phase != Phase::kRunning) after.phase_since += event.by;
    if (after.phase == Phase::kInDoubt || after.phase == Phase::kPending) {
      if (after.doubt_since.count() != 0) after.doubt_since += event.by;
    }
    if (after.overruled) {
      after.overruled->since += event.by;
      if (after.overruled->ours_since.count() != 0) after.overruled->ours_since += event.by;
    }
    if (after.hand) after.hand->repaired_at += event.by;
    if (after.last_move) after.last_move->at += event.by;
    if (after.stuck) {
      after.stuck->since += event.by;
      after.stuck->next_trial += event.by;
    }
    if (after.widening) {
      after.widening->at += event.by;
      if (after.widening->not_before.count() != 0) after.widening->not_before += event.by;
    }
    if (after != allocation) draft_.put(std::move(after));
  }
}

}  // namespace topolet::engine
