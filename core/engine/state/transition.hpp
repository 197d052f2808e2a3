// The change of the ledger that one event causes: committed whole or not at all. Plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "core/engine/state/allocation.hpp"
#include "core/engine/state/audit_event.hpp"
#include "core/engine/state/cpu_inventory.hpp"
#include "core/engine/state/memory_cost.hpp"
#include "core/engine/state/recent_sizes.hpp"
#include "core/engine/state/reported_capacity.hpp"
#include "core/engine/state/setup.hpp"
#include "core/load/load.hpp"
#include "core/operations/container.hpp"
#include "core/placement/decide.hpp"
#include "core/placement/verdicts.hpp"
#include "core/topology/topology.hpp"

namespace topolet::engine {

/// The audit's text on a decision, beside the allocation that it made.
struct AuditEntry {
  AuditEvent event = AuditEvent::kPlaced;
  std::string reason;
  NodeSet nodes = {};  ///< of the candidate that won
  std::optional<placement::Verdicts> verdicts = {};
  std::string reason_code = {};  ///< see core/placement/reason_codes.hpp
  placement::DecisionTimes times = {};
  std::int64_t setup = 0;                       ///< with which it was decided; 0: the one in force
  std::optional<std::int64_t> caused_by = {};   ///< the decision that made it necessary or possible
  std::optional<MemoryCost> memory_cost = {};   ///< set by the Committer
  std::shared_ptr<const load::Load> load = {};  ///< that it was decided by; null: by none
};

inline AuditEntry audit_with_code(AuditEvent audit_event, std::string reason, const char* code) {
  AuditEntry audit{audit_event, std::move(reason)};
  audit.reason_code = code;
  return audit;
}

/// The times that a create has taken after its decision.
struct CreateTimes {
  std::chrono::microseconds write{};       ///< until the decision was durable
  std::chrono::microseconds neighbours{};  ///< until other containers had left its CPUs
  std::chrono::microseconds runtime{};     ///< until the runtime answered
};

/// The runtime's answer, or the fate of the container, as in the table `outcome`.
struct Outcome {
  std::string state;  ///< bound, refused, in_doubt, timed_out, crashed, kept
  Code code = Code::kOk;
  std::string message = {};
  std::optional<CreateTimes> times = {};
};

/// The effect of a change on the container. Draft::finish() sets it, when all changes of the event are known.
enum class ChangeKind : std::uint8_t {
  kInternal,  ///< nothing that the container or its place would show
  kPlaced,    ///< the runtime has it from now on
  kStarted,
  kResized,   ///< it asks for something else; its CPUs may have changed too
  kMoved,     ///< its mode, its CPUs, those withheld for it or its memory nodes are others
  kReleased,  ///< it has ended, or it failed and is kept for its next attempt
};

/// The cause of a change of the free CPUs, as in the table `pool_version`.
struct PoolCause {
  std::string what;                      ///< "placed", "re-placed", "ended", "left", "machine", "started"
  std::optional<std::int64_t> decision;  ///< none where no decision did it
};

/// A change of one allocation.
struct Change {
  std::optional<Allocation> before;
  std::optional<Allocation> after;
  std::optional<AuditEntry> audit;         ///< it is a decision of its own; `after` has the number
  std::optional<Outcome> outcome;          ///< of the decision that it is held by
  std::optional<std::int64_t> supersedes;  ///< with `audit`: the decision in whose place it is
  std::string cause;  ///< why it ended, if there is no `after`; empty if another's decision supersedes its own
  ChangeKind kind = ChangeKind::kInternal;
  std::optional<std::int32_t> exit_code = {};  ///< of one that ended by itself, where it is known
  bool is_found = false;                       ///< it was found in the runtime, which nobody had said before
};

/// An event that changes no allocation: a denial, a drift, a gap.
struct RecordedEvent {
  AuditEntry audit;
  std::int64_t decision = 0;
  std::optional<Allocation> subject;  ///< whom it is about; of a denial: what was asked for, with the id only of a
                                      ///< container that is there, and what that goes on having
};

struct PodChange {
  std::string sandbox_id;
  std::optional<Pod> after;            ///< none: forgotten
  operations::Sandbox forgotten = {};  ///< who it was, if it is forgotten
};

struct CapacityChange {
  std::uint32_t node = 0;                 ///< OS index
  std::optional<ReportedCapacity> after;  ///< none: nominal again
};

/// One more of a denial that was audited before.
struct RepeatedDenial {
  std::int64_t decision = 0;
  placement::Workload workload = {};
  std::string reason = {};
};

struct Transition {
  std::chrono::milliseconds wall_time{};
  std::chrono::steady_clock::time_point committed_at{};  ///< by the Committer
  std::uint64_t generation = 0;                          ///< the ledger's from then on
  std::int64_t next_decision = 0;                        ///< the number of the next decision
  std::vector<Change> changes;                           ///< in the order in which the audit tells them
  std::vector<RecordedEvent> recorded_events;
  std::vector<PodChange> pods;
  std::vector<CapacityChange> capacities;
  std::optional<RecentSizes> recent_sizes;  ///< where they changed
  std::optional<CpuSet> besteffort;         ///< where it changed: as Ledger::besteffort()
  std::vector<RepeatedDenial> repeated;
  std::optional<CpuInventory> inventory;  ///< where the machine changed
  /// To be recorded, with `topology_inventory`: a daemon has begun, or the machine changed.
  std::shared_ptr<const topology::Topology> topology;
  CpuInventory topology_inventory;
  std::shared_ptr<const topology::Topology> machine;  ///< where devices are, for the audit; none: it does not say
  std::optional<Setup> setup;                         ///< in force from then on
  CpuSet pool_before;
  CpuSet pool;
  /// CPUs that were in the pool, and that containers which run on the whole pool may not have left yet.
  CpuSet pool_vacating_before;
  CpuSet pool_vacating;
  CpuSet free_reserved;
  CpuSet free_isolated;
  PoolCause pool_cause = {};
  bool writes_pool =
      false;  ///< the pool is written though it is the same: a daemon has begun, or the other free CPUs changed
  bool is_rollback = false;  ///< what the pool gains by it was in the pool before

  bool is_nothing() const {
    return changes.empty() && recorded_events.empty() && pods.empty() && capacities.empty() && !recent_sizes &&
           repeated.empty() && !inventory && !writes_pool && !topology && !setup && !besteffort;
  }
};

}  // namespace topolet::engine
