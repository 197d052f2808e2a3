// How much of which node is asked for.
#pragma once

#include <cstdint>
#include <vector>

#include "core/placement/policy.hpp"
#include "core/topology/topology.hpp"

namespace topolet::placement {

/// What containers ask of one node. One that runs on CPUs of several nodes counts in each of them.
struct NodeDemand {
  std::uint32_t containers = 0;
  std::uint32_t exclusive_cpus = 0;       ///< held by one container each, foreign ones included
  std::int64_t cpu_request_milli = 0;     ///< divided as the container's CPUs are
  std::int64_t memory_request_bytes = 0;  ///< known requests; in equal parts over its mems, else the way of its CPUs

  friend bool operator==(const NodeDemand&, const NodeDemand&) = default;
};

/// One for each node of the topology, in their order. What runs on CPUs of no node counts nowhere.
std::vector<NodeDemand> demand_by_node(const topology::Topology& topology, const LedgerEntries& entries);

}  // namespace topolet::placement
