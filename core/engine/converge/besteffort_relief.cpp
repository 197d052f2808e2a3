#include "core/engine/converge/besteffort_relief.hpp"

#include <memory>
#include <utility>

#include "core/base/log.hpp"

namespace topolet::engine {

void BestEffortRelief::check() {
  const placement::BestEffortShare share = deps_.share && !has_ended_ ? deps_.share() : placement::BestEffortShare();
  share_cpus(share);
  share_memory(share.memory);
}

bool BestEffortRelief::may_step(const Moment& last_step) const {
  return !last_step || deps_.clock.steady() - *last_step >= kBetweenBestEffortSteps;
}

void BestEffortRelief::share_cpus(const placement::BestEffortShare& share) {
  if (!share.cpus && deps_.committer.ledger().besteffort().empty()) return;
  const load::Source& source = deps_.placer.deps().load;
  const std::shared_ptr<const load::Load> load = source ? source() : nullptr;
  const auto now = deps_.clock.steady();
  const auto least = share.pressure ? std::optional(*share.pressure * 10) : std::nullopt;
  pressure_.note(deps_.committer.ledger(), load.get(), least, now);
  const Pressed* const pressed = pressure_.pressed() ? &*pressure_.pressed() : nullptr;
  std::optional<event::BestEffortNarrowed> next =
      planner_.next(load.get(), share.cpus, may_step(last_step_), {pressed, pressure_.is_remembered(now)});
  if (!next) return;
  last_step_ = now;
  deps_.committer.commit(*std::move(next));
}

void BestEffortRelief::share_memory(std::optional<std::uint32_t> percent) {
  if (percent && (deps_.cpusets.refuses_files() || !can_share_memory())) percent.reset();
  std::optional<event::BestEffortMemoryShared> next = memory_planner_.next(percent, may_step(last_memory_step_));
  if (!next) return;
  last_memory_step_ = deps_.clock.steady();
  deps_.committer.commit(*std::move(next));
}

/// Says once why not.
bool BestEffortRelief::can_share_memory() {
  const bool is_v1 = deps_.cpusets.has_v1_cpusets();
  if (!is_v1 && memory_of(*deps_.placer.topology())) return true;
  if (!std::exchange(said_why_not_, true)) {
    deps_.log.warn(
        "load.besteffort-memory has no effect: {}",
        is_v1 ? "cgroups of version 1 have no memory.high" : "it is not known how much memory each NUMA node has");
  }
  return false;
}

}  // namespace topolet::engine
