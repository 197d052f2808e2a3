// The devices of a container.
#pragma once

#include <topolet/policy.hpp>

#include <string>
#include <vector>

#include "plugins/gpu/device_catalog.hpp"
#include "plugins/gpu/device_kinds.hpp"

namespace topolet::gpu {

struct Device {
  std::string name;  ///< for reasons, from the first name by which the container refers to it
  DeviceRef ref;
  bool is_one_of_all = false;  ///< the container names them all at once, and there are several
  bool is_watched = false;     ///< the container does not use it
};

struct ContainerDevices {
  std::vector<Device> devices;          ///< each once
  std::vector<std::string> unresolved;  ///< names that could not be resolved, each with the reason
  sdk::Set cpu_nodes = {};              ///< OS indices of NUMA nodes that have CPUs when all are online

  bool empty() const { return devices.empty() && unresolved.empty(); }
};

/// Resolves what a workload names: device nodes, CDI devices, annotations and environment variables. Device nodes that
/// are not hardware, such as /dev/fuse, are ignored. The texts hold no part of a variable's value, which is a secret.
/// Pure: reads nothing but its arguments.
ContainerDevices find_container_devices(const topolet_workload& workload, const DeviceCatalog& catalog,
                                        const std::vector<DeviceKind>& kinds);

}  // namespace topolet::gpu
