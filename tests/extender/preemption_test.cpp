// Whom a scheduler may evict for a zone, and that nobody is evicted in vain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/extender/preemption_cluster.hpp"

namespace topolet::extender {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

/// One node, whose pods have the zones that the test says, and one preemptor.
class PreemptionTest : public ::testing::Test {
 protected:
  std::string add(PreemptionCluster::Spec spec) { return cluster_.add_bound(std::move(spec)); }
  /// 9 pods of a CPU in each of two zones of 10.
  void fill() {
    cluster_.add_node("n1", {10, 10});
    for (int i = 0; i < 18; ++i)
      uids_.push_back(add({.name = fmt::format("low-{}", i), .cpus = 1, .node = "n1", .zone = i % 2}));
    cluster_.publish_now();
  }
  std::vector<std::string> victims(const PreemptionCluster::Spec& preemptor, const std::vector<std::string>& offered,
                                   std::int64_t violations = 0) {
    planned_ = cluster_.ask(preemptor, {{"n1", offered, violations}});
    return planned_.empty() ? std::vector<std::string>() : planned_.at(0).uids;
  }
  std::vector<std::string> some(std::size_t from, std::size_t count, std::size_t step = 1) const {
    std::vector<std::string> chosen;
    for (std::size_t i = 0; i < count; ++i) chosen.push_back(uids_.at(from + i * step));
    return chosen;
  }
  std::set<int> zones_of(const std::vector<std::string>& uids) {
    std::set<int> zones;
    for (const std::string& uid : uids) zones.insert(cluster_.zone_of(uid));
    return zones;
  }

