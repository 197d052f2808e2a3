// CPUs that are kept for containers that failed.
#pragma once

#include "core/daemon/room.hpp"

namespace topolet {

/// Plans; where the workload would lack CPUs, failed containers give up what is kept for them: those whose CPUs it
/// cannot do without, the oldest rather than the newest, and nobody if that is of no use.
Plan plan_over_holds(Room& room, const Workload& workload, const Placer::Terms& terms);

/// Books the moves of a plan. The containers are moved before anybody else gets their CPUs: place() names them.
void book_moves(Room& room, const Plan& plan);

/// Gives up what was kept for `crash-hold`.
void expire_holds(Room& room);

}  // namespace topolet
