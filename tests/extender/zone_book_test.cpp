// Promises to pods until their nodes count them.
#include "cluster/extender/zone_book.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/extender/support.hpp"

namespace topolet::extender {
namespace {

using ::testing::HasSubstr;

class ZoneBookTest : public ::testing::Test {
 protected:
  Demand demand(const std::string& uid, const std::string& cpu, ZonePolicy policy = ZonePolicy::kFewest) {
    json pod = pod_object("pod-" + uid, {{.cpu = cpu}});
    pod["metadata"]["uid"] = uid;
    return *read_demand(api::read_pod(pod), {policy, ZoneStrategy::kPacked}, book_.names());
  }
  void publish(const NodeSpec& node) { book_.set_node(read_node_zones(topology_object(node), book_.names())); }
  std::int64_t free_milli(std::size_t zone, const std::string& node = "n1") {
    return book_.view(node)->free.at(zone).get(kCpu);
  }
  std::uint64_t reserve(const std::string& uid, const std::string& cpu) {
    const auto reserved = book_.reserve("n1", demand(uid, cpu), now_);
    EXPECT_TRUE(reserved.has_value()) << reserved.error().message;
    return reserved ? reserved->promise : 0;
  }

  ZoneBook book_;
  ZoneBook::Time now_{std::chrono::hours(1)};
};

TEST_F(ZoneBookTest, AZoneIsPromisedOnce) {
  publish({.zones = {{4}, {4}}});
  const auto first = book_.reserve("n1", demand("aaaaaaaa-1", "4"), now_);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(json::parse(first->annotation), json::parse(R"({"v": 1, "node": "n1", "zones": [0],
    "containers": {"main": [0]}, "by": "topolet-extender", "gen": 7})"));
  const auto second = book_.reserve("n1", demand("bbbbbbbb-1", "4"), now_);
  ASSERT_TRUE(second.has_value());
  EXPECT_THAT(second->annotation, HasSubstr("\"zones\":[1]"));
  EXPECT_EQ(book_.reserve("n1", demand("cccccccc-1", "4"), now_).error().message,
            "its zones have no 4 free CPUs, but 0: not now");
  book_.release(first->promise);
  EXPECT_THAT(book_.reserve("n1", demand("cccccccc-1", "4"), now_)->annotation, HasSubstr("\"zones\":[0]"));
  EXPECT_EQ(book_.reserve("n2", demand("cccccccc-1", "4"), now_).error().code, Code::kNotFound);
}

TEST_F(ZoneBookTest, APromiseEndsWhenTheNodeCountsThePodAndNotBefore) {
  publish({.zones = {{4}}, .version = 10});
  const std::uint64_t promise = reserve("aaaaaaaa-1", "4");
  book_.confirm(promise, now_);
  publish({.zones = {{4}}, .version = 11});
  EXPECT_EQ(free_milli(0), 0) << "its node has not seen it yet";
  publish({.zones = {{.available = 0, .allocatable = 4}}, .acknowledged = "0000aaaa,aaaaaaaa", .version = 12});
  EXPECT_EQ(book_.promise_count(), 0U);
  publish({.zones = {{4}}, .version = 11});
  EXPECT_EQ(free_milli(0), 0) << "an older object tells nothing";
  publish({.zones = {{4}}, .version = 13});
  EXPECT_EQ(free_milli(0), 4000);
}

TEST_F(ZoneBookTest, OfAContainerOnSeveralZonesEachKeepsAllThatItMayTake) {
  publish({.zones = {{4}, {4}, {2}}});
  reserve("aaaaaaaa-1", "6");
  EXPECT_EQ(free_milli(0), 0);
  EXPECT_EQ(free_milli(2), 0) << "2 and 4, as those are the fullest that are enough";
  EXPECT_EQ(free_milli(1), 4000);
}

TEST_F(ZoneBookTest, ANodeThatDoesNotCountItsPodsIsStale) {
  publish({.zones = {{8}}});
  book_.confirm(reserve("aaaaaaaa-1", "2"), now_);
  const auto later = now_ + ZoneBook::kPatience;
  const auto soon = now_ + ZoneBook::kLookEvery;
  EXPECT_TRUE(book_.due(soon - std::chrono::seconds(1)).empty());
  book_.keep_waiting(book_.due(soon).at(0), soon);
  EXPECT_EQ(book_.stale_nodes(), 0U) << "it may take a while";
  ASSERT_EQ(book_.due(later).size(), 1U);
  book_.keep_waiting(book_.due(later).at(0), later);
  EXPECT_TRUE(book_.due(later).empty()) << "asked after again after a while";
  EXPECT_EQ(book_.stale_nodes(), 1U);
  EXPECT_THAT(book_.choose("n1", demand("bbbbbbbb-1", "2", ZonePolicy::kSingle)).error().message,
              HasSubstr("has not shown up"));
  for (const ZonePolicy policy : {ZonePolicy::kFewest, ZonePolicy::kAny})
    EXPECT_FALSE(book_.choose("n1", demand("bbbbbbbb-1", "2", policy)).has_value()) << "whatever the policy";
  EXPECT_EQ(free_milli(0), 6000) << "what was promised is kept";
  publish({.zones = {{.available = 6, .allocatable = 8}}, .acknowledged = "aaaaaaaa"});
  EXPECT_TRUE(book_.choose("n1", demand("bbbbbbbb-1", "6", ZonePolicy::kSingle)).has_value());
}

TEST_F(ZoneBookTest, AGonePodGivesItsZonesBack) {
  publish({.zones = {{4}}});
  book_.confirm(reserve("aaaaaaaa-1", "4"), now_);
  const auto later = now_ + ZoneBook::kPatience;
  book_.drop(book_.due(later).at(0));
  EXPECT_EQ(free_milli(0), 4000);
}

TEST_F(ZoneBookTest, WhoeverAsksAgainForTheSameNodeGetsTheSame) {
  publish({.zones = {{4}, {4}}});
  const Demand pod = demand("aaaaaaaa-1", "4");
  const auto first = book_.reserve("n1", pod, now_);
  EXPECT_EQ(book_.reserve("n1", pod, now_).error().code, Code::kAborted) << "two at once would bind it twice";
  book_.doubt(first->promise, now_);
  const auto again = book_.reserve("n1", pod, now_);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->annotation, first->annotation);
  EXPECT_EQ(book_.promise_count(), 1U);
}

TEST_F(ZoneBookTest, OnceBoundItsPromisesElsewhereAreVoid) {
  publish({.zones = {{4}}});
  publish({.name = "n2", .zones = {{4}}});
  book_.doubt(book_.reserve("n1", demand("aaaaaaaa-1", "4"), now_)->promise, now_);
  EXPECT_EQ(free_milli(0), 0);
  book_.confirm(book_.reserve("n2", demand("aaaaaaaa-1", "4"), now_)->promise, now_);
  EXPECT_EQ(free_milli(0), 4000);
  EXPECT_EQ(free_milli(0, "n2"), 0);
}

TEST_F(ZoneBookTest, ABoundPodIsRememberedByItsAnnotation) {
  publish({.zones = {{4}, {4}}, .acknowledged = "bbbbbbbb"});
  const auto annotation = read_zone_annotation(
      R"({"v":1,"node":"n1","zones":[1],"containers":{"main":[1]},"by":"topolet-extender","gen":1})");
  ASSERT_TRUE(annotation.has_value());
  book_.remember(demand("aaaaaaaa-1", "3"), *annotation, now_);
  book_.remember(demand("aaaaaaaa-1", "3"), *annotation, now_);
  book_.remember(demand("bbbbbbbb-1", "3"), *annotation, now_);
  EXPECT_EQ(free_milli(0), 4000);
  EXPECT_EQ(free_milli(1), 1000) << "once, and not the one that its node counts";
  for (const char* wrong : {"", "x", "{}", "[1]", R"({"v":2,"node":"n1","containers":{"main":[1]}})",
                            R"({"v":1,"node":"n1","zones":[1]})", R"({"v":1,"node":1,"containers":{"main":[1]}})"})
    EXPECT_FALSE(read_zone_annotation(wrong).has_value()) << wrong;
}

TEST_F(ZoneBookTest, APromiseOutlivesTheObjectOfItsNode) {
  publish({.zones = {{4}}});
  const std::uint64_t promise = reserve("aaaaaaaa-1", "4");
  book_.remove_node("n1");
  EXPECT_FALSE(book_.choose("n1", demand("bbbbbbbb-1", "1")).has_value());
  publish({.zones = {{4}}});
  EXPECT_EQ(free_milli(0), 0);
  book_.keep_only({});
  book_.release(promise);
  EXPECT_EQ(book_.node_count(), 0U);
}

TEST_F(ZoneBookTest, ANewTermForgetsWhatWasBoundAndKeepsWhatIsUnderway) {
  publish({.zones = {{8}}});
  book_.confirm(reserve("aaaaaaaa-1", "2"), now_);
  book_.doubt(reserve("bbbbbbbb-1", "2"), now_);
  reserve("cccccccc-1", "2");
  book_.begin_term();
  EXPECT_EQ(book_.promise_count(), 2U);
  EXPECT_EQ(free_milli(0), 4000);
}

TEST_F(ZoneBookTest, WhatWasInDoubtInAnEarlierTermIsNotAskedForAgain) {
  publish({.zones = {{4}, {4}}});
  const Demand pod = demand("aaaaaaaa-1", "4");
  book_.doubt(book_.reserve("n1", pod, now_)->promise, now_);
  book_.begin_term();
  // Meanwhile another replica may have promised that zone. It is kept all the same, as the pod may be bound there.
  const auto again = book_.reserve("n1", pod, now_);
  ASSERT_TRUE(again.has_value());
  EXPECT_THAT(again->annotation, HasSubstr("\"zones\":[1]"));
  EXPECT_EQ(book_.promise_count(), 2U);
  book_.confirm(again->promise, now_);
  EXPECT_EQ(book_.promise_count(), 1U);
}

TEST_F(ZoneBookTest, WhatHasChangedSinceItWasDueIsNotDropped) {
  publish({.zones = {{4}}});
  const std::uint64_t promise = reserve("aaaaaaaa-1", "4");
  book_.doubt(promise, now_);
  const auto later = now_ + ZoneBook::kPatience;
  const Promise due = book_.due(later).at(0);
  book_.confirm(promise, later);
  book_.drop(due);
  EXPECT_EQ(free_milli(0), 0);
}

TEST_F(ZoneBookTest, ANodeThatTellsOfNoPodsIsStaleAndCountsEachPodOnce) {
  json object = topology_object({.zones = {{8}}});
  object.erase("attributes");
  book_.set_node(read_node_zones(object, book_.names()));
  book_.confirm(reserve("aaaaaaaa-1", "4"), now_);
  const auto later = now_ + ZoneBook::kPatience;
  book_.keep_waiting(book_.due(later).at(0), later);
  object["zones"][0]["resources"][0]["available"] = "4";
  book_.set_node(read_node_zones(object, book_.names()));
  EXPECT_EQ(free_milli(0), 4000);
  EXPECT_THAT(book_.choose("n1", demand("bbbbbbbb-1", "2", ZonePolicy::kSingle)).error().message,
              HasSubstr("has not shown up"));
  EXPECT_FALSE(book_.choose("n1", demand("bbbbbbbb-1", "4")).has_value());
}

TEST_F(ZoneBookTest, NothingIsChosenOnANodeThatIsSilent) {
  publish({.zones = {{4}}});
  book_.set_silent("n1", true);
  publish({.zones = {{4}}});
  EXPECT_EQ(book_.stale_nodes(), 1U);
  EXPECT_TRUE(book_.view("n1")->is_stale);
  for (const ZonePolicy policy : {ZonePolicy::kSingle, ZonePolicy::kFewest, ZonePolicy::kAny}) {
    const Demand asked = demand("aaaaaaaa-1", "2", policy);
    EXPECT_THAT(book_.check("n1", asked).error().message, HasSubstr("has not been heard of"));
    EXPECT_FALSE(book_.fit("n1", asked).has_value());
    EXPECT_FALSE(book_.reserve("n1", asked, now_).has_value());
  }
  book_.set_silent("n1", false);
  EXPECT_TRUE(book_.choose("n1", demand("aaaaaaaa-1", "2")).has_value());
  book_.set_silent("n1", true);
  book_.remove_node("n1");
  publish({.zones = {{4}}});
  EXPECT_TRUE(book_.choose("n1", demand("aaaaaaaa-1", "2")).has_value()) << "another object";
}

TEST_F(ZoneBookTest, WhatIsRememberedOfAPodIsWhatWasChosenForIt) {
  publish({.zones = {{12}, {4}}});
  const std::vector<std::vector<ContainerSpec>> pods = {
      {{.name = "side", .cpu = "4", .kind = "sidecar"}, {.name = "init", .cpu = "8", .kind = "init"}, {.cpu = "2"}},
      {{.name = "init", .cpu = "4", .kind = "init"}, {.cpu = "4"}},
      {{.name = "init", .cpu = "16", .kind = "init"}, {.cpu = "14"}}};
  for (const auto& containers : pods) {
    json object = pod_object("pod", containers);
    object["metadata"]["uid"] = "aaaaaaaa-1";
    const Demand pod = *read_demand(api::read_pod(object), {}, book_.names());
    const auto reserved = book_.reserve("n1", pod, now_);
    ASSERT_TRUE(reserved.has_value()) << reserved.error().message;
    const std::vector<std::int64_t> chosen = {free_milli(0), free_milli(1)};
    book_.release(reserved->promise);
    book_.remember(pod, *read_zone_annotation(reserved->annotation), now_);
    EXPECT_EQ(chosen, (std::vector<std::int64_t>{free_milli(0), free_milli(1)})) << reserved->annotation;
    book_.release(book_.promises().at(0).number);
  }
}

/// Nodes are ranked and filtered by the result that a Binding would have.
TEST_F(ZoneBookTest, FilterAndRankAgreeWithWhatIsChosen) {
  std::mt19937 random(1);
  const auto pick = [&random](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  const std::vector<std::string> policies{"none", "best-effort", "restricted", "single-numa-node"};
  const std::vector<std::string> kinds{"main", "main", "main", "sidecar", "init"};
  std::map<std::size_t, int> chosen;  // by the most zones of a container; 0: there are none
  for (int round = 0; round < 4000; ++round) {
    ZoneBook book;
    NodeSpec node{.policy = policies[static_cast<std::size_t>(pick(0, 3))],
                  .scope = pick(0, 3) == 0 ? "pod" : "container"};
    for (int zone = pick(1, 8); zone > 0; --zone) {
      const int allocatable = pick(0, 12);
      ZoneSpec spec{
          .available = pick(0, allocatable), .allocatable = allocatable, .memory = pick(0, 4) == 0 ? "1Gi" : "64Gi"};
      if (pick(0, 2) == 0) spec.devices = {{"example.com/gpu", pick(0, 2)}};
      node.zones.push_back(std::move(spec));
    }
    book.set_node(read_node_zones(topology_object(node), book.names()));
    const auto demand_of = [&](const std::string& uid) {
      std::vector<ContainerSpec> containers;
      for (int i = pick(0, 3) == 0 ? pick(2, 3) : 1; i > 0; --i) {
        ContainerSpec container{.name = fmt::format("c{}", i),
                                .cpu = std::to_string(pick(1, 12)),
                                .memory = fmt::format("{}Gi", pick(1, 40))};
        container.kind = i == 1 ? "main" : kinds[static_cast<std::size_t>(pick(0, 4))];
        if (pick(0, 5) == 0) container.devices = {{"example.com/gpu", 1}};
        containers.push_back(std::move(container));
      }
      json pod = pod_object("pod-" + uid, containers);
      pod["metadata"]["uid"] = uid;
      return *read_demand(api::read_pod(pod),
                          {static_cast<ZonePolicy>(pick(0, 2)), static_cast<ZoneStrategy>(pick(0, 2))}, book.names());
    };
    for (int i = pick(0, 2); i > 0; --i) (void)book.reserve("n1", demand_of(fmt::format("before-{}", i)), now_);
    const Demand demand = demand_of("asked");
    const auto choice = book.choose("n1", demand);
    const auto fit = book.fit("n1", demand);
    const auto check = book.check("n1", demand);
    ++chosen[choice ? choice->fit.most_zones : 0];
    ASSERT_EQ(fit.has_value(), choice.has_value()) << round;
    ASSERT_EQ(check.has_value(), choice.has_value()) << round;
    if (!choice) {
      EXPECT_EQ(fit.error().message, choice.error().message) << round;
      EXPECT_EQ(check.error().message, choice.error().message) << round;
      continue;
    }
    EXPECT_EQ(fit->most_zones, choice->fit.most_zones) << round;
    EXPECT_EQ(fit->preference, choice->fit.preference) << round;
    EXPECT_EQ(fit->effective, choice->fit.effective) << round;
  }
  for (const std::size_t zones : {0, 1, 2, 3}) EXPECT_GT(chosen[zones], 20) << zones;
}

}  // namespace
}  // namespace topolet::extender
