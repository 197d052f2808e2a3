// The nodes that a container's memory may come from.
#pragma once

#include "core/base/index_set.hpp"
#include "core/placement/placement_rules.hpp"
#include "core/placement/policy.hpp"
#include "core/topology/topology.hpp"

namespace topolet::placement {

NodeSet nodes_with_memory(const topology::Topology& topology);

/// The nodes that the container's memory may be bound to: those that have memory, within the kubelet's bound.
NodeSet allowed_memory_nodes(const PolicyRequest& request);

/// The memory nodes to set on a container that has `had`, if a decision says `chosen`. A running container only gains
/// nodes, because the kernel moves pages off a removed node while the write blocks; with `memory_migrate`, `chosen` is
/// what it is to have in the end.
NodeSet retained_memory_nodes(const NodeSet& had, const NodeSet& chosen, bool is_running, const PlacementRules& rules);

}  // namespace topolet::placement
