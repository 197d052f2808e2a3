#include "plugins/numa/layout.hpp"

#include <algorithm>
#include <utility>

namespace topolet::numa {
namespace {

/// `position` says where in an array of the topology, `count` long, the group of a CPU is; CPUs without one are in
/// group `count`.
template <class Position>
Partition by_position(const topolet_topology& topology, std::size_t count, Position position) {
  std::vector<std::uint32_t> group_of;
  group_of.reserve(topology.pu_count);
  for (const topolet_pu& pu : sdk::pus(topology)) {
    group_of.push_back(static_cast<std::uint32_t>(std::min<std::size_t>(position(pu), count)));
  }
  return {std::move(group_of), count + 1};
}

Partition by_core(const topolet_topology& topology, const sdk::CoreMap& map) {
  std::vector<std::uint32_t> group_of;
  group_of.reserve(topology.pu_count);
  for (const topolet_pu& pu : sdk::pus(topology)) group_of.push_back(map.core_of(pu.os_index));
  return {std::move(group_of), map.core_count()};
}

std::size_t used_groups(const Partition& partition) {
  std::size_t used = 0;
  for (std::uint32_t group = 0; group < partition.groups(); ++group) used += partition.size(group) > 0 ? 1 : 0;
  return used;
}

}  // namespace

Partition::Partition(std::vector<std::uint32_t> group_of, std::size_t groups)
    : group_of_(std::move(group_of)), begin_(groups + 1, 0), members_(group_of_.size()) {
  for (const std::uint32_t group : group_of_) ++begin_[group + 1];
  for (std::size_t group = 0; group < groups; ++group) begin_[group + 1] += begin_[group];
  std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
  for (std::uint32_t pu = 0; pu < group_of_.size(); ++pu) members_[next[group_of_[pu]]++] = pu;
}

Layout::Layout(const topolet_topology& topology) : Layout(topology, sdk::CoreMap(topology)) {}

Layout::Layout(const topolet_topology& topology, const sdk::CoreMap& map)
    : cores(by_core(topology, map)),
      caches(by_position(topology, topology.l3_count, [](const topolet_pu& pu) { return pu.l3; })),
      nodes(by_position(topology, topology.node_count, [](const topolet_pu& pu) { return pu.node; })),
      packages(by_position(topology, topology.package_count, [](const topolet_pu& pu) { return pu.package; })),
      node_count(used_groups(nodes)),
      package_count(used_groups(packages)),
      threads_per_core(map.threads_per_core()) {
  os_index.reserve(topology.pu_count);
  for (const topolet_pu& pu : sdk::pus(topology)) os_index.push_back(pu.os_index);
}

}  // namespace topolet::numa
