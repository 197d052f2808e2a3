#include "core/engine/planning/place_cost.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>

#include "core/base/text.hpp"
#include "core/engine/planning/device_nodes.hpp"
#include "core/engine/planning/placer.hpp"

namespace topolet::engine {
namespace {

PlaceCost cost_of_nodes(const topology::Topology& topology, const NodeSet& nodes) {
  return {nodes.size(), topology.total_distance(nodes), 0, 0};
}

CpuSet cpus_of(const topology::Topology& topology, const NodeSet& nodes) {
  CpuSet cpus;
  for (const topology::Node& node : topology.nodes) {
    if (nodes.contains(node.os_index) && !node.memory_only) cpus |= node.cpus;
  }
  return cpus;
}

}  // namespace

std::size_t count_caches(const topology::Topology& topology, const CpuSet& cpus) {
  return static_cast<std::size_t>(std::count_if(topology.l3s.begin(), topology.l3s.end(),
                                                [&cpus](const CpuSet& cache) { return cache.intersects(cpus); }));
}

std::size_t fewest_groups(const std::vector<CpuSet>& groups, CpuSet open, std::size_t count) {
  std::vector<std::size_t> sizes;
  for (const CpuSet& group : groups) {
    if (const CpuSet here = group & open; !here.empty()) sizes.push_back(here.size());
  }
  for (const CpuSet& group : groups) open -= group;
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  std::size_t held = open.size();
  std::size_t needed = 0;
  while (held < count && needed < sizes.size()) held += sizes[needed++];
  return needed;
}

std::size_t least_remote(const topology::Topology& topology, const CpuSet& open, std::size_t count,
                         const std::vector<NodeSet>& devices) {
  std::map<std::size_t, std::size_t> open_by_remote;
  CpuSet outside = open;
  for (const topology::Node& node : topology.nodes) {
    if (node.memory_only) continue;
    const auto is_away = [&node](const NodeSet& device) { return !device.contains(node.os_index); };
    const auto remote = static_cast<std::size_t>(std::count_if(devices.begin(), devices.end(), is_away));
    open_by_remote[remote] += (open & node.cpus).size();
    outside -= node.cpus;
  }
  open_by_remote[devices.size()] += outside.size();
  std::size_t least = 0;
  for (const auto& [remote, cpus] : open_by_remote) {
    const std::size_t taken = std::min(count, cpus);
    least += taken * remote;
    count -= taken;
  }
  return least;
}

PlaceCost cost_of_exclusive(const topology::Topology& topology, const CpuSet& cpus,
                            const std::vector<NodeSet>& devices) {
  PlaceCost cost = cost_of_nodes(topology, topology.nodes_of(cpus));
  if (cpus.intersects(topology.cpus_outside_nodes())) ++cost.nodes;
  for (const NodeSet& device : devices) cost.remote += (cpus - cpus_of(topology, device)).size();
  cost.caches = count_caches(topology, cpus);
  return cost;
}

PlaceCost cost_of_shared(const topology::Topology& topology, const NodeSet& nodes,
                         const std::vector<NodeSet>& devices) {
  PlaceCost cost = cost_of_nodes(topology, nodes);
  cost.nodes = std::max<std::size_t>(1, cost.nodes);
  for (const NodeSet& device : devices) cost.remote += nodes.empty() ? 1 : (nodes - device).size();
  return cost;
}

PlaceCost cost_of(const topology::Topology& topology, const Allocation& allocation) {
  const std::vector<NodeSet> devices = places_of_devices(topology, allocation.workload.used_devices);
  return allocation.is_exclusive() ? cost_of_exclusive(topology, allocation.placement.cpus, devices)
                                   : cost_of_shared(topology, nodes_of(allocation, topology), devices);
}

PlaceCost cost_of(const topology::Topology& topology, const Allocation& before, const placement::Decision& decision) {
  const std::vector<NodeSet> devices = places_of_devices(topology, before.workload.used_devices);
  return decision.placement.mode == placement::Mode::kExclusive
             ? cost_of_exclusive(topology, decision.placement.cpus, devices)
             : cost_of_shared(topology, decision.nodes, devices);
}

std::string describe_gain(const PlaceCost& before, const PlaceCost& now) {
  std::vector<std::string> gains;
  const auto add = [&gains](std::size_t had, std::size_t has, const char* noun) {
    if (has < had) gains.push_back(fmt::format("{} instead of {}", counted(has, noun), had));
  };
  add(before.nodes, now.nodes, "node");
  if (now.nodes == before.nodes && now.distance < before.distance) gains.emplace_back("nodes that are nearer together");
  if (now.remote < before.remote) gains.emplace_back("nearer to its devices");
  add(before.caches, now.caches, "last-level cache");
  return fmt::format("{}", fmt::join(gains, ", "));
}

}  // namespace topolet::engine
