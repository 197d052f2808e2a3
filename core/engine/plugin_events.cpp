#include "core/engine/plugin_events.hpp"

#include <string>
#include <utility>

namespace topolet::engine {
namespace {

plugin::ContainerEvent event_of(plugin::ContainerEvent::Kind kind, const Allocation& allocation) {
  plugin::ContainerEvent container_event{kind, allocation.workload, allocation.placement, nullptr};
  container_event.placement.withheld = allocation.effective_withheld();
  container_event.container_id = allocation.container_id;
  return container_event;
}

bool is_foreign(const Allocation& allocation) { return allocation.placement.mode == placement::Mode::kForeign; }

}  // namespace

PluginEvents::PluginEvents(Committer& committer, Deps deps) : deps_(std::move(deps)) { committer.subscribe(*this); }

void PluginEvents::publish_known(const Ledger& ledger) {
  for (const auto& [key, allocation] : ledger.allocations()) {
    if (allocation.is_bound()) tell_of_placed(allocation, true);
  }
}

/// A transition has the changes of containers in their order; a denial changes none, and a pod outlives its containers.
void PluginEvents::on_durable(const Transition& transition) {
  for (const Change& change : transition.changes) tell_of(change);
  for (const RecordedEvent& recorded : transition.recorded_events) {
    if (recorded.audit.event == AuditEvent::kDenied && recorded.subject)
      tell_of_denied(recorded.subject->workload, recorded.audit.reason);
  }
  for (const RepeatedDenial& repeated : transition.repeated) tell_of_denied(repeated.workload, repeated.reason);
  for (const PodChange& change : transition.pods) {
    if (!change.after) tell_of_removed(change.forgotten);
  }
}

void PluginEvents::tell_of(const Change& change) {
  switch (change.kind) {
    case ChangeKind::kInternal:
      return;
    case ChangeKind::kPlaced:
      return tell_of_placed(*change.after, change.is_found);
    case ChangeKind::kStarted:
      return publish(event_of(Kind::kStarted, *change.after));
    case ChangeKind::kResized:
      return publish(event_of(Kind::kResized, *change.after));
    case ChangeKind::kMoved:
      if (is_foreign(*change.after)) return tell_of_placed(*change.after, false);
      return publish(event_of(Kind::kMoved, *change.after));
    case ChangeKind::kReleased:
      return tell_of_released(change);
  }
}

void PluginEvents::tell_of_placed(const Allocation& allocation, bool is_found) {
  plugin::ContainerEvent container_event = event_of(Kind::kPlaced, allocation);
  container_event.adopted = is_found;
  if (is_foreign(allocation)) {
    container_event.kind = Kind::kUnpinned;
    container_event.placement = {};
    container_event.placement.mode = placement::Mode::kForeign;
  }
  publish(std::move(container_event));
}

/// What never ran has not exited.
void PluginEvents::tell_of_released(const Change& change) {
  if (change.before->may_run() || change.exit_code) {
    plugin::ContainerEvent exited = event_of(Kind::kExited, *change.before);
    exited.exit_code = change.exit_code;
    publish(std::move(exited));
  }
  publish(event_of(Kind::kReleased, *change.before));
}

void PluginEvents::tell_of_denied(const placement::Workload& workload, const std::string& reason) {
  plugin::ContainerEvent denied{Kind::kDenied, workload, {}, nullptr};
  denied.reason = reason;
  publish(std::move(denied));
}

void PluginEvents::tell_of_removed(const operations::Sandbox& sandbox) {
  plugin::ContainerEvent removed{Kind::kPodRemoved, {}, {}, nullptr};
  removed.workload.key.pod_uid = sandbox.pod_uid;
  removed.workload.key.sandbox_id = sandbox.id;
  removed.workload.pod_name = sandbox.pod_name;
  removed.workload.pod_namespace = sandbox.pod_namespace;
  removed.workload.runtime_handler = sandbox.runtime_handler;
  publish(std::move(removed));
}

/// Events are counted whether or not any plugin hears of them.
void PluginEvents::publish(plugin::ContainerEvent container_event) {
  container_event.sequence = ++last_sequence_;
  if (!deps_.any_plugin_handles_events || !deps_.any_plugin_handles_events()) return;
  container_event.topology = deps_.placer.topology();
  deps_.loop.post([this, told = std::make_shared<const plugin::ContainerEvent>(std::move(container_event))] {
    deps_.publish_event(told);
  });
}

}  // namespace topolet::engine
