#include "core/placement/node_demand.hpp"

#include <algorithm>
#include <cstddef>

namespace topolet::placement {
namespace {

/// How many CPUs of a set a node has, by position in the topology's nodes.
struct CpusOfNode {
  std::size_t node = 0;
  std::int64_t cpus = 0;
};
/// Of the nodes that have some: a container runs on a few of the many that a large machine has.
using CpusPerNode = std::vector<CpusOfNode>;

/// The words of a set that the CPUs of a node lie in: a few of the many that a large machine has.
struct LocalCpus {
  set_words::WordsView words;  ///< empty for a memory-only node
  std::size_t first = 0;       ///< the position of the first of them
};

std::vector<LocalCpus> local_cpus_of(const topology::Topology& topology) {
  std::vector<LocalCpus> all;
  all.reserve(topology.nodes.size());
  for (const topology::Node& node : topology.nodes) {
    LocalCpus& local = all.emplace_back();
    if (node.memory_only || node.cpus.empty()) continue;
    const std::size_t first = node.cpus.first() / 64;
    local = {set_words::WordsView(node.cpus.words()).subspan(first), first};
  }
  return all;
}

CpusPerNode cpus_per_node(const std::vector<LocalCpus>& nodes, const CpuSet& cpus) {
  CpusPerNode shares;
  const set_words::WordsView words = cpus.words();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto here = words.subspan(std::min(nodes[i].first, words.size()));
    const auto count = static_cast<std::int64_t>(set_words::count_both(nodes[i].words, here));
    if (count > 0) shares.push_back({i, count});
  }
  return shares;
}

CpusPerNode one_per_node(const topology::Topology& topology, const NodeSet& nodes) {
  CpusPerNode shares;
  for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
    if (nodes.contains(topology.nodes[i].os_index)) shares.push_back({i, 1});
  }
  return shares;
}

/// Divides `amount` so that the parts add up to it, with the part of the `elsewhere` CPUs outside any node.
void divide(std::vector<NodeDemand>& demands, const CpusPerNode& shares, std::int64_t elsewhere, std::int64_t amount,
            std::int64_t NodeDemand::*field) {
  std::int64_t total = elsewhere;
  for (const CpusOfNode& share : shares) total += share.cpus;
  if (total == 0 || amount <= 0) return;
  // (amount / total) first: a machine's bytes times its CPUs may not fit.
  const std::int64_t whole = amount / total;
  const std::int64_t rest = amount % total;
  std::int64_t passed = 0;
  std::int64_t given = 0;
  for (const CpusOfNode& share : shares) {
    passed += share.cpus;
    const std::int64_t up_to = whole * passed + rest * passed / total;
    demands[share.node].*field += up_to - given;
    given = up_to;
  }
}

}  // namespace

std::vector<NodeDemand> demand_by_node(const topology::Topology& topology, const LedgerEntries& entries) {
  std::vector<NodeDemand> demands(topology.nodes.size());
  const std::vector<LocalCpus> nodes = local_cpus_of(topology);
  const CpuSet outside_nodes = topology.cpus_outside_nodes();
  const CpuSet* last = nullptr;  // shared containers mostly run on the same CPUs, one after the other
  CpusPerNode shares;
  for (const LedgerEntry& entry : entries) {
    const Placement& placement = entry.placement;
    if (last == nullptr || *last != placement.cpus) shares = cpus_per_node(nodes, placement.cpus);
    last = &placement.cpus;
    for (const CpusOfNode& share : shares) {
      NodeDemand& demand = demands[share.node];
      ++demand.containers;
      if (holds_exclusively(placement.mode)) demand.exclusive_cpus += static_cast<std::uint32_t>(share.cpus);
    }
    const std::size_t outside = outside_nodes.empty() ? 0 : (placement.cpus & outside_nodes).size();
    divide(demands, shares, static_cast<std::int64_t>(outside), entry.demand.cpu_request_milli,
           &NodeDemand::cpu_request_milli);
    // All memory is on nodes.
    divide(demands, placement.mems.empty() ? shares : one_per_node(topology, placement.mems), 0,
           entry.demand.memory_request_bytes, &NodeDemand::memory_request_bytes);
  }
  return demands;
}

}  // namespace topolet::placement
