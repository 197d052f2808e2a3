#include "core/placement/kept_cpus.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

namespace topolet::placement {
namespace {

/// What the SDK calls a mild preference (Verdict::score).
constexpr std::int64_t kMildPreference = 10;

std::size_t count_touched(const std::vector<CpuSet>& groups, const CpuSet& cpus) {
  return static_cast<std::size_t>(
      std::count_if(groups.begin(), groups.end(), [&cpus](const CpuSet& group) { return group.intersects(cpus); }));
}

/// CPUs that belong to no node count as those of one more.
std::size_t count_nodes(const topology::Topology& topology, const CpuSet& cpus) {
  CpuSet outside = cpus;
  for (const topology::Node& node : topology.nodes) {
    if (!node.memory_only) outside -= node.cpus;
  }
  return topology.nodes_of(cpus).size() + (outside.empty() ? 0 : 1);
}

std::uint64_t total_distance(const topology::Topology& topology, const NodeSet& nodes) {
  std::uint64_t sum = 0;
  for (const std::uint32_t from : nodes) {
    for (const std::uint32_t to : nodes) sum += topology.distance(from, to);
  }
  return sum;
}

/// The sum over the CPUs of the position of their kind, the slowest kind first.
std::size_t total_speed(const topology::Topology& topology, const CpuSet& cpus) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < topology.cpu_kinds.size(); ++i) {
    if (topology.cpu_kinds[i].efficiency != topology::kNoPosition) {
      sum += (i + 1) * (topology.cpu_kinds[i].cpus & cpus).size();
    }
  }
  return sum;
}

std::int64_t score_of_winner(const Decision& decision) {
  return decision.verdicts.best.empty() ? 0 : decision.verdicts.best.front().score;
}

}  // namespace

bool are_as_near(const topology::Topology& topology, const CpuSet& had, const CpuSet& instead) {
  const auto apart = [&topology](const CpuSet& cpus) {
    return std::tuple(count_nodes(topology, cpus), total_distance(topology, topology.nodes_of(cpus)),
                      count_touched(topology.l3s, cpus), count_touched(topology.cores, cpus));
  };
  return apart(had) <= apart(instead) && total_speed(topology, had) >= total_speed(topology, instead);
}

bool is_as_good(const topology::Topology& topology, const Decision& again, const Decision& anew) {
  if (again.denied) return false;
  if (anew.denied || anew.shared_because_full) return true;
  return score_of_winner(again) + kMildPreference >= score_of_winner(anew) &&
         again.verdicts.dropped.size() <= anew.verdicts.dropped.size() &&
         again.lost_votes.size() <= anew.lost_votes.size() &&
         are_as_near(topology, again.placement.cpus, anew.placement.cpus);
}

}  // namespace topolet::placement
