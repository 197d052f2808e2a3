// The node sets a workload could be placed on.
#pragma once

#include <string>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/placement/policy.hpp"
#include "core/topology/topology.hpp"

namespace topolet::placement {

/// Up to this many CPU nodes every combination is a candidate (255 of them); the kubelet's limit too.
inline constexpr std::size_t kExactNodes = 8;

/// Candidates for CPUs out of `allowed`: every domain; up to kExactNodes CPU nodes every combination of them, above
/// that each node with its k nearest neighbours, for k up to 7 and then, for every few nodes, in growing steps. The
/// allowed CPUs outside any node are one more, without nodes. The machine, which also holds these, is the last; if it
/// has one node only, its nodes are those of that node's candidate. Nodes without allowed CPUs are in none. Empty only
/// if `allowed` is. Does not depend on a workload: made once per topology.
std::vector<Candidate> make_candidates(const topology::Topology& topology, const CpuSet& allowed);

/// Where not every combination is a candidate, adds the fewest nodes that together have `count` of the `free` CPUs, the
/// emptiest first. Before the machine, and not if they are a candidate already.
void add_emptiest_nodes(std::vector<Candidate>& candidates, const topology::Topology& topology, const CpuSet& free,
                        std::size_t count);

/// Returns true if there are more node sets than the candidates.
bool omits_node_sets(const std::vector<Candidate>& candidates);

/// Adds a node set as a candidate, before the machine. Nothing if it is one already, or has nodes that are in none.
void add_proposed(std::vector<Candidate>& candidates, const topology::Topology& topology, const NodeSet& nodes);

/// Returns the name of a candidate's nodes: "node 0", "nodes 0-1", or "the CPUs outside any node".
std::string node_names(const NodeSet& nodes);

/// The new value of `within` after the candidates changed from `before`, made out of `allowed`, to `now`. A container
/// that had all of a candidate also gets the CPUs that this candidate has now. `anywhere`: one that had the whole
/// machine gets the whole machine, even if that was a single node. `besides`: what it has beside any candidate.
CpuSet cpus_after_change(const CpuSet& within, const CpuSet& allowed, const std::vector<Candidate>& before,
                         const std::vector<Candidate>& now, bool anywhere, const CpuSet& besides = {});

}  // namespace topolet::placement
