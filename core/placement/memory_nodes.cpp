#include "core/placement/memory_nodes.hpp"

namespace topolet::placement {

NodeSet allowed_memory_nodes(const PolicyRequest& request) {
  NodeSet with_memory;
  for (const topology::Node& node : request.topology->nodes) {
    if (node.has_memory) with_memory.insert(node.os_index);
  }
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
