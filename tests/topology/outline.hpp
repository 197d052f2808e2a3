#pragma once

#include <string>

#include "core/topology/topology.hpp"

namespace topolet::topology {

/// A machine in a few lines, to be compared with what is expected of it.
inline std::string outline(const Topology& topology) {
  constexpr const char* kKinds[] = {"node", "die", "package", "machine"};
  std::string text = "online " + topology.online.to_string() + "; allowed " + topology.allowed.to_string() + "\n";
  text += std::to_string(topology.cores.size()) + " cores, " + std::to_string(topology.l3s.size()) + " L3, " +
          std::to_string(topology.dies.size()) + " dies, " + std::to_string(topology.packages.size()) + " packages\n";
  for (const Node& node : topology.nodes) {
    text += "node " + std::to_string(node.os_index) + ": cpus " + node.cpus.to_string();
    if (node.memory_only) text += ", memory-only";
    if (!node.subtype.empty()) text += ", " + node.subtype;
    text += node.has_memory ? ", " + std::to_string(node.memory_bytes >> 20U) + " MiB\n" : ", no memory\n";
  }
  for (const Domain& domain : topology.domains) {
    text += std::string(kKinds[static_cast<int>(domain.kind)]) + " domain {" + domain.nodes.to_string() + "}: cpus " +
            domain.cpus.to_string() + "\n";
  }
  text += topology.distances_known ? "distances" : "assumed distances";
  for (std::size_t i = 0; i < topology.distances.size(); ++i) {
    text += (i % topology.nodes.size() == 0 ? " | " : " ") + std::to_string(topology.distances[i]);
  }
  return text + "\n";
}

}  // namespace topolet::topology
