// Has BestEffort containers give way to others in the pool while these use much of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "core/base/clock.hpp"
#include "core/engine/planning/besteffort_planner.hpp"
#include "core/engine/state/committer.hpp"

namespace topolet::engine {

/// Decides when: what BestEffortPlanner plans is committed as it is. Lives on the loop's thread.
class BestEffortRelief {
 public:
  struct Deps {
    Committer& committer;
    Placer& placer;
    Clock clock;
    /// Returns how much of the pool is for BestEffort containers and those before them; none: they give way to nobody.
    /// Empty: the same.
    std::function<std::optional<std::uint32_t>()> percent;
  };
  explicit BestEffortRelief(Deps deps) : deps_(std::move(deps)), planner_(deps_.committer.ledger(), deps_.placer) {}
  BestEffortRelief(const BestEffortRelief&) = delete;
  BestEffortRelief& operator=(const BestEffortRelief&) = delete;

  /// To be called about once a second.
  void check();

 private:
  const Deps deps_;
  const BestEffortPlanner planner_;
  std::optional<std::chrono::steady_clock::time_point> last_step_;
};

}  // namespace topolet::engine
