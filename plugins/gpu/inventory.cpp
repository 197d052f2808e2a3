#include "plugins/gpu/inventory.hpp"

#include "plugins/gpu/text.hpp"

namespace topolet::gpu {

void Inventory::learn(const topolet_topology& topology) {
  cpus |= topology.online;
  for (const topolet_node& node : sdk::nodes(topology)) {
    if (node.memory_only == 0) cpu_nodes.insert(node.os_index);
  }
  files_confirmed = files_confirmed || files_match(topology);
}

/// CPUs go offline and come back, in the topology and in the files at different times. So the files are compared with
/// all CPUs that the topology has ever had. They must know each of these, or a smaller machine would pass for a larger
/// one with CPUs offline.
bool Inventory::files_match(const topolet_topology& topology) const {
  if (files_confirmed || devices.online.empty()) return true;
  const sdk::Set had = cpus | sdk::Set(topology.online);
  const sdk::Set online = parse_cpu_list(devices.online);
  const sdk::Set present = online | parse_cpu_list(devices.present);
  return (online - had).empty() && (had - present).empty();
}

}  // namespace topolet::gpu
