#include "core/placement/candidates.hpp"

#include <algorithm>
#include <set>

#include "core/topology/build_topology.hpp"
#include "tests/placement/machine.hpp"

namespace topolet::placement {
namespace {

using testing::machine;

TEST(Candidates, AreEveryCombinationOnUpToEightNodes) {
  const auto topology = machine("pack:2 numa:2 core:2 pu:2");
  const auto candidates = make_candidates(*topology, topology->allowed);
  EXPECT_EQ(candidates.size(), 15U);
  const auto package = std::find_if(candidates.begin(), candidates.end(), [](const Candidate& c) {
    return c.nodes == NodeSet{2, 3};
  });
  ASSERT_NE(package, candidates.end());
  EXPECT_TRUE(package->is_domain);
  EXPECT_EQ(package->kind, topology::DomainKind::kPackage);
  EXPECT_EQ(package->cpus, CpuSet::range(8, 15));
  const auto across = std::find_if(candidates.begin(), candidates.end(), [](const Candidate& c) {
    return c.nodes == NodeSet{1, 2};
  });
  ASSERT_NE(across, candidates.end());
  EXPECT_FALSE(across->is_domain);
}

TEST(Candidates, EndWithTheMachine) {
  for (const char* synthetic :
       {"pack:1 numa:1 core:2 pu:1", "pack:2 numa:4 core:2 pu:2", "pack:8 numa:3 core:1 pu:1"}) {
    const auto topology = machine(synthetic);
    const auto candidates = make_candidates(*topology, topology->allowed);
    EXPECT_EQ(candidates.back().cpus, topology->allowed) << synthetic;
  }
}

TEST(Candidates, StayFewOnManyNodes) {
  const auto topology = machine("pack:8 numa:8 core:4 pu:8");
  const auto candidates = make_candidates(*topology, topology->allowed);
  EXPECT_LT(candidates.size(), 64U * 20U);
  std::set<NodeSet::Words> seen;
  std::size_t single = 0;
  for (const Candidate& candidate : candidates) {
    EXPECT_TRUE(seen.insert(candidate.nodes.words()).second) << candidate.nodes.to_string();
    if (candidate.nodes.size() == 1) ++single;
  }
  EXPECT_EQ(single, 64U);
}

TEST(Candidates, LeaveOutNodesWithoutAllowedCpus) {
  const auto topology = machine("pack:2 numa:2 core:2 pu:1");
  const auto candidates = make_candidates(*topology, CpuSet{0, 7});
  ASSERT_EQ(candidates.size(), 3U);
  EXPECT_EQ(candidates[0].cpus, CpuSet{0});
  EXPECT_EQ(candidates[1].cpus, CpuSet{7});
  EXPECT_EQ(candidates[2].cpus, (CpuSet{0, 7}));
  EXPECT_TRUE(make_candidates(*topology, {}).empty());
}

/// Nodes of two CPUs, and three more CPUs.
std::shared_ptr<const topology::Topology> machine_with_cpus_outside_nodes(std::uint32_t nodes) {
  topology::MachineDescription description;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    description.nodes.push_back({node, CpuSet{2 * node, 2 * node + 1}, "", 1 << 30, {}});
  }
  description.online = description.allowed = CpuSet::range(0, 2 * nodes + 2);
  return std::make_shared<const topology::Topology>(build_topology(description));
}

TEST(Candidates, AreTheCpusOutsideAnyNodeToo) {
  for (const std::uint32_t nodes : {1U, 2U, 8U, 12U}) {
    const auto topology = machine_with_cpus_outside_nodes(nodes);
    const auto candidates = make_candidates(*topology, topology->allowed);
    const auto without_nodes = [](const Candidate& candidate) { return candidate.nodes.empty(); };
    ASSERT_EQ(std::count_if(candidates.begin(), candidates.end(), without_nodes), 1) << nodes;
    const auto outside = std::find_if(candidates.begin(), candidates.end(), without_nodes);
    EXPECT_EQ(outside->cpus, CpuSet::range(2 * nodes, 2 * nodes + 2));
    EXPECT_TRUE(outside->is_domain);
    EXPECT_EQ(outside->kind, topology::DomainKind::kNode);
    EXPECT_EQ(candidates.back().cpus, topology->allowed);
    EXPECT_EQ(candidates.back().nodes.size(), nodes);
    EXPECT_EQ(omits_node_sets(candidates), nodes > 8);
  }
}

TEST(Candidates, KnowTheCpusOutsideAnyNodeByTheAllowedOnes) {
  const auto topology = machine_with_cpus_outside_nodes(2);
  EXPECT_EQ(make_candidates(*topology, CpuSet::range(0, 3)).size(), 3U) << "none are allowed";
  const auto only_outside = make_candidates(*topology, CpuSet{4, 5});
  ASSERT_EQ(only_outside.size(), 1U) << "they are the machine";
  EXPECT_EQ(only_outside[0].kind, topology::DomainKind::kMachine);
}

TEST(Candidates, StayThePlaceOfWhoHadAllOfThem) {
  const auto topology = machine_with_cpus_outside_nodes(1);
  const CpuSet fewer = topology->allowed - CpuSet{1, 4};
  const auto before = make_candidates(*topology, fewer);
  const auto now = make_candidates(*topology, topology->allowed);
  const auto grown = [&](const CpuSet& within) { return cpus_after_change(within, fewer, before, now, false); };
  EXPECT_EQ(grown(CpuSet{0}), (CpuSet{0, 1})) << "the node's";
  EXPECT_EQ(grown(CpuSet{2, 3}), CpuSet::range(2, 4)) << "those outside any node";
  EXPECT_EQ(grown(fewer), topology->allowed) << "the machine's, which has the same node";
}

}  // namespace
}  // namespace topolet::placement
