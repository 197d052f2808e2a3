// Moves containers to where they are better off: away from CPUs of which more is requested than they are, or to a place
// where they are nearer together.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/clock.hpp"
#include "core/engine/converge/mover.hpp"
#include "core/engine/planning/better_place.hpp"
#include "core/engine/state/shared_load.hpp"

namespace topolet::engine {

/// Decides when: one container at a time, and no second one within a second. Whoever was moved is left alone for
/// kBetweenMovesOfOne. Lives on the loop's thread.
class PacedMoves {
 public:
  struct Deps {
    Loop& loop;
    Committer& committer;
    Mover& mover;
    Clock clock;
  };
  /// A reason to move containers. Both functions plan for the ledger of now.
  struct Reason {
    /// Returns the containers for which there may be a better place, in the order in which they are to move. No policy
    /// is asked.
    std::function<std::vector<placement::ContainerKey>()> movable;
    std::function<BetterPlace(const Allocation&)> plan;
  };
  /// The first of the reasons comes first.
  PacedMoves(Deps deps, std::vector<Reason> reasons);
  PacedMoves(const PacedMoves&) = delete;
  PacedMoves& operator=(const PacedMoves&) = delete;

  /// There may be better places now: that is checked when the next second begins.
  void schedule();
  /// The same; also for those of whom it could not be said, as a policy lost its vote.
  void retry();
  /// To be called when moves may begin: some may be due that the daemon before did not make.
  void begin();

 private:
  /// The inputs of a plan.
  struct Picture {
    SharedLoad load;
    CpuSet pool;
    CpuSet free_isolated;
    std::int64_t setup = 0;

    friend bool operator==(const Picture&, const Picture&) = default;
  };
  /// A container to be asked about, and the position of the reason.
  using Question = std::pair<std::size_t, placement::ContainerKey>;

  void check();
  std::vector<Question> open_questions() const;
  void try_one(std::vector<Question> next_first);
  std::optional<Plan> plan(const Question& question, const Allocation& before);
  void wait_for_rest();
  void end_rest();
  std::optional<std::chrono::milliseconds> until_next_move() const;
  std::chrono::milliseconds delay() const;

  const Deps deps_;
  const std::vector<Reason> reasons_;
  bool scheduled_ = false;
  std::optional<std::chrono::milliseconds> rest_ends_;  ///< wall clock: when somebody is not left alone any more
  /// The questions that were asked in vain, as things are in `picture_`.
  std::set<Question> asked_;
  /// The ones of them whose votes were lost.
  std::set<Question> undecided_;
  Picture picture_;
};

}  // namespace topolet::engine
