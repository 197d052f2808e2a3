// Makes room for a container that is created or resized: moves others that lose nothing by it. Plans only.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "core/engine/planning/placer.hpp"
#include "core/engine/state/ledger.hpp"

namespace topolet::engine {

/// So many ways to move others are put to the policies for one container. Each costs a decision on the container and
/// one on each that would move.
inline constexpr std::size_t kMostRoomTries = 6;
/// So many containers move for one that has a device; one for any other.
inline constexpr std::size_t kMostMovesForDevices = 3;

/// Plans for one container. Same arguments and answers of the policies, same plan. What it is given must outlive it.
class RoomPlanner {
 public:
  /// Plans the container on a ledger in which others are not where they are.
  using PlanIn = std::function<Plan(const Ledger&)>;

  struct Request {
    const placement::Workload& workload;
    std::optional<NodeSet> zone = {};  ///< where a scheduler has reserved room for it
    PlanIn plan_in;
    std::chrono::steady_clock::time_point plan_began;  ///< as in PolicyRequest
  };

  /// `now`: wall clock, to tell whom to leave alone.
  RoomPlanner(const Ledger& ledger, const Placer& placer, std::chrono::milliseconds now)
      : ledger_(ledger), placer_(placer), now_(now) {}

  /// Returns a plan that is better for the container than `without`, and in which nobody moved is worse off than
  /// before. Its moves have the cause MoveCause::kRoom. Nothing if there is none, or if the container can have no
  /// better place whoever moves.
  std::optional<Plan> plan(const Request& request, const Plan& without) const;

 private:
  class Search;

  const Ledger& ledger_;
  const Placer& placer_;
  const std::chrono::milliseconds now_;
};

/// Returns `without`, or the plan that makes room for the container, if there is one.
Plan with_room_made(const Ledger& ledger, const Placer& placer, std::chrono::milliseconds now,
                    const RoomPlanner::Request& request, Plan without);

}  // namespace topolet::engine
