#include "core/placement/candidates.hpp"

#include <algorithm>
#include <set>

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

TEST(Candidates, GiveCpusOfNoNodeToTheMachine) {
  topology::Topology topology = *machine("pack:1 numa:1 core:4 pu:1");
  topology.nodes[0].cpus = CpuSet{0, 1};
  topology.pus[2].node = topology::kNoPosition;
  topology.pus[3].node = topology::kNoPosition;
  const auto candidates = make_candidates(topology, topology.allowed);
  EXPECT_EQ(candidates.front().cpus, (CpuSet{0, 1}));
  EXPECT_EQ(candidates.back().cpus, CpuSet::range(0, 3));
}

}  // namespace
}  // namespace topolet::placement
