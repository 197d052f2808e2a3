#include "plugins/foreign-zone/policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <topolet/testing.hpp>

namespace topolet::foreign_zone {
namespace {

using sdk::testing::Container;
using sdk::testing::FakeHost;
using sdk::testing::Ledger;
using sdk::testing::Machine;
using sdk::testing::Plugin;
using sdk::testing::Request;
using sdk::testing::set_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Container of_koordinator(const std::string& json) {
  return {.pod_annotations = {{"scheduling.koordinator.sh/resource-status", json}}};
}
Container of_crane(const std::string& json) {
  return {.pod_annotations = {{"topology.crane.io/topology-result", json}}};
}

const Container kOnNodeOne = of_koordinator(R"({"cpuset":"4-5","numaNodeResources":[{"node":1}]})");

/// Two nodes of four CPUs; candidates are node 0, node 1 and the machine.
class ForeignZoneTest : public ::testing::Test {
 protected:
  std::vector<sdk::testing::Verdict> score(const Container& container, std::uint32_t cpus,
                                           const Plugin::Values& options = {}) {
    return Plugin(topolet_plugin_v1, host_, options).score(Request(machine_, ledger_, container, cpus));
  }
  std::vector<int> scores(const Container& container, std::uint32_t cpus, const Plugin::Values& options = {}) {
    std::vector<int> scores;
    for (const auto& verdict : score(container, cpus, options)) {
      scores.push_back(verdict.kind == TOPOLET_VERDICT_SCORE    ? verdict.score
                       : verdict.kind == TOPOLET_VERDICT_REJECT ? kRejected
                                                                : kAbstained);
    }
    return scores;
  }

