// Devices that are local to a part of a node's CPUs only, or to CPUs that belong to no node.
#pragma once

#include <topolet/policy.hpp>

#include <string>
#include <vector>

#include "plugins/gpu/container_devices.hpp"

namespace topolet::gpu {

/// A device and the CPUs that are local to it.
struct LocalCpus {
  std::string device;
  sdk::Set cpus;
  bool has_node = false;
};

/// Returns the devices whose local CPUs are not simply those of their nodes.
std::vector<LocalCpus> local_cpus_of(const topolet_topology& topology, const ContainerDevices& container);

}  // namespace topolet::gpu
