#include "plugins/gpu/local_cpus.hpp"

#include "plugins/gpu/locality.hpp"

namespace topolet::gpu {

std::vector<LocalCpus> local_cpus_of(const topolet_topology& topology, const ContainerDevices& container) {
  std::vector<LocalCpus> all;
  for (const Device& device : container.devices) {
    const sdk::Set cpus = cpus_of(topology, device.ref);
    sdk::Set node_cpus;
    for (const std::uint32_t node : local_nodes_of(topology, device.ref)) node_cpus |= sdk::nodes(topology)[node].cpus;
    const bool tells_more = node_cpus.empty() ? !(sdk::Set(topology.online) - cpus).empty()
                                              : (cpus - node_cpus).empty() && !(node_cpus - cpus).empty();
    if (!cpus.empty() && tells_more) all.push_back({device.name, cpus, !node_cpus.empty()});
  }
  return all;
}

}  // namespace topolet::gpu
