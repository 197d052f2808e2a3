#include "core/engine/planning/device_nodes.hpp"

#include <optional>
#include <utility>

#include "core/topology/find_device.hpp"

namespace topolet::engine {

NodeSet nodes_with_cpus(const topology::Topology& topology, const NodeSet& nodes) {
  NodeSet found;
  for (const topology::Node& node : topology.nodes) {
    if (!nodes.contains(node.os_index)) continue;
    if (!node.memory_only) {
      found.insert(node.os_index);
      continue;
    }
    std::optional<std::uint32_t> least;
    NodeSet nearest;
    for (const topology::Node& other : topology.nodes) {
      if (other.memory_only) continue;
      const std::uint32_t distance = topology.distance(node.os_index, other.os_index);
      if (least && distance > *least) continue;
      if (!least || distance < *least) nearest = {};
      least = distance;
      nearest.insert(other.os_index);
    }
    found |= nearest;
  }
  return found;
}

std::vector<NodeSet> places_of_devices(const topology::Topology& topology,
                                       const std::vector<std::string>& used_devices) {
  std::vector<NodeSet> places;
  for (const std::string& name : used_devices) {
    NodeSet nodes = nodes_with_cpus(topology, find_device(topology, name).nodes);
    if (!nodes.empty()) places.push_back(std::move(nodes));
  }
  return places;
}

}  // namespace topolet::engine
