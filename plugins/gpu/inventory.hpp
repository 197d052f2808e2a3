// What the files of this machine say about its devices: /sys, /proc, /dev and the CDI specs. Plain values.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plugins/gpu/cdi.hpp"
#include "plugins/gpu/kinds.hpp"
#include "plugins/gpu/nvidia_gpu.hpp"
#include "plugins/gpu/nvml.hpp"

namespace topolet::gpu {

/// Where the files are.
struct Roots {
  std::filesystem::path sysfs = "/sys";
  std::filesystem::path proc = "/proc";
  std::filesystem::path dev = "/dev";
  std::vector<std::filesystem::path> cdi = {"/etc/cdi", "/var/run/cdi"};  ///< later ones count for more
};

/// Where a device is.
struct Place {
  std::string address = {};                ///< PCI; empty for none
  std::optional<std::uint32_t> node = {};  ///< NUMA node by OS index, where the kernel tells it
};

/// The devices of the kernel.
struct Devices {
  std::string online;                                       ///< CPU list; empty if not told
  std::string present;                                      ///< CPU list, offline ones included
  std::map<std::string, Place, std::less<>> places;         ///< by path, such as /dev/nvme0n1
  std::map<std::string, std::string, std::less<>> aliases;  ///< path of what a symbolic link in /dev leads to
  std::vector<NvidiaGpu> nvidia;                            ///< by PCI address, as the driver says
  std::vector<std::pair<std::filesystem::path, std::int64_t>> directories;  ///< of /dev, with their times of change
};

/// Reads /sys/dev, /sys/kernel/iommu_groups, /proc/driver/nvidia, the links in /dev and those of `kinds`.
Devices read_devices(const Roots& roots, const std::vector<Kind>& kinds);

struct CdiRegistry {
  CdiDevices devices;
  std::vector<std::string> faults;  ///< specs that cannot be read, and why
};

/// Reads the specs of all directories.
CdiRegistry read_cdi(const Roots& roots);

/// Changes if a spec was added, removed or written. Cheap: looks at names and times only.
std::string cdi_stamp(const Roots& roots);

/// True if /dev has got or lost a name since. Cheap, too.
bool has_changed(const Devices& devices);

/// All that is known beside the topology at hand.
struct Inventory {
  Devices devices;
  CdiRegistry cdi;
  NvmlAnswer nvml;
  sdk::Set cpus = {};          ///< that this machine has had online
  sdk::Set cpu_nodes = {};     ///< NUMA nodes, by OS index, that have had some of them
  bool has_met_files = false;  ///< the files were found to be this machine's once

  /// Learns what the machine has.
  void see(const topolet_topology& topology);

  /// False if the files are of another machine than the topology, as where one is simulated on another.
  bool has_files_of(const topolet_topology& topology) const;
};

}  // namespace topolet::gpu
