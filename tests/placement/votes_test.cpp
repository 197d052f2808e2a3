// Whose vote counts where several policies want different things, and what a lost vote takes back.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "core/placement/votes.hpp"
#include "tests/placement/machine.hpp"

namespace topolet::placement {
namespace {

using testing::guaranteed;
using testing::TestNode;

/// Wants what it is made with.
struct Wishes {
  std::map<std::string, Verdict> verdicts = {};  ///< by nodes
  Pick pick = {};
  std::optional<Error> failure = {};  ///< in the place of the pick
  Adjustment adjustment = {};
};

class Claimant : public Policy {
 public:
  Claimant(std::string name, Wishes wishes) : name_(std::move(name)), wishes_(std::move(wishes)) {}

  const std::string& name() const override { return name_; }
  Result<std::vector<Verdict>> score(const PolicyRequest& request) override {
    std::vector<Verdict> verdicts;
    for (const Candidate& candidate : request.candidates) {
      const auto found = wishes_.verdicts.find(candidate.nodes.to_string());
      verdicts.push_back(found == wishes_.verdicts.end() ? Verdict() : found->second);
    }
    return verdicts;
  }
  Result<Pick> pick(const PolicyRequest&, std::size_t, const CpuSet& usable, std::size_t) override {
    if (wishes_.failure) return *wishes_.failure;
    Pick pick = wishes_.pick;
    if (pick.narrow) *pick.narrow &= usable;
    if (pick.narrow && pick.narrow->empty()) pick.narrow.reset();
    return pick;
  }
  Result<Pick> review_pick(const PolicyRequest&, std::size_t, const CpuSet&, const CpuSet&) override { return Pick(); }
  Result<Adjustment> adjust(const PolicyRequest&, const ChosenPlacement&) override { return wishes_.adjustment; }

