#include "core/engine/converge/besteffort_relief.hpp"

#include <memory>
#include <utility>

namespace topolet::engine {

void BestEffortRelief::check() {
  const std::optional<std::uint32_t> percent = deps_.percent ? deps_.percent() : std::nullopt;
  if (!percent && deps_.committer.ledger().besteffort().empty()) return;
  const load::Source& source = deps_.placer.deps().load;
  const std::shared_ptr<const load::Load> load = source ? source() : nullptr;
  const auto now = deps_.clock.steady();
  const bool may_step = !last_step_ || now - *last_step_ >= kBetweenBestEffortSteps;
  std::optional<event::BestEffortNarrowed> next = planner_.next(load.get(), percent, may_step);
  if (!next) return;
  last_step_ = now;
  deps_.committer.commit(*std::move(next));
}

}  // namespace topolet::engine
