// How the picks of several policies become one placement, step by step.
#include <algorithm>
#include <functional>
#include <map>

#include "core/placement/decision.hpp"
#include "core/placement/policy.hpp"
#include "tests/placement/machine.hpp"

namespace topolet::placement {
namespace {

using testing::guaranteed;
using testing::TestNode;

/// Picks as it is told for each set of CPUs it is asked about, and again when they are chosen.
class TwoSteps : public Policy {
 public:
  using PickCpus = std::function<Pick(const CpuSet& usable)>;
  using PickBeside = std::function<Pick(const CpuSet& usable, const CpuSet& chosen)>;

  TwoSteps(std::string name, PickCpus pick, PickBeside beside)
      : name_(std::move(name)), pick_(std::move(pick)), beside_(std::move(beside)) {}

  const std::string& name() const override { return name_; }
  Result<std::vector<Verdict>> score(const PolicyRequest& request) override {
    return std::vector<Verdict>(request.candidates.size());
  }
  Result<Pick> pick(const PolicyRequest&, std::size_t, const CpuSet& usable, std::size_t) override {
    return pick_(usable);
  }
  Result<Pick> review_pick(const PolicyRequest&, std::size_t, const CpuSet& usable, const CpuSet& chosen) override {
    return beside_(usable, chosen);
  }

 private:
  const std::string name_;
  const PickCpus pick_;
  const PickBeside beside_;
};

/// Loves node 0, and gives up its vote if it is lost.
class Fond : public Policy {
 public:
  explicit Fond(bool lost) : lost_(lost) {}

  const std::string& name() const override { return name_; }
  Result<std::vector<Verdict>> score(const PolicyRequest& request) override {
    if (lost_) return Error{Code::kInternal, "threw"};
    std::vector<Verdict> verdicts(request.candidates.size());
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      if (request.candidates[i].nodes == NodeSet{0}) verdicts[i] = {Verdict::Kind::kScore, 100, "it is fond of it"};
    }
    return verdicts;
  }
  Result<Pick> pick(const PolicyRequest&, std::size_t, const CpuSet&, std::size_t) override { return Pick(); }