  static constexpr int kRejected = -999;
  static constexpr int kAbstained = -998;
  Machine machine_{"pack:2 numa:1 core:4 pu:1"};
  Ledger ledger_{machine_};
  FakeHost host_;
};

TEST_F(ForeignZoneTest, PrefersTheNodesThatWereChosen) {
  EXPECT_THAT(scores(kOnNodeOne, 2), ElementsAre(0, 100, 0));
  EXPECT_THAT(scores(of_koordinator(R"({"cpuset":"5"})"), 2), ElementsAre(0, 100, 0)) << "those of the CPUs";
  EXPECT_THAT(scores(of_crane(R"([{"name":"node0","type":"Node"}])"), 2), ElementsAre(100, 0, 0));
  EXPECT_THAT(scores(kOnNodeOne, 0), ElementsAre(0, 100, 0)) << "a container that shares CPUs";
  EXPECT_EQ(score(kOnNodeOne, 2)[0].reason, "it is not within node 1, which koord-scheduler has chosen");
  EXPECT_EQ(score(of_crane(R"([{"name":"node0"}])"), 2)[0].reason,
            "it is within node 0, which crane-scheduler has chosen");
}

TEST_F(ForeignZoneTest, HasNoOpinionWhereNothingIsSaid) {
  for (const Container& container : {Container{}, of_koordinator("{}"), of_crane("[]")}) {
    for (const auto& verdict : score(container, 2, {{"zone", "require"}})) {
      EXPECT_EQ(verdict.kind, TOPOLET_VERDICT_ABSTAIN);
      EXPECT_EQ(verdict.reason, "");
    }
  }
}

TEST_F(ForeignZoneTest, AbstainsAndSaysWhyWhereItCannotRead) {
  const auto verdicts = score(of_koordinator("4-5"), 2, {{"zone", "require"}});
  EXPECT_THAT(scores(of_koordinator("4-5"), 2, {{"zone", "require"}}), ElementsAre(kAbstained, kAbstained, kAbstained));
  EXPECT_THAT(verdicts[0].reason, HasSubstr("scheduling.koordinator.sh/resource-status = '4-5' cannot be read"));
  EXPECT_THAT(score(of_koordinator(R"({"cpuset":"64"})"), 2)[0].reason, HasSubstr("on no node of this machine"));
}

TEST_F(ForeignZoneTest, LooksElsewhereWithoutRoomUnlessTheyAreRequired) {
  ledger_.place_exclusive({}, set_of({4, 5, 6}));
  EXPECT_THAT(scores(kOnNodeOne, 2), ElementsAre(kAbstained, kAbstained, kAbstained));
  EXPECT_EQ(score(kOnNodeOne, 2)[0].reason, "there is no room on node 1, which koord-scheduler has chosen");
  EXPECT_THAT(scores(kOnNodeOne, 2, {{"zone", "require"}}), ElementsAre(kRejected, 100, kRejected))
      << "the host finds that node 1 has too few CPUs";
  EXPECT_THAT(score(kOnNodeOne, 2, {{"zone", "require"}})[0].reason, HasSubstr("(zone = require)"));
}

TEST_F(ForeignZoneTest, UsesTheCpusThatWereChosen) {
  ledger_.place_exclusive({}, set_of({4}));
  const Request request(machine_, ledger_, kOnNodeOne, 1);
  Plugin plugin(topolet_plugin_v1, host_);
  const auto picked = plugin.pick(request, 1);
  ASSERT_TRUE(picked.narrowed);
  EXPECT_EQ(picked.narrow.to_string(), "5") << "CPU 4 is somebody's";
  EXPECT_EQ(picked.reason, "of CPUs 4-5, which koord-scheduler has chosen");
  EXPECT_FALSE(plugin.pick(request, 0).narrowed) << "there are none of them";
  EXPECT_EQ(plugin.pick(request, 0, set_of({0})).unmet,
            "none of CPUs 4-5, which koord-scheduler has chosen, is free there");
  EXPECT_EQ(plugin.pick(request, 1, set_of({5})).unmet, "");
  const Request of_others(machine_, ledger_, of_crane(R"([{"name":"node0"}])"), 1);
  EXPECT_FALSE(plugin.pick(of_others, 0).narrowed);
}

TEST_F(ForeignZoneTest, LeavesOutNodesWithoutCpus) {
  const Machine with_memory("pack:2 [numa] [numa] core:4 pu:1");
  Ledger ledger(with_memory);
  ASSERT_NE(sdk::nodes(with_memory.view())[1].memory_only, 0U);
  const std::string node = std::to_string(sdk::nodes(with_memory.view())[1].os_index);
  const auto verdicts = [&](const Container& container) {
    return Plugin(topolet_plugin_v1, host_, {{"zone", "require"}}).score(Request(with_memory, ledger, container, 2));
  };
  const Container on_it = of_koordinator(R"({"numaNodeResources":[{"node":)" + node + "}]}");
  EXPECT_EQ(verdicts(on_it)[0].kind, TOPOLET_VERDICT_ABSTAIN);
  EXPECT_EQ(verdicts(on_it)[0].reason, "koord-scheduler has chosen node " + node + ", without any CPU");
}

TEST_F(ForeignZoneTest, ProposesSeveralNodes) {
  Plugin plugin(topolet_plugin_v1, host_);
  const auto proposed = [&](const Container& container) {
    return plugin.propose(Request(machine_, ledger_, container, 2));
  };
  EXPECT_THAT(proposed(of_crane(R"([{"name":"node0"},{"name":"node1"},{"name":"node7"}])")),
              ElementsAre(set_of({0, 1})));
  EXPECT_THAT(proposed(of_koordinator(R"({"cpuset":"3-4"})")), ElementsAre(set_of({0, 1})));
  EXPECT_THAT(proposed(kOnNodeOne), IsEmpty());
  EXPECT_THAT(proposed(of_crane("no JSON")), IsEmpty());
  EXPECT_THAT(proposed({}), IsEmpty());
}

TEST_F(ForeignZoneTest, ReadsNoAnnotationOfTopolets) {
  EXPECT_THAT(Plugin(topolet_plugin_v1, host_).annotations(), IsEmpty());
}

}  // namespace
}  // namespace topolet::foreign_zone
