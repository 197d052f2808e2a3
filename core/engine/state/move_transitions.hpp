// Computes where containers are by a plan, and what becomes of a move: a part of compute_transition().
#pragma once

#include <chrono>
#include <string>

#include "core/engine/state/draft.hpp"
#include "core/engine/state/events.hpp"
#include "core/placement/placement_rules.hpp"

namespace topolet::engine {

/// Each function writes down in the draft what changes. Ledger, rules and draft must outlive it.
class MoveTransitions {
 public:
  MoveTransitions(const Ledger& ledger, const placement::PlacementRules& rules, std::chrono::milliseconds now,
                  Draft& draft)
      : ledger_(ledger), rules_(rules), now_(now), draft_(draft) {}

  /// Returns a decision's allocation: what the container is, from the one before; where it is, from the plan.
  Allocation allocation_for(const placement::Workload& workload, const Plan& plan) const;
  /// Moves the containers of a plan that is for another one.
  void apply_moves_of(const Plan& plan, const placement::ContainerKey& newcomer);
  /// A running container that is to have other memory nodes gets them at once, and loses the others when its memory has
  /// left them.
  void grow_memory_nodes(const Allocation& before, Allocation& after) const {
    grow_memory_nodes(before.placement.mems, before.may_run(), after);
  }
  /// `had`: where its memory is bound; empty: it may be on any node.
  void grow_memory_nodes(const NodeSet& had, bool may_run, Allocation& after) const;
  /// The pod's other containers are placed on these nodes, too.
  void keep_pod_nodes(const placement::Workload& workload, const NodeSet& nodes);

  void move(const event::Moved& event);
  void move_memory(const event::MemoryMoved& event);
  void revert(const event::ChangeReverted& event);
  void withdraw(const event::MoveWithdrawn& event);
  void converge(const event::Converged& event);
  void evaluate(const event::Evaluated& event);
  void end_rest();
  void widen(const event::HomesWidened& event);

 private:
  NodeSet nodes_of(const placement::Decision& decision) const;
  void move_pod(const placement::Workload& workload, const NodeSet& nodes);
  void revert(const Allocation& now, const Allocation& before, const std::string& reason, bool may_be_there);

  const Ledger& ledger_;
  const placement::PlacementRules& rules_;
  const std::chrono::milliseconds now_;  ///< wall clock
  Draft& draft_;
};

/// Returns the audit's text on a decision.
AuditEntry audit_of(const placement::Decision& decision, AuditEvent audit_event);

}  // namespace topolet::engine
