#include "core/engine/state/end_transitions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text.hpp"
#include "core/engine/state/overruled.hpp"
#include "core/engine/state/stuck.hpp"
#include "core/placement/exclusive_claim.hpp"

namespace topolet::engine {
namespace {

constexpr const char* kStopped = "stopped";  // as in the table `ended`

std::string describe_end(const event::Exited& event) {
  if (event.exit_code) return fmt::format("exit code {}", *event.exit_code);
  return event.cause == "exited" ? "it has ended" : fmt::format("it is {}", event.cause);
}

}  // namespace

void EndTransitions::note_made(const placement::Workload& workload) {
  const placement::ContainerKey& key = workload.key;
  if (const Allocation* init = ledger_.find_ended_init(key); init != nullptr) {
    draft_.end(placement::ContainerKey(init->workload.key), "next-container");
  }
  std::vector<std::string> made = ledger_.made_in(key.sandbox_id);
  if (made.empty() || std::find(made.begin(), made.end(), key.name) != made.end()) return;
  made.push_back(key.name);
  Pod pod = draft_.pod_of(workload);
  pod.made = std::move(made);
  draft_.put_pod(std::move(pod));
}

void EndTransitions::exit(const event::Exited& event) {
  const Allocation* before = draft_.find(event.key);
  if (before == nullptr || !before->is_bound()) return;
  if (event.exit_code) draft_.set_exit_code(event.key, *event.exit_code);
  const bool was_stopped = before->stopping || event.cause == kStopped;
  const bool has_failed = !was_stopped && event.exit_code.value_or(0) != 0;
  if (!keeps_cpus_at_end(*before, rules_, event.cause) || ledger_.has_later_attempt(event.key)) {
    note_waiting(event, *before, was_stopped || has_failed);
    return draft_.end(event.key, was_stopped ? kStopped : event.cause);
  }
  Allocation after = *before;
  if (after.overruled) draft_.record_event(overruled_ended(after, "it has ended", now_), after);
  after.overruled.reset();
  if (after.stuck) draft_.record_event(stuck_ended(after, "it has ended", now_), after);
  after.stuck.reset();
  after.seen_on = {};
  after.phase = has_failed ? Phase::kCrashed : Phase::kKept;
  after.phase_since = now_;
  after.stopping = was_stopped;
  const std::string how = was_stopped ? "it was stopped" : describe_end(event);
  draft_.set_outcome(event.key,
                     {has_failed ? "crashed" : "kept", Code::kOk,
                      fmt::format("{}; {} kept for its next attempt", how, named("CPU", before->placement.cpus))});
  draft_.put(std::move(after));
}

/// One that has ended well may have no next attempt.
void EndTransitions::note_waiting(const event::Exited& event, const Allocation& ended, bool comes_back) {
  const std::string& sandbox_id = ended.workload.key.sandbox_id;
  if (!comes_back || !waits_for_cpus(ended, rules_) || ledger_.has_later_attempt(event.key)) return;
  if (ledger_.pods().count(sandbox_id) == 0) return;
  Pod pod = draft_.pod(sandbox_id);
  pod.waiting[ended.workload.key.name] = {exclusive_cpus_for(ended.workload, rules_), now_};
  draft_.put_pod(std::move(pod));
}

bool waits_for_cpus(const Allocation& allocation, const placement::PlacementRules& rules) {
  return rules.when_full == placement::WhenFull::kShare && rules.crash_hold.count() > 0 && allocation.may_run() &&
         allocation.is_movable_in_pool() && !allocation.was_exclusive() &&
         exclusive_cpus_for(allocation.workload, rules) > 0;
}

bool keeps_cpus_at_end(const Allocation& allocation, const placement::PlacementRules& rules, std::string_view cause) {
  const bool is_over = (cause == "removed" || cause == "gone") && !allocation.may_run();
  return !is_over && rules.crash_hold.count() > 0 && allocation.is_exclusive() &&
         allocation.workload.kubelet_cpus.empty();
}

}  // namespace topolet::engine