 private:
  const std::string name_ = "fond";
  const bool lost_;
};

Vote two_step(
    const std::string& name, TwoSteps::PickCpus pick,
    TwoSteps::PickBeside beside = [](const CpuSet&, const CpuSet&) { return Pick(); }) {
  return {std::make_shared<TwoSteps>(name, std::move(pick), std::move(beside)), 1, false};
}

Pick nothing(const CpuSet& /*usable*/) { return {}; }

/// The highest two of what it is asked about.
Pick highest_first(const CpuSet& usable) {
  Pick pick;
  pick.order.assign(usable.begin(), usable.end());
  std::reverse(pick.order.begin(), pick.order.end());
  if (pick.order.size() > 2) pick.order.resize(2);
  return pick;
}

TEST(DecidePick, OrdersWhatOthersHaveNarrowedWhoeverComesFirst) {
  TestNode node("pack:1 numa:1 core:6 pu:1");
  const Vote orders = two_step("orders", highest_first);
  const Vote narrows = two_step("narrows", [](const CpuSet& usable) {
    Pick pick;
    pick.narrow = usable & CpuSet{0, 1, 2, 3};
    return pick;
  });
  node.votes = {orders, narrows};
  EXPECT_EQ(node.ask(guaranteed("a", 2)).placement.cpus, (CpuSet{2, 3}));
  node.votes = {narrows, orders};
  EXPECT_EQ(node.ask(guaranteed("a", 2)).placement.cpus, (CpuSet{2, 3}));
}

/// Wants so many or more of these.
Vote wanting(const std::string& name, std::vector<CpuMinimum> shares, std::int32_t weight = 1) {
  Vote vote = two_step(name, [shares](const CpuSet&) {
    Pick pick;
    pick.at_least = shares;
    return pick;
  });
  vote.weight = weight;
  return vote;
}

TEST(DecidePick, TakesSharesInTurnAndThenTheRest) {
  TestNode node("pack:1 numa:1 core:8 pu:1");
  node.votes = {wanting("wants", {{CpuSet{6, 7}, 1}, {CpuSet{4, 5}, 9}, {CpuSet{4, 5, 6}, 2}})};
  EXPECT_EQ(node.ask(guaranteed("a", 1)).placement.cpus, CpuSet{6});
  EXPECT_EQ(node.ask(guaranteed("a", 3)).placement.cpus, (CpuSet{4, 5, 6}));
  EXPECT_EQ(node.ask(guaranteed("a", 5)).placement.cpus, (CpuSet{0, 1, 4, 5, 6}));
}

TEST(DecidePick, OrdersEachShare) {
  TestNode node("pack:1 numa:1 core:8 pu:1");
  const Vote wants = wanting("wants", {{CpuSet{4, 5, 6}, 2}});
  node.votes = {wants, two_step("orders", highest_first)};
  EXPECT_EQ(node.ask(guaranteed("a", 4)).placement.cpus, (CpuSet{4, 5, 6, 7})) << "5, 6, and the two highest others";
  EXPECT_EQ(node.ask(guaranteed("a", 2)).placement.cpus, (CpuSet{5, 6}));
}

TEST(DecidePick, TakesTheSharesOfMoreWeightFirstWhoeverIsEnabledFirst) {
  TestNode node("pack:1 numa:1 core:8 pu:1");
  const Vote light = wanting("a-light", {{CpuSet{2, 3}, 2}});
  const Vote heavy = wanting("heavy", {{CpuSet{6, 7}, 2}}, 4);
  const Vote equal = wanting("equal", {{CpuSet{4, 5}, 2}}, 4);
  std::vector<Vote> votes = {light, heavy, equal};
  for (int turn = 0; turn < 3; ++turn) {
    std::rotate(votes.begin(), votes.begin() + 1, votes.end());
    node.votes = votes;
    EXPECT_EQ(node.ask(guaranteed("a", 3)).placement.cpus, (CpuSet{4, 5, 6}));
  }
}

/// Two fast nodes of two CPUs, and a slow one.
struct HybridNode : TestNode {
  HybridNode() : TestNode("pack:1 numa:3 core:2 pu:1") {
    auto hybrid = std::make_shared<topology::Topology>(*topology);
    hybrid->cpu_kinds = {{0, {4, 5}}, {1, {0, 1, 2, 3}}};
    topology = hybrid;
  }
};

TEST(DecidePick, TakesCpusOfOneKindAsFarAsThatCostsNobodyAShare) {
  HybridNode node;
  node.votes = {wanting("wants", {{CpuSet{4, 5}, 1}})};
  EXPECT_EQ(node.ask(guaranteed("a", 3)).placement.cpus, (CpuSet{0, 1, 4})) << "the slow CPU that it wants";
  node.votes = {wanting("wants", {{CpuSet{3, 4, 5}, 1}})};
  EXPECT_EQ(node.ask(guaranteed("a", 3)).placement.cpus, (CpuSet{0, 1, 3})) << "a fast one will do";
  node.votes = {wanting("wants", {{CpuSet{2, 4}, 1}, {CpuSet{4, 5}, 1}})};
  EXPECT_EQ(node.ask(guaranteed("a", 1)).placement.cpus, CpuSet{2}) << "what is wanted first can be fast";
}

TEST(DecidePick, NarrowsBeforeItShares) {
  TestNode node("pack:1 numa:1 core:8 pu:1");
  node.votes = {wanting("wants", {{CpuSet{4, 5, 6, 7}, 3}}), two_step("narrows", [](const CpuSet&) {
                  Pick pick;
                  pick.narrow = CpuSet{1, 3, 5, 7};
                  return pick;
                })};
  EXPECT_EQ(node.ask(guaranteed("a", 3)).placement.cpus, (CpuSet{1, 5, 7}));
}

TEST(DecidePick, LosesTheVoteOfWhoWantsWhatIsNotOffered) {
  TestNode node("pack:1 numa:1 core:2 pu:1");
  node.votes = {wanting("wants", {{CpuSet{1, 9}, 1}})};
  const Decision decision = node.ask(guaranteed("a", 1));
  EXPECT_EQ(decision.placement.cpus, CpuSet{0});
  ASSERT_EQ(decision.invalid_replies.size(), 1U);
  EXPECT_EQ(decision.invalid_replies[0].what,
            "pick wants some of CPUs 9, which it was not offered; it was offered 0-1");
}

/// Rejects what does not have one of these.
Vote demanding_one_of(const std::string& name, const CpuSet& cpus) {
  return two_step(name, nothing, [cpus](const CpuSet&, const CpuSet& chosen) {
    Pick pick;
    if (!chosen.intersects(cpus)) pick.rejected = "none of " + cpus.to_string();
    return pick;
  });
}

Vote narrowing_to(const std::string& name, const CpuSet& cpus) {
  return two_step(name, [cpus](const CpuSet& usable) {
    Pick pick;
    pick.narrow = cpus & usable;
    if (pick.narrow->empty()) pick.narrow.reset();
    return pick;
  });
}

TEST(DecidePick, DropsWhatOthersChoseWhereItIsRejected) {
  TestNode node("pack:1 numa:1 core:4 pu:1");
  node.votes = {narrowing_to("tidy", {2, 3}), demanding_one_of("strict", {0})};
  const Decision decision = node.ask(guaranteed("a", 1));
  EXPECT_EQ(decision.placement.cpus, CpuSet{0});
  EXPECT_EQ(decision.verdicts.dropped,
            std::vector<std::string>{"tidy: its choice of CPUs was rejected: strict: none of 0"});
  EXPECT_NE(decision.reason.find("dropped: tidy: its choice of CPUs was rejected: strict: none of 0"),
            std::string::npos)
      << decision.reason;
}

/// Likes some node sets, and would not run on CPU 0.
class Hopeful : public Policy {
 public:
  explicit Hopeful(std::map<std::string, std::int32_t> scores) : scores_(std::move(scores)) {}

