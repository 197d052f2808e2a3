// All that can happen to the ledger. Plain values; transitions.hpp says what each does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "core/cri/requests.hpp"
#include "core/engine/state/allocation.hpp"
#include "core/engine/state/plan.hpp"
#include "core/engine/state/transition.hpp"

namespace topolet::engine {

/// What a container's cpuset is to be, or is.
struct CpusetTarget {
  CpuSet cpus;
  NodeSet mems;  ///< empty = left alone

  friend bool operator==(const CpusetTarget&, const CpusetTarget&) = default;
};

inline CpusetTarget target_of(const Allocation& allocation) {
  return {allocation.placement.cpus, allocation.placement.mems};
}

/// Why a call failed: the runtime's answer, or topolet's own.
struct Refusal {
  Code code = Code::kUnknown;
  std::string message;
};

namespace event {

/// A create is decided. Earlier attempts that never ran hold nothing against it.
struct CreateAsked {
  Workload workload;
  Plan plan;
  std::vector<ContainerKey> superseded = {};
  bool keeps_pod_together = false;  ///< the nodes count for the pod's other containers
};
struct CreateDenied {
  Workload workload;
  Decision decision;
};
/// The same create again, after one that ended in doubt.
struct CreateRetried {
  ContainerKey key;
};
/// `sent`: the cpuset that the create carried.
struct CreateConfirmed {
  ContainerKey key;
  std::string container_id;
  CpusetTarget sent;
};
struct CreateRefused {
  ContainerKey key;
  Refusal refusal;
};
struct CreateLeftInDoubt {
  ContainerKey key;
  Refusal refusal;
};
/// Nothing has gone to the runtime. `cause` as in the table `ended`.
struct CreateWithdrawn {
  ContainerKey key;
  std::string cause;
};
/// A create in doubt turned out to have been made. `has`: the CPUs that it runs on; none if that is not known.
struct CreateDiscovered {
  ContainerKey key;
  ContainerInfo container;
  std::optional<CpuSet> has = {};
  bool may_be_starting = false;  ///< a start of it may have been forgotten with what the store has lost
};
/// A create in doubt that nobody heard of again.
struct CreateExpired {
  ContainerKey key;
};

struct StartAsked {
  ContainerKey key;
};
struct StartConfirmed {
  ContainerKey key;
};
/// The runtime said that it did not start.
struct StartRefused {
  ContainerKey key;
};
/// Nobody knows whether it started; `placement.start-grace` counts from here.
struct StartLeftInDoubt {
  ContainerKey key;
};

struct StopAsked {
  ContainerKey key;
};
struct StopRefused {
  ContainerKey key;
};
/// It has exited. `exit_code`: none where it was not asked, as it does not matter; see needs_exit_code().
struct Exited {
  ContainerKey key;
  std::optional<std::int32_t> exit_code = {};
};
/// It is over for another reason. `cause` as in the table `ended`.
struct Ended {
  ContainerKey key;
  std::string cause;
};
struct PodStopped {
  std::string sandbox_id;
};
struct PodRemoved {
  std::string sandbox_id;
};
/// Learned from RunPodSandbox or a list. What is known already and a list does not tell is kept.
struct PodSeen {
  Sandbox sandbox;
};
struct PodForgotten {
  std::string sandbox_id;
};

/// It asks for something else, and its CPUs stay.
struct DemandChanged {
  ContainerKey key;
  Demand demand;
  std::string reason;
};
/// It is placed anew. `word`: the audit's, re-placed, resized or conflict.
struct Moved {
  Workload workload;
  Plan plan;
  std::string word;
};
/// A move was not carried out: all is as in `before` again.
struct MoveUndone {
  Allocation before;
  std::string reason;
};
/// The runtime and the kernel have it on `cpus`, and on no others.
struct Converged {
  ContainerKey key;
  CpuSet cpus;
};
/// It was seen on CPUs where it should not be, or where it is cannot be told (`observed` is then all there are).
struct Drifted {
  ContainerKey key;
  CpuSet observed;
  std::string reason;
};

/// A container that was made past topolet is found. `word`: adopted or foreign. `overruled`: creates in doubt whose
/// CPUs it runs on.
struct Adopted {
  Workload workload;
  Plan plan;
  ContainerInfo container;
  std::string word;
  CpuSet has;  ///< the CPUs that it has; empty if that is not known
  std::vector<ContainerKey> overruled = {};
  bool may_be_starting = false;  ///< as in CreateDiscovered
};
/// The policies were asked about it with the CPUs that it has now.
struct Evaluated {
  ContainerKey key;
};
/// Other CPUs may be used from now on. `restricted`: who shares less than a candidate has. `widened`: who may share
/// more of them, and which.
struct MachineChanged {
  LedgerRules rules;
  std::vector<ContainerKey> restricted = {};
  std::vector<std::pair<ContainerKey, CpuSet>> widened = {};
};
struct CrashHoldOver {
  ContainerKey key;
};
/// A daemon has taken the ledger over from the store. `went_back`: the store has lost its newest transitions.
struct Restarted {
  bool went_back = false;
};
/// The wall clock was set, by so much.
struct ClockSet {
  std::chrono::milliseconds by{};
};
/// Something to be audited that changes nothing.
struct Noted {
  std::string word;
  std::string reason;
};

}  // namespace event

using Event =
    std::variant<event::CreateAsked, event::CreateDenied, event::CreateRetried, event::CreateConfirmed,
                 event::CreateRefused, event::CreateLeftInDoubt, event::CreateWithdrawn, event::CreateDiscovered,
                 event::CreateExpired, event::StartAsked, event::StartConfirmed, event::StartRefused,
                 event::StartLeftInDoubt, event::StopAsked, event::StopRefused, event::Exited, event::Ended,
                 event::PodStopped, event::PodRemoved, event::PodSeen, event::PodForgotten, event::DemandChanged,
                 event::Moved, event::MoveUndone, event::Converged, event::Drifted, event::Adopted, event::Evaluated,
                 event::MachineChanged, event::CrashHoldOver, event::Restarted, event::ClockSet, event::Noted>;

}  // namespace topolet::engine