 private:
  const std::string name_;
  const Wishes wishes_;
};

Vote claim(const std::string& name, std::int32_t weight, Wishes wishes) {
  return {std::make_shared<Claimant>(name, std::move(wishes)), weight};
}

Verdict points(std::int32_t score) { return {Verdict::Kind::kScore, score, "likes it"}; }

/// Wants some CPUs, in an order, and to say where memory is and what is in the environment.
Vote selfish(const std::string& name, std::int32_t weight, const CpuSet& cpus, std::uint32_t node) {
  Wishes wishes;
  wishes.pick.narrow = cpus;
  wishes.pick.order = {cpus.first()};
  wishes.adjustment.mems = NodeSet{node};
  wishes.adjustment.added.env = {{"WHO", name}};
  wishes.adjustment.added.annotations = {{"example.com/who", name}};
  wishes.adjustment.reason = "as " + name + " wants it";
  return claim(name, weight, std::move(wishes));
}

std::vector<std::string> names(const Votes& votes) {
  std::vector<std::string> all;
  for (const Vote& vote : votes) all.push_back(vote.policy->name());
  return all;
}

TEST(Votes, AreInTheOrderOfWeightAndThenOfTheId) {
  const Votes votes = {claim("b", 1, {}), claim("z", 7, {}), claim("a", 1, {}), claim("c", 7, {}),
                       claim("none", 0, {})};
  EXPECT_EQ(names(votes), (std::vector<std::string>{"c", "z", "a", "b", "none"}));
  EXPECT_EQ(names(std::vector<Vote>(votes.begin(), votes.end())), names(votes));
}

/// All that a decision says.
std::string told(const Decision& decision) {
  std::string text = decision.placement.cpus.to_string() + " on " + decision.placement.mems.to_string();
  for (const auto& [name, value] : decision.placement.added.env) text += "; " + name + "=" + value;
  for (const auto& [name, value] : decision.placement.added.annotations) text += "; " + name + "=" + value;
  for (const std::string& dropped : decision.verdicts.dropped) text += "\ndropped " + dropped;
  for (const std::string& lost : decision.verdicts.lost_votes) text += "\nlost " + lost;
  return text + "\n" + decision.reason;
}

/// What is decided in every order of the votes, which must be one thing.
Decision decided_in_any_order(TestNode& node, std::vector<Vote> votes) {
  const auto by_name = [](const Vote& a, const Vote& b) { return a.policy->name() < b.policy->name(); };
  std::sort(votes.begin(), votes.end(), by_name);
  std::set<std::string> all;
  Decision decision;
  do {
    node.votes = votes;
    decision = node.ask(guaranteed("a", 2));
    all.insert(told(decision));
  } while (std::next_permutation(votes.begin(), votes.end(), by_name));
  EXPECT_EQ(all.size(), 1U) << ::testing::PrintToString(all);
  return decision;
}

TEST(Votes, OfEqualWeightAreWonByTheFirstId) {
  TestNode node("numa:2 core:4 pu:1");
  const Decision decision = decided_in_any_order(
      node, {selfish("a", 1, {2, 3}, 1), selfish("b", 1, {4, 5}, 0), selfish("c", 1, {0, 1, 6, 7}, 0)});
  EXPECT_EQ(decision.placement.cpus, (CpuSet{2, 3}));
  EXPECT_EQ(decision.placement.mems, NodeSet{1});
  EXPECT_EQ(decision.placement.added, (AddedFields{{{"WHO", "a"}}, {{"example.com/who", "a"}}}));
}

TEST(Votes, OfMoreWeightWinWhateverTheId) {
  TestNode node("numa:2 core:4 pu:1");
  const Decision decision =
      decided_in_any_order(node, {selfish("a", 1, {2, 3}, 1), selfish("b", 1, {0, 1}, 1), selfish("z", 4, {4, 5}, 0)});
  EXPECT_EQ(decision.placement.cpus, (CpuSet{4, 5}));
  EXPECT_EQ(decision.placement.mems, NodeSet{0});
  EXPECT_EQ(decision.placement.added, (AddedFields{{{"WHO", "z"}}, {{"example.com/who", "z"}}}));
}

TEST(Votes, OfMoreWeightOrderTheCpus) {
  TestNode node("numa:1 core:8 pu:1");
  const auto ordering = [](const std::string& name, std::int32_t weight, std::vector<std::uint32_t> order) {
    Wishes wishes;
    wishes.pick.order = std::move(order);
    return claim(name, weight, std::move(wishes));
  };
  EXPECT_EQ(decided_in_any_order(node, {ordering("a", 1, {1, 2}), ordering("b", 2, {5, 6})}).placement.cpus,
            (CpuSet{5, 6}));
  EXPECT_EQ(decided_in_any_order(node, {ordering("a", 1, {1, 2}), ordering("b", 1, {5, 6})}).placement.cpus,
            (CpuSet{1, 2}));
}

TEST(Votes, OnlyTheFirstThatIsLostSaysWhyTheContainerIsDenied) {
  TestNode node("numa:1 core:4 pu:1");
  const auto closed = [](const std::string& name, std::int32_t weight) {
    Vote vote = claim(name, weight, {.failure = Error{Code::kInternal, "threw"}});
    vote.fail_closed = true;
    return vote;
  };
  const Decision decision = decided_in_any_order(node, {closed("a", 1), closed("b", 3), closed("c", 3)});
  EXPECT_TRUE(decision.denied);
  EXPECT_NE(decision.reason.find("plugin b lost its vote"), std::string::npos) << decision.reason;
}

TEST(Votes, ThatAreLostOverAPickTakeBackTheirScoresAndRejections) {
  TestNode node("numa:4 core:2 pu:1");
  const Error failure{Code::kInternal, "threw"};
  const Verdict never{Verdict::Kind::kReject, 0, "never"};
  node.votes = {claim("fails", 4, {.verdicts = {{"0", points(100)}, {"2", never}}, .failure = failure}),
                claim("fine", 1, {.verdicts = {{"0", points(10)}, {"1", points(20)}, {"2", points(30)}}})};
  const Decision decision = node.ask(guaranteed("a", 2));
  EXPECT_EQ(decision.nodes, NodeSet{2}) << decision.reason;
  EXPECT_FALSE(decision.unpinned);
  EXPECT_EQ(decision.lost_votes, std::vector<std::string>{"fails"});
  EXPECT_EQ(decision.verdicts.dropped,
            std::vector<std::string>{
                "fails: its scores are taken back, because it lost its vote when it was asked for CPUs"});
  ASSERT_FALSE(decision.verdicts.best.empty());
  EXPECT_EQ(decision.verdicts.best[0].nodes, "2");
  EXPECT_EQ(decision.verdicts.best[0].score, 30);
  EXPECT_TRUE(decision.verdicts.rejected.empty());
}

TEST(Votes, ThatAreLostForWantOfTimeLeaveTheirScores) {
  TestNode node("pack:1 numa:2 core:4 pu:1");
  Wishes wishes;
  wishes.verdicts = {{"1", points(50)}};
  wishes.failure = Error{Code::kDeadlineExceeded, "was not asked to pick CPUs"};
  node.votes = {claim("hurried", 1, wishes)};
  const Decision decision = node.run(guaranteed("a", 1));
  EXPECT_EQ(decision.nodes, NodeSet{1});
  EXPECT_FALSE(decision.unpinned);
  EXPECT_EQ(decision.lost_votes, std::vector<std::string>{"hurried"});
}

TEST(Votes, ThatAreAllLostOverAPickLeaveTheMachine) {
  TestNode node("numa:2 core:2 pu:1");
  node.votes = {claim("fails", 1, {.verdicts = {{"1", points(100)}}, .failure = Error{Code::kInternal, "threw"}})};
  const Decision decision = node.ask(guaranteed("a", 2));
  EXPECT_EQ(decision.nodes, (NodeSet{0, 1})) << "as if it had failed before";
  EXPECT_TRUE(decision.unpinned);
}

TEST(Votes, ThatRejectExcludeAtAnyWeightAndAbstainingAddsNothing) {
  TestNode node("numa:2 core:2 pu:1");
  const Verdict never{Verdict::Kind::kReject, 0, "never"};
  node.votes = {claim("heavy", 1000, {.verdicts = {{"0", points(100)}, {"1", points(-100)}}}),
                claim("light", 0, {.verdicts = {{"0", never}, {"0-1", never}}})};
  const Decision decision = node.ask(guaranteed("a", 2));
  EXPECT_EQ(decision.nodes, NodeSet{1});
  EXPECT_EQ(decision.verdicts.best.at(0).score, -100'000);
}

TEST(Votes, ThatRejectCountOnlyAgainstAPlaceWhereTheContainerStays) {
  TestNode node("numa:2 core:2 pu:1");
  const Verdict never{Verdict::Kind::kReject, 0, "never"};
  node.votes = {claim("a", 1000, {.verdicts = {{"0", points(100)}, {"1", points(100)}, {"0-1", points(100)}}}),
                claim("b", 0, {.verdicts = {{"0", never}}})};
  PolicyRequest request = node.request(guaranteed("a", 2));
  request.stay_near = NodeSet{0};
  EXPECT_EQ(decide(request, node.rules, node.votes).nodes, NodeSet{0}) << "nearer than what nobody rejects";
  request.stay_near = NodeSet{0, 1};
  EXPECT_EQ(decide(request, node.rules, node.votes).nodes, NodeSet{1}) << "as near, and nobody rejects it";
}

}  // namespace
}  // namespace topolet::placement
