// The demand for each node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/placement/policy.hpp"
#include "core/topology/topology.hpp"

namespace topolet::placement {

/// The demand of containers for one node. A container that runs on CPUs of several nodes counts in each of them.
struct NodeDemand {
  std::uint32_t containers = 0;
  std::uint32_t exclusive_cpus = 0;       ///< held by one container each, foreign ones included
  std::int64_t cpu_request_milli = 0;     ///< divided as the container's CPUs are
  std::int64_t memory_request_bytes = 0;  ///< known requests; in equal parts over its mems, else the way of its CPUs

  friend bool operator==(const NodeDemand&, const NodeDemand&) = default;
};

/// The demand of containers that come and go, without looking at those that stay. A plain value.
class NodeDemands {
 public:
  /// The topology must outlive it.
  explicit NodeDemands(const topology::Topology& topology);

  void add(const LedgerEntries& entries) { count(entries, 1); }
  /// Subtracts entries that were added.
  void remove(const LedgerEntries& entries) { count(entries, -1); }

  /// Returns one for each node of the topology, in their order. A container on CPUs that belong to no node counts
  /// nowhere.
  const std::vector<NodeDemand>& demands() const { return demands_; }

 private:
  /// The words of a set that the CPUs of a node lie in: a few of the many that a large machine has.
  struct LocalCpus {
    set_words::WordsView words;  ///< empty for a memory-only node
    std::size_t first = 0;       ///< the position of the first of them
  };
  /// The number of a set's CPUs on one node, by position in the topology's nodes.
  struct CpusOfNode {
    std::size_t node = 0;
    std::int64_t cpus = 0;
  };
  /// The nodes that have some of the CPUs: a container runs on a few of the many that a large machine has.
  using CpusPerNode = std::vector<CpusOfNode>;

  void count(const LedgerEntries& entries, int sign);
  CpusPerNode cpus_per_node(const CpuSet& cpus) const;
  CpusPerNode one_per_node(const NodeSet& nodes) const;
  void divide(const CpusPerNode& shares, std::int64_t elsewhere, std::int64_t amount, int sign,
              std::int64_t NodeDemand::*field);

  const topology::Topology* topology_;
  CpuSet outside_nodes_;
  std::vector<LocalCpus> nodes_;
  std::vector<NodeDemand> demands_;
};

/// The same of these entries.
std::vector<NodeDemand> demand_by_node(const topology::Topology& topology, const LedgerEntries& entries);

}  // namespace topolet::placement
