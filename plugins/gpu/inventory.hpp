// The devices of this machine as its files describe them: /sys, /proc, /dev and the CDI specs. Plain values.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plugins/gpu/cdi.hpp"
#include "plugins/gpu/device_kinds.hpp"
#include "plugins/gpu/nvidia_gpu.hpp"
#include "plugins/gpu/nvml.hpp"

namespace topolet::gpu {

/// The directories to read.
struct Roots {
  std::filesystem::path sysfs = "/sys";
  std::filesystem::path proc = "/proc";
  std::filesystem::path dev = "/dev";
  std::vector<std::filesystem::path> cdi = {"/etc/cdi", "/var/run/cdi"};  ///< a later one overrides an earlier one
};

struct DeviceLocation {
  std::string address = {};                ///< PCI address; empty if it has none
  std::optional<std::uint32_t> node = {};  ///< OS index of the NUMA node, if the kernel knows it
};

/// Devices as reported by the kernel and its drivers.
struct KernelDevices {
  std::string online;                                            ///< CPU list; empty if unknown
  std::string present;                                           ///< CPU list, including offline CPUs
  std::map<std::string, DeviceLocation, std::less<>> locations;  ///< by path of the device node, such as /dev/nvme0n1
  std::map<std::string, std::string, std::less<>> aliases;       ///< target of each symbolic link in /dev
  std::vector<NvidiaGpu> nvidia;  ///< ordered by PCI address, as NVIDIA's driver lists them
  std::vector<std::pair<std::filesystem::path, std::int64_t>> directories;  ///< /dev and below, with modified_ns()
};

/// Reads /sys/dev, /sys/kernel/iommu_groups, /proc/driver/nvidia, the links in /dev, and the links that `kinds` name.
KernelDevices read_kernel_devices(const Roots& roots, const std::vector<DeviceKind>& kinds);

/// Locates a PCI device as the kernel shows it now, for one that has come since. Nothing if there is no such device.
/// These files are the kernel's alone, so that reading them does not wait for any disk.
std::optional<DeviceLocation> locate_pci_device(const std::filesystem::path& sysfs, const std::string& address);

struct CdiRegistry {
  CdiDevices devices;
  std::vector<std::string> errors;  ///< one for each spec that could not be read, naming it and the reason
};

/// Reads the specs of all directories.
CdiRegistry read_cdi(const Roots& roots);

/// Differs after a spec was added, removed or written. Cheap: reads names, sizes and times only.
std::string cdi_fingerprint(const Roots& roots);

/// Returns true if a name in /dev has come or gone since `devices` was read. Cheap, too.
bool has_changed(const KernelDevices& devices);

/// Everything known about this machine's devices besides its topology.
struct Inventory {
  std::filesystem::path sysfs = {};  ///< empty: not to be looked into
  KernelDevices devices;
  CdiRegistry cdi;
  NvmlDevices nvml;
  sdk::Set cpus = {};            ///< all that the topology has had online
  sdk::Set cpu_nodes = {};       ///< OS indices of the NUMA nodes that have had CPUs online
  bool files_confirmed = false;  ///< the files have once matched the topology

  /// Adds the CPUs and nodes of the topology to those known.
  void learn(const topolet_topology& topology);

  /// False if the files describe another machine than the topology, as when one machine is simulated on another.
  bool files_match(const topolet_topology& topology) const;
};

}  // namespace topolet::gpu
