// numa.zone: the nodes that a scheduler has chosen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <topolet/testing.hpp>

#include <algorithm>

#include "plugins/numa/policy.hpp"
#include "tests/plugins/numa/packed.hpp"

namespace topolet::numa {
namespace {

using sdk::testing::Container;
using sdk::testing::FakeHost;
using sdk::testing::Ledger;
using sdk::testing::Machine;
using sdk::testing::Plugin;
using sdk::testing::Request;
using sdk::testing::set_of;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;

constexpr std::int64_t kOneGiB = std::int64_t{1} << 30;

Container zoned(const std::string& nodes) { return {.settings = {{"zone", nodes}}}; }

/// Two packages of two nodes of 4 GiB and four CPUs.
class NumaZone : public ::testing::Test {
 protected:
  /// On nodes 0, 1, 2, 3, 0-1, 2-3 and 0-3.
  std::vector<sdk::testing::Verdict> verdicts(const Container& container, std::uint32_t cpus,
                                              const Plugin::Values& options = {}) {
    const Request request(machine_, ledger_, container, cpus);
    const auto all = Plugin(topolet_plugin_v1, host_, packed(options)).score(request);
    std::vector<sdk::testing::Verdict> ordered;
    for (const sdk::Set& nodes :
         {set_of({0}), set_of({1}), set_of({2}), set_of({3}), set_of({0, 1}), set_of({2, 3}), set_of({0, 1, 2, 3})}) {
      ordered.push_back(all[request.position(nodes)]);
    }
    return ordered;
  }
  std::vector<int> scores(const Container& container, std::uint32_t cpus, const Plugin::Values& options = {}) {
    std::vector<int> scores;
    for (const auto& verdict : verdicts(container, cpus, options))
      scores.push_back(verdict.kind == TOPOLET_VERDICT_REJECT ? kRejected : verdict.score);
    return scores;
  }

