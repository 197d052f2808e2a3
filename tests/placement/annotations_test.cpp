// Decisions with annotations, with CPUs that a container had, and with CPUs that are not alike.
#include "core/placement/reason_codes.hpp"
#include "tests/placement/machine.hpp"

namespace topolet::placement {
namespace {

using testing::besteffort;
using testing::guaranteed;
using testing::TestNode;

constexpr const char* kFourCpus = "pack:1 numa:1 core:4 pu:1";

Workload wishing(Workload workload, const std::string& setting, const std::string& value) {
  SharedStringMap::Map settings = workload.settings;
  settings[setting] = value;
  workload.settings = std::move(settings);
  return workload;
}

Workload fractional(const std::string& name, std::int64_t milli) {
  Workload workload = guaranteed(name, 1);
  workload.demand.cpu_request_milli = workload.demand.cpu_limit_milli = milli;
  return workload;
}

/// Says no to everything.
class Refuser : public Policy {
 public:
  const std::string& name() const override { return name_; }
  Result<std::vector<Verdict>> score(const PolicyRequest& request) override {
    return std::vector<Verdict>(request.candidates.size(), {Verdict::Kind::kReject, 0, "no"});
  }
  Result<Pick> pick(const PolicyRequest&, std::size_t, const CpuSet&, std::size_t) override { return Pick(); }

