// All that can happen to the ledger. Plain values; transitions.hpp says what each does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "core/engine/state/allocation.hpp"
#include "core/engine/state/container_cpuset.hpp"
#include "core/engine/state/plan.hpp"
#include "core/engine/state/transition.hpp"
#include "core/operations/container.hpp"

namespace topolet::engine {

/// The reason why a call failed: the runtime's answer, or topolet's own.
struct CallError {
  Code code = Code::kUnknown;
  std::string message;
};

namespace event {

/// A create is decided. `superseded`: earlier attempts, whose allocations end.
struct CreateAdmitted {
  placement::Workload workload;
  Plan plan;
  std::vector<placement::ContainerKey> superseded = {};
  bool keeps_pod_together = false;         ///< the nodes count for the pod's other containers
  std::vector<std::string> warnings = {};  ///< about the pod's annotations; they have been logged
  std::string container_id = {};           ///< that it is to have; empty: the runtime has not told it yet
};
struct Denied {
  placement::Workload workload;
  placement::Decision decision;
  std::vector<std::string> warnings = {};  ///< as of CreateAdmitted
  std::string container_id = {};           ///< of the container that was to be resized; empty: a create was denied
};
/// The same create again, after one that ended in doubt.
struct CreateRetried {
  placement::ContainerKey key;
};
/// `sent`: the cpuset that the create carried.
struct CreateConfirmed {
  placement::ContainerKey key;
  std::string container_id;
  ContainerCpuset sent;
  std::optional<CreateTimes> times = {};
};
struct CreateRefused {
  placement::ContainerKey key;
  CallError error;
  std::optional<CreateTimes> times = {};
};
struct CreateLeftInDoubt {
  placement::ContainerKey key;
  CallError error;
  std::optional<CreateTimes> times = {};
};
/// Nothing has gone to the runtime. `cause` as in the table `ended`.
struct CreateWithdrawn {
  placement::ContainerKey key;
  std::string cause;
};
/// A create in doubt turned out to have been made. `observed_cpus`: those that it runs on; none if that is not known.
struct CreateDiscovered {
  placement::ContainerKey key;
  operations::ContainerInfo container;
  std::optional<CpuSet> observed_cpus = {};
  bool may_be_starting = false;  ///< the store's lost changes may include a start of it
};
/// A create in doubt whose container never appeared.
struct DoubtExpired {
  placement::ContainerKey key;
};

struct StartRequested {
  placement::ContainerKey key;
};
struct StartConfirmed {
  placement::ContainerKey key;
};
/// The runtime said that it did not start.
struct StartRefused {
  placement::ContainerKey key;
};
/// Nobody knows whether it started; `placement.start-grace` counts from here.
struct StartLeftInDoubt {
  placement::ContainerKey key;
};

struct StopRequested {
  placement::ContainerKey key;
};
struct StopRefused {
  placement::ContainerKey key;
};
/// It has ended. `exit_code`: none where it was not asked, as it does not matter. `cause` as in the table `ended`:
/// exited, stopped, removed or gone. See keeps_cpus_at_end().
struct Exited {
  placement::ContainerKey key;
  std::optional<std::int32_t> exit_code = {};
  std::string cause = "exited";
};
/// It is over for another reason. `cause` as in the table `ended`.
struct Ended {
  placement::ContainerKey key;
  std::string cause;
};
struct PodStopped {
  std::string sandbox_id;
};
struct PodRemoved {
  std::string sandbox_id;
};
/// Learned from RunPodSandbox or a list. Fields that a list does not report keep their values.
struct PodSeen {
  operations::Sandbox sandbox;
};
struct PodForgotten {
  std::string sandbox_id;
};

/// It asks for something else, and its CPUs stay. `on_memory`: what was decided on its memory, if that was asked; its
/// memory nodes are those of the decision then.
struct DemandChanged {
  placement::ContainerKey key;
  placement::Demand demand;
  std::string reason;
  std::optional<placement::Decision> on_memory = {};
  std::vector<placement::ContainerKey> yielding = {};   ///< as in Plan
  std::optional<placement::Qos> qos = {};               ///< what it turned out to be, of one that was unknown
  std::optional<SharedStringMap> kubelet_unified = {};  ///< as in Workload; none: as before
};
/// It is placed anew. `audit_event`: kReplaced, kResized or kConflict.
struct Moved {
  placement::Workload workload;
  Plan plan;
  AuditEvent audit_event;
};
/// Its memory is on `mems`, and it has no other memory nodes from now on.
struct MemoryMoved {
  placement::ContainerKey key;
  NodeSet mems;
};
/// A move or a change of its demand was not carried out: all is as in `before` again.
struct ChangeReverted {
  Allocation before;
  std::string reason;
  bool may_be_there = false;  ///< it may have been told its new CPUs: nobody has those before it has left them
};
/// A move that the container could have done without is taken back, if it has not left the CPUs that it had before:
/// all is as Allocation::moved_from has it again. Nobody has CPUs that it may have been told before it has left them.
struct MoveWithdrawn {
  placement::ContainerKey key;
  std::string reason;
};
/// The runtime and the kernel have it on `cpus`, and on no others.
struct Converged {
  placement::ContainerKey key;
  CpuSet cpus;
};
/// It was seen on CPUs where it should not be, or its CPUs are unknown (`observed` is then all CPUs).
struct Drifted {
  placement::ContainerKey key;
  CpuSet observed;
  std::string reason;
};

/// The kernel was seen to have it on `cpus`. `is_ours`: that is where it should be. `is_overruled`: another hand than
/// topolet's has put it there. `is_repaired`: it is back, and nothing but another hand explains where it had been.
struct SeenInKernel {
  placement::ContainerKey key;
  CpuSet cpus;
  bool is_ours = true;
  bool is_overruled = false;
  bool is_repaired = false;
};

/// A plugin of the runtime sets, while it is created, its CPUs or memory nodes to others than topolet's.
struct SetByPlugin {
  placement::ContainerKey key;
  std::string plugin;
  CpuSet cpus;          ///< empty: only memory nodes
  std::string reason;   ///< for the audit
  std::string warning;  ///< that was logged, once a pod
};

/// It did not leave `cpus`, once more if it was stuck before. `why`: the runtime's words.
struct FoundStuck {
  placement::ContainerKey key;
  CpuSet cpus;
  std::string why;
};
/// It was stuck, and is not any more.
struct CameLoose {
  placement::ContainerKey key;
  std::string why;
};

/// It runs on CPUs that another container has alone, or does not any more. It changes nothing.
struct Overlapped {
  Allocation subject;                     ///< who runs there
  std::optional<std::int64_t> caused_by;  ///< while it lasts: the decision of who has the CPUs alone
  std::string reason;
};

/// A container that was created without topolet is found. `audit_event`: kAdopted or kForeign. `overruled`: creates in
/// doubt and failed containers that hold CPUs on which it runs.
struct Adopted {
  placement::Workload workload;
  Plan plan;
  operations::ContainerInfo container;
  AuditEvent audit_event;
  CpuSet observed_cpus;  ///< the CPUs that it has; empty if that is not known
  std::vector<placement::ContainerKey> overruled = {};
  bool may_be_starting = false;            ///< as in CreateDiscovered
  std::vector<std::string> warnings = {};  ///< as of CreateAdmitted
  bool has_dropped_quota = false;          ///< it has no CFS quota, by the hand of an earlier topoletd
  NodeSet bound_mems = {};                 ///< where its memory is bound; empty: it may be on any node
  bool is_created = false;                 ///< it was not found: its create has just gone through, unchanged
};
/// It turned out, once it ran, that its CPUs cannot be set: it has none from now on, and is foreign.
struct FoundForeign {
  placement::ContainerKey key;
  std::string reason;
  std::vector<std::string> warnings = {};  ///< as of CreateAdmitted
};
/// The cgroup of a pod that is not placed is kept within the pool from now on, or no more.
struct PodConfined {
  std::string pod_uid;
  bool confined = true;
};
/// The cgroup of a pod is to have no CFS quota from now on, in place of the one `before`; none: topolet has no more to
/// do with it.
struct PodQuotaDropped {
  std::string pod_uid;
  std::optional<operations::CfsQuota> before;
};
/// The policies were asked about it with the CPUs that it has now.
struct Evaluated {
  placement::ContainerKey key;
};
/// Some containers are not left alone any more that were moved a while ago: those of them go back that are due.
struct RestEnded {};
/// Containers that share CPUs may run on these beside their homes from now on.
struct HomesWidened {
  struct Change {
    placement::ContainerKey key;
    CpuSet cpus;                     ///< empty: on none any more
    std::uint32_t use_permille = 0;  ///< as in Widening, as is the next
    std::chrono::milliseconds not_before{};
    std::string reason;
    std::string reason_code;
  };
  std::vector<Change> changes;
};
/// All containers that yield to others run on these CPUs of the pool only from now on, as far as they may run there.
struct BestEffortNarrowed {
  CpuSet cpus;  ///< empty: they are narrowed no more
  std::string reason;
  std::string reason_code;
};
/// BestEffort containers may use other parts of the memory that is left over from now on.
struct BestEffortMemoryShared {
  struct Change {
    placement::ContainerKey key;
    std::int64_t memory_high = 0;  ///< as in Allocation
  };
  std::vector<Change> changes;
  std::string reason;
  std::string reason_code;
};
/// What topolet has done to containers is taken back. `cpusets`: their CPUs and memory nodes, too.
struct Released {
  bool cpusets = false;
  std::string reason;
};
/// Other CPUs may be used from now on. `restricted`: shared containers that use less than a whole candidate. `widened`:
/// shared containers with a new `within`.
struct MachineChanged {
  CpuInventory inventory;
  std::vector<placement::ContainerKey> restricted = {};
  std::vector<std::pair<placement::ContainerKey, CpuSet>> widened = {};
  std::shared_ptr<const topology::Topology> topology = {};
};
struct CrashHoldExpired {
  placement::ContainerKey key;
};
/// The next attempt of a container that waits for CPUs of its own has not come in time.
struct WaitingExpired {
  std::string sandbox_id;
  std::string container;
};
/// A daemon has taken the ledger over from the store. `store_regressed`: the store has lost its newest transitions.
struct Restarted {
  bool store_regressed = false;
  std::shared_ptr<const topology::Topology> topology = {};
  std::optional<Setup> setup = {};
  CpuSet arrived_cpus = {};  ///< that came online, or were allowed, since the last daemon recorded the machine
};
/// Decisions are made with another configuration or other plugins from now on.
struct SetupChanged {
  Setup setup;
};
/// The wall clock was set, by so much.
struct ClockSet {
  std::chrono::milliseconds by{};
};
/// Somebody outside says what a NUMA node with CPUs can do until then.
struct CapacityReported {
  std::uint32_t node = 0;  ///< OS index
  std::int64_t milli = 0;
  std::chrono::milliseconds until{};  ///< wall clock
  std::string source;
};
/// The capacity that was told of a node counts no more.
struct CapacityCleared {
  std::uint32_t node = 0;  ///< OS index
  std::string source;      ///< who says so
};
/// Some capacities that were told may have ended, or been low for long enough.
struct CapacityTimePassed {};
/// The kubelet hands out CPUs itself from now on, or no more: then containers keep what it has given them, as if
/// topolet had.
struct KubeletStatic {
  bool is_on = false;
  std::string reason;
};
/// Something to be audited that changes nothing.
struct AuditOnly {
  AuditEvent audit_event;
  std::string reason;
};

}  // namespace event

using Event =
    std::variant<event::CreateAdmitted, event::Denied, event::CreateRetried, event::CreateConfirmed,
                 event::CreateRefused, event::CreateLeftInDoubt, event::CreateWithdrawn, event::CreateDiscovered,
                 event::DoubtExpired, event::StartRequested, event::StartConfirmed, event::StartRefused,
                 event::StartLeftInDoubt, event::StopRequested, event::StopRefused, event::Exited, event::Ended,
                 event::PodStopped, event::PodRemoved, event::PodSeen, event::PodForgotten, event::DemandChanged,
                 event::Moved, event::MemoryMoved, event::ChangeReverted, event::MoveWithdrawn, event::Converged,
                 event::Drifted, event::SeenInKernel, event::SetByPlugin, event::FoundStuck, event::CameLoose,
                 event::Overlapped, event::Adopted, event::FoundForeign, event::PodConfined, event::PodQuotaDropped,
                 event::Evaluated, event::HomesWidened, event::BestEffortNarrowed, event::BestEffortMemoryShared,
                 event::Released, event::MachineChanged, event::CrashHoldExpired, event::Restarted, event::ClockSet,
                 event::AuditOnly, event::SetupChanged, event::CapacityReported, event::CapacityCleared,
                 event::CapacityTimePassed, event::KubeletStatic, event::RestEnded, event::WaitingExpired>;

}  // namespace topolet::engine