  const std::string& name() const override { return name_; }
  Result<std::vector<Verdict>> score(const PolicyRequest& request) override {
    std::vector<Verdict> verdicts(request.candidates.size());
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      const auto score = scores_.find(request.candidates[i].nodes.to_string());
      if (score != scores_.end()) verdicts[i] = {Verdict::Kind::kScore, score->second, "hope"};
    }
    return verdicts;
  }
  Result<Pick> pick(const PolicyRequest&, std::size_t, const CpuSet&, std::size_t) override { return Pick(); }
  Result<Pick> review_pick(const PolicyRequest&, std::size_t, const CpuSet&, const CpuSet& chosen) override {
    Pick pick;
    if (chosen.contains(0)) pick.unmet = "not with CPU 0";
    return pick;
  }

 private:
  const std::string name_ = "hopeful";
  const std::map<std::string, std::int32_t> scores_;
};

TEST(DecidePick, CountsNoPointsForWhatAPolicyDoesNotGet) {
  TestNode node("numa:2 core:2 pu:1");
  const auto taken = [&node](std::map<std::string, std::int32_t> scores) {
    node.votes = {{std::make_shared<Hopeful>(std::move(scores)), 1, false}};
    return node.ask(guaranteed("a", 1));
  };
  EXPECT_EQ(taken({{"0", 50}, {"1", 10}}).placement.cpus, CpuSet{2});
  EXPECT_EQ(taken({{"0", 50}, {"1", 10}}).verdicts.dropped, std::vector<std::string>{});
  const Decision best_anyway = taken({{"0", 50}, {"1", -10}, {"0-1", -10}});
  EXPECT_EQ(best_anyway.placement.cpus, CpuSet{0});
  EXPECT_EQ(best_anyway.verdicts.dropped, std::vector<std::string>{"hopeful: not with CPU 0"}) << "said once";
}

TEST(DecidePick, KeepsWhatARequiredPolicyChoseAndTriesTheNextCandidate) {
  TestNode node("numa:2 core:2 pu:1");
  Vote tidy = narrowing_to("tidy", {1, 2});
  tidy.required = true;
  node.votes = {{std::make_shared<Fond>(false), 1, false}, tidy, demanding_one_of("strict", {0, 2})};
  EXPECT_EQ(node.ask(guaranteed("a", 1)).placement.cpus, CpuSet{2});
  node.votes.back() = demanding_one_of("strict", {0});
  const Decision denied = node.ask(guaranteed("a", 1));
  EXPECT_TRUE(denied.denied);
  EXPECT_NE(denied.reason.find("strict: none of 0"), std::string::npos) << denied.reason;
}

TEST(DecidePick, SaysTheSameOfTwoThatRejectWhoeverIsEnabledFirst) {
  TestNode node("numa:1 core:2 pu:1");
  node.votes = {demanding_one_of("b", {7}), demanding_one_of("a", {8})};
  const std::string reason = node.ask(guaranteed("x", 1)).reason;
  EXPECT_NE(reason.find("a: none of 8; b: none of 7"), std::string::npos) << reason;
}

TEST(DecidePick, DeniesWhatIsRejectedEverywhere) {
  TestNode node("numa:1 core:2 pu:1");
  node.votes = {demanding_one_of("strict", {7})};
  const Decision decision = node.ask(guaranteed("a", 1));
  EXPECT_TRUE(decision.denied);
  EXPECT_NE(decision.reason.find("strict: none of 7"), std::string::npos) << decision.reason;
}

TEST(DecidePick, AsksWhatToWithholdBesideTheChosenCpus) {
  TestNode node("pack:1 numa:1 core:4 pu:2");
  node.votes = {two_step("orders", highest_first),
                two_step("idle", nothing, [](const CpuSet& usable, const CpuSet& chosen) {
                  EXPECT_EQ(usable, CpuSet::range(0, 7));
                  Pick pick;
                  pick.withhold = CpuSet{chosen.first() - 1};
                  pick.reason = "quiet";
                  return pick;
                })};
  const Decision decision = node.ask(guaranteed("a", 1));
  EXPECT_EQ(decision.placement.cpus, CpuSet{7});
  EXPECT_EQ(decision.placement.withheld, CpuSet{6});
  EXPECT_NE(decision.reason.find("; idle: quiet"), std::string::npos) << decision.reason;
}

