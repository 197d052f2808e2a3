// The rights that the operator gives to the pods of a namespace.
#pragma once

#include "core/placement/placement_rules.hpp"
#include "core/placement/workload.hpp"

namespace topolet::placement {

bool is_in_reserved_namespace(const Workload& workload, const PlacementRules& rules);

/// Returns true if annotations of its pod may take more from others than it requests: CPUs that a fractional request
/// does not fill, idle threads beside it, CPUs that are kept apart.
bool may_take_more_than_requested(const Workload& workload, const PlacementRules& rules);

}  // namespace topolet::placement
