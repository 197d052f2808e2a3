// The NUMA nodes beside devices.
#pragma once

#include <string>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/topology/topology.hpp"

namespace topolet::engine {

/// The nodes with CPUs of those, and for each one without CPUs the nearest that have some.
NodeSet nodes_with_cpus(const topology::Topology& topology, const NodeSet& nodes);

/// Returns the nodes with CPUs beside each of the devices that policies have named for a container; nothing for one of
/// which the machine does not tell them.
std::vector<NodeSet> places_of_devices(const topology::Topology& topology,
                                       const std::vector<std::string>& used_devices);

}  // namespace topolet::engine
