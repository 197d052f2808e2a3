#include "core/engine/state/move_transitions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/text.hpp"
#include "core/engine/state/unified_files.hpp"
#include "core/placement/container_notes.hpp"
#include "core/placement/reason_codes.hpp"

namespace topolet::engine {
namespace {

namespace reason_code = placement::reason_code;

/// Others that could stay where they are make room for it.
bool needs_room(const Plan& plan) {
  return std::any_of(plan.moves.begin(), plan.moves.end(),
                     [](const Move& move) { return move.cause == MoveCause::kRoom; });
}

}  // namespace

AuditEntry audit_of(const placement::Decision& decision, AuditEvent audit_event) {
  AuditEntry audit{audit_event,          decision.reason, decision.nodes, decision.verdicts,
                   decision.reason_code, decision.times,  decision.setup};
  audit.load = decision.load;
  return audit;
}

Allocation MoveTransitions::allocation_for(const placement::Workload& workload, const Plan& plan) const {
  Allocation after;
  after.phase_since = now_;
  if (const Allocation* before = draft_.find(workload.key); before != nullptr) after = *before;
  const placement::Decision& decision = plan.decision;
  after.workload = workload;
  placement::take_over_notes(decision, after.workload);
  after.unified = with_files(after.unified, decision.unified);
  after.placement = decision.placement;
  if (const Allocation* before = draft_.find(workload.key); before != nullptr) grow_memory_nodes(*before, after);
  if (after.is_bound()) after.placement.added = {};  // counts at its creation only
  after.within = decision.within;
  after.conflict = decision.conflict;
  after.reason = decision.reason;
  after.evaluated_cpus = decision.placement.cpus;
  after.restricted = false;
  after.preferred = plan.preferred;
  after.arrived_cpus = plan.arrived_cpus;
  after.widening.reset();
  after.squeeze = plan.squeeze;
  after.moved_from.reset();
  if (plan.squeeze != Squeeze::kLeftToKernel) after.nodes = nodes_of(decision);
  if (plan.cause) after.last_move = LastMove{now_, *plan.cause};
  return after;
}

void MoveTransitions::grow_memory_nodes(const NodeSet& had, bool may_run, Allocation& after) const {
  const NodeSet chosen = after.placement.mems;
  after.mems_to_keep = {};
  if (!rules_.memory_migrate || !may_run || chosen.empty()) return;
  if (!had.empty() && had.is_subset_of(chosen)) return;
  after.mems_to_keep = chosen;
  // Without a set it may have memory on any node.
  after.placement.mems = had.empty() ? NodeSet() : had | chosen;
}

/// Returns the nodes of its CPUs, or those of the decision if the machine does not know them, as when the CPUs are
/// offline.
NodeSet MoveTransitions::nodes_of(const placement::Decision& decision) const {
  const auto& topology = ledger_.topology();
  if (decision.placement.mode != placement::Mode::kExclusive || topology == nullptr) return decision.nodes;
  NodeSet nodes = topology->nodes_of(decision.placement.cpus);
  return nodes.empty() ? decision.nodes : nodes;
}

void MoveTransitions::apply_moves_of(const Plan& plan, const placement::ContainerKey& newcomer) {
  for (const placement::ContainerKey& key : plan.yielding) draft_.end(key, "yielded");
  for (const Move& move : plan.moves) {
    const Allocation* before = draft_.find(move.workload.key);
    // A wish moves nobody again so soon.
    if (move.cause == MoveCause::kPlugin && before != nullptr && was_just_moved(*before, now_)) continue;
    Plan moved;
    moved.decision = move.decision;
    moved.preferred = move.preferred;
    moved.cause = move.cause;
    if (before != nullptr) moved.arrived_cpus = before->arrived_cpus;
    Allocation after = allocation_for(move.workload, moved);
    if (before != nullptr && before->is_exclusive()) {
      // What the other container does not take is nobody's until this one has left it.
      const placement::Placement& taken = plan.decision.placement;
      after.vacating |= before->placement.cpus;
      after.vacating_alone = before->placement.cpus - after.placement.cpus - after.placement.withheld - taken.withheld;
      if (taken.mode == placement::Mode::kExclusive) after.vacating_alone -= taken.cpus;
      after.vacating_alone &= ledger_.inventory().allowed;
    }
    if (move.cause) after.last_move = LastMove{now_, *move.cause};
    if (move.cause == MoveCause::kRoom && before != nullptr) {
      after.moved_from = place_of(*before);
      after.moved_from->newcomer = newcomer;
      move_pod(move.workload, move.decision.nodes);
    }
    draft_.put(std::move(after), audit_of(move.decision, AuditEvent::kReplaced));
  }
}

void MoveTransitions::keep_pod_nodes(const placement::Workload& workload, const NodeSet& nodes) {
  Pod pod = draft_.pod_of(workload);
  pod.nodes = nodes;
  draft_.put_pod(std::move(pod));
}

/// The containers that are still to come follow the only one that there is.
void MoveTransitions::move_pod(const placement::Workload& workload, const NodeSet& nodes) {
  const bool is_placed = !draft_.pod_of(workload).nodes.empty();
  if (is_placed && ledger_.is_alone_in_pod(workload.key)) keep_pod_nodes(workload, nodes);
}

/// Until the runtime has answered, the container runs where it was, and may have to stay there. So nobody gets its
/// exclusive CPUs before it has left them, unless it would then have no CPUs to go to.
void MoveTransitions::move(const event::Moved& event) {
  const Allocation* before = draft_.find(event.workload.key);
  if (before == nullptr) return;
  draft_.set_cause(event.workload.key);
  apply_moves_of(event.plan, event.workload.key);
  if (event.plan.cause) move_pod(event.workload, event.plan.decision.nodes);
  Allocation after = allocation_for(event.workload, event.plan);
  const bool stays_alone = after.is_exclusive();
  const bool can_leave = stays_alone || after.within.intersects(ledger_.pool());
  after.vacating_alone = before->vacating_alone;
  if (before->is_exclusive() && can_leave) {
    const CpuSet left = stays_alone ? before->placement.cpus - after.placement.cpus : before->placement.cpus;
    after.vacating_alone |= left & ledger_.inventory().allowed;
  }
  after.vacating_alone -= after.placement.withheld;
  if (stays_alone) after.vacating_alone -= after.placement.cpus;
  if (!stays_alone) after.placement.cpus -= after.vacating_alone;
  after.vacating |= before->placement.cpus | after.vacating_alone;
  if (event.plan.cause || needs_room(event.plan)) after.moved_from = place_of(*before);
  if (needs_room(event.plan)) after.moved_from->demand = before->workload.demand;
  draft_.put(std::move(after), audit_of(event.plan.decision, event.audit_event));
}

void MoveTransitions::move_memory(const event::MemoryMoved& event) {
  const Allocation* before = draft_.find(event.key);
  if (before == nullptr || event.mems.empty() || before->mems_to_keep != event.mems) return;
  Allocation after = *before;
  after.placement.mems = std::exchange(after.mems_to_keep, {});
  after.reason = fmt::format("its memory has left other nodes than {}, which it keeps", named("node", event.mems));
  AuditEntry audit = audit_with_code(AuditEvent::kReplaced, after.reason, reason_code::kMemoryMoved);
  audit.nodes = after.nodes;
  draft_.put(std::move(after), std::move(audit));
}

void MoveTransitions::revert(const event::ChangeReverted& event) {
  const Allocation& before = event.before;
  const Allocation* now = draft_.find(before.workload.key);
  if (now == nullptr || !now->is_bound() || now->decision == before.decision) return;
  revert(*now, before, event.reason, event.may_be_there);
}

void MoveTransitions::withdraw(const event::MoveWithdrawn& event) {
  const Allocation* now = draft_.find(event.key);
  if (now == nullptr || !now->is_bound() || !now->moved_from) return;
  const MovedFrom& from = *now->moved_from;
  Allocation before = *now;
  put_back(from, before);
  before.conflict = false;
  before.workload.tags = from.tags;
  if (from.demand) before.workload.demand = *from.demand;
  // Those that it had left to others before, and has not left yet.
  before.vacating_alone -= before.dedicated_cpus();
  if (!from.demand) move_pod(now->workload, from.nodes);
  // One that is resized is told its new CPUs when the others have left.
  revert(Allocation(*now), before, event.reason, /*may_be_there=*/!from.demand);
}

/// Others keep what they were given meanwhile. A container that had some of it exclusively does not go back now, but
/// when it can.
void MoveTransitions::revert(const Allocation& now, const Allocation& before, const std::string& reason,
                             bool may_be_there) {
  draft_.mark_rollback();
  const CpuSet taken = ledger_.dedicated_to_others(before.workload.key);
  Allocation after = now;
  after.moved_from.reset();
  if (!now.conflict) after.workload = before.workload;
  if (before.is_exclusive() && before.placement.cpus.intersects(taken)) {
    if (!now.preferred) after.preferred = Preferred{before.placement, before.within, {}, false};
    return draft_.put(std::move(after),
                      audit_with_code(now.conflict ? AuditEvent::kConflict : AuditEvent::kReplaced,
                                      reason + "; by now other containers hold CPUs that it had exclusively",
                                      reason_code::kReverted));
  }
  put_back(place_of(before), after);
  after.workload = before.workload;
  after.placement.withheld -= taken;
  after.conflict = before.conflict;
  after.widening = before.widening;
  after.vacating |= before.vacating;
  after.vacating_alone = before.vacating_alone - taken;
  if (may_be_there && now.is_exclusive()) {
    after.vacating |= now.placement.cpus;
    after.vacating_alone |= (now.placement.cpus - after.placement.cpus - taken) & ledger_.inventory().allowed;
  }
  draft_.put(std::move(after), audit_with_code(before.conflict ? AuditEvent::kConflict : AuditEvent::kReplaced, reason,
                                               reason_code::kReverted));
}

void MoveTransitions::converge(const event::Converged& event) {
  const Allocation* before = draft_.find(event.key);
  if (before == nullptr || (before->vacating.empty() && !before->moved_from)) return;
  Allocation after = *before;
  after.vacating &= event.cpus;
  after.vacating_alone &= event.cpus;
  const bool has_left = after.vacating.empty() && !before->vacating.empty();
  if (has_left || event.cpus == before->placement.cpus) after.moved_from.reset();
  if (after == *before) return;
  if (after.vacating_alone == before->vacating_alone) return draft_.put(std::move(after));
  draft_.put(std::move(after),
             audit_with_code(before->conflict ? AuditEvent::kConflict : AuditEvent::kReplaced,
                             before->reason + "; it has left the CPUs it had before", reason_code::kLeftCpus));
}

void MoveTransitions::evaluate(const event::Evaluated& event) {
  const Allocation* before = draft_.find(event.key);
  if (before == nullptr || before->evaluated_cpus == before->home_cpus()) return;
  Allocation after = *before;
  after.evaluated_cpus = after.home_cpus();
  draft_.put(std::move(after));
}

void MoveTransitions::end_rest() {
  const auto& allocations = ledger_.allocations();
  const bool is_any_due = std::any_of(allocations.begin(), allocations.end(), [this](const auto& entry) {
    const Allocation& allocation = entry.second;
    return allocation.preferred && allocation.preferred->is_due && !was_just_moved(allocation, now_);
  });
  if (is_any_due) draft_.reconsider_all();
}

void MoveTransitions::widen(const event::HomesWidened& event) {
  for (const event::HomesWidened::Change& change : event.changes) {
    const Allocation* before = draft_.find(change.key);
    if (before == nullptr || !before->is_managed()) continue;
    if (!change.cpus.empty() && !before->is_movable_in_pool()) continue;
    const CpuSet had = before->is_widened() ? before->widening->cpus : CpuSet();
    if (change.cpus == had) continue;
    Allocation after = *before;
    after.widening = Widening{change.cpus, now_, change.use_permille, change.not_before};
    const bool gains = !change.cpus.is_subset_of(had);
    AuditEntry audit{gains ? AuditEvent::kWidened : AuditEvent::kNarrowed, change.reason, before->nodes};
    if (!before->reason.empty()) audit.reason += "; " + before->reason;
    audit.reason_code = change.reason_code;
    draft_.put(std::move(after), std::move(audit));
  }
}

}  // namespace topolet::engine
