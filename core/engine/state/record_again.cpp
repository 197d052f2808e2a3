#include "core/engine/state/record_again.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/engine/state/codec.hpp"
#include "core/engine/state/write_transition.hpp"

namespace topolet::engine {
namespace {

Allocations before(Allocations allocations, const std::deque<UnwrittenTransition>& unwritten) {
  for (auto next = unwritten.rbegin(); next != unwritten.rend(); ++next) {
    const std::vector<Change>& changes = next->transition->changes;
    for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
      if (change->before) {
        allocations.put(*change->before);
      } else {
        allocations.erase(change->after->workload.key);
      }
    }
  }
  return allocations;
}

/// In the order of the decisions, as they were made.
std::vector<Change> changes_to(const Allocations& allocations, const std::string& why) {
  std::vector<Change> changes;
  for (const auto& [key, allocation] : allocations) {
    Change change;
    change.audit = AuditEntry{AuditEvent::kRecordedAgain, fmt::format("{} ({})", allocation.reason, why)};
    if (allocation.is_bound()) change.outcome = Outcome{"bound"};
    change.after = allocation;
    changes.push_back(std::move(change));
  }
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.after->decision < b.after->decision; });
  return changes;
}

/// A denial that was audited, and is counted on.
RecordedEvent denial_of(const Pod& pod, const std::string& container, const Denial& denial) {
  Allocation subject;
  subject.workload.key = {pod.sandbox.pod_uid, container, denial.attempt, pod.sandbox.id};
  subject.workload.pod_namespace = pod.sandbox.pod_namespace;
  subject.workload.pod_name = pod.sandbox.pod_name;
  return {AuditEntry{AuditEvent::kDenied, denial.reason}, denial.decision, std::move(subject)};
}

}  // namespace

Transition record_again(const Ledger& ledger, const std::deque<UnwrittenTransition>& unwritten,
                        std::chrono::milliseconds wall_time, const std::string& why) {
  Transition again;
  again.wall_time = wall_time;
  again.generation = unwritten.empty() ? ledger.generation() : unwritten.front().transition->generation - 1;
  again.next_decision = unwritten.empty() ? ledger.next_decision() : unwritten.front().first_decision;
  again.pool = unwritten.empty() ? ledger.pool() : unwritten.front().transition->pool_before;
  again.pool_before = again.pool;
  again.pool_vacating = unwritten.empty() ? ledger.pool_vacating() : unwritten.front().transition->pool_vacating_before;
  again.pool_vacating_before = again.pool_vacating;
  again.writes_pool = true;
  again.pool_cause.what = "started";
  const Allocations held = before(ledger.allocations().share(), unwritten);
  DedicatedCpus dedicated;
  for (const auto& [key, allocation] : held) dedicated.add(allocation);
  again.free_reserved = dedicated.free_reserved_of(ledger.inventory());
  again.free_isolated = dedicated.free_isolated_of(ledger.inventory());
  // As they are by now, too: nothing is written where they were recorded before.
  again.topology = ledger.topology();
  again.topology_inventory = ledger.inventory();
  again.machine = ledger.topology();
  if (ledger.setup()) again.setup = *ledger.setup();
  again.changes = changes_to(held, why);
  for (const auto& [id, pod] : ledger.pods()) {
    // As they are by now: what is written next makes the same of them once more.
    again.pods.push_back({id, pod});
    for (const auto& [container, denial] : pod.denied) {
      if (denial.decision < again.next_decision) again.recorded_events.push_back(denial_of(pod, container, denial));
    }
  }
  for (const auto& [node, told] : ledger.reported_capacities()) again.capacities.push_back({node, told});
  again.recent_sizes = ledger.recent_sizes();
  return again;
}

Status write_again(store::Store& store, Transition transition) {
  const auto rows = store.allocations();
  if (!rows) return rows.error();
  const auto pods = store.pods();
  if (!pods) return pods.error();
  const auto capacities = store.capacities();
  if (!capacities) return capacities.error();
  const auto last = store.last_decision();
  if (!last) return last.error();
  std::set<std::int64_t> written;
  for (const store::AllocationRow& row : *rows) {
    const auto change = std::find_if(transition.changes.begin(), transition.changes.end(),
                                     [&](const Change& held) { return held.after->decision == row.decision; });
    const Status done =
        change == transition.changes.end()
            ? store.add(store::EndedRow{row.decision, transition.wall_time.count(), transition.generation, "gone"})
            : store.put_allocation(row.decision, encode(*change->after));
    if (!done) return done;
    written.insert(row.decision);
  }
  std::erase_if(transition.changes, [&](const Change& held) { return written.contains(held.after->decision); });
  for (const store::PodRow& row : *pods) {
    const std::string id = std::get<std::string>(row.at("sandbox_id"));
    const bool known = std::any_of(transition.pods.begin(), transition.pods.end(),
                                   [&](const PodChange& pod) { return pod.sandbox_id == id; });
    if (known) continue;
    if (Status removed = store.remove_pod(id); !removed) return removed;
  }
  for (const store::CapacityRow& row : *capacities) {
    if (Status removed = store.remove_capacity(row.node); !removed) return removed;
  }
  if (*last > 0) {
    // Its own history has them.
    transition.recorded_events.clear();
    transition.writes_pool = false;
    const store::WholePoolRow row{transition.pool, transition.pool_vacating, transition.generation};
    if (Status set = store.put_whole_pool(row); !set) return set;
  }
  if (Status skipped = store.skip_decisions(transition.next_decision - 1); !skipped) return skipped;
  return write(store, transition);
}

}  // namespace topolet::engine
