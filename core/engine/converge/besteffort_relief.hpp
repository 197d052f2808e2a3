// Has BestEffort containers give way to others: in the pool while these use much of it, and of the machine's memory.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "core/base/clock.hpp"
#include "core/base/log_fwd.hpp"
#include "core/engine/converge/cpuset_writer.hpp"
#include "core/engine/planning/besteffort_memory_planner.hpp"
#include "core/engine/planning/besteffort_planner.hpp"
#include "core/engine/state/committer.hpp"
#include "core/placement/besteffort_share.hpp"

namespace topolet::engine {

/// Decides when: what the planners plan is committed as it is. Lives on the loop's thread.
class BestEffortRelief {
 public:
  struct Deps {
    Committer& committer;
    Placer& placer;
    const CpusetWriter& cpusets;
    Clock clock;
    Log& log;
    /// Returns how much is for BestEffort containers. Empty: they give way to nobody.
    std::function<placement::BestEffortShare()> share;
  };
  explicit BestEffortRelief(Deps deps)
      : deps_(std::move(deps)),
        planner_(deps_.committer.ledger(), deps_.placer),
        memory_planner_(deps_.committer.ledger(), deps_.placer) {}
  BestEffortRelief(const BestEffortRelief&) = delete;
  BestEffortRelief& operator=(const BestEffortRelief&) = delete;

  /// To be called about once a second.
  void check();
  /// They give way to nobody any more, whatever the options say.
  void end() { has_ended_ = true; }

 private:
  using Moment = std::optional<std::chrono::steady_clock::time_point>;

  bool may_step(const Moment& last_step) const;
  void share_cpus(const placement::BestEffortShare& share);
  void share_memory(std::optional<std::uint32_t> percent);
  bool can_share_memory();

  const Deps deps_;
  const BestEffortPlanner planner_;
  const BestEffortMemoryPlanner memory_planner_;
  PressureWatch pressure_;
  Moment last_step_;
  Moment last_memory_step_;
  bool has_ended_ = false;
  bool said_why_not_ = false;  ///< memory cannot be shared
};

}  // namespace topolet::engine
