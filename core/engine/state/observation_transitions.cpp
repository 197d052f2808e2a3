#include "core/engine/state/observation_transitions.hpp"

#include <utility>

#include "core/engine/state/overruled.hpp"
#include "core/engine/state/stuck.hpp"
#include "core/placement/reason_codes.hpp"

namespace topolet::engine {

void ObservationTransitions::note_drift(const event::Drifted& event) {
  const Allocation* before = draft_.find(event.key);
  if (before == nullptr) return;
  if (!event.reason.empty()) draft_.record_event({AuditEvent::kDrift, event.reason}, *before);
  if (event.observed.is_subset_of(before->placement.cpus | before->vacating)) return;
  Allocation after = *before;
  after.vacating |= event.observed;
  draft_.put(std::move(after));
}

void ObservationTransitions::note_seen_in_kernel(const event::SeenInKernel& event) {
  const Allocation* before = draft_.find(event.key);
  if (before == nullptr || !before->is_managed()) return;
  Allocation after = *before;
  if (auto audit = note_seen(after, event, now_)) draft_.record_event(*std::move(audit), *before);
  draft_.put(std::move(after));
}

void ObservationTransitions::note_plugin(const event::SetByPlugin& event) {
  const Allocation* before = draft_.find(event.key);
  if (before == nullptr) return;
  // Of memory nodes it is never seen that they are topolet's again.
  const char* const code =
      event.cpus.empty() ? placement::reason_code::kMemoryOverruled : placement::reason_code::kOverruledBegan;
  draft_.record_event(audit_with_code(AuditEvent::kOverruled, event.reason, code), *before);
  draft_.add_warnings(before->workload, {event.warning});
  if (event.cpus.empty()) return;
  Allocation after = *before;
  after.overruled = Overruled{before->overruled ? before->overruled->since : now_, {}, event.cpus, event.plugin};
  draft_.put(std::move(after));
}

void ObservationTransitions::note_stuck(const event::FoundStuck& event) {
  const Allocation* before = draft_.find(event.key);
  if (before == nullptr || !before->is_managed() || event.cpus.empty()) return;
  Allocation after = *before;
  if (auto audit = engine::note_stuck(after, event, now_)) draft_.record_event(*std::move(audit), *before);
  draft_.put(std::move(after));
}

void ObservationTransitions::note_loose(const event::CameLoose& event) {
  const Allocation* before = draft_.find(event.key);
  if (before == nullptr || !before->stuck) return;
  Allocation after = *before;
  draft_.record_event(stuck_ended(after, event.why, now_), after);
  after.stuck.reset();
  draft_.put(std::move(after));
}

void ObservationTransitions::note_overlap(const event::Overlapped& event) {
  AuditEntry audit =
      audit_with_code(AuditEvent::kOverlap, event.reason,
                      event.caused_by ? placement::reason_code::kOverlapBegan : placement::reason_code::kOverlapEnded);
  audit.caused_by = event.caused_by;
  draft_.record_event(std::move(audit), event.subject);
}

void ObservationTransitions::find_foreign(const event::FoundForeign& event) {
  const Allocation* before = draft_.find(event.key);
  if (before == nullptr || !before->is_managed()) return;
  draft_.set_cause(event.key);
  Allocation after = *before;
  after.placement = {};
  after.placement.mode = placement::Mode::kForeign;
  after.within = after.vacating = after.vacating_alone = {};
  after.mems_to_keep = {};
  after.preferred.reset();
  if (after.overruled)
    draft_.record_event(overruled_ended(after, "its CPUs are not topolet's to set any more", now_), after);
  after.overruled.reset();
  if (after.stuck) draft_.record_event(stuck_ended(after, "its CPUs are not topolet's to set any more", now_), after);
  after.stuck.reset();
  after.seen_on = after.overlapped = {};
  after.conflict = false;
  after.squeeze = Squeeze::kNone;
  after.reason = event.reason;
  draft_.add_warnings(after.workload, event.warnings);
  draft_.put(std::move(after),
             audit_with_code(AuditEvent::kForeign, event.reason, placement::reason_code::kHandlerNotPlaced));
}

/// Sets a value in all sandboxes of the pod: they are in one cgroup.
template <class Value>
void ObservationTransitions::note_of_pod(const std::string& uid, Value Pod::*what, const Value& value) {
  for (const auto& [id, pod] : ledger_.pods()) {
    if (pod.sandbox.pod_uid != uid || pod.*what == value) continue;
    Pod after = draft_.pod(id);
    after.*what = value;
    draft_.put_pod(std::move(after));
  }
}

void ObservationTransitions::note_confined(const event::PodConfined& event) {
  note_of_pod(event.pod_uid, &Pod::confined, event.confined);
}

void ObservationTransitions::note_dropped_quota(const event::PodQuotaDropped& event) {
  note_of_pod(event.pod_uid, &Pod::dropped_quota, event.before);
}

}  // namespace topolet::engine
