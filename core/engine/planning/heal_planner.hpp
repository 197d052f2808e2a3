// Containers that are wider or farther from their devices than they need be, and where they fit now. Plans only.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/engine/planning/better_place.hpp"
#include "core/engine/planning/place_cost.hpp"
#include "core/engine/planning/rebalance_planner.hpp"
#include "core/engine/state/shared_load.hpp"

namespace topolet::engine {

/// Plans for the current state of `ledger` and `placer`, which must outlive it.
///
/// Moves end, and never lead back: each one lowers the PlaceCost of the container that moves, and those of all others
/// stay as they are, since nobody else moves with it. As long as nothing but such moves happens, the same places never
/// come again, and there are only so many.
class HealPlanner {
 public:
  HealPlanner(const Ledger& ledger, const Placer& placer)
      : ledger_(ledger), placer_(placer), rebalance_planner_(ledger, placer) {}

  /// Returns the containers that may be moved and for which there seem to be CPUs in a better place, in the order in
  /// which they are to move: the one that gains most first, and of equals the one for which the least memory is booked.
  /// No policy is asked.
  std::vector<placement::ContainerKey> healable() const;

  /// Returns the policies' present plan for such a container.
  BetterPlace plan_heal(const Allocation& before) const;

 private:
  struct Seeker;
  using Gain = std::array<std::int64_t, 4>;

  bool may_be_healed(const Allocation& allocation) const;
  bool stays_on_its_nodes(const Allocation& allocation) const;
  std::optional<Gain> possible_gain(const Allocation& allocation, const SharedLoad& load) const;
  Seeker seeker_of(const Allocation& allocation) const;
  std::optional<PlaceCost> least_cost(const Seeker& seeker, const placement::Candidate& candidate,
                                      const SharedLoad& load, const PlaceCost& most) const;
  Placer::Constraints constraints_for(const Allocation& before) const;
  bool leaves_pod(const Allocation& before, const placement::Workload& workload,
                  const placement::Decision& decision) const;
  bool takes_room_of_newcomers(const Allocation& before, const placement::Decision& decision, const PlaceCost& now,
                               const PlaceCost& then) const;
  bool leaves_others_as_well_off(const Allocation& before, const placement::Decision& decision) const;

  const Ledger& ledger_;
  const Placer& placer_;
  const RebalancePlanner rebalance_planner_;
};

}  // namespace topolet::engine
