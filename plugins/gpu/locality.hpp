// How near devices are to NUMA nodes and to each other.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/gpu/device_catalog.hpp"

namespace topolet::gpu {

class CpuNodes;

/// Positions of NUMA nodes in the topology's nodes.
using Nodes = std::vector<std::uint32_t>;

bool contains(const Nodes& nodes, std::uint32_t node);

/// How close two devices are, closest first.
enum class Closeness : std::uint8_t { kSameSwitch, kSameRoot, kSameNode, kSamePackage, kDifferentPackages };

/// Such as "behind the same PCIe switch".
std::string_view closeness_text(Closeness closeness);

/// The CPUs that hwloc reports as local to a device.
topolet_set cpus_of(const topolet_topology& topology, const DeviceRef& ref);

/// The CPU nodes that are local to a device; those nearest to it if its own node has no CPUs. If the machine does not
/// say, all of them or none.
Nodes local_nodes_of(const topolet_topology& topology, const DeviceRef& ref);

/// The place of one device, before it is compared with others.
struct DeviceLocality {
  std::vector<std::uint32_t> bridges;  ///< PCI bridges above it, host bridge last
  Nodes local_nodes;                   ///< as local_nodes_of(); none while the CPUs of its own node are offline
  Nodes measured_from;                 ///< the nodes from which distances to the device are measured
};

/// `cpu_nodes`: OS indices of the NUMA nodes that have CPUs when all are online.
DeviceLocality device_locality(const topolet_topology& topology, const DeviceRef& ref, const sdk::Set& cpu_nodes);

Closeness closeness(const topolet_topology& topology, const CpuNodes& nodes, const DeviceLocality& a,
                    const DeviceLocality& b);

/// True for a GPU, an NPU or another accelerator; false for the plain display controller of a board.
bool is_accelerator(const topolet_topology& topology, const DeviceRef& ref);

/// Returns the usual word for the device: "GPU", "NPU", "accelerator", "NIC", "disk" or "device".
std::string_view noun_of(const topolet_topology& topology, const DeviceRef& ref);

/// "node 1", "nodes 0-1", "the CPUs outside any node".
std::string nodes_text(topolet_set nodes);
std::string nodes_text(const sdk::Set& nodes);

/// The CPUs that an exclusive container needs; 1 for one that shares its CPUs.
std::size_t cpus_needed(const topolet_request& request);

/// The nodes that have CPUs, and the package of each.
class CpuNodes {
 public:
  explicit CpuNodes(const topolet_topology& topology);

  const Nodes& positions() const { return positions_; }
  /// Returns the `nodes` that have CPUs in `free`; all of them if `free` is empty.
  Nodes usable(topolet_set nodes, topolet_set free) const;
  /// How many of these CPUs the node has.
  std::size_t count_on(std::uint32_t position, topolet_set cpus) const { return cpus_[position].count_in(cpus); }
  std::uint32_t distance(std::uint32_t from, std::uint32_t to) const;
  bool share_a_package(std::uint32_t a, std::uint32_t b) const;
  std::uint32_t os_index(std::uint32_t position) const { return sdk::nodes(topology_)[position].os_index; }
  sdk::Set os_indices(const Nodes& nodes) const;

 private:
  const topolet_topology& topology_;
  Nodes positions_;
  // By position in the topology's nodes:
  std::vector<sdk::NarrowSet> cpus_;
  std::vector<std::uint32_t> packages_;
};

}  // namespace topolet::gpu
