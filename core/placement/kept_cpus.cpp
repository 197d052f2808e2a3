#include "core/placement/kept_cpus.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "core/placement/policy.hpp"

namespace topolet::placement {
namespace {

std::size_t count_touched(const std::vector<CpuSet>& groups, const CpuSet& cpus) {
  return static_cast<std::size_t>(
      std::count_if(groups.begin(), groups.end(), [&cpus](const CpuSet& group) { return group.intersects(cpus); }));
}

/// CPUs that belong to no node count as those of one more.
std::size_t count_nodes(const topology::Topology& topology, const CpuSet& cpus) {
  return topology.nodes_of(cpus).size() + (cpus.intersects(topology.cpus_outside_nodes()) ? 1 : 0);
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
    return std::tuple(count_nodes(topology, cpus), topology.total_distance(topology.nodes_of(cpus)),
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
