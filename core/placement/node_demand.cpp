#include "core/placement/node_demand.hpp"

#include <algorithm>
#include <cstddef>

namespace topolet::placement {
namespace {

/// How many CPUs of a set each node has.
using CpusPerNode = std::vector<std::int64_t>;

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
  shares.reserve(nodes.size());
  const set_words::WordsView words = cpus.words();
  for (const LocalCpus& node : nodes) {
    const auto here = words.subspan(std::min(node.first, words.size()));
    shares.push_back(static_cast<std::int64_t>(set_words::count_both(node.words, here)));
  }
  return shares;
}

CpusPerNode one_per_node(const topology::Topology& topology, const NodeSet& nodes) {
  CpusPerNode shares;
  shares.reserve(topology.nodes.size());
  for (const topology::Node& node : topology.nodes) shares.push_back(nodes.contains(node.os_index) ? 1 : 0);
  return shares;
}

/// Divides `amount` so that the parts add up to it, with the part of the `elsewhere` CPUs outside any node.
void divide(std::vector<NodeDemand>& demands, const CpusPerNode& shares, std::int64_t elsewhere, std::int64_t amount,
            std::int64_t NodeDemand::*field) {
  std::int64_t total = elsewhere;
  for (const std::int64_t share : shares) total += share;
  if (total == 0 || amount <= 0) return;
  // (amount / total) first: a machine's bytes times its CPUs may not fit.
  const std::int64_t whole = amount / total;
  const std::int64_t rest = amount % total;
  std::int64_t passed = 0;
  std::int64_t given = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] == 0) continue;
    passed += shares[i];
    const std::int64_t up_to = whole * passed + rest * passed / total;
    demands[i].*field += up_to - given;
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
    for (std::size_t i = 0; i < demands.size(); ++i) {
      if (shares[i] == 0) continue;
      ++demands[i].containers;
      if (holds_exclusively(placement.mode)) demands[i].exclusive_cpus += static_cast<std::uint32_t>(shares[i]);
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
