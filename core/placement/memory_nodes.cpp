#include "core/placement/memory_nodes.hpp"

namespace topolet::placement {

NodeSet nodes_with_memory(const topology::Topology& topology) {
  NodeSet nodes;
  for (const topology::Node& node : topology.nodes) {
    if (node.has_memory) nodes.insert(node.os_index);
  }
  return nodes;
}

NodeSet allowed_memory_nodes(const PolicyRequest& request) {
  const NodeSet with_memory = nodes_with_memory(*request.topology);
  const NodeSet& bound = request.workload.kubelet_mems;
  return bound.empty() ? with_memory : with_memory & bound;
}

NodeSet retained_memory_nodes(const NodeSet& had, const NodeSet& chosen, bool is_running, const PlacementRules& rules) {
  if (chosen.empty()) return had;  // nothing in a request takes a set back
  if (!is_running || rules.memory_migrate) return chosen;
  // Without a set it may have memory on any node.
  return had.empty() ? NodeSet() : had | chosen;
}

}  // namespace topolet::placement
