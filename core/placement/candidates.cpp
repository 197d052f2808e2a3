#include "core/placement/candidates.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/text.hpp"

namespace topolet::placement {
namespace {

/// Between CPUs outside any node: as within a node.
constexpr std::uint32_t kDistanceWithoutNode = 10;

/// Answers that are needed of nodes again and again. They are named by OS index, and must exist.
class NodeTable {
 public:
  NodeTable(const topology::Topology& topology, const CpuSet& allowed) : distances_(topology.distances) {
    for (const topology::Node& node : topology.nodes) {
      if (position_.size() <= node.os_index) position_.resize(node.os_index + std::size_t{1});
      position_[node.os_index] = allowed_cpus_.size();
      allowed_cpus_.push_back(node.cpus & allowed);
    }
  }

  const CpuSet& allowed_cpus(std::uint32_t node) const { return allowed_cpus_[position_[node]]; }
  std::uint32_t distance(std::uint32_t from, std::uint32_t to) const {
    return distances_[position_[from] * allowed_cpus_.size() + position_[to]];
  }

 private:
  const std::vector<std::uint32_t>& distances_;
  std::vector<std::size_t> position_;  ///< in the topology's nodes, by OS index
  std::vector<CpuSet> allowed_cpus_;
};

/// Collects candidates, each node set once.
class CandidateCollector {
 public:
  CandidateCollector(const topology::Topology& topology, const NodeTable& nodes, const CpuSet& allowed)
      : nodes_(nodes) {
    for (const topology::Domain& domain : topology.domains) domains_.emplace_back(domain.kind, domain.cpus & allowed);
  }

  void add(const NodeSet& nodes) {
    if (nodes.empty() || !seen_.insert(nodes.words()).second) return;
    Candidate candidate;
    candidate.nodes = nodes;
    for (const std::uint32_t node : nodes) candidate.cpus |= nodes_.allowed_cpus(node);
    for (const std::uint32_t from : nodes) {
      for (const std::uint32_t to : nodes) candidate.distance += nodes_.distance(from, to);
    }
    match_domain(candidate);
    found_.push_back(std::move(candidate));
  }

  /// They count as a node of their own.
  void add_cpus_outside_nodes(const CpuSet& cpus) {
    Candidate candidate;
    candidate.cpus = cpus;
    candidate.distance = kDistanceWithoutNode;
    match_domain(candidate);
    found_.push_back(std::move(candidate));
  }

  std::vector<Candidate> take() { return std::move(found_); }

 private:
  void match_domain(Candidate& candidate) const {
    for (const auto& [kind, cpus] : domains_) {
      if (cpus != candidate.cpus) continue;
      candidate.is_domain = true;
      candidate.kind = kind;
      return;
    }
  }

  const NodeTable& nodes_;
  std::vector<std::pair<topology::DomainKind, CpuSet>> domains_;  ///< with their allowed CPUs
  std::set<NodeSet::Words> seen_;
  std::vector<Candidate> found_;
};

std::vector<std::uint32_t> cpu_nodes(const topology::Topology& topology, const CpuSet& allowed) {
  std::vector<std::uint32_t> nodes;
  for (const topology::Node& node : topology.nodes) {
    if (!node.memory_only && node.cpus.intersects(allowed)) nodes.push_back(node.os_index);
  }
  return nodes;
}

void add_every_combination(CandidateCollector& collector, const std::vector<std::uint32_t>& nodes) {
  for (std::size_t chosen = 1; chosen < (std::size_t{1} << nodes.size()); ++chosen) {
    NodeSet set;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (((chosen >> i) & 1U) != 0) set.insert(nodes[i]);
    }
    collector.add(set);
  }
}

/// Widths beyond one node that neighbourhoods are made in: each up to 8, then half as much again each time.
std::vector<std::size_t> neighbourhood_sizes(std::size_t nodes) {
  std::vector<std::size_t> sizes;
  for (std::size_t size = 2; size < nodes; size = size < 8 ? size + 1 : size + size / 2) sizes.push_back(size);
  return sizes;
}

void add_neighbourhoods(CandidateCollector& collector, const NodeTable& table,
                        const std::vector<std::uint32_t>& nodes) {
  for (auto place = nodes.begin(); place != nodes.end(); ++place) {
    const std::uint32_t center = *place;
    // Among equally near nodes those that follow come first, wrapping round the end: taken from the beginning each
    // time, the first nodes would be in every set.
    std::vector<std::uint32_t> nearest(place, nodes.end());
    nearest.insert(nearest.end(), nodes.begin(), place);
    std::stable_sort(nearest.begin(), nearest.end(), [&](std::uint32_t a, std::uint32_t b) {
      // A broken table may call another node nearer than the node itself.
      if ((a == center) != (b == center)) return a == center;
      return table.distance(center, a) < table.distance(center, b);
    });
    for (const std::size_t size : neighbourhood_sizes(nodes.size())) {
      // Wide ones overlap: those of every few nodes will do.
      if (static_cast<std::size_t>(place - nodes.begin()) % std::max<std::size_t>(1, size / 8) != 0) continue;
      NodeSet set;
      for (std::size_t i = 0; i < size; ++i) set.insert(nearest[i]);
      collector.add(set);
    }
  }
}

/// The last candidate is the machine, even if it is a single node.
std::vector<const Candidate*> single_nodes(const std::vector<Candidate>& candidates) {
  std::vector<const Candidate*> nodes;
  for (std::size_t i = 0; i + 1 < candidates.size(); ++i) {
    if (candidates[i].nodes.size() == 1) nodes.push_back(&candidates[i]);
  }
  return nodes;
}

}  // namespace

