#include "core/engine/planning/standing.hpp"

#include <algorithm>
#include <string>

#include "core/engine/planning/zone_and_devices.hpp"
#include "core/topology/find_device.hpp"

namespace topolet::engine {

std::size_t count_l3s(const topology::Topology& topology, const CpuSet& cpus) {
  return static_cast<std::size_t>(std::count_if(topology.l3s.begin(), topology.l3s.end(),
                                                [&cpus](const CpuSet& l3) { return l3.intersects(cpus); }));
}

CpuSet cpus_near_devices(const topology::Topology& topology, const placement::Decision& decision) {
  CpuSet near;
  for (const std::string& name : decision.used_devices) {
    for (const std::uint32_t node : nodes_with_cpus(topology, topology::find_device(topology, name).nodes))
      near |= topology.node(node)->cpus;
  }
  return near;
}

Standing standing_of(const topology::Topology& topology, const CpuSet& cpus, const CpuSet& near_devices) {
  Standing standing;
  const NodeSet nodes = topology.nodes_of(cpus);
  standing.nodes = nodes.size() + (cpus.intersects(topology.cpus_outside_nodes()) ? 1 : 0);
  standing.distance = topology.total_distance(nodes);
  if (!near_devices.empty()) standing.remote_cpus = (cpus - near_devices).size();
  standing.l3s = count_l3s(topology, cpus);
  return standing;
}

}  // namespace topolet::engine
