// How near devices are to NUMA nodes and to each other.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/gpu/topology_names.hpp"

namespace topolet::gpu {

class CpuNodes;

/// How close two devices are, closest first.
enum class Closeness : std::uint8_t { kSameSwitch, kSameRoot, kSameNode, kSamePackage, kFar };

std::string_view name_of(Closeness closeness);

/// CPUs that hwloc ties a device to.
topolet_set cpus_of(const topolet_topology& topology, const Spot& spot);

/// Positions of CPU nodes that are local to a device. Those nearest to it if its own node has no CPUs. All of them, or
/// none, if the machine does not tell.
std::vector<std::uint32_t> homes_of(const topolet_topology& topology, const Spot& spot);

/// What is known of a device's place before it is compared with others'.
struct Lodging {
  std::vector<std::uint32_t> bridges;  ///< above it, host bridge last
  std::vector<std::uint32_t> homes;    ///< as homes_of(); none while the CPUs of its own node are offline
  std::vector<std::uint32_t> origins;  ///< positions of nodes that distances to it count from
};

/// `cpu_nodes`: NUMA nodes, by OS index, that have CPUs when all are online.
Lodging lodging_of(const topolet_topology& topology, const Spot& spot, const sdk::Set& cpu_nodes);

Closeness closeness(const topolet_topology& topology, const CpuNodes& nodes, const Lodging& a, const Lodging& b);

/// A GPU, an NPU or another accelerator, and no plain display of the board's.
bool is_accelerator(const topolet_topology& topology, const Spot& spot);

/// What people call it: "GPU", "NPU", "accelerator", "NIC", "disk", or "device".
std::string_view noun_of(const topolet_topology& topology, const Spot& spot);

/// "node 1", "nodes 0-1".
std::string nodes_text(const sdk::Set& nodes);

/// CPU nodes, by position, and the package of each.
class CpuNodes {
 public:
  explicit CpuNodes(const topolet_topology& topology);

  const std::vector<std::uint32_t>& positions() const { return positions_; }
  /// Those of `nodes` with CPUs that are free, if there are any free ones.
  std::vector<std::uint32_t> usable(topolet_set nodes, topolet_set free) const;
  std::uint32_t distance(std::uint32_t from, std::uint32_t to) const;
  bool share_a_package(std::uint32_t a, std::uint32_t b) const;
  std::uint32_t os_index(std::uint32_t position) const { return sdk::nodes(topology_)[position].os_index; }

 private:
  const topolet_topology& topology_;
  std::vector<std::uint32_t> positions_;
  std::vector<std::uint32_t> packages_;  ///< by position in the topology's nodes
};

}  // namespace topolet::gpu