std::vector<Candidate> make_candidates(const topology::Topology& topology, const CpuSet& allowed) {
  if (allowed.empty()) return {};
  const std::vector<std::uint32_t> nodes = cpu_nodes(topology, allowed);
  const NodeTable table(topology, allowed);
  CandidateCollector collector(topology, table, allowed);
  for (const std::uint32_t node : nodes) collector.add(NodeSet{node});
  for (const topology::Domain& domain : topology.domains) {
    NodeSet with_cpus;
    for (const std::uint32_t node : domain.nodes) {
      if (std::binary_search(nodes.begin(), nodes.end(), node)) with_cpus.insert(node);
    }
    collector.add(with_cpus);
  }
  if (nodes.size() <= kExactNodes) {
    add_every_combination(collector, nodes);
  } else {
    add_neighbourhoods(collector, table, nodes);
  }
  if (const CpuSet outside = topology.cpus_outside_nodes() & allowed; !outside.empty() && !nodes.empty()) {
    collector.add_cpus_outside_nodes(outside);
  }

  NodeSet all;
  for (const std::uint32_t node : nodes) all.insert(node);
  collector.add(all);
  std::vector<Candidate> found = collector.take();
  auto machine = std::find_if(found.begin(), found.end(), [&](const Candidate& c) { return c.nodes == all; });
  if (machine == found.end()) {
    found.push_back({topology::DomainKind::kMachine, true, all, allowed, 0});
  } else if (machine->cpus != allowed && nodes.size() == 1) {
    // One node that does not cover every CPU: the node and the machine are two places.
    Candidate whole = *machine;
    whole.kind = topology::DomainKind::kMachine;
    whole.cpus = allowed;
    found.push_back(std::move(whole));
  } else {
    machine->cpus = allowed;
    machine->is_domain = true;
    std::rotate(machine, machine + 1, found.end());
  }
  return found;
}

bool omits_node_sets(const std::vector<Candidate>& candidates) { return single_nodes(candidates).size() > kExactNodes; }

void add_emptiest_nodes(std::vector<Candidate>& candidates, const topology::Topology& topology, const CpuSet& free,
                        std::size_t count) {
  const std::vector<const Candidate*> singles = single_nodes(candidates);
  if (singles.size() <= kExactNodes) return;
  std::vector<std::pair<std::size_t, const Candidate*>> nodes;
  for (const Candidate* node : singles) nodes.emplace_back((node->cpus & free).size(), node);
  std::stable_sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  NodeSet emptiest;
  std::size_t there = 0;
  for (auto node = nodes.begin(); node != nodes.end() && there < count; ++node) {
    there += node->first;
    emptiest |= node->second->nodes;
  }
  if (there >= count) add_proposed(candidates, topology, emptiest);
}

void add_proposed(std::vector<Candidate>& candidates, const topology::Topology& topology, const NodeSet& nodes) {
  Candidate proposed;
  for (const Candidate* node : single_nodes(candidates)) {
    if (!node->nodes.is_subset_of(nodes)) continue;
    proposed.nodes |= node->nodes;
    proposed.cpus |= node->cpus;
  }
  const auto is_known = [&nodes](const Candidate& candidate) { return candidate.nodes == nodes; };
  if (proposed.nodes != nodes || std::any_of(candidates.begin(), candidates.end(), is_known)) return;
  proposed.distance = topology.total_distance(nodes);
  candidates.insert(candidates.end() - 1, std::move(proposed));
}

std::string node_names(const NodeSet& nodes) {
  return nodes.empty() ? "the CPUs outside any node" : named("node", nodes);
}

CpuSet cpus_after_change(const CpuSet& within, const CpuSet& allowed, const std::vector<Candidate>& before,
                         const std::vector<Candidate>& now, bool anywhere, const CpuSet& besides) {
  if (before.empty() || now.empty()) return within;
  const CpuSet was = within & allowed;
  if (anywhere && before.back().cpus == was) return within | now.back().cpus;
  const auto own = std::find_if(before.begin(), before.end(), [&](const Candidate& c) {
    return c.cpus == was || (!besides.empty() && (c.cpus | besides) == was);
  });
  if (own == before.end()) return within;
  // A machine of one node and CPUs outside it has the same nodes as that node.
  const auto has_its_nodes = [&own](const Candidate& candidate) { return candidate.nodes == own->nodes; };
  if (std::any_of(before.begin(), own, has_its_nodes) && has_its_nodes(now.back())) return within | now.back().cpus;
  const auto same = std::find_if(now.begin(), now.end(), has_its_nodes);
  return same == now.end() ? within : within | same->cpus;
}

}  // namespace topolet::placement
