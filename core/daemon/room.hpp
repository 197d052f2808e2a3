#pragma once

#include "core/base/clock.hpp"
#include "core/base/log.hpp"
#include "core/cri/requests.hpp"
#include "core/daemon/bookings.hpp"
#include "core/daemon/effect.hpp"
#include "core/daemon/loop.hpp"
#include "core/daemon/placer.hpp"
#include "core/daemon/sandboxes.hpp"
#include "core/placement/lanes.hpp"

namespace topolet {

/// What the handlers of CRI calls work with. All of it lives on the loop's thread.
struct Room {
  Loop& loop;
  Bookings& bookings;
  Sandboxes& sandboxes;
  Lanes& lanes;
  Effect& effect;
  const Placer& placer;
  DemandRules demand_rules;
  const Clock& clock;
  Log& log;
};

}  // namespace topolet
