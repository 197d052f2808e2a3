// The changes of a plan. Plain values.
#pragma once

#include <optional>
#include <vector>

#include "core/engine/state/allocation.hpp"
#include "core/engine/state/audit_event.hpp"
#include "core/placement/decision.hpp"
#include "core/placement/reason_codes.hpp"

namespace topolet::engine {

/// A container that moves with a decision on another, and its new place: it has to make room, makes room for a better
/// place of the other, or policies want it elsewhere.
struct Move {
  placement::Workload workload;
  placement::Decision decision;
  std::optional<Preferred> preferred;   ///< where it goes back to; nothing: it stays there
  std::optional<MoveCause> cause = {};  ///< nothing: it has to move
};

/// A decision with what goes with it: committed as one transition.
struct Plan {
  placement::Decision decision;
  std::vector<Move> moves;
  std::vector<placement::ContainerKey> yielding;   ///< ended containers that give up what is kept for them
  std::optional<Preferred> preferred = {};         ///< as in Allocation
  CpuSet arrived_cpus = {};                        ///< as in Allocation
  Squeeze squeeze = Squeeze::kNone;                ///< as in Allocation
  AuditEvent audit_event = AuditEvent::kReplaced;  ///< what the audit calls it if the container runs already
  std::optional<MoveCause> cause = {};             ///< why it is moved; nothing: it cannot stay where it is

  /// CPUs of its own were asked for and not there. A denial for a lost vote would be the same with more CPUs.
  bool lacks_cpus() const {
    const bool is_for_lost_vote = decision.reason_code == placement::reason_code::kPluginVoteLost;
    return (decision.denied && !is_for_lost_vote) || decision.shared_because_full;
  }
};

}  // namespace topolet::engine