  const PreemptionCluster::Spec high_{.name = "high", .cpus = 8, .priority = 100, .policy = "single"};
  PreemptionCluster cluster_{{}};
  std::vector<std::string> uids_;
  std::vector<NodeVictims> planned_;
};

TEST_F(PreemptionTest, AsManyOfOneZoneAsItTakes) {
  fill();
  const auto chosen = victims(high_, some(0, 6));
  EXPECT_THAT(chosen, SizeIs(7));
  EXPECT_THAT(zones_of(chosen), SizeIs(1));
}

TEST_F(PreemptionTest, WhatIsOfferedIsTakenWhereItIsEnough) {
  fill();
  EXPECT_EQ(victims(high_, some(1, 7, 2)).size(), 7U);
  EXPECT_EQ(zones_of(planned_.at(0).uids), std::set<int>{1});
}

TEST_F(PreemptionTest, WhoGoesForAnotherPodAnywayIsNotNamedAgain) {
  fill();
  const std::vector<std::string> first = victims(high_, some(0, 7, 2));
  ASSERT_THAT(first, SizeIs(7));
  // Nobody is deleted yet, and the node as a whole lacks as much again.
  std::vector<std::string> offered = first;
  for (const std::string& uid : uids_) {
    if (offered.size() < 16 && std::find(first.begin(), first.end(), uid) == first.end()) offered.push_back(uid);
  }
  PreemptionCluster::Spec second = high_;
  second.name = "second";
  const std::vector<std::string> more = victims(second, offered);
  EXPECT_THAT(more, SizeIs(9)) << "what is offered beside those";
  cluster_.pass(std::chrono::seconds(20));  // no scheduler has taken them
  EXPECT_THAT(victims(high_, some(0, 7, 2)), SizeIs(7));
  std::vector<std::string> least = some(0, 5, 2);
  for (const std::string& uid : some(1, 9, 2)) least.push_back(uid);
  least.push_back(uids_.at(14));
  EXPECT_THAT(victims(second, least), SizeIs(8)) << "two go who are not offered, and free as much";
  cluster_.pass(std::chrono::seconds(20));
  EXPECT_THAT(victims(high_, some(0, 7, 2)), SizeIs(7));
  EXPECT_THAT(victims(second, some(0, 8, 2)), SizeIs(8)) << "whom the scheduler did not yet count for the first pod";
  for (const std::string& uid : more) EXPECT_THAT(first, ::testing::Not(::testing::Contains(uid)));
  PreemptionCluster::Spec third = high_;
  third.name = "third";
  EXPECT_THAT(victims(third, first), IsEmpty()) << "they make no room for a third one";
}

TEST_F(PreemptionTest, NobodyWhereNoZoneIsLargeEnoughOrNothingIsKnown) {
  fill();
  PreemptionCluster::Spec huge = high_;
  huge.cpus = 11;
  EXPECT_THAT(victims(huge, some(0, 9)), IsEmpty());
  for (const std::string& uid : uids_) cluster_.forget_zone(uid);
  EXPECT_THAT(victims(high_, some(0, 7)), IsEmpty()) << "nobody knows what they would free";
}

TEST_F(PreemptionTest, NobodyOfTheSameOrAHigherPriority) {
  cluster_.add_node("n1", {10, 10});
  for (int i = 0; i < 18; ++i)
    uids_.push_back(
        add({.name = fmt::format("p{}", i), .cpus = 1, .priority = i % 2 == 0 ? 100 : 5, .node = "n1", .zone = i / 9}));
  cluster_.publish_now();
  EXPECT_THAT(victims(high_, some(1, 6, 2)), IsEmpty()) << "neither zone has seven of a lower priority";
}

TEST_F(PreemptionTest, TheLowestPrioritiesAndThenTheFewest) {
  cluster_.add_node("n1", {8, 8});
  const auto low = add({.name = "low", .cpus = 8, .priority = 3, .node = "n1", .zone = 0});
  const auto lower_a = add({.name = "lower-a", .cpus = 4, .priority = 2, .node = "n1", .zone = 1});
  const auto lower_b = add({.name = "lower-b", .cpus = 4, .priority = 1, .node = "n1", .zone = 1});
  cluster_.publish_now();
  EXPECT_EQ(victims(high_, {lower_a}), (std::vector<std::string>{lower_a, lower_b})) << "the most important one first";
}

TEST_F(PreemptionTest, BudgetsAreKeptWhereTheyCanBe) {
  fill();
  // At most three of those in the first zone may go.
  cluster_.add_budget("zone", "0", 3);
  const auto chosen = victims(high_, some(0, 6));
  EXPECT_EQ(zones_of(chosen), std::set<int>{1});
  EXPECT_EQ(planned_.at(0).budget_violations, 0);
  cluster_.add_budget("zone", "1", 3);
  cluster_.pass(std::chrono::seconds(20));  // no scheduler has taken the first ones
  EXPECT_THAT(victims({.name = "other", .cpus = 8, .priority = 200, .policy = "single"}, some(0, 6)), SizeIs(7));
  EXPECT_EQ(planned_.at(0).budget_violations, 4);
}

TEST_F(PreemptionTest, OnlyOfferedOnesWhereBudgetsAreNotKnown) {
  fill();
  cluster_.hides_budgets = true;
  EXPECT_THAT(victims(high_, some(0, 6)), IsEmpty());
  EXPECT_THAT(victims(high_, some(0, 7, 2), 2), SizeIs(7));
  EXPECT_EQ(planned_.at(0).budget_violations, 2) << "as it was told";
}

TEST_F(PreemptionTest, NobodyWhileOthersEndThatMakeRoom) {
  fill();
  for (const std::string& uid : some(0, 7, 2)) cluster_.begin_end(uid);
  EXPECT_THAT(victims(high_, some(1, 7, 2)), IsEmpty());
}

TEST_F(PreemptionTest, NobodyWhileWhatIsPublishedIsOlderThanThePods) {
  fill();
  for (const std::string& uid : some(0, 3, 2)) cluster_.remove(uid);
  EXPECT_THAT(victims(high_, some(1, 7, 2)), IsEmpty());
  cluster_.publish_now();
  EXPECT_THAT(victims(high_, some(1, 3, 2)), SizeIs(4)) << "the first zone has four free by now";
}

TEST_F(PreemptionTest, WhoCannotBeReplacedByOthersGoesToo) {
  fill();
  PreemptionCluster::Spec with_port = high_;
  with_port.host_port = 80;
  const auto offered = some(0, 6);
  const auto chosen = victims(with_port, offered);
  for (const std::string& uid : offered) EXPECT_THAT(chosen, ::testing::Contains(uid)) << "it may have the port";
  EXPECT_THAT(chosen, SizeIs(10));
}

TEST_F(PreemptionTest, TheZoneIsKeptForThePodAndOnlyFromThoseBelow) {
  fill();
  const auto chosen = victims(high_, some(0, 6));
  for (const std::string& uid : chosen) cluster_.remove(uid);
  cluster_.publish_now();
  EXPECT_FALSE(cluster_.fits({.name = "low-again", .cpus = 2}, "n1")) << "one CPU is left in each zone beside it";
  EXPECT_TRUE(cluster_.fits({.name = "low-one", .cpus = 1}, "n1"));
  EXPECT_TRUE(cluster_.fits(high_, "n1"));
  EXPECT_TRUE(cluster_.fits({.name = "higher", .cpus = 8, .priority = 101, .policy = "single"}, "n1"));
  // Nobody has chosen the node.
  cluster_.pass(std::chrono::seconds(20));
  EXPECT_TRUE(cluster_.fits({.name = "low-again", .cpus = 2}, "n1"));
}

TEST_F(PreemptionTest, ForWhomPodsWereEvictedNoMoreAreUntilItIsClearThatItWasInVain) {
  fill();
  EXPECT_THAT(victims(high_, some(0, 6)), SizeIs(7));
  cluster_.nominate("high", "n1");
  cluster_.pass(std::chrono::seconds(2));
  EXPECT_THAT(victims(high_, some(0, 6)), IsEmpty());
  cluster_.pass(std::chrono::minutes(6));
  EXPECT_THAT(victims(high_, some(0, 6)), SizeIs(7));
  for (int i = 0; i < 10; ++i) {
    cluster_.pass(std::chrono::minutes(6));
    victims(high_, some(0, 6));
  }
  EXPECT_THAT(victims(high_, some(0, 6)), IsEmpty()) << "three times are enough";
}

TEST_F(PreemptionTest, TheCallItselfMayTellThatItsNodeIsChosen) {
  fill();
  EXPECT_THAT(victims(high_, some(0, 6)), SizeIs(7));
  cluster_.nominate("high", "n1");
  EXPECT_THAT(victims(high_, some(7, 6)), IsEmpty()) << "nobody has looked at the pod yet";
}

TEST_F(PreemptionTest, NobodyOnANodeThatIsNotHeardOf) {
  fill();
  cluster_.silence("n1");
  EXPECT_THAT(victims(high_, some(0, 6)), IsEmpty());
  EXPECT_THAT(victims({.name = "any", .cpus = 8, .priority = 100, .policy = "any"}, some(0, 6)), IsEmpty());
}

TEST_F(PreemptionTest, NobodyElseIsPlacedOnANodeThatIsNotHeardOfWhereAZoneIsKept) {
  fill();
  for (const std::string& uid : victims(high_, some(0, 6))) cluster_.remove(uid);
  cluster_.publish_now();
  EXPECT_TRUE(cluster_.fits({.name = "low-one", .cpus = 1}, "n1"));
  cluster_.silence("n1");
  EXPECT_FALSE(cluster_.fits({.name = "low-two", .cpus = 1}, "n1"));
  EXPECT_FALSE(cluster_.fits(high_, "n1"));
}

TEST_F(PreemptionTest, NobodyWhereAnnotationsDoNotTellInWhichZonesTheyAre) {
  cluster_.ignore_zones();
  fill();
  EXPECT_THAT(victims(high_, some(0, 6)), IsEmpty());
  EXPECT_THAT(victims(high_, some(1, 7, 2)), IsEmpty());
}

TEST_F(PreemptionTest, ALeaderThatDoesNotKnowTheNodesYetKeepsTheZoneOnceItDoes) {
  fill();
  const auto chosen = victims(high_, some(0, 6));
  cluster_.nominate("high", "n1");
  for (const std::string& uid : chosen) cluster_.begin_end(uid);
  cluster_.change_leader(false);
  cluster_.pass(std::chrono::seconds(3));
  EXPECT_FALSE(cluster_.knows_what_is_kept());
  cluster_.learn_nodes();
  cluster_.pass(std::chrono::seconds(3));
  EXPECT_TRUE(cluster_.knows_what_is_kept());
  for (const std::string& uid : chosen) cluster_.remove(uid);
  cluster_.publish_now();
  EXPECT_FALSE(cluster_.fits({.name = "low-again", .cpus = 2}, "n1"));
}

TEST_F(PreemptionTest, ALeaderThatCannotReadForWhomZonesAreKeptTriesAgainAndDoesNotWaitWithoutEnd) {
  fill();
  const auto chosen = victims(high_, some(0, 6));
  cluster_.nominate("high", "n1");
  for (const std::string& uid : chosen) cluster_.begin_end(uid);
  cluster_.hides_pods = true;
  cluster_.change_leader();
  EXPECT_FALSE(cluster_.knows_what_is_kept());
  cluster_.pass(std::chrono::seconds(12));
  EXPECT_TRUE(cluster_.knows_what_is_kept()) << "others are bound";
  cluster_.hides_pods = false;
  cluster_.pass(std::chrono::seconds(3));
  for (const std::string& uid : chosen) cluster_.remove(uid);
  cluster_.publish_now();
  EXPECT_FALSE(cluster_.fits({.name = "low-again", .cpus = 2}, "n1"));
}

TEST_F(PreemptionTest, AnotherLeaderGoesOnKeepingTheZone) {
  fill();
  const auto chosen = victims(high_, some(0, 6));
  cluster_.nominate("high", "n1");
  for (const std::string& uid : chosen) cluster_.begin_end(uid);
  cluster_.change_leader();
  for (const std::string& uid : chosen) cluster_.remove(uid);
  cluster_.publish_now();
  EXPECT_FALSE(cluster_.fits({.name = "low-again", .cpus = 2}, "n1"));
  EXPECT_TRUE(cluster_.fits(high_, "n1"));
}

TEST_F(PreemptionTest, APodThatWantsNothingOfZonesIsAnsweredAsItAsks) {
  fill();
  EXPECT_EQ(victims({.name = "shared", .cpus = 0, .priority = 100}, some(3, 2)), some(3, 2));
}

TEST(PreemptionClusterTest, TheExampleWithAControllerIsPlacedAndEvictsOnce) {
  PreemptionCluster cluster({});
  cluster.add_node("n1", {10, 10});
  for (int i = 0; i < 18; ++i) cluster.add_waiting({.name = fmt::format("low-{}", i), .cpus = 1});
  cluster.pass(std::chrono::minutes(1));
  ASSERT_EQ(cluster.bound(), 18U);
  cluster.add_waiting({.name = "high", .cpus = 8, .priority = 100, .policy = "single"});
  cluster.pass(std::chrono::minutes(10));
  EXPECT_EQ(cluster.node_of("high"), "n1");
  EXPECT_GE(cluster.evictions(), 6U);
  EXPECT_LE(cluster.evictions(), 7U);
  EXPECT_EQ(cluster.evicted_in_vain(), 0U);
}

/// Machines, pods and times at random; whoever is evicted is replaced at once.
TEST(PreemptionClusterTest, NobodyIsEvictedInVainAndNotWithoutEnd) {
  std::size_t evictions = 0;
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    PreemptionCluster cluster({.seed = seed});
    cluster.fill_at_random();
    cluster.pass(std::chrono::minutes(3));
    const std::size_t high = cluster.add_high_at_random();
    cluster.pass(std::chrono::minutes(15));
    const std::size_t after = cluster.evictions();
    cluster.pass(std::chrono::minutes(8));
    EXPECT_EQ(cluster.evictions(), after) << "seed " << seed << ": they go on";
    EXPECT_EQ(cluster.evicted_in_vain(), 0U) << "seed " << seed << ": " << cluster.first_in_vain();
    EXPECT_LE(cluster.rounds(), high) << "seed " << seed << ": more than once for a pod";
    evictions += after;
  }
  EXPECT_GT(evictions, 12U) << "what it is about must have happened";
}

}  // namespace
}  // namespace topolet::extender