  static constexpr int kRejected = -999;
  Machine machine_{"pack:2 numa:2(memory=4294967296) core:4 pu:1"};
  Ledger ledger_{machine_};
  FakeHost host_;
};

TEST_F(NumaZone, CountsAHundredPointsMoreThanAnythingElse) {
  ledger_.place_exclusive({}, set_of({0}));
  EXPECT_THAT(scores({}, 2), ElementsAre(100, 99, 99, 99, 70, 69, 10)) << "packed prefers the fullest";
  EXPECT_THAT(scores(zoned("2"), 2), ElementsAre(0, -1, 99, -1, -30, -31, -43));
  EXPECT_THAT(scores(zoned("2-3"), 2), ElementsAre(0, -1, 99, 99, -30, 69, -43)) << "all nodes of a wide zone";
  EXPECT_THAT(verdicts(zoned("2"), 2)[2].reason, HasSubstr("; it is in the zone that the scheduler has chosen"));
  EXPECT_THAT(verdicts(zoned("2"), 2)[0].reason, HasSubstr("; it is not in the zone that the scheduler has chosen"));
}

TEST(NumaZoneWithoutCpus, CountsForNothing) {
  const Machine machine("pack:2 [numa] [numa] core:4 pu:1");
  ASSERT_NE(sdk::nodes(machine.view())[1].memory_only, 0U);
  Ledger ledger(machine);
  FakeHost host;
  const auto first = [&](const Container& container) {
    return Plugin(topolet_plugin_v1, host, {{"zone", "require"}}).score(Request(machine, ledger, container, 2))[0];
  };
  EXPECT_EQ(first(zoned("1")).score, first({}).score);
  EXPECT_THAT(first(zoned("1")).reason, HasSubstr("node 1, which the scheduler has chosen, cannot run anything"));
  EXPECT_EQ(first(zoned("0-1")).score, 100) << "its other node counts";
}

TEST_F(NumaZone, IsPreferredHoweverWideItIs) {
  const auto wide = scores(zoned("0-3"), 14);
  EXPECT_EQ(wide[6], 100);
  ledger_.place_exclusive({}, set_of({0, 1, 4, 5}));
  const auto two = scores(zoned("0-1"), 4);
  EXPECT_EQ(two[4], 70);
  EXPECT_EQ(two[2], 0) << "one node would be enough";
}

TEST_F(NumaZone, WithoutRoomChangesNothing) {
  ledger_.place_exclusive({}, set_of({8, 9, 10}));
  EXPECT_EQ(scores(zoned("2"), 2), scores({}, 2));
  EXPECT_THAT(verdicts(zoned("2"), 2)[0].reason, Not(HasSubstr("zone")));
  EXPECT_EQ(scores(zoned("17"), 2), scores({}, 2)) << "there is no such node";
}

TEST_F(NumaZone, IsAllThereIsIfItIsRequired) {
  const Plugin::Values require = {{"zone", "require"}};
  EXPECT_THAT(scores(zoned("2"), 2, require),
              ElementsAre(kRejected, kRejected, 100, kRejected, kRejected, kRejected, kRejected));
  EXPECT_EQ(verdicts(zoned("2"), 2, require)[0].reason,
            "it is not within node 2, which the scheduler has chosen (zone = require)");
  EXPECT_EQ(scores({}, 2, require), scores({}, 2)) << "without a zone";
  ledger_.place_exclusive({}, set_of({8, 9, 10}));
  EXPECT_THAT(scores(zoned("2"), 2, require), Each(kRejected));
  EXPECT_EQ(verdicts(zoned("2"), 2, require)[2].reason, "node 2 has 1 of 4 CPUs free, but the container requests 2");
}

TEST_F(NumaZone, CountsUnderPolicyNoneToo) {
  const Plugin::Values none = {{"policy", "none"}};
  EXPECT_THAT(scores(zoned("0-1"), 2, none), ElementsAre(90, 90, 0, 0, 100, 0, 0));
  EXPECT_THAT(scores(zoned("1"), 5, none), Each(0)) << "it has no room";
  EXPECT_THAT(scores(zoned("1"), 2, {{"policy", "none"}, {"zone", "require"}}),
              ElementsAre(kRejected, 100, kRejected, kRejected, kRejected, kRejected, kRejected));
}

TEST_F(NumaZone, CountsForContainersThatRequestNothing) {
  EXPECT_THAT(scores(zoned("1"), 0), ElementsAre(0, 100, 0, 0, 0, 0, 0));
  for (const auto& verdict : verdicts({}, 0)) EXPECT_EQ(verdict.kind, TOPOLET_VERDICT_ABSTAIN);
}

TEST_F(NumaZone, CountsForSharedContainersOnOvercommittedNodes) {
  const Container hungry{.qos = TOPOLET_QOS_BURSTABLE, .cpu_request_milli = 20000};
  ledger_.place_shared(hungry, machine_.online());
  Container container = zoned("1");
  container.qos = TOPOLET_QOS_BURSTABLE;
  container.cpu_request_milli = 500;
  const auto scored = scores(container, 0);
  EXPECT_THAT(scored[1], Ge(0));
  for (const std::size_t other : {0, 2, 3, 4, 5, 6}) EXPECT_THAT(scored[other], Le(-60));
}

TEST_F(NumaZone, ThatLacksMemoryIsNotWhatTheSchedulerTookItFor) {
  ledger_.place_exclusive({.memory_request_bytes = 3 * kOneGiB}, set_of({8}), {}, set_of({2}));
  Container container = zoned("2");
  container.memory_request_bytes = 2 * kOneGiB;
  const auto scored = scores(container, 2);
  EXPECT_EQ(scored[0], 100) << "memory is not bound, but another node has it";
  EXPECT_LE(scored[2], -60);
  EXPECT_EQ(scores(container, 2, {{"memory", "bind"}})[2], kRejected);
}

TEST_F(NumaZone, IsWhereTheMemoryIsBound) {
  const Plugin::Values bind = {{"memory", "bind"}};
  Container container = zoned("1,2");
  container.memory_request_bytes = 6 * kOneGiB;
  Request request(machine_, ledger_, container, 2);
  request.candidate(set_of({1, 2}));
  Plugin plugin(topolet_plugin_v1, host_, bind);
  const auto scored = plugin.score(request);
  EXPECT_EQ(std::count_if(scored.begin(), scored.end(), [](const auto& verdict) { return verdict.score > 0; }), 1);
  EXPECT_GT(scored[request.position(set_of({1, 2}))].score, 0);
  EXPECT_EQ(plugin.adjust(request, request.position(set_of({1, 2})), set_of({4, 5})).mems.to_string(), "1-2");
}

TEST_F(NumaZone, OfAPodCountsForItsFirstContainerAndThenThePodDoes) {
  const Plugin::Values pod = {{"scope", "pod"}};
  Container first = zoned("2");
  first.pod_cpu_request_milli = 4000;
  EXPECT_THAT(scores(first, 2, pod), ElementsAre(0, 0, 100, 0, -30, -30, -43));
  Container second = zoned("3");
  second.pod_cpu_request_milli = 4000;
  second.pod_nodes = set_of({2});
  const auto scored = scores(second, 2, pod);
  EXPECT_EQ(scored[2], 100) << "with the pod";
  EXPECT_LE(scored[3], -60);
  first.pod_cpu_request_milli = 6000;
  EXPECT_THAT(scores(first, 2, pod)[2], Le(-60)) << "the pod does not fit there as a whole";
}

TEST_F(NumaZone, DoesNotWidenWhatThePolicyAllows) {
  const auto scored = scores(zoned("0-1"), 2, {{"policy", "restricted"}});
  EXPECT_THAT(scored, ElementsAre(100, 100, 0, 0, kRejected, kRejected, kRejected));
}

TEST_F(NumaZone, IsProposedIfItHasSeveralNodes) {
  Plugin plugin(topolet_plugin_v1, host_);
  const auto proposed = [&](const Container& container) {
    return plugin.propose(Request(machine_, ledger_, container, 2));
  };
  EXPECT_THAT(proposed(zoned("1-2")), ElementsAre(set_of({1, 2})));
  EXPECT_THAT(proposed(zoned("1-2,9")), ElementsAre(set_of({1, 2}))) << "there is no node 9";
  EXPECT_THAT(proposed(zoned("1")), IsEmpty());
  EXPECT_THAT(proposed(zoned("1,9")), IsEmpty());
  EXPECT_THAT(proposed({}), IsEmpty());
  EXPECT_THAT(proposed(zoned("x")), IsEmpty());
}

}  // namespace
}  // namespace topolet::numa
