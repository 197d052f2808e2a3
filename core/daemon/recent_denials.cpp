#include "core/daemon/recent_denials.hpp"

#include <algorithm>
#include <utility>

#include "core/placement/workload.hpp"

namespace topolet::daemon {
namespace {

/// A controller may make new pods as fast as they are denied.
constexpr std::size_t kMostDenialsKept = 2000;

bool is_placement(engine::AuditEvent event) {
  return event == engine::AuditEvent::kPlaced || event == engine::AuditEvent::kUnpinned ||
         event == engine::AuditEvent::kAdopted;
}

}  // namespace

void RecentDenials::begin_with(const std::vector<store::DenialRow>& rows) {
  MutexLock lock(mutex_);
  for (const store::DenialRow& row : rows) {
    put({row.pod_uid, row.container},
        {.denial = {.container = placement::display_name(row.pod_namespace, row.pod_name, row.container),
                    .reason_code = row.reason_code,
                    .reason = row.reason,
                    .first = std::chrono::milliseconds(row.at_ms),
                    .newest = std::chrono::milliseconds(row.last_ms),
                    .times = row.times,
                    .is_over = row.is_over},
         .decision = row.decision,
         .sandbox_id = row.sandbox_id});
  }
}

void RecentDenials::on_durable(const engine::Transition& transition) {
  MutexLock lock(mutex_);
  for (const engine::RecordedEvent& event : transition.recorded_events) {
    if (event.audit.event == engine::AuditEvent::kDenied && event.subject) note(event, transition.wall_time);
  }
  for (const engine::RepeatedDenial& repeated : transition.repeated)
    note_repeat(repeated.decision, transition.wall_time);
  if (denied_.empty()) return;
  for (const engine::Change& change : transition.changes) {
    if (!change.after || !change.audit || !is_placement(change.audit->event)) continue;
    const placement::ContainerKey& key = change.after->workload.key;
    if (const auto found = denied_.find({key.pod_uid, key.name}); found != denied_.end())
      found->second.denial.is_over = true;
  }
  for (const engine::PodChange& pod : transition.pods) {
    if (!pod.after) note_end(pod.sandbox_id);
  }
}

/// A number that is known is told anew, to a database that has lost it.
void RecentDenials::note(const engine::RecordedEvent& event, std::chrono::milliseconds at) {
  const placement::Workload& workload = event.subject->workload;
  const auto known = denied_.find({workload.key.pod_uid, workload.key.name});
  if (known != denied_.end() && known->second.decision == event.decision) return;
  put({workload.key.pod_uid, workload.key.name}, {.denial = {.container = placement::display_name(workload),
                                                             .reason_code = event.audit.reason_code,
                                                             .reason = event.audit.reason,
                                                             .first = at,
                                                             .newest = at},
                                                  .decision = event.decision,
                                                  .sandbox_id = workload.key.sandbox_id});
}

void RecentDenials::note_repeat(std::int64_t decision, std::chrono::milliseconds at) {
  for (auto& [key, entry] : denied_) {
    if (entry.decision != decision) continue;
    entry.denial.newest = at;
    ++entry.denial.times;
    entry.denial.is_over = false;
  }
}

void RecentDenials::note_end(const std::string& sandbox_id) {
  for (auto& [key, entry] : denied_) {
    if (entry.sandbox_id == sandbox_id) entry.denial.is_over = true;
  }
}

/// Adds an entry. The expired ones are dropped first.
void RecentDenials::put(const Key& key, Entry entry) {
  const std::chrono::milliseconds now = entry.denial.newest;
  denied_[key] = std::move(entry);
  if (denied_.size() <= kMostDenialsKept) return;
  std::erase_if(denied_, [now](const auto& one) { return one.second.denial.newest + kDenialTold < now; });
  while (denied_.size() > kMostDenialsKept) {
    denied_.erase(std::min_element(denied_.begin(), denied_.end(), [](const auto& a, const auto& b) {
      return a.second.denial.newest < b.second.denial.newest;
    }));
  }
}

std::vector<RecentDenial> RecentDenials::until(std::chrono::milliseconds now) const {
  MutexLock lock(mutex_);
  std::vector<RecentDenial> recent;
  for (const auto& [key, entry] : denied_) {
    if (entry.denial.newest + kDenialTold >= now) recent.push_back(entry.denial);
  }
  std::stable_sort(recent.begin(), recent.end(), [](const auto& a, const auto& b) { return a.newest > b.newest; });
  return recent;
}

}  // namespace topolet::daemon
