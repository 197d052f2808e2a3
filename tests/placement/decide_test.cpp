#include "core/placement/decide.hpp"
#include "core/placement/take_cpus.hpp"

#include <functional>
#include <random>

#include "core/topology/build_topology.hpp"
#include "tests/placement/machine.hpp"

namespace topolet::placement {
namespace {

using testing::besteffort;
using testing::guaranteed;
using testing::machine;
using testing::TestNode;

/// A policy made of two functions.
class TestPolicy : public Policy {
 public:
  using Score = std::function<Result<std::vector<Verdict>>(const PolicyRequest&)>;
  using PickCpus = std::function<Result<Pick>(const PolicyRequest&, std::size_t, const CpuSet&)>;

  TestPolicy(std::string name, Score score, PickCpus pick = {})
      : name_(std::move(name)), score_(std::move(score)), pick_(std::move(pick)) {}

  const std::string& name() const override { return name_; }
  Result<std::vector<Verdict>> score(const PolicyRequest& request) override { return score_(request); }
  Result<Pick> pick(const PolicyRequest& request, std::size_t candidate, const CpuSet& usable,
                    std::size_t /*count*/) override {
    return pick_ ? pick_(request, candidate, usable) : Result<Pick>(Pick());
  }

 private:
  std::string name_;
  Score score_;
  PickCpus pick_;
};

Vote vote(const std::string& name, TestPolicy::Score score, TestPolicy::PickCpus pick = {}, std::int32_t weight = 1) {
  return {std::make_shared<TestPolicy>(name, std::move(score), std::move(pick)), weight, false};
}

std::vector<Verdict> abstain(const PolicyRequest& request) { return std::vector<Verdict>(request.candidates.size()); }

/// Scores the candidate with these nodes, abstains on the others.
TestPolicy::Score likes(const NodeSet& nodes, std::int32_t score = 100) {
  return [nodes, score](const PolicyRequest& request) {
    std::vector<Verdict> verdicts = abstain(request);
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      if (request.candidates[i].nodes == nodes) verdicts[i] = {Verdict::Kind::kScore, score, "likes it"};
    }
    return verdicts;
  };
}

TEST(Decide, GivesWholeCpusOfItsOwnToAGuaranteedContainer) {
  TestNode node("pack:1 numa:1 core:2 pu:2");
  const Decision decision = node.run(guaranteed("a", 2));
  ASSERT_FALSE(decision.denied) << decision.reason;
  EXPECT_EQ(decision.placement.mode, Mode::kExclusive);
  EXPECT_EQ(decision.placement.cpus, (CpuSet{0, 1}));
  EXPECT_TRUE(decision.unpinned) << "no policy was asked";
}

TEST(Decide, GivesEverythingElseThePool) {
  TestNode node("pack:1 numa:1 core:4 pu:1");
  Workload fractional = guaranteed("fractional", 1);
  fractional.demand.cpu_request_milli = 1500;
  Workload burstable = guaranteed("burstable", 2);
  burstable.qos = Qos::kBurstable;
  node.run(guaranteed("a", 1));
  for (const Workload& workload : {fractional, burstable, besteffort("besteffort")}) {
    const Decision decision = node.run(workload);
    EXPECT_EQ(decision.placement.mode, Mode::kShared) << decision.reason;
    EXPECT_EQ(decision.placement.cpus, CpuSet::range(1, 3)) << workload.key.name;
  }
}

TEST(Decide, DeniesByNameWhatWasAskedAndWhatIsFree) {
  TestNode node("pack:1 numa:1 core:4 pu:1");
  const Decision decision = node.run(guaranteed("big", 4));
  ASSERT_TRUE(decision.denied);
  EXPECT_NE(decision.reason.find("default/big/big"), std::string::npos) << decision.reason;
  EXPECT_NE(decision.reason.find("requested=4, available=3"), std::string::npos) << decision.reason;
  EXPECT_NE(decision.reason.find("node 0: 4"), std::string::npos) << decision.reason;
  EXPECT_TRUE(decision.placement.cpus.empty());
}

/// A node of two CPUs, another of one, and three more CPUs.
TestNode node_with_cpus_outside_nodes() {
  topology::MachineDescription description;
  description.nodes = {{0, CpuSet{0, 1}, "", 1 << 30, {}}, {1, CpuSet{2}, "", 1 << 30, {}}};
  description.online = description.allowed = CpuSet::range(0, 5);
  TestNode node("pack:1 numa:1 core:6 pu:1");
  node.topology = std::make_shared<const topology::Topology>(build_topology(description));
  node.candidates = make_candidates(*node.topology, node.topology->allowed);
  return node;
}

TEST(Decide, TellsEachNodeOnceAndTheCpusOutsideAnyNode) {
  TestNode node = node_with_cpus_outside_nodes();
  EXPECT_NE(node.ask(guaranteed("big", 6)).reason.find("(node 0: 2, node 1: 1, CPUs outside any node: 3)"),
            std::string::npos);
  node.candidates = make_candidates(*node.topology, CpuSet{0, 1, 3, 4});
  EXPECT_NE(node.ask(guaranteed("big", 6)).reason.find("(node 0: 2, CPUs outside any node: 2)"), std::string::npos);
}

TEST(Decide, MovesOffTheCpusOutsideAnyNodeOnlyWhereItMust) {
  const TestNode node = node_with_cpus_outside_nodes();
  const auto nearest_to = [&node](const NodeSet& nodes, std::int64_t cpus) {
    PolicyRequest request = node.request(guaranteed("moved", cpus));
    request.stay_near = nodes;
    return decide(request, node.rules, node.votes).placement.cpus;
  };
  EXPECT_EQ(nearest_to({}, 2), (CpuSet{3, 4})) << "no nodes are those CPUs";
  EXPECT_EQ(nearest_to({1}, 2), (CpuSet{0, 1})) << "another node is nearer";
}

TEST(Decide, SharesWhenFullIfToldTo) {
  TestNode node("pack:1 numa:1 core:2 pu:1");
  node.rules.when_full = WhenFull::kShare;
  const Decision decision = node.run(guaranteed("big", 2));
  ASSERT_FALSE(decision.denied) << decision.reason;
  EXPECT_EQ(decision.placement.mode, Mode::kShared);
  EXPECT_EQ(decision.placement.cpus, (CpuSet{0, 1}));
  EXPECT_NE(decision.reason.find("shared instead"), std::string::npos) << decision.reason;
}

TEST(Decide, NeverGivesReservedCpusExclusively) {
  TestNode node("pack:1 numa:1 core:4 pu:1", "0,1");
  EXPECT_EQ(node.run(guaranteed("a", 1)).placement.cpus, CpuSet{2});
  EXPECT_TRUE(node.run(guaranteed("b", 1)).denied) << "one CPU must stay shared";
}

TEST(Decide, RunsReservedNamespacesOnReservedAndSharedCpus) {
  TestNode node("pack:1 numa:1 core:4 pu:1", "0");
  Workload system = guaranteed("dns", 1);
  system.pod_namespace = "kube-system";
  const Decision decision = node.run(system);
  EXPECT_EQ(decision.placement.mode, Mode::kReserved);
  EXPECT_EQ(decision.placement.cpus, CpuSet::range(0, 3));
  node.run(guaranteed("a", 1));
  EXPECT_EQ(node.cpus_of(system), (CpuSet{0, 2, 3}));
}

TEST(Decide, TakesTheBestScoredCandidate) {
  TestNode node("pack:1 numa:4 core:2 pu:1");
  node.votes = {vote("p", likes(NodeSet{2}))};
  const Decision decision = node.run(guaranteed("a", 2));
  EXPECT_EQ(decision.placement.cpus, (CpuSet{4, 5}));
  EXPECT_FALSE(decision.unpinned);
  EXPECT_EQ(decision.reason, "p: likes it");
  ASSERT_FALSE(decision.verdicts.best.empty());
  EXPECT_EQ(decision.verdicts.best.front().nodes, "2");
  EXPECT_LE(decision.verdicts.best.size(), 8U);
}

TEST(Decide, WeighsTheVoters) {
  TestNode node("pack:1 numa:2 core:2 pu:1");
  node.votes = {vote("light", likes(NodeSet{0}, 90)), vote("heavy", likes(NodeSet{1}, 30), {}, 4)};
  EXPECT_EQ(node.ask(guaranteed("a", 1)).nodes, NodeSet{1});
}

TEST(Decide, TriesTheNextBestBeforeItDenies) {
  TestNode node("pack:1 numa:2 core:2 pu:1");
  node.votes = {vote("p", likes(NodeSet{0}))};
  node.run(guaranteed("a", 2));
  const Decision decision = node.run(guaranteed("b", 1));
  ASSERT_FALSE(decision.denied) << decision.reason;
  EXPECT_EQ(decision.placement.cpus, CpuSet{2});
}

TEST(Decide, CountsWhyCandidatesWereRejected) {
  TestNode node("pack:1 numa:2 core:2 pu:1");
  node.votes = {vote("picky", [](const PolicyRequest& request) {
    return std::vector<Verdict>(request.candidates.size(), Verdict{Verdict::Kind::kReject, 0, "never"});
  })};
  const Decision decision = node.run(guaranteed("a", 1));
  EXPECT_TRUE(decision.denied);
  EXPECT_EQ(decision.verdicts.rejected.at("picky: never"), 3U);
  EXPECT_NE(decision.reason.find("picky: never (3 candidates)"), std::string::npos) << decision.reason;
}

TEST(Decide, GoesOnWithoutALostVote) {
  TestNode node("pack:1 numa:2 core:2 pu:1");
  node.votes = {vote("broken",
                     [](const PolicyRequest&) -> Result<std::vector<Verdict>> {
                       return Error{Code::kInternal, "threw"};
                     }),
                vote("short", [](const PolicyRequest&) { return std::vector<Verdict>(1); }),
                vote("fine", likes(NodeSet{1}))};
  const Decision decision = node.run(guaranteed("a", 1));
  EXPECT_EQ(decision.nodes, NodeSet{1});
  EXPECT_EQ(decision.lost_votes, (std::vector<std::string>{"broken", "short"}));
  EXPECT_EQ(decision.verdicts.lost_votes.front(), "broken: threw");
  EXPECT_TRUE(decision.reason.ends_with("; broken lost its vote; short lost its vote")) << decision.reason;
}

TEST(Decide, NamesWhoLostItsVoteOnce) {
  TestNode node("pack:1 numa:1 core:4 pu:1");
  node.votes = {vote("slow", [](const PolicyRequest&) -> Result<std::vector<Verdict>> {
    return Error{Code::kDeadlineExceeded, "slow: no answer within 50 ms"};
  })};
  EXPECT_EQ(node.run(guaranteed("a", 1)).verdicts.lost_votes, std::vector<std::string>{"slow: no answer within 50 ms"});
}

TEST(Decide, DeniesWhenAVoteThatMustNotBeLostIsLost) {
  TestNode node("pack:1 numa:1 core:4 pu:1");
  Vote strict = vote("strict", [](const PolicyRequest&) -> Result<std::vector<Verdict>> {
    return Error{Code::kInternal, "threw"};
  });
  strict.fail_closed = true;
  node.votes = {strict};
  EXPECT_TRUE(node.ask(guaranteed("a", 1)).denied);
  Workload system = besteffort("dns");
  system.pod_namespace = "kube-system";
  EXPECT_FALSE(node.ask(system).denied) << "never for reserved namespaces";
}

TEST(Decide, IntersectsNarrowingsAndDropsOneThatLeavesTooFew) {
  TestNode node("pack:1 numa:1 core:6 pu:1");
  const auto narrow_to = [](const CpuSet& cpus) {
    return [cpus](const PolicyRequest&, std::size_t, const CpuSet&) -> Result<Pick> {
      Pick pick;
      pick.narrow = cpus;
      return pick;
    };
  };
  node.votes = {vote("high", abstain, narrow_to(CpuSet::range(2, 5))), vote("few", abstain, narrow_to({2})),
                vote("even", abstain, narrow_to({0, 2, 4}))};
  const Decision decision = node.run(guaranteed("a", 2));
  EXPECT_EQ(decision.placement.cpus, (CpuSet{2, 4}));
  ASSERT_EQ(decision.verdicts.dropped.size(), 1U);
  EXPECT_EQ(decision.verdicts.dropped.front(), "few: narrowing to CPU 2 would leave 1 of the 2 CPUs needed");
}

TEST(Decide, TakesTheVoteOfWhoAnswersWithCpusThatWereNotOffered) {
  const auto answer_with = [](std::optional<CpuSet> narrow, const CpuSet& withhold) {
    return [narrow, withhold](const PolicyRequest&, std::size_t, const CpuSet&) -> Result<Pick> {
      Pick pick;
      pick.narrow = narrow;
      pick.withhold = withhold;
      return pick;
    };
  };
  const std::map<std::string, TestPolicy::PickCpus> bad = {
      {"pick left no CPU", answer_with(CpuSet(), {})},
      {"pick chose CPUs 7, which it was not offered; it was offered 0-3", answer_with(CpuSet{1, 7}, {})},
      {"pick withheld CPUs 9, which it was not offered; it was offered 0-3", answer_with(std::nullopt, {9})}};
  for (const auto& [what, answer] : bad) {
    TestNode node("pack:1 numa:1 core:4 pu:1");
    node.votes = {vote("liar", abstain, answer)};
    const Decision decision = node.run(guaranteed("a", 2));
    EXPECT_EQ(decision.placement.cpus, (CpuSet{0, 1})) << what;
    EXPECT_EQ(decision.lost_votes, std::vector<std::string>{"liar"});
    ASSERT_EQ(decision.invalid_replies.size(), 1U) << what;
    EXPECT_EQ(decision.invalid_replies[0].policy, "liar");
    EXPECT_EQ(decision.invalid_replies[0].what, what);
    EXPECT_EQ(decision.verdicts.lost_votes, std::vector<std::string>{"liar: " + what});
  }
}

TEST(Decide, LetsTheFirstPolicyThatOrdersChoose) {
  TestNode node("pack:1 numa:1 core:4 pu:1");
  const auto order = [](std::vector<std::uint32_t> cpus) {
    return [cpus](const PolicyRequest&, std::size_t, const CpuSet&) -> Result<Pick> {
      Pick pick;
      pick.order = cpus;
      return pick;
    };
  };
  node.votes = {vote("none", abstain), vote("first", abstain, order({3, 99})), vote("second", abstain, order({2}))};
  EXPECT_EQ(node.run(guaranteed("a", 2)).placement.cpus, (CpuSet{0, 3}));
}

TEST(Decide, WithholdsOnlyWhatThePoolCanSpare) {
  TestNode node("pack:1 numa:1 core:2 pu:2");
  const auto siblings = [](const PolicyRequest&, std::size_t, const CpuSet&) -> Result<Pick> {
    Pick pick;
    pick.order = {0};
    pick.withhold = CpuSet{0, 1};
    return pick;
  };
  node.votes = {vote("smt", abstain, siblings)};
  EXPECT_EQ(node.ask(guaranteed("a", 1)).placement.withheld, CpuSet{1});
  node.rules.min_shared_cpus = 3;
  const Decision decision = node.ask(guaranteed("a", 1));
  EXPECT_TRUE(decision.placement.withheld.empty());
  EXPECT_EQ(decision.verdicts.dropped.size(), 1U);
}

TEST(Decide, TreatsTheKubeletsSetAsABound) {
  TestNode node("pack:1 numa:1 core:4 pu:1");
  Workload workload = besteffort("a");
  workload.kubelet_cpus = CpuSet{2, 3};
  EXPECT_EQ(node.run(workload).placement.cpus, (CpuSet{2, 3}));
  const Decision other = node.ask(guaranteed("b", 1));
  EXPECT_EQ(other.placement.mode, Mode::kShared);
  EXPECT_NE(other.reason.find("the kubelet assigns CPUs on this node"), std::string::npos) << other.reason;
}

TEST(Decide, BooksTheKubeletsExclusiveSetAsExclusive) {
  TestNode node("pack:1 numa:1 core:4 pu:1");
  Workload workload = guaranteed("a", 2);
  workload.kubelet_cpus = CpuSet{1, 3};
  const Decision decision = node.run(workload);
  EXPECT_EQ(decision.placement.mode, Mode::kExclusive);
  EXPECT_EQ(decision.placement.cpus, (CpuSet{1, 3}));
  Workload other = besteffort("b");
  other.kubelet_cpus = CpuSet::range(0, 3);
  EXPECT_EQ(node.run(other).placement.cpus, (CpuSet{0, 2}));
}

TEST(Decide, AppliesAKubeletSetThatIsTakenAsAConflict) {
  TestNode node("pack:1 numa:1 core:4 pu:1");
  node.run(guaranteed("a", 1));
  Workload workload = besteffort("b");
  workload.kubelet_cpus = CpuSet{0};
  const Decision decision = node.run(workload);
  EXPECT_TRUE(decision.conflict);
  EXPECT_EQ(decision.placement.cpus, CpuSet{0});
}

TEST(Decide, LeavesNoSharedContainerWithoutCpus) {
  TestNode node("pack:1 numa:1 core:2 pu:1");
  node.rules.min_shared_cpus = 0;
  node.run(besteffort("a"));
  const Decision denied = node.run(guaranteed("b", 2));
  EXPECT_TRUE(denied.denied);
  EXPECT_NE(denied.reason.find("taking CPUs 0-1 would leave default/a/a without CPUs"), std::string::npos)
      << denied.reason;
  EXPECT_FALSE(node.run(guaranteed("c", 1)).denied);
}

TEST(TakeCpus, PrefersWholeCoresThenFillsCoresInUse) {
  const auto topology = machine("pack:1 numa:1 core:4 pu:2");
  EXPECT_EQ(take_cpus(*topology, CpuSet::range(1, 7), 2, {}), (CpuSet{2, 3}));
  EXPECT_EQ(take_cpus(*topology, CpuSet::range(1, 7), 3, {}), (CpuSet{1, 2, 3}));
  EXPECT_EQ(take_cpus(*topology, CpuSet::range(2, 7), 1, {}), CpuSet{2});
  EXPECT_EQ(take_cpus(*topology, CpuSet::range(0, 7), 4, {7, 6, 7}), (CpuSet{0, 1, 6, 7}));
}

TEST(TakeCpus, WorksOnSparseNumbers) {
  const auto topology = machine("pack:1 numa:1 core:2 pu:2(indexes=0,100,3,2000)");
  EXPECT_EQ(take_cpus(*topology, topology->allowed, 2, {}), (CpuSet{0, 100}));
  EXPECT_EQ(take_cpus(*topology, CpuSet{100, 3, 2000}, 3, {}), (CpuSet{3, 100, 2000}));
}

TEST(Decide, KeepsItsInvariantsOverRandomRuns) {
  for (const char* synthetic :
       {"pack:1 numa:1 core:2 pu:1", "pack:2 numa:2 core:3 pu:2", "pack:4 numa:3 core:2 pu:4"}) {
    TestNode node(synthetic, "0");
    std::mt19937 random(7);
    std::vector<Workload> running;
    for (int step = 0; step < 600; ++step) {
      if (!running.empty() && random() % 3 == 0) {
        const std::size_t victim = random() % running.size();
        node.ledger.assume_released(running[victim].key);
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(victim));
      } else {
        const std::string name = std::to_string(step);
        const Workload workload =
            random() % 2 == 0 ? guaranteed(name, static_cast<std::int64_t>(1 + random() % 5)) : besteffort(name);
        if (!node.run(workload).denied) running.push_back(workload);
      }
      CpuSet exclusive;
      for (const auto& [key, allocation] : node.ledger.allocations()) {
        ASSERT_FALSE(allocation.placement.cpus.empty());
        ASSERT_TRUE(allocation.placement.cpus.is_subset_of(node.topology->allowed));
        if (allocation.placement.mode != Mode::kExclusive) continue;
        ASSERT_FALSE(allocation.placement.cpus.intersects(exclusive)) << synthetic << " step " << step;
        exclusive |= allocation.placement.cpus;
      }
      ASSERT_FALSE(exclusive.contains(0));
      ASSERT_GE(node.ledger.pool().size(), node.rules.min_shared_cpus);
      for (const auto& [key, allocation] : node.ledger.allocations()) {
        if (allocation.placement.mode != Mode::kShared) continue;
        ASSERT_EQ(allocation.placement.cpus, node.ledger.pool());
      }
    }
  }
}

}  // namespace
}  // namespace topolet::placement