 private:
  std::string name_ = "refuser";
};

TEST(Wishes, ExclusiveRoundsAFractionalRequestUp) {
  TestNode node(kFourCpus);
  const Decision decision = node.run(wishing(fractional("a", 1500), "cpus", "exclusive"));
  EXPECT_EQ(decision.placement.mode, Mode::kExclusive) << decision.reason;
  EXPECT_EQ(decision.placement.cpus, CpuSet::range(0, 1));
  const Decision none = node.run(wishing(besteffort("b"), "cpus", "exclusive"));
  EXPECT_EQ(none.placement.mode, Mode::kShared);
  EXPECT_NE(none.reason.find("needs a CPU request"), std::string::npos) << none.reason;
}

TEST(Wishes, ExclusiveIfWholeRoundsNothingUp) {
  TestNode node(kFourCpus);
  for (const std::int64_t milli : {10, 999, 1001, 1500}) {
    const Decision decision = node.ask(wishing(fractional("a", milli), "cpus", "exclusive-if-whole"));
    EXPECT_EQ(decision.placement.mode, Mode::kShared) << milli;
    EXPECT_NE(decision.reason.find("placement.exclusive-namespaces"), std::string::npos) << decision.reason;
  }
  Workload burstable = wishing(fractional("b", 2000), "cpus", "exclusive-if-whole");
  burstable.qos = Qos::kBurstable;
  burstable.demand.cpu_limit_milli = 4000;
  EXPECT_EQ(node.ask(burstable).placement.cpus, CpuSet::range(0, 1)) << "that is what schedulers count";
}

TEST(Exclusive, CpusAreNotGivenWhereNobodyKnowsHowMany) {
  TestNode node("pack:1 numa:2 core:256 pu:1");
  Workload huge = guaranteed("huge", 256);
  EXPECT_EQ(node.ask(huge).placement.cpus.size(), 256U) << "the limit says how many";
  huge.demand.cpu_limit_milli = 0;
  const Decision shared = node.ask(huge);
  EXPECT_EQ(shared.placement.mode, Mode::kShared);
  EXPECT_NE(shared.reason.find("requests 256 CPUs or more and has no CPU limit"), std::string::npos) << shared.reason;
  EXPECT_EQ(node.ask(wishing(huge, "cpus", "exclusive")).placement.mode, Mode::kShared);
  huge.demand.cpu_request_milli = 255000;
  EXPECT_EQ(node.ask(huge).placement.cpus.size(), 255U);
}

TEST(Shared, ReasonsSayThatNoCpuIsRequested) {
  TestNode node(kFourCpus);
  Workload by_memory = besteffort("a");
  by_memory.qos = Qos::kBurstable;
  by_memory.demand.memory_request_bytes = 1 << 20;
  EXPECT_NE(node.ask(by_memory).reason.find("it requests no CPU"), std::string::npos) << node.ask(by_memory).reason;
  by_memory.demand.cpu_request_milli = 100;
  EXPECT_EQ(node.ask(by_memory).reason.find("it requests no CPU"), std::string::npos);
}

TEST(Wishes, SharedAndNoneGetNoCpusOfTheirOwn) {
  TestNode node(kFourCpus);
  for (const char* wish : {"shared", "none"}) {
    const Decision decision = node.run(wishing(guaranteed(wish, 2), "cpus", wish));
    EXPECT_EQ(decision.placement.mode, Mode::kShared);
    EXPECT_NE(decision.reason.find(std::string("annotation topolet.io/cpus = ") + wish), std::string::npos)
        << decision.reason;
  }
}

TEST(Wishes, NoneAsksNoPolicy) {
  TestNode node(kFourCpus);
  node.votes = {{std::make_shared<Refuser>()}};
  EXPECT_TRUE(node.ask(besteffort("a")).denied);
  const Decision decision = node.ask(wishing(besteffort("a"), "cpus", "none"));
  EXPECT_FALSE(decision.denied) << decision.reason;
  EXPECT_EQ(decision.placement.cpus, CpuSet::range(0, 3));
  EXPECT_TRUE(decision.unpinned);
}

TEST(Wishes, CountAsTheRulesSay) {
  TestNode node(kFourCpus);
  const Workload plain = guaranteed("plain", 1);
  const Workload wished = wishing(guaranteed("wished", 1), "cpus", "exclusive");
  node.rules.exclusive = ExclusiveRule::kAnnotated;
  EXPECT_EQ(node.ask(wished).placement.mode, Mode::kExclusive);
  const Decision shared = node.ask(plain);
  EXPECT_EQ(shared.placement.mode, Mode::kShared);
  EXPECT_NE(shared.reason.find("placement.exclusive = annotated"), std::string::npos) << shared.reason;
  node.rules.exclusive = ExclusiveRule::kNever;
  EXPECT_EQ(node.ask(wished).placement.mode, Mode::kShared);
}

TEST(Wishes, ExclusiveCountsInAReservedNamespaceToo) {
  TestNode node(kFourCpus, "0");
  Workload system = wishing(guaranteed("dns", 1), "cpus", "exclusive");
  system.pod_namespace = "kube-system";
  const Decision decision = node.run(system);
  EXPECT_EQ(decision.placement.mode, Mode::kExclusive) << decision.reason;
  EXPECT_EQ(decision.placement.cpus, CpuSet{1});
}

struct IsolatedNode : TestNode {
  IsolatedNode() : TestNode("pack:1 numa:2 core:4 pu:1") {
    ledger = engine::Ledger({topology->allowed, {}, {2, 3, 7}}, 0);
  }
};

TEST(Isolated, CpusAreGivenToThoseThatAskForThemOnly) {
  IsolatedNode node;
  EXPECT_EQ(node.run(besteffort("shared")).placement.cpus, (CpuSet{0, 1, 4, 5, 6}));
  EXPECT_EQ(node.run(guaranteed("plain", 1)).placement.cpus, CpuSet{0});
  EXPECT_TRUE(node.ask(guaranteed("big", 4)).denied) << "three isolated CPUs are free, but not for it";
  const Decision decision = node.run(wishing(guaranteed("a", 2), "isolated", "require"));
  EXPECT_EQ(decision.placement.cpus, CpuSet::range(2, 3)) << decision.reason;
  EXPECT_NE(decision.reason.find("isolated"), std::string::npos) << decision.reason;
}

TEST(Isolated, RequiredCpusAreAllThatCounts) {
  IsolatedNode node;
  node.run(wishing(guaranteed("a", 2), "isolated", "require"));
  const Decision denied = node.ask(wishing(guaranteed("b", 2), "isolated", "require"));
  ASSERT_TRUE(denied.denied);
  EXPECT_NE(denied.reason.find("requested=2, available=1"), std::string::npos) << denied.reason;
  EXPECT_NE(denied.reason.find("node 0: 0, node 1: 1"), std::string::npos) << denied.reason;
  node.rules.when_full = WhenFull::kShare;
  EXPECT_TRUE(node.ask(wishing(guaranteed("b", 2), "isolated", "require")).denied);
}

TEST(Isolated, PreferredCpusGiveWayToThePool) {
  IsolatedNode node;
  EXPECT_EQ(node.run(wishing(guaranteed("a", 2), "isolated", "prefer")).placement.cpus, CpuSet::range(2, 3));
  EXPECT_EQ(node.run(wishing(guaranteed("b", 2), "isolated", "prefer")).placement.cpus, CpuSet::range(0, 1))
      << "one isolated CPU is left, which is not mixed with others";
}

TEST(Isolated, CpusAreForAllWhereTheNodePrefersThem) {
  IsolatedNode node;
  node.rules.isolated = IsolatedRule::kPrefer;
  EXPECT_EQ(node.run(guaranteed("a", 2)).placement.cpus, CpuSet::range(2, 3));
  const Decision of_pool = node.run(guaranteed("b", 2));
  EXPECT_EQ(of_pool.placement.cpus, CpuSet::range(0, 1)) << of_pool.reason;
  EXPECT_EQ(node.run(guaranteed("c", 1)).placement.cpus, CpuSet{7});
  EXPECT_TRUE(node.ask(wishing(guaranteed("d", 2), "isolated", "require")).denied) << "the annotation comes first";
  const Decision denied = node.ask(guaranteed("e", 3));
  ASSERT_TRUE(denied.denied);
  EXPECT_NE(denied.reason.find("requested=3, available=2"), std::string::npos) << denied.reason;
  EXPECT_NE(denied.reason.find("0 free of those that the kernel isolates)"), std::string::npos) << denied.reason;
  EXPECT_EQ(node.ask(besteffort("f")).placement.cpus, CpuSet::range(4, 6));
}

TEST(Isolated, CpusAreAllThereIsWhereTheNodeSaysSo) {
  IsolatedNode node;
  node.rules.isolated = IsolatedRule::kAlways;
  EXPECT_EQ(node.run(guaranteed("a", 2)).placement.cpus, CpuSet::range(2, 3));
  node.rules.when_full = WhenFull::kShare;
  const Decision denied = node.ask(guaranteed("b", 2));
  ASSERT_TRUE(denied.denied) << "whatever is done with others";
  EXPECT_EQ(denied.reason_code, reason_code::kTooFewIsolatedCpus);
  EXPECT_NE(denied.reason.find("(placement.isolated = always): requested=2, available=1"), std::string::npos)
      << denied.reason;
  EXPECT_EQ(node.ask(wishing(guaranteed("c", 2), "isolated", "prefer")).placement.cpus, CpuSet::range(0, 1))
      << "the annotation comes first";
}

TEST(Isolated, CpusOrThoseOfThePoolAreSharedOnlyIfBothAreShort) {
  IsolatedNode node;
  node.rules.isolated = IsolatedRule::kPrefer;
  node.rules.when_full = WhenFull::kShare;
  EXPECT_EQ(node.run(guaranteed("a", 4)).placement.cpus, (CpuSet{0, 1, 4, 5}));
  EXPECT_EQ(node.run(guaranteed("b", 3)).placement.mode, Mode::kExclusive);
  EXPECT_EQ(node.run(guaranteed("c", 1)).placement.mode, Mode::kShared);
}

TEST(Isolated, FormerCpusOfThePoolAreThoseAgainWhileIsolatedOnesAreShort) {
  IsolatedNode node;
  node.rules.isolated = IsolatedRule::kPrefer;
  const auto again = [&node](const CpuSet& former, std::int64_t cpus) {
    PolicyRequest request = node.request(guaranteed("again", cpus));
    request.keep = former;
    return decide(request, node.rules, node.votes).placement.cpus;
  };
  EXPECT_EQ(again({4, 5}, 2), CpuSet::range(2, 3)) << "there are enough now";
  node.run(guaranteed("a", 2));
  EXPECT_EQ(again({4, 5}, 2), CpuSet::range(4, 5));
  EXPECT_EQ(again({7}, 1), CpuSet{7});
}

TEST(Isolated, CpusCountNotForThePoolsMinimum) {
  IsolatedNode node;
  node.rules.min_shared_cpus = 5;
  EXPECT_FALSE(node.run(wishing(guaranteed("a", 2), "isolated", "require")).denied);
  EXPECT_TRUE(node.run(guaranteed("b", 1)).denied);
}

TEST(Isolated, CpusSayNothingToASharedContainer) {
  IsolatedNode node;
  EXPECT_EQ(node.run(wishing(besteffort("a"), "isolated", "require")).placement.cpus, (CpuSet{0, 1, 4, 5, 6}));
}

TEST(Isolated, CpusAreShownToPoliciesAsFree) {
  IsolatedNode node;
  EXPECT_EQ(node.request(wishing(guaranteed("a", 2), "isolated", "prefer")).free(), (CpuSet{2, 3, 7}));
  EXPECT_EQ(node.request(guaranteed("a", 2)).free(), (CpuSet{0, 1, 4, 5, 6}));
  EXPECT_EQ(node.request(wishing(besteffort("a"), "isolated", "require")).free(), (CpuSet{0, 1, 4, 5, 6}));
}

/// Node 0: two slow and two fast cores, node 1: four fast ones.
struct HybridNode : TestNode {
  HybridNode() : TestNode("pack:1 numa:2 core:4 pu:1") {
    auto hybrid = std::make_shared<topology::Topology>(*topology);
    hybrid->cpu_kinds = {{0, {0, 1}}, {1, {2, 3, 4, 5, 6, 7}}};
    topology = hybrid;
  }
  CpuSet on_node_0(std::int64_t cpus) const {
    PolicyRequest asked = request(guaranteed("a", cpus));
    std::erase_if(asked.candidates, [](const Candidate& candidate) { return candidate.nodes != NodeSet{0}; });
    return decide(asked, rules, votes).placement.cpus;
  }
};

TEST(CpuKinds, OneContainerGetsCpusOfOneKindIfTheyFit) {
  const HybridNode node;
  EXPECT_EQ(node.on_node_0(2), CpuSet::range(2, 3)) << "the fast ones";
  EXPECT_EQ(node.on_node_0(3), CpuSet::range(0, 2)) << "neither kind has three";
}

TEST(CpuKinds, ASlowKindIsTakenWhereTheFastOneIsFull) {
  HybridNode node;
  node.run(guaranteed("b", 6));
  EXPECT_EQ(node.cpus_of(guaranteed("b", 6)), CpuSet::range(2, 7));
  EXPECT_EQ(node.on_node_0(1), CpuSet{0});
}

/// Scores one node, abstains on the others.
class Preferring : public Policy {
 public:
  Preferring(const NodeSet& nodes, std::int32_t score) : nodes_(nodes), score_(score) {}
  const std::string& name() const override { return name_; }
  Result<std::vector<Verdict>> score(const PolicyRequest& request) override {
    std::vector<Verdict> verdicts;
    for (const Candidate& candidate : request.candidates) {
      verdicts.push_back({Verdict::Kind::kScore, candidate.nodes == nodes_ ? score_ : 0, ""});
    }
    return verdicts;
  }
  Result<Pick> pick(const PolicyRequest&, std::size_t, const CpuSet&, std::size_t) override { return Pick(); }

