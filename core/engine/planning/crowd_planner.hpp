// Containers that share CPUs of which more is requested than they are, and where they would be better off. Plans only.
#pragma once

#include <vector>

#include "core/engine/planning/better_place.hpp"
#include "core/engine/planning/placer.hpp"
#include "core/engine/state/ledger.hpp"
#include "core/engine/state/shared_load.hpp"

namespace topolet::engine {

/// Plans for the current state of `ledger` and `placer`, which must outlive it.
///
/// Moves end, and never lead back: of all CPUs that a move takes from the container or gives to it, the one of which
/// most is asked is asked for less than the one was before (`helps`). The others stay as they are, so that the loads of
/// all CPUs, the highest first, become smaller with every move, compared as words are. As long as nothing but such
/// moves happens, the same loads never come again, and there are only so many.
class CrowdPlanner {
 public:
  CrowdPlanner(const Ledger& ledger, const Placer& placer) : ledger_(ledger), placer_(placer) {}

  /// Returns containers on crowded CPUs while enough others are less in demand, in the order in which they are to move:
  /// those without devices and bound memory first, and of these the one whose move relieves most. No policy is asked.
  /// `load`: of the ledger.
  std::vector<placement::ContainerKey> crowded(const SharedLoad& load) const;

  /// Returns the policies' present plan for such a container.
  BetterPlace plan_relief(const Allocation& before) const;

 private:
  /// CPUs that containers may share, and what is asked of all of them together.
  struct Place {
    CpuSet cpus;
    SharedLoad::Load total = 0;
  };

  std::vector<Place> places(placement::Mode mode, const SharedLoad& load) const;
  static SharedLoad::Load least_load(const std::vector<Place>& places, const CpuSet& from, std::int64_t milli);
  static bool helps(const SharedLoad& load, const Allocation& before, const CpuSet& cpus);

  const Ledger& ledger_;
  const Placer& placer_;
};

}  // namespace topolet::engine
