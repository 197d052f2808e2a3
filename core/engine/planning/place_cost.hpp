// How good a container's place is, whatever the policies say: what it could gain by a move, and what others would lose.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/engine/state/allocation.hpp"
#include "core/placement/decision.hpp"
#include "core/topology/topology.hpp"

namespace topolet::engine {

/// Less is better; what comes first counts for more than all after it. A plain value.
struct PlaceCost {
  std::size_t nodes = 0;       ///< NUMA nodes; the CPUs outside any node count as one more
  std::uint32_t distance = 0;  ///< between these, summed over all ordered pairs
  /// For each of its devices, the CPUs that are not beside it; of a container that shares CPUs, the nodes.
  std::size_t remote = 0;
  std::size_t caches = 0;  ///< last-level caches that its CPUs are in; 0 for a container that shares CPUs

  auto operator<=>(const PlaceCost&) const = default;
};

/// Returns how many last-level caches the CPUs are in.
std::size_t count_caches(const topology::Topology& topology, const CpuSet& cpus);

/// Returns the fewest of `groups`, such as caches, that hold `count` of the `open` CPUs beside those that are in none.
/// No CPU is in two of them.
std::size_t fewest_groups(const std::vector<CpuSet>& groups, CpuSet open, std::size_t count);

/// Returns the least PlaceCost::remote of `count` of the `open` CPUs, of which there are enough. `devices`: of
/// places_of_devices().
std::size_t least_remote(const topology::Topology& topology, const CpuSet& open, std::size_t count,
                         const std::vector<NodeSet>& devices);

/// `devices`: of places_of_devices().
PlaceCost cost_of_exclusive(const topology::Topology& topology, const CpuSet& cpus,
                            const std::vector<NodeSet>& devices);
/// Of a container that shares the CPUs of `nodes`.
PlaceCost cost_of_shared(const topology::Topology& topology, const NodeSet& nodes, const std::vector<NodeSet>& devices);

/// Of a container where it is, and where a decision on it would have it.
PlaceCost cost_of(const topology::Topology& topology, const Allocation& allocation);
PlaceCost cost_of(const topology::Topology& topology, const Allocation& before, const placement::Decision& decision);

/// Describes what is less now than before: "1 node instead of 2, 1 cache instead of 3". Empty if nothing is.
std::string describe_gain(const PlaceCost& before, const PlaceCost& now);

}  // namespace topolet::engine
