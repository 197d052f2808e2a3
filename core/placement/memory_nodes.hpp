// Which nodes a container's memory may come from.
#pragma once

#include "core/base/index_set.hpp"
#include "core/placement/placement_rules.hpp"
#include "core/placement/policy.hpp"

namespace topolet::placement {

/// The nodes that the container's memory may be bound to: those that have memory, within the kubelet's bound.
NodeSet allowed_memory_nodes(const PolicyRequest& request);

/// What a container that is set to the nodes `had` is to be set to where a decision says `chosen`. On a running one
/// they only grow, as the kernel moves the pages while the write blocks; unless the rules let it.
NodeSet retained_memory_nodes(const NodeSet& had, const NodeSet& chosen, bool is_running, const PlacementRules& rules);

}  // namespace topolet::placement
