#include "plugins/gpu/inventory.hpp"

#include "plugins/gpu/text.hpp"

namespace topolet::gpu {

void Inventory::see(const topolet_topology& topology) {
  cpus |= topology.online;
  for (const topolet_node& node : sdk::nodes(topology)) {
    if (node.memory_only == 0) cpu_nodes.insert(node.os_index);
  }
  has_met_files = has_met_files || has_files_of(topology);
}

/// CPUs come and go, in the topology and in the files at different times. What the topology has ever had is compared,
/// so that a smaller machine does not pass for a larger one with CPUs offline.
bool Inventory::has_files_of(const topolet_topology& topology) const {
  if (has_met_files || devices.online.empty()) return true;
  const sdk::Set had = cpus | sdk::Set(topology.online);
  const sdk::Set online = cpu_list(devices.online);
  const sdk::Set present = online | cpu_list(devices.present);
  return (online - had).empty() && (had - present).empty();
}

}  // namespace topolet::gpu
