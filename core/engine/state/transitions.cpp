#include "core/engine/state/transitions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/text.hpp"
#include "core/engine/state/capacity_transitions.hpp"
#include "core/engine/state/draft.hpp"
#include "core/engine/state/end_transitions.hpp"
#include "core/engine/state/machine_transitions.hpp"
#include "core/engine/state/move_transitions.hpp"
#include "core/engine/state/observation_transitions.hpp"
#include "core/engine/state/release_transition.hpp"
#include "core/engine/state/unified_files.hpp"
#include "core/placement/container_notes.hpp"
#include "core/placement/reason_codes.hpp"

namespace topolet::engine {
namespace {

namespace reason_code = placement::reason_code;

AuditEvent audit_event_of(const placement::Decision& decision) {
  if (decision.conflict) return AuditEvent::kConflict;
  return decision.unpinned ? AuditEvent::kUnpinned : AuditEvent::kPlaced;
}

/// Returns the CPUs of the pool that a container has alone, with those that are kept idle for it.
std::uint32_t size_of(const Allocation& allocation, const CpuInventory& inventory) {
  if (!allocation.is_exclusive()) return 0;
  return static_cast<std::uint32_t>((allocation.dedicated_cpus() - inventory.isolated).size());
}

/// One function an event, each of which writes down what it changes.
class Transitions {
 public:
  Transitions(const Ledger& ledger, const placement::PlacementRules& rules, std::chrono::milliseconds now)
      : ledger_(ledger), rules_(rules), now_(now), draft_(ledger, now, rules.drop_exclusive_quota) {}

  Transition finish();

  void operator()(const event::CreateAdmitted& event);
  void operator()(const event::Denied& event);
  void operator()(const event::CreateRetried& event);
  void operator()(const event::CreateConfirmed& event);
  void operator()(const event::CreateRefused& event);
  void operator()(const event::CreateLeftInDoubt& event);
  void operator()(const event::CreateWithdrawn& event);
  void operator()(const event::CreateDiscovered& event);
  void operator()(const event::DoubtExpired& event);
  void operator()(const event::StartRequested& event);
  void operator()(const event::StartConfirmed& event) { enter_phase(event.key, Phase::kRunning); }
  void operator()(const event::StartRefused& event);
  void operator()(const event::StartLeftInDoubt& event);
  void operator()(const event::StopRequested& event) { set_stopping(event.key, true); }
  void operator()(const event::StopRefused& event) { set_stopping(event.key, false); }
  void operator()(const event::Exited& event) { ends_.exit(event); }
  void operator()(const event::Ended& event) { draft_.end(event.key, event.cause); }
  void operator()(const event::PodStopped& event) { end_sandbox(event.sandbox_id, "pod-stopped"); }
  void operator()(const event::PodRemoved& event);
  void operator()(const event::PodSeen& event);
  void operator()(const event::PodForgotten& event);
  void operator()(const event::DemandChanged& event);
  void operator()(const event::Moved& event) { moves_.move(event); }
  void operator()(const event::MemoryMoved& event) { moves_.move_memory(event); }
  void operator()(const event::ChangeReverted& event) { moves_.revert(event); }
  void operator()(const event::MoveWithdrawn& event) { moves_.withdraw(event); }
  void operator()(const event::Converged& event) { moves_.converge(event); }
  void operator()(const event::Drifted& event) { observations_.note_drift(event); }
  void operator()(const event::SeenInKernel& event) { observations_.note_seen_in_kernel(event); }
  void operator()(const event::SetByPlugin& event) { observations_.note_plugin(event); }
  void operator()(const event::FoundStuck& event) { observations_.note_stuck(event); }
  void operator()(const event::CameLoose& event) { observations_.note_loose(event); }
  void operator()(const event::Overlapped& event) { observations_.note_overlap(event); }
  void operator()(const event::Adopted& event);
  void operator()(const event::FoundForeign& event) { observations_.find_foreign(event); }
  void operator()(const event::PodConfined& event) { observations_.note_confined(event); }
  void operator()(const event::PodQuotaDropped& event) { observations_.note_dropped_quota(event); }
  void operator()(const event::Evaluated& event) { moves_.evaluate(event); }
  void operator()(const event::RestEnded& /*event*/) { moves_.end_rest(); }
  void operator()(const event::WaitingExpired& event);
  void operator()(const event::HomesWidened& event) { moves_.widen(event); }
  void operator()(const event::BestEffortNarrowed& event);
  void operator()(const event::BestEffortMemoryShared& event);
  void operator()(const event::Released& event) { release(ledger_, event, draft_); }
  void operator()(const event::MachineChanged& event) { machine_.change(event); }
  void operator()(const event::CrashHoldExpired& event) { draft_.end(event.key, "crash-hold"); }
  void operator()(const event::Restarted& event);
  void operator()(const event::SetupChanged& event) { draft_.record_setup(event.setup); }
  void operator()(const event::ClockSet& event) { machine_.set_clock(event); }
  void operator()(const event::CapacityReported& event) { capacities_.tell(event); }
  void operator()(const event::CapacityCleared& event) { capacities_.clear(event); }
  void operator()(const event::CapacityTimePassed& /*event*/) { capacities_.pass_time(); }
  void operator()(const event::KubeletStatic& event);
  void operator()(const event::AuditOnly& event) { draft_.record_event({event.audit_event, event.reason}); }

