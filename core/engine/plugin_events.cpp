#include "core/engine/plugin_events.hpp"

#include <utility>

namespace topolet::engine {
namespace {

/// Nothing for what plugins do not hear of.
std::optional<plugin::ContainerEvent::Kind> container_event_kind(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::kInternal:
      return std::nullopt;
    case ChangeKind::kPlaced:
      return plugin::ContainerEvent::Kind::kPlaced;
    case ChangeKind::kStarted:
      return plugin::ContainerEvent::Kind::kStarted;
    case ChangeKind::kResized:
      return plugin::ContainerEvent::Kind::kResized;
    case ChangeKind::kMoved:
      return plugin::ContainerEvent::Kind::kMoved;
    case ChangeKind::kReleased:
      return plugin::ContainerEvent::Kind::kReleased;
  }
  return std::nullopt;
}

}  // namespace

PluginEvents::PluginEvents(Committer& committer, Deps deps) : deps_(std::move(deps)) { committer.subscribe(*this); }

void PluginEvents::publish_known(const Ledger& ledger) {
  for (const auto& [key, allocation] : ledger.allocations()) {
    if (allocation.is_bound()) publish(plugin::ContainerEvent::Kind::kPlaced, allocation);
  }
}

void PluginEvents::on_durable(const Transition& transition) {
  for (const Change& change : transition.changes) {
    const auto kind = container_event_kind(change.kind);
    if (kind) publish(*kind, change.kind == ChangeKind::kReleased ? *change.before : *change.after);
  }
}

void PluginEvents::publish(plugin::ContainerEvent::Kind kind, const Allocation& allocation) {
  if (!deps_.any_plugin_handles_events || !deps_.any_plugin_handles_events()) return;
  placement::Placement placement = allocation.placement;
  placement.withheld = allocation.effective_withheld();
  auto container_event = std::make_shared<const plugin::ContainerEvent>(
      plugin::ContainerEvent{kind, allocation.workload, std::move(placement), deps_.placer.topology()});
  deps_.loop.post([this, container_event = std::move(container_event)] { deps_.publish_event(container_event); });
}

}  // namespace topolet::engine
