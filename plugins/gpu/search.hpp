// The devices of a container.
#pragma once

#include <topolet/policy.hpp>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/gpu/inventory.hpp"
#include "plugins/gpu/kinds.hpp"
#include "plugins/gpu/nvidia.hpp"
#include "plugins/gpu/topology_names.hpp"

namespace topolet::gpu {

/// One piece of hardware, by whichever of its names it was found first.
struct Device {
  std::string name;  ///< as the container names it
  Spot spot;
};

struct Sought {
  std::vector<Device> devices;       ///< each once
  std::vector<std::string> unknown;  ///< what the container names and nobody can place, and why
  sdk::Set cpu_nodes = {};           ///< NUMA nodes, by OS index, that have CPUs when all are online
};

/// Looks up what a workload names: device nodes, CDI devices, annotations and environment. Device nodes that are no
/// hardware, such as /dev/fuse, are passed over. Pure: reads nothing but its arguments.
Sought devices_of(const topolet_workload& workload, const TopologyNames& names, const std::vector<Kind>& kinds);

}  // namespace topolet::gpu
