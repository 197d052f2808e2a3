// The device files of each PCI device and the NUMA node that each is on, as the running kernel reports them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/topology/topology.hpp"

namespace topolet::topology {

/// Reads dev/char and dev/block below `sysfs_root`: every device that a driver has registered with the kernel. Leaves
/// out devices without a PCI device, and entries that cannot be read. In no order.
std::vector<DeviceFile> read_device_files(const std::filesystem::path& sysfs_root);

/// The NUMA node of each PCI device and bridge that the kernel knows one for, by address.
std::map<std::string, std::uint32_t> read_device_nodes(const std::filesystem::path& sysfs_root);

}  // namespace topolet::topology
