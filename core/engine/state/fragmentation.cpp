#include "core/engine/state/fragmentation.hpp"

#include <vector>

#include "core/placement/fewest_nodes.hpp"

namespace topolet::engine {

bool could_be_narrower(const topology::Topology& topology, const CpuInventory& inventory,
                       const Allocation& allocation) {
  if (!allocation.is_exclusive() || allocation.is_kept()) return false;
  const CpuSet& own = allocation.placement.cpus;
  const std::size_t nodes = topology.nodes_of(own).size();
  if (nodes < 2) return false;
  const CpuSet usable = own.intersects(inventory.isolated)
                            ? inventory.allowed & inventory.isolated
                            : inventory.allowed - inventory.reserved - inventory.isolated;
  std::vector<std::size_t> sizes;
  for (const topology::Node& node : topology.nodes) {
    if (!node.memory_only) sizes.push_back((node.cpus & usable).size());
  }
  return placement::fewest_nodes(std::move(sizes), own.size()) < nodes;
}

}  // namespace topolet::engine