 private:
  void enter_phase(const placement::ContainerKey& key, Phase phase);
  void set_stopping(const placement::ContainerKey& key, bool stopping);
  void bind(Allocation allocation, const operations::ContainerInfo& container,
            const std::optional<CpuSet>& observed_cpus, bool may_be_starting = false,
            const std::optional<CreateTimes>& times = std::nullopt);
  void note_sizes(Transition& transition) const;
  void end_sandbox(const std::string& sandbox_id, const char* cause);
  void end_waiting(const std::string& sandbox_id);

  const Ledger& ledger_;
  const placement::PlacementRules& rules_;
  const std::chrono::milliseconds now_;
  Draft draft_;
  CapacityTransitions capacities_{ledger_, now_, draft_};
  ObservationTransitions observations_{ledger_, now_, draft_};
  MachineTransitions machine_{ledger_, now_, draft_};
  EndTransitions ends_{ledger_, rules_, now_, draft_};
  MoveTransitions moves_{ledger_, rules_, now_, draft_};
};

Transition Transitions::finish() {
  Transition transition = std::move(draft_).finish();
  note_sizes(transition);
  return transition;
}

/// Containers count that are given CPUs of their own, or more of them than they had, not those that only move.
void Transitions::note_sizes(Transition& transition) const {
  RecentSizes sizes = ledger_.recent_sizes();
  for (const Change& change : transition.changes) {
    const std::uint32_t before = change.before ? size_of(*change.before, ledger_.inventory()) : 0;
    const std::uint32_t after = change.after ? size_of(*change.after, ledger_.inventory()) : 0;
    if (after > before) sizes.note(after, now_);
  }
  if (sizes != ledger_.recent_sizes()) transition.recent_sizes = std::move(sizes);
}

void Transitions::operator()(const event::CreateAdmitted& event) {
  const placement::ContainerKey& key = event.workload.key;
  draft_.set_cause(key);
  for (const placement::ContainerKey& earlier : event.superseded) draft_.end(earlier, "superseded");
  ends_.note_made(event.workload);
  moves_.apply_moves_of(event.plan, key);
  std::optional<std::int64_t> supersedes;
  // Taken over from the attempt before.
  if (const Allocation* kept = ledger_.find_kept(key); kept != nullptr && draft_.find(key) == nullptr) {
    if (draft_.find(kept->workload.key) != nullptr) {
      supersedes = kept->decision;
      draft_.end(kept->workload.key, "");
    }
  }
  Allocation asked = moves_.allocation_for(event.workload, event.plan);
  asked.unified = event.plan.decision.unified;
  asked.adopted = false;
  asked.container_id = event.container_id;
  // A create that is in doubt and decided anew is in doubt since then.
  if (const Allocation* earlier = ledger_.find(key); earlier != nullptr && !earlier->is_bound())
    asked.doubt_since = earlier->doubt_since;
  draft_.put(std::move(asked), audit_of(event.plan.decision, audit_event_of(event.plan.decision)), supersedes);
  if (event.keeps_pod_together) moves_.keep_pod_nodes(event.workload, event.plan.decision.nodes);
  Pod pod = draft_.pod_of(event.workload);
  const bool is_answered = pod.denied.erase(key.name) + pod.waiting.erase(key.name) > 0;
  if (pod.add_warnings(event.warnings) || is_answered) draft_.put_pod(std::move(pod));
}

void Transitions::operator()(const event::Denied& event) {
  const placement::ContainerKey& key = event.workload.key;
  const placement::Decision& decision = event.decision;
  const auto is_same = [&](const Pod& pod) {
    const auto denial = pod.denied.find(key.name);
    return denial != pod.denied.end() && denial->second.attempt == key.attempt &&
           denial->second.reason == decision.reason;
  };
  if (const Pod* known = ledger_.find_pod_if(key.pod_uid, key.sandbox_id, is_same); known != nullptr) {
    return draft_.count_repeated_denial(known->denied.at(key.name).decision, event.workload, decision.reason);
  }
  Allocation asked;
  asked.workload = event.workload;
  asked.container_id = event.container_id;
  const Allocation* resized = event.container_id.empty() ? nullptr : ledger_.find(key);
  if (resized != nullptr) asked.placement = resized->placement;
  drop_secrets(asked.workload);
  const std::int64_t number = draft_.record_event(audit_of(decision, AuditEvent::kDenied), std::move(asked));
  Pod pod = draft_.pod_of(event.workload);
  pod.denied[key.name] = {key.attempt, decision.reason, number};
  pod.add_warnings(event.warnings);
  draft_.put_pod(std::move(pod));
}

void Transitions::enter_phase(const placement::ContainerKey& key, Phase phase) {
  const Allocation* before = draft_.find(key);
  if (before == nullptr || before->phase == phase || !before->is_bound()) return;
  Allocation after = *before;
  after.phase = phase;
  after.phase_since = now_;
  draft_.put(std::move(after));
}

void Transitions::operator()(const event::CreateRetried& event) {
  const Allocation* before = draft_.find(event.key);
  if (before == nullptr || before->phase != Phase::kInDoubt) return;
  Allocation after = *before;
  after.phase = Phase::kPending;
  draft_.put(std::move(after));
}

/// `observed_cpus`: the CPUs that it may run on.
void Transitions::bind(Allocation allocation, const operations::ContainerInfo& container,
                       const std::optional<CpuSet>& observed_cpus, bool may_be_starting,
                       const std::optional<CreateTimes>& times) {
  const placement::ContainerKey key = allocation.workload.key;
  allocation.container_id = container.id;
  const Phase created = may_be_starting ? Phase::kStarting : Phase::kCreated;
  allocation.phase = container.state == operations::ContainerState::kCreated ? created : Phase::kRunning;
  allocation.phase_since = now_;
  allocation.stopping = false;
  allocation.placement.added = {};  // counted at its creation
  if (observed_cpus) allocation.vacating = *observed_cpus;
  draft_.put(std::move(allocation));
  draft_.set_outcome(key, {"bound", Code::kOk, {}, times});
}

void Transitions::operator()(const event::CreateConfirmed& event) {
  const Allocation* before = draft_.find(event.key);
  if (before == nullptr) return;
  // It was found meanwhile, or the runtime answered a repeated create with the container that it already has.
  if (before->is_bound() && before->container_id == event.container_id) return;
  operations::ContainerInfo made;
  made.id = event.container_id;
  made.state = operations::ContainerState::kCreated;
  bind(*before, made, event.sent.cpus, false, event.times);
}

void Transitions::operator()(const event::CreateRefused& event) {
  if (draft_.find(event.key) == nullptr) return;
  draft_.set_outcome(event.key, {"refused", event.error.code, event.error.message, event.times});
  draft_.end(event.key, "refused");
}

void Transitions::operator()(const event::CreateWithdrawn& event) {
  const Allocation* before = draft_.find(event.key);
  if (before != nullptr && before->phase == Phase::kPending) draft_.end(event.key, event.cause);
}

void Transitions::operator()(const event::CreateLeftInDoubt& event) {
  const Allocation* before = draft_.find(event.key);
  if (before == nullptr || before->phase != Phase::kPending) return;
  Allocation after = *before;
  after.phase = Phase::kInDoubt;
  after.phase_since = now_;
  if (after.doubt_since.count() == 0) after.doubt_since = now_;
  draft_.put(std::move(after));
  draft_.set_outcome(event.key, {"in_doubt", event.error.code, event.error.message, event.times});
}

/// It stays where it was decided; of `observed_cpus` it leaves what is not that.
void Transitions::operator()(const event::CreateDiscovered& event) {
  const Allocation* before = draft_.find(event.key);
  if (before == nullptr) return;
  bind(*before, event.container, event.observed_cpus, event.may_be_starting);
  draft_.mark_found(event.key);
}

void Transitions::operator()(const event::DoubtExpired& event) {
  if (draft_.find(event.key) == nullptr) return;
  draft_.set_outcome(event.key, {"timed_out"});
  draft_.end(event.key, "pending-timeout");
}

/// Only one that was never started enters kStarting: the runtime refuses a second start of one that runs, and that must
/// not make it 'created' again.
void Transitions::operator()(const event::StartRequested& event) {
  const Allocation* before = draft_.find(event.key);
  if (before != nullptr && before->phase == Phase::kCreated) enter_phase(event.key, Phase::kStarting);
}

void Transitions::operator()(const event::StartRefused& event) {
  const Allocation* before = draft_.find(event.key);
  if (before != nullptr && before->phase == Phase::kStarting) enter_phase(event.key, Phase::kCreated);
}

void Transitions::operator()(const event::StartLeftInDoubt& event) {
  const Allocation* before = draft_.find(event.key);
  if (before == nullptr || before->phase != Phase::kStarting) return;
  Allocation after = *before;
  after.phase_since = now_;
  draft_.put(std::move(after));
}

void Transitions::set_stopping(const placement::ContainerKey& key, bool stopping) {
  const Allocation* before = draft_.find(key);
  if (before == nullptr || before->stopping == stopping || before->is_kept()) return;
  Allocation after = *before;
  after.stopping = stopping;
  draft_.put(std::move(after));
}

void Transitions::end_sandbox(const std::string& sandbox_id, const char* cause) {
  for (const placement::ContainerKey& key : ledger_.in_sandbox(sandbox_id)) draft_.end(key, cause);
  end_waiting(sandbox_id);
}

void Transitions::end_waiting(const std::string& sandbox_id) {
  const auto known = ledger_.pods().find(sandbox_id);
  if (known == ledger_.pods().end() || known->second.waiting.empty()) return;
  Pod pod = draft_.pod(sandbox_id);
  pod.waiting.clear();
  draft_.put_pod(std::move(pod));
}

void Transitions::operator()(const event::WaitingExpired& event) {
  Pod pod = draft_.pod(event.sandbox_id);
  if (pod.waiting.erase(event.container) > 0) draft_.put_pod(std::move(pod));
}

void Transitions::operator()(const event::PodRemoved& event) {
  end_sandbox(event.sandbox_id, "removed");
  if (ledger_.pods().count(event.sandbox_id) != 0) draft_.forget_pod(event.sandbox_id);
}

void Transitions::operator()(const event::PodForgotten& event) {
  if (ledger_.pods().count(event.sandbox_id) != 0) draft_.forget_pod(event.sandbox_id);
}

void Transitions::operator()(const event::PodSeen& event) {
  const operations::Sandbox& sandbox = event.sandbox;
  const auto known = ledger_.pods().find(sandbox.id);
  Pod after;
  if (known != ledger_.pods().end()) {
    after = known->second;
  } else if (const Pod* other = ledger_.find_pod_if(sandbox.pod_uid, "", [](const Pod&) { return true; })) {
    // A pod whose sandbox is made anew stays where it is.
    after = *other;
    after.nodes = ledger_.nodes_of_pod(sandbox.pod_uid, sandbox.id);
    after.sandbox.annotations = {};
    after.made.clear();
  }
  auto annotations = std::move(after.sandbox.annotations);
  after.sandbox = sandbox;
  if (after.sandbox.annotations.empty()) after.sandbox.annotations = std::move(annotations);
  drop_secrets(after);
  if (known == ledger_.pods().end() || known->second != after) draft_.put_pod(std::move(after));
}

void Transitions::operator()(const event::DemandChanged& event) {
  const Allocation* before = draft_.find(event.key);
  if (before == nullptr) return;
  Allocation after = *before;
  after.workload.demand = event.demand;
  if (event.qos) after.workload.qos = *event.qos;
  if (event.kubelet_unified) after.workload.kubelet_unified = *event.kubelet_unified;
  if (after.workload == before->workload) return;
  for (const placement::ContainerKey& key : event.yielding) draft_.end(key, "yielded");
  if (!event.on_memory)
    return draft_.put(std::move(after),
                      audit_with_code(AuditEvent::kResized, event.reason, reason_code::kDemandChanged));
  after.placement.mems = event.on_memory->placement.mems;
  after.moved_from.reset();
  moves_.grow_memory_nodes(*before, after);
  placement::take_over_notes(*event.on_memory, after.workload);
  after.unified = with_files(after.unified, event.on_memory->unified);
  after.reason = event.reason;
  AuditEntry audit = audit_of(*event.on_memory, AuditEvent::kResized);
  audit.reason = event.reason;
  draft_.put(std::move(after), std::move(audit));
}

void Transitions::operator()(const event::Adopted& event) {
  draft_.set_cause(event.workload.key);
  for (const placement::ContainerKey& key : event.overruled) draft_.end(key, "overruled");
  if (const Allocation* own = ledger_.find_kept(event.workload.key); own != nullptr)
    draft_.end(placement::ContainerKey(own->workload.key), "superseded");
  ends_.note_made(event.workload);
  moves_.apply_moves_of(event.plan, event.workload.key);
  placement::Workload workload = event.workload;
  const Allocation* before = draft_.find(workload.key);
  const bool is_known = before != nullptr && !before->is_kept();
  // The runtime does not tell what policies have noted of it.
  if (is_known) workload.used_devices = before->workload.used_devices;
  if (is_known) workload.tags = before->workload.tags;
  Allocation after = moves_.allocation_for(workload, event.plan);
  const placement::ContainerKey key = after.workload.key;
  after.container_id = event.container.id;
  after.placement.mems = event.plan.decision.placement.mems;
  moves_.grow_memory_nodes(
      event.bound_mems, event.may_be_starting || event.container.state == operations::ContainerState::kRunning, after);
  if (!is_known) after.adopted = !event.is_created;
  if (event.has_dropped_quota) after.quota = QuotaState::kDropped;
  draft_.put(after, audit_of(event.plan.decision, event.audit_event));
  bind(std::move(after), event.container,
       event.observed_cpus.empty() ? std::optional<CpuSet>() : std::optional<CpuSet>(event.observed_cpus),
       event.may_be_starting);
  if (!event.is_created) draft_.mark_found(key);
  draft_.add_warnings(event.workload, event.warnings);
}

/// placement.exclusive-quota may be another than before.
void Transitions::operator()(const event::Restarted& event) {
  machine_.restart(event);
  draft_.settle_all_quotas();
}

void Transitions::operator()(const event::BestEffortNarrowed& event) {
  draft_.narrow_besteffort(event.cpus);
  for (const auto& [key, allocation] : ledger_.allocations()) {
    if (!allocation.yields() || allocation.narrowed_to == event.cpus) continue;
    if (!allocation.is_managed()) {
      draft_.put(allocation);
      continue;
    }
    const bool gains = event.cpus.empty() || !event.cpus.is_subset_of(allocation.placement.cpus);
    AuditEntry audit{gains ? AuditEvent::kWidened : AuditEvent::kNarrowed, event.reason, allocation.nodes};
    if (!allocation.reason.empty()) audit.reason += "; " + allocation.reason;
    audit.reason_code = event.reason_code;
    draft_.put(allocation, std::move(audit));
  }
}

void Transitions::operator()(const event::BestEffortMemoryShared& event) {
  for (const event::BestEffortMemoryShared::Change& change : event.changes) {
    const Allocation* known = ledger_.find(change.key);
    if (known == nullptr || known->memory_high == change.memory_high) continue;
    Allocation after = *known;
    after.memory_high = change.memory_high;
    const bool gains = change.memory_high <= 0 || (known->memory_high > 0 && change.memory_high > known->memory_high);
    AuditEntry audit{gains ? AuditEvent::kWidened : AuditEvent::kNarrowed, event.reason, after.nodes};
    if (!after.reason.empty()) audit.reason += "; " + after.reason;
    audit.reason_code = event.reason_code;
    draft_.put(std::move(after), std::move(audit));
  }
}

void Transitions::operator()(const event::KubeletStatic& event) {
  draft_.record_event(audit_with_code(AuditEvent::kKubeletStatic, event.reason,
                                      event.is_on ? reason_code::kKubeletStaticOn : reason_code::kKubeletStaticOff));
  if (event.is_on) return;
  for (const auto& [key, allocation] : ledger_.allocations()) {
    if (allocation.workload.kubelet_cpus.empty() || allocation.placement.mode == placement::Mode::kForeign) continue;
    Allocation after = allocation;
    after.workload.kubelet_cpus = {};
    draft_.put(std::move(after));
  }
}

}  // namespace

Transition compute_transition(const Ledger& ledger, const placement::PlacementRules& rules,
                              std::chrono::milliseconds now, const Event& event) {
  Transitions transitions(ledger, rules, now);
  std::visit(transitions, event);
  return transitions.finish();
}

}  // namespace topolet::engine
