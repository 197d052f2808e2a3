#include "core/placement/node_demand.hpp"

#include <algorithm>

namespace topolet::placement {

NodeDemands::NodeDemands(const topology::Topology& topology)
    : topology_(&topology), outside_nodes_(topology.cpus_outside_nodes()), demands_(topology.nodes.size()) {
  nodes_.reserve(topology.nodes.size());
  for (const topology::Node& node : topology.nodes) {
    LocalCpus& local = nodes_.emplace_back();
    if (node.memory_only || node.cpus.empty()) continue;
    const std::size_t first = node.cpus.first() / 64;
    local = {set_words::WordsView(node.cpus.words()).subspan(first), first};
  }
}

NodeDemands::CpusPerNode NodeDemands::cpus_per_node(const CpuSet& cpus) const {
  CpusPerNode shares;
  const set_words::WordsView words = cpus.words();
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const auto here = words.subspan(std::min(nodes_[i].first, words.size()));
    const auto count = static_cast<std::int64_t>(set_words::count_both(nodes_[i].words, here));
    if (count > 0) shares.push_back({i, count});
  }
  return shares;
}

NodeDemands::CpusPerNode NodeDemands::one_per_node(const NodeSet& nodes) const {
  CpusPerNode shares;
  for (std::size_t i = 0; i < topology_->nodes.size(); ++i) {
    if (nodes.contains(topology_->nodes[i].os_index)) shares.push_back({i, 1});
  }
  return shares;
}

/// Divides `amount` so that the parts add up to it, with the part of the `elsewhere` CPUs outside any node.
void NodeDemands::divide(const CpusPerNode& shares, std::int64_t elsewhere, std::int64_t amount, int sign,
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
    demands_[share.node].*field += sign * (up_to - given);
    given = up_to;
  }
}

void NodeDemands::count(const LedgerEntries& entries, int sign) {
  const auto unsigned_sign = static_cast<std::uint32_t>(sign);  // subtracts by wrapping around
  const CpuSet* last = nullptr;  // shared containers mostly run on the same CPUs, one after the other
  CpusPerNode shares;
  for (const LedgerEntry& entry : entries) {
    const Placement& placement = entry.placement;
    if (last == nullptr || *last != placement.cpus) shares = cpus_per_node(placement.cpus);
    last = &placement.cpus;
    for (const CpusOfNode& share : shares) {
      NodeDemand& demand = demands_[share.node];
      demand.containers += unsigned_sign;
      if (holds_exclusively(placement.mode)) {
        demand.exclusive_cpus += unsigned_sign * static_cast<std::uint32_t>(share.cpus);
      }
    }
    const std::size_t outside = outside_nodes_.empty() ? 0 : (placement.cpus & outside_nodes_).size();
    divide(shares, static_cast<std::int64_t>(outside), entry.demand.cpu_request_milli, sign,
           &NodeDemand::cpu_request_milli);
    // All memory is on nodes.
    divide(placement.mems.empty() ? shares : one_per_node(placement.mems), 0, entry.demand.memory_request_bytes, sign,
           &NodeDemand::memory_request_bytes);
  }
}

std::vector<NodeDemand> demand_by_node(const topology::Topology& topology, const LedgerEntries& entries) {
  NodeDemands demands(topology);
  demands.add(entries);
  return demands.demands();
}

}  // namespace topolet::placement
