// Devices as the store keeps them.
#pragma once

#include <string>
#include <vector>

#include "core/placement/workload.hpp"
#include "core/topology/topology.hpp"
#include "store/store.hpp"

namespace topolet::engine {

/// Returns a row for each OS device, and for each PCI device without one that displays, computes or is a network
/// interface.
std::vector<store::TopologyRow::Device> device_rows(const topology::Topology& topology);

/// The devices that a container names, as in the column `decided.devices`. Without `topology`, their nodes are unknown.
std::string devices_json(const placement::Workload& workload, const topology::Topology* topology);

}  // namespace topolet::engine
