// From what a machine says of itself to a Topology: pure, so that any machine can be made up in a test.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/topology/topology.hpp"

namespace topolet::topology {

struct NodeDescription {
  std::uint32_t os_index = 0;
  CpuSet cpus;  ///< of its locality; several nodes may name the same
  std::string subtype;
  std::int64_t memory_bytes = 0;  ///< 0 = none or unknown
  std::vector<HugePages> huge_pages;
  std::uint64_t bandwidth_mib_s = 0;  ///< as its best initiator sees it; 0 = unknown
  std::uint64_t latency_ns = 0;       ///< the same
};

/// Sets may name CPUs that are not online, and may come in any order.
struct MachineDescription {
  CpuSet online;
  CpuSet present;  ///< offline ones too; `online` need not be repeated
  CpuSet allowed;
  CpuSet isolated;
  std::vector<CpuSet> cores;
  std::vector<CpuSet> l3s;
  std::vector<CpuSet> dies;
  std::vector<CpuSet> packages;
  std::vector<NodeDescription> nodes;    ///< by ascending OS index
  std::vector<std::uint32_t> distances;  ///< nodes × nodes row by row, or empty = unknown
  std::vector<CpuKind> cpu_kinds;
  std::vector<Cache> caches;
  std::vector<PciBridge> pci_bridges;  ///< each one after the bridge above it
  std::vector<PciDevice> pci_devices;
  std::vector<OsDevice> os_devices;  ///< their `pci_device` as a position in `pci_devices` as it is here
  /// The nodes that the kernel names for PCI devices and bridges, by address. Where they are elsewhere, this counts: as
  /// CPUs go offline, hwloc finds other places for devices.
  std::map<std::string, std::uint32_t> device_nodes;
  std::vector<DeviceFile> device_files;  ///< some may belong to PCI devices that are not here
};

/// Tells CPU nodes from memory-only ones: of the nodes that share a locality one is its CPU node. Those whose subtype
/// names anything but DRAM come last; then those that answer 1.5 times slower than the quickest (CXL, PMEM), then those
/// that are at least twice as fast as a larger one (HBM); then the lowest OS index, as Linux numbers DRAM first. Where
/// localities overlap, the smaller one has its CPUs first.
Topology build_topology(const MachineDescription& description);

}  // namespace topolet::topology
