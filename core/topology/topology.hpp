// The machine as plain values. Discovery fills them; nothing here knows where they came from.
//
// The room core/topology, namespace topolet::topology: what hardware there is, as discover() (discover.hpp) reads it.
// Only discover.cpp may include hwloc. The room may include core/base and nothing else of this tree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/index_set.hpp"

namespace topolet::topology {

/// A position that stands for "none", in fields that hold positions.
inline constexpr std::uint32_t kNoPosition = UINT32_MAX;

/// One logical CPU. The positions point into the vectors of Topology. A PU that hwloc knows no core for is a core
/// alone.
struct Pu {
  std::uint32_t os_index = 0;
  std::uint32_t core = kNoPosition;
  std::uint32_t l3 = kNoPosition;
  std::uint32_t die = kNoPosition;
  std::uint32_t node = kNoPosition;  ///< the CPU node; none where no NUMA node covers the PU
  std::uint32_t package = kNoPosition;
};

/// Huge pages of one size on one node.
struct HugePages {
  std::int64_t page_bytes = 0;
  std::int64_t count = 0;
};

struct Node {
  std::uint32_t os_index = 0;
  CpuSet cpus;  ///< local online CPUs, each in one CPU node only; for a memory-only node those it is near to, or none
  bool memory_only = false;       ///< HBM, CXL, PMEM, or a node without online PUs
  bool has_memory = true;         ///< false: known to have none, as other nodes know their size and this one has 0
  std::string subtype;            ///< hwloc's subtype, such as "DRAM", "HBM", "GPUMemory"; often empty
  std::int64_t memory_bytes = 0;  ///< MemTotal of the node, huge pages included; 0 = unknown
  std::vector<HugePages> huge_pages;
};

enum class DomainKind : std::uint8_t { kNode, kDie, kPackage, kMachine };

/// A piece of the machine that hwloc knows as one object, as a set of CPU nodes. PUs without a node are in the `cpus`
/// of their die, package and machine, and together make one more domain of kind kNode without nodes.
struct Domain {
  DomainKind kind = DomainKind::kMachine;
  CpuSet cpus;
  NodeSet nodes;
};

/// CPUs that are alike.
struct CpuKind {
  std::uint32_t efficiency = kNoPosition;  ///< 0 for the slowest, more for faster ones; kNoPosition = unknown
  CpuSet cpus;
};

enum class CacheKind : std::uint8_t { kUnified, kData, kInstruction };

struct Cache {
  std::uint32_t level = 0;
  CacheKind kind = CacheKind::kUnified;
  std::int64_t bytes = 0;  ///< 0 = unknown
  CpuSet cpus;
};

using DeviceInfo = std::vector<std::pair<std::string, std::string>>;

/// A host bridge, a root port, or a port of a PCI switch.
struct PciBridge {
  std::string address;                 ///< "0000:64:00.0"; empty for a host bridge
  std::uint32_t parent = kNoPosition;  ///< the bridge above, always at a smaller position; none for a host bridge
  std::uint16_t vendor_id = 0;
  std::uint16_t device_id = 0;
  CpuSet cpus;  ///< online CPUs local to it
  NodeSet nodes;
};

struct PciDevice {
  std::string address;                 ///< "0000:65:00.0"
  std::uint32_t bridge = kNoPosition;  ///< the one above it
  std::uint16_t class_id = 0;          ///< class and subclass, such as 0x0302
  std::uint16_t vendor_id = 0;
  std::uint16_t device_id = 0;
  CpuSet cpus;  ///< online CPUs local to it
  NodeSet nodes;
  DeviceInfo info;  ///< hwloc's
};

enum class OsDeviceKind : std::uint8_t { kBlock, kGpu, kNetwork, kOpenFabrics, kDma, kCoprocessor, kOther };

std::string_view to_string(OsDeviceKind kind);  // "block", "gpu", "network", "openfabrics", …

/// A device by the name that the operating system or its vendor's library gives it.
struct OsDevice {
  std::string name;     ///< such as nvml0, nvme0n1, mlx5_0
  std::string subtype;  ///< hwloc's; often empty
  OsDeviceKind kind = OsDeviceKind::kOther;
  std::uint32_t pci_device = kNoPosition;
  CpuSet cpus;  ///< online CPUs local to it
  NodeSet nodes;
  DeviceInfo info;  ///< hwloc's, such as NVIDIAUUID
};

/// A device file by the name that the kernel gives it.
struct DeviceFile {
  std::string path;     ///< such as /dev/dri/renderD128
  std::string address;  ///< of the PCI device that it belongs to
};

/// An immutable snapshot; shared between threads as shared_ptr<const Topology>.
struct Topology {
  std::vector<Pu> pus;           ///< online PUs, by ascending OS index
  std::vector<CpuSet> cores;     ///< CPUs of each core
  std::vector<CpuSet> l3s;       ///< CPUs that share a last-level (L3) cache; empty where there is none
  std::vector<CpuSet> dies;      ///< empty where hwloc names no die
  std::vector<CpuSet> packages;  ///< CPUs of each package
  std::vector<Node> nodes;       ///< by ascending OS index
  std::vector<Domain> domains;   ///< nodes, dies, packages, machine; equal node sets once, the smallest kind kept;
                                 ///< machine (or what stands for it) comes last
  std::vector<std::uint32_t> distances;  ///< SLIT, nodes × nodes row by row, by position in `nodes`
  bool distances_known = false;          ///< false: `distances` holds 10 on the diagonal and 20 elsewhere
  CpuSet online;                         ///< every PU the machine has online
  CpuSet present;                        ///< the same, and those that are offline
  CpuSet allowed;                  ///< online, less what the recorded machine forbids (a live machine: all of `online`)
  CpuSet isolated;                 ///< the kernel's isolcpus
  std::vector<CpuKind> cpu_kinds;  ///< by ascending efficiency, unknown ones last
  std::vector<Cache> caches;       ///< of all levels, the largest level first, then by lowest CPU
  std::vector<PciBridge> pci_bridges;  ///< each one after the bridge above it
  std::vector<PciDevice> pci_devices;  ///< by ascending address
  std::vector<OsDevice> os_devices;
  std::vector<DeviceFile> device_files;  ///< those of `pci_devices`, by path; none of a machine that is not this one
  std::uint64_t generation = 1;

  /// The PU of an OS index; null if it is not online.
  const Pu* pu(std::uint32_t os_index) const;
  /// The node of an OS index; null if there is none.
  const Node* node(std::uint32_t os_index) const;
  /// The PCI device at an address as it is written there; null if there is none.
  const PciDevice* pci_device(std::string_view address) const;
  /// SLIT distance between two nodes by OS index; both must exist.
  std::uint32_t distance(std::uint32_t from_os_index, std::uint32_t to_os_index) const;
  /// The sum over all ordered pairs of these nodes, each with itself included.
  std::uint32_t total_distance(const NodeSet& among) const;
  /// CPU nodes whose CPUs `cpus` touches, by OS index.
  NodeSet nodes_of(const CpuSet& cpus) const;
  /// The online CPUs that no CPU node has.
  CpuSet cpus_outside_nodes() const;
};

}  // namespace topolet::topology
