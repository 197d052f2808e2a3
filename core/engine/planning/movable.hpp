// Which containers topolet may move while they run although they could stay where they are: to a better place, or to
// make room for others.
#pragma once

#include "core/engine/state/allocation.hpp"
#include "core/placement/placement_rules.hpp"

namespace topolet::engine {

/// Returns true if placement.heal, or the annotation topolet.io/move, permits that the container is moved, and its CPUs
/// are topolet's to choose. It says nothing of what the container would lose.
bool is_movable(const Allocation& allocation, const placement::PlacementRules& rules);

/// Returns true if it may also be moved to other NUMA nodes, as less than placement.move-memory of its memory would
/// stay behind, or none: the kernel moves it. Where its memory request is not known, its limit counts; of a Burstable
/// one without a limit nothing is known, and it stays.
bool may_leave_its_nodes(const Allocation& allocation, const placement::PlacementRules& rules);

}  // namespace topolet::engine
