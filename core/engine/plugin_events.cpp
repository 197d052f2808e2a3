#include "core/engine/plugin_events.hpp"

#include <utility>

namespace topolet::engine {
namespace {

bool is_at_another_place(const Allocation& a, const Allocation& b) {
  return a.placement.mode != b.placement.mode || a.placement.cpus != b.placement.cpus ||
         a.withheld_now() != b.withheld_now() || a.placement.mems != b.placement.mems;
}

/// The life of a container as plugins hear of it; nothing where the change is none of that.
std::optional<Happening::Kind> happening_of(const Change& change) {
  const bool was = change.before && change.before->is_bound();
  const bool is = change.after && change.after->is_bound();
  if (!was && !is) return std::nullopt;
  if (!was) return Happening::Kind::kPlaced;
  if (!is) return Happening::Kind::kReleased;
  if (change.audit && change.audit->event == "resized") return Happening::Kind::kResized;
  if (is_at_another_place(*change.before, *change.after)) return Happening::Kind::kMoved;
  const bool started = change.after->phase == Phase::kRunning && change.before->phase != Phase::kRunning;
  return started ? std::optional(Happening::Kind::kStarted) : std::nullopt;
}

}  // namespace

PluginEvents::PluginEvents(Committer& committer, Deps deps) : deps_(std::move(deps)) { committer.subscribe(*this); }

void PluginEvents::tell_known(const Ledger& ledger) {
  for (const auto& [key, allocation] : ledger.allocations()) {
    if (allocation.is_bound()) tell(Happening::Kind::kPlaced, allocation);
  }
}

void PluginEvents::committed(const Transition& transition) {
  for (const Change& change : transition.changes) {
    const auto kind = happening_of(change);
    if (kind) tell(*kind, *kind == Happening::Kind::kReleased ? *change.before : *change.after);
  }
}

void PluginEvents::tell(Happening::Kind kind, const Allocation& about) {
  if (!deps_.somebody_hears || !deps_.somebody_hears()) return;
  Placement placement = about.placement;
  placement.withheld = about.withheld_now();
  auto happening =
      std::make_shared<const Happening>(Happening{kind, about.workload, std::move(placement), deps_.placer.topology()});
  deps_.loop.post([this, happening = std::move(happening)] { deps_.notify(happening); });
}

}  // namespace topolet::engine