/// Cannot do what it is for where CPU 0 is chosen.
Vote demanding(bool required) {
  Vote vote = two_step("demanding", nothing, [](const CpuSet&, const CpuSet& chosen) {
    Pick pick;
    if (chosen.contains(0)) pick.unmet = "not with CPU 0";
    return pick;
  });
  vote.required = required;
  return vote;
}

TEST(DecidePick, AuditsWhatIsUnmet) {
  TestNode node("numa:1 core:2 pu:1");
  node.votes = {demanding(false)};
  const Decision decision = node.ask(guaranteed("a", 1));
  EXPECT_FALSE(decision.denied);
  EXPECT_EQ(decision.verdicts.dropped, std::vector<std::string>{"demanding: not with CPU 0"});
}

TEST(DecidePick, SaysTheSameOfWhatIsUnmetWhoeverIsEnabledFirst) {
  TestNode node("numa:1 core:2 pu:1");
  const auto lacking = [](const std::string& name, bool required) {
    Vote vote = two_step(name, nothing, [](const CpuSet&, const CpuSet&) {
      Pick pick;
      pick.unmet = "no";
      return pick;
    });
    vote.required = required;
    return vote;
  };
  node.votes = {lacking("b", false), lacking("a", false)};
  EXPECT_EQ(node.ask(guaranteed("a", 1)).verdicts.dropped, (std::vector<std::string>{"a: no", "b: no"}));
  node.votes = {lacking("a", true), lacking("b", true)};
  const Decision denied = node.ask(guaranteed("a", 1));
  EXPECT_NE(denied.reason.find("a: no (plugins.required.a = true); b: no (plugins.required.b = true)"),
            std::string::npos)
      << denied.reason;
}

TEST(DecidePick, TriesTheNextCandidateWhereARequiredPolicyCannotHaveItsWay) {
  TestNode node("numa:2 core:2 pu:1");
  node.votes = {{std::make_shared<Fond>(false), 1, false}, demanding(true)};
  EXPECT_EQ(node.ask(guaranteed("a", 1)).placement.cpus, CpuSet{2});
}

TEST(DecidePick, DeniesWhatARequiredPolicyCannotHaveItsWayWith) {
  TestNode node("numa:1 core:2 pu:1");
  node.votes = {demanding(true)};
  const Decision decision = node.ask(guaranteed("a", 1));
  EXPECT_TRUE(decision.denied);
  EXPECT_NE(decision.reason.find("demanding: not with CPU 0 (plugins.required.demanding = true)"), std::string::npos)
      << decision.reason;
  Workload system = guaranteed("dns", 1);
  system.pod_namespace = "kube-system";
  EXPECT_FALSE(node.ask(system).denied) << "never for reserved namespaces";
}

TEST(DecidePick, DeniesWhatARequiredPolicyCannotWithhold) {
  TestNode node("numa:1 core:1 pu:2");
  Vote idle = two_step("idle", nothing, [](const CpuSet& usable, const CpuSet& chosen) {
    Pick pick;
    pick.withhold = usable - chosen;
    return pick;
  });
  node.votes = {idle};
  const Decision dropped = node.ask(guaranteed("a", 1));
  EXPECT_EQ(dropped.verdicts.dropped,
            std::vector<std::string>{
                "idle: withholding CPU 1: the pool would keep 0 CPUs, fewer than placement.min-shared-cpus = 1"});
  node.votes[0].required = true;
  EXPECT_TRUE(node.ask(guaranteed("a", 1)).denied);
}

TEST(DecidePick, DeniesForAVoteThatIsLostOnTheWayAndNotForLackOfAPlace) {
  TestNode node("numa:1 core:2 pu:1");
  int asked = 0;
  Vote closed = two_step("closed", nothing, [&asked](const CpuSet&, const CpuSet&) {
    Pick pick;
    if (++asked == 1) pick.withhold = CpuSet{9};  // what it was not offered
    return pick;
  });
  closed.fail_closed = true;
  node.votes = {closed, demanding_one_of("strict", {7})};
  node.rules.when_full = WhenFull::kShare;
  const Decision denied = node.ask(guaranteed("a", 1));
  EXPECT_TRUE(denied.denied);
  EXPECT_NE(denied.reason.find("plugin closed lost its vote"), std::string::npos) << denied.reason;
}

TEST(DecidePick, DeniesWithoutTheVoteOfARequiredPolicy) {
  TestNode node("numa:1 core:2 pu:1");
  node.votes = {{std::make_shared<Fond>(true), 1, false, true}};
  EXPECT_EQ(node.ask(guaranteed("a", 1)).reason,
            "plugin fond lost its vote (threw), and plugins.required.fond = true; see `topolet plugin list`");
}

}  // namespace
}  // namespace topolet::placement
