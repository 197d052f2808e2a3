#include "core/engine/planning/pressure_watch.hpp"

#include <utility>

namespace topolet::engine {

void PressureWatch::note(const Ledger& ledger, const load::Load* load, std::optional<std::uint32_t> least_permille,
                         Time now) {
  std::map<placement::ContainerKey, Time> waiting;
  pressed_.reset();
  for (const auto& [key, allocation] : ledger.allocations()) {
    if (load == nullptr || !least_permille || !allocation.follows_pool() || !allocation.may_run()) continue;
    if (allocation.workload.qos == placement::Qos::kBestEffort) continue;
    const auto measured = recent_load_of(*load, allocation.container_id);
    if (!measured || measured->is_throttled || measured->psi_some_permille.value_or(0) < *least_permille) continue;
    const auto known = waits_since_.find(key);
    const Time since = known == waits_since_.end() ? now : known->second;
    waiting[key] = since;
    const std::uint32_t permille = *measured->psi_some_permille;
    if (now - since < kWaitsBeforeOthersYield || (pressed_ && pressed_->permille >= permille)) continue;
    pressed_ = Pressed{display_name(allocation.workload), permille, allocation.placement.cpus};
  }
  waits_since_ = std::move(waiting);
  if (pressed_) last_pressed_ = now;
}

}  // namespace topolet::engine
