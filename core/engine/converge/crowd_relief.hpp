// Moves containers away from CPUs of which more is requested than they are, while others idle.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "core/base/clock.hpp"
#include "core/engine/converge/mover.hpp"
#include "core/engine/planning/crowd_planner.hpp"

namespace topolet::engine {

/// Decides when: one container at a time, and no second one within a second. Lives on the loop's thread.
class CrowdRelief {
 public:
  struct Deps {
    Loop& loop;
    Committer& committer;
    Placer& placer;
    Mover& mover;
    Clock clock;
  };
  explicit CrowdRelief(Deps deps);
  CrowdRelief(const CrowdRelief&) = delete;
  CrowdRelief& operator=(const CrowdRelief&) = delete;

  /// Somebody may be crowded now, or may have elsewhere to go: that is checked when the next second begins.
  void schedule();
  /// The same; also for those of whom it could not be said, as a policy lost its vote.
  void retry();

 private:
  /// The inputs of a plan.
  struct Picture {
    SharedLoad load;
    CpuSet pool;
    std::int64_t setup = 0;

    friend bool operator==(const Picture&, const Picture&) = default;
  };

  void check();
  void try_one(std::vector<placement::ContainerKey> next_first);
  std::optional<Plan> plan(const Allocation& before);
  bool is_too_soon() const;
  std::chrono::milliseconds delay() const;

  const Deps deps_;
  const CrowdPlanner planner_;
  bool scheduled_ = false;
  std::optional<std::chrono::steady_clock::time_point> last_move_;
  /// The containers that were asked about in vain, as things are in `picture_`.
  std::set<placement::ContainerKey> asked_;
  /// The ones of them whose votes were lost.
  std::set<placement::ContainerKey> undecided_;
  Picture picture_;
};

}  // namespace topolet::engine