 private:
  const std::string name_ = "preferring";
  const NodeSet nodes_;
  const std::int32_t score_;
};

struct KeepingNode : TestNode {
  KeepingNode() : TestNode("pack:1 numa:2 core:4 pu:1") {}
  Decision ask_to_keep(std::int64_t cpus, const CpuSet& keep, bool must, const CpuSet& withheld = {}) const {
    PolicyRequest asked = request(guaranteed("a", cpus));
    asked.keep = keep;
    asked.retained_withheld = withheld;
    asked.must_retain = must;
    return decide(asked, rules, votes);
  }
};

TEST(Keeping, TakesTheSameCpusAgainAndSaysSo) {
  const KeepingNode node;
  const Decision decision = node.ask_to_keep(2, {5, 7}, false);
  EXPECT_EQ(decision.placement.cpus, (CpuSet{5, 7}));
  EXPECT_NE(decision.reason.find("it had CPUs 5,7 before"), std::string::npos) << decision.reason;
}

TEST(Keeping, GrowsAroundWhatThereIs) {
  const KeepingNode node;
  const CpuSet grown = node.ask_to_keep(3, {5, 7}, true).placement.cpus;
  EXPECT_EQ(grown.size(), 3U);
  EXPECT_TRUE((CpuSet{5, 7}).is_subset_of(grown)) << grown.to_string();
}

TEST(Keeping, ShrinksInsideWhatThereIs) {
  const KeepingNode node;
  EXPECT_EQ(node.ask_to_keep(1, {5, 7}, true).placement.cpus, CpuSet{5});
}

TEST(Keeping, GivesWayUnlessItMust) {
  KeepingNode node;
  node.run(guaranteed("other", 1));  // on CPU 0
  EXPECT_EQ(node.ask_to_keep(2, {0, 7}, false).placement.cpus, CpuSet::range(1, 2));
  const Decision denied = node.ask_to_keep(2, {0, 7}, true);
  EXPECT_TRUE(denied.denied);
  EXPECT_NE(denied.reason.find("0,7"), std::string::npos) << denied.reason;
}

TEST(Keeping, TakesFormerCpusOnlyWhereTheyAreAsNear) {
  const KeepingNode node;
  const Decision wide = node.ask_to_keep(2, {3, 4}, false);
  EXPECT_EQ(wide.placement.cpus, CpuSet::range(0, 1)) << "it had CPUs of two nodes, and one has room by now";
  EXPECT_NE(wide.reason.find("CPUs 3-4, which it had, would suit it less"), std::string::npos) << wide.reason;
  EXPECT_EQ(node.ask_to_keep(6, CpuSet::range(1, 6), false).placement.cpus, CpuSet::range(1, 6)) << "it needs both";
}

TEST(Keeping, TakesFormerCpusOnlyIfTheyAreOfNoMoreCoresAndCaches) {
  const auto again = [](const char* synthetic, const CpuSet& had) {
    const TestNode node(synthetic);
    PolicyRequest asked = node.request(guaranteed("a", 2));
    asked.keep = had;
    return decide(asked, node.rules, node.votes).placement.cpus;
  };
  EXPECT_EQ(again("numa:1 core:4 pu:2", {1, 3}), CpuSet::range(0, 1));
  EXPECT_EQ(again("numa:1 core:4 pu:2", {4, 5}), CpuSet::range(4, 5));
  EXPECT_EQ(again("numa:1 l3:2 core:2 pu:1", {1, 2}), CpuSet::range(0, 1));
  EXPECT_EQ(again("numa:1 l3:2 core:2 pu:1", {2, 3}), CpuSet::range(2, 3));
}

TEST(Keeping, TakesFormerCpusAgainstAMildPreferenceOfAPolicyOnly) {
  KeepingNode node;
  for (const std::int32_t score : {10, 11}) {
    node.votes = {{std::make_shared<Preferring>(NodeSet{0}, score), 1, false}};
    EXPECT_EQ(node.ask_to_keep(2, {5, 7}, false).placement.cpus, score == 10 ? (CpuSet{5, 7}) : CpuSet::range(0, 1));
  }
}

TEST(Keeping, SharesNotWhenItMustKeepItsOwn) {
  KeepingNode node;
  node.rules.when_full = WhenFull::kShare;
  EXPECT_TRUE(node.ask_to_keep(9, {0, 7}, true).denied);
  EXPECT_TRUE(node.ask_to_keep(9, {0, 7}, false).shared_because_full);
}

}  // namespace
}  // namespace topolet::placement
