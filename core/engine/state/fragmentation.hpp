// Containers that are on more NUMA nodes than their CPUs need.
#pragma once

#include "core/engine/state/allocation.hpp"
#include "core/engine/state/cpu_inventory.hpp"
#include "core/topology/topology.hpp"

namespace topolet::engine {

/// Returns true if the container has its CPUs alone, and fewer nodes have as many that containers may use, whoever has
/// those: it is there for want of room, or as somebody else was there first. The audit counts the same way, as it has
/// no other than the CPUs of a decision (core/audit/node_usage.hpp).
bool could_be_narrower(const topology::Topology& topology, const CpuInventory& inventory, const Allocation& allocation);

}  // namespace topolet::engine
