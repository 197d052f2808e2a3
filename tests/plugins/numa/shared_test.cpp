// Containers of the pool.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <topolet/testing.hpp>

namespace topolet::numa {
namespace {

using sdk::testing::Container;
using sdk::testing::FakeHost;
using sdk::testing::Ledger;
using sdk::testing::Machine;
using sdk::testing::Plugin;
using sdk::testing::Request;
using sdk::testing::set_of;
using ::testing::HasSubstr;

using Values = std::vector<std::pair<std::string, std::string>>;

Container burstable(std::int64_t milli, std::int64_t memory = 0) {
  return {.qos = TOPOLET_QOS_BURSTABLE, .cpu_request_milli = milli, .memory_request_bytes = memory};
}

class NumaShared : public ::testing::Test {
 protected:
  /// Returns the verdicts on candidates 0, 1 and the machine (0-1).
  std::vector<sdk::testing::Verdict> score(const Container& container, const Values& options = {}) {
    const Request request(machine_, ledger_, container, 0);
    Plugin plugin(topolet_plugin_v1, host_, options);
    auto verdicts = plugin.score(request);
    return {verdicts[request.position(set_of({0}))], verdicts[request.position(set_of({1}))],
            verdicts[request.position(set_of({0, 1}))]};
  }

  Machine machine_{"pack:2 numa:1(memory=4294967296) core:4 pu:1"};
  Ledger ledger_{machine_};
  FakeHost host_;
};

TEST_F(NumaShared, HasNoOpinionOnWhatAsksForNothing) {
  for (const auto& verdict : score({.qos = TOPOLET_QOS_BESTEFFORT})) EXPECT_EQ(verdict.kind, TOPOLET_VERDICT_ABSTAIN);
}

TEST_F(NumaShared, PutsFractionsOnOneNode) {
  const auto verdicts = score(burstable(500));
  EXPECT_EQ(verdicts[0].score, 100);
  EXPECT_EQ(verdicts[0].reason, "node 0 has 4 of 4 shared CPUs uncommitted (0.5 requested)");
  EXPECT_EQ(verdicts[2].score, 70);
  EXPECT_THAT(verdicts[2].reason, HasSubstr("nodes 0-1 have 8 of 8 shared CPUs uncommitted"));
}

TEST_F(NumaShared, SpreadsOrPacksByDemand) {
  ledger_.place_shared(burstable(1500), machine_.cpus_of_node(0));
  EXPECT_LT(score(burstable(500))[0].score, 100);
  EXPECT_EQ(score(burstable(500))[1].score, 100);
  EXPECT_EQ(score(burstable(500), {{"strategy", "packed"}})[1].score, 100) << "that is for exclusive CPUs";
  const auto packed = score(burstable(500), {{"shared-strategy", "packed"}});
  EXPECT_EQ(packed[0].score, 100);
  EXPECT_THAT(packed[1].reason, HasSubstr("shared-strategy packed prefers fuller nodes"));
}

TEST_F(NumaShared, LeavesANodeThatIsAskedForTooMuch) {
  ledger_.place_shared(burstable(3800), machine_.cpus_of_node(0));
  const auto verdicts = score(burstable(500));
  EXPECT_LE(verdicts[0].score, -60);
  EXPECT_EQ(verdicts[1].score, 100);
  EXPECT_GE(verdicts[2].score, -50);
}

TEST_F(NumaShared, CountsWhatExclusiveContainersTookFromThePool) {
  ledger_.place_exclusive({.cpu_request_milli = 3000}, set_of({0, 1, 2}));
  const auto verdicts = score(burstable(1500));
  EXPECT_LE(verdicts[0].score, -60) << "one CPU is left";
  EXPECT_EQ(verdicts[1].score, 100);
  EXPECT_GT(score(burstable(800))[0].score, 90) << "nobody asks for that one";
}

TEST_F(NumaShared, AreNotCrowdedOutWhileAnotherNodeIsAsGood) {
  ledger_.place_shared(burstable(2500), machine_.cpus_of_node(0));
  const Request request(machine_, ledger_, {}, 2);
  const auto verdicts = Plugin(topolet_plugin_v1, host_).score(request);
  EXPECT_EQ(
      verdicts[0].reason,
      "all 2 CPUs requested fit on node 0 (4 free); shared containers there request 2.5 CPUs, more than would be left "
      "for them");
  EXPECT_EQ(verdicts[0].score, 96);
  EXPECT_EQ(verdicts[1].score, 100);
}

TEST_F(NumaShared, TakesSeveralNodesForWhatNoneHolds) {
  const auto verdicts = score(burstable(5500));
  EXPECT_EQ(verdicts[2].score, 100);
  EXPECT_LE(verdicts[0].score, -60);
}

TEST_F(NumaShared, OnAFullMachineTakesTheLeastLoaded) {
  ledger_.place_shared(burstable(6000), machine_.cpus_of_node(0));
  ledger_.place_shared(burstable(5000), machine_.cpus_of_node(1));
  const auto verdicts = score(burstable(1000));
  for (const auto& verdict : verdicts) EXPECT_EQ(verdict.kind, TOPOLET_VERDICT_SCORE);
  EXPECT_GT(verdicts[1].score, verdicts[0].score);
}

TEST_F(NumaShared, GoesByMemoryWhereOnlyThatIsAskedFor) {
  ledger_.place_shared(burstable(0, std::int64_t{3} << 30), machine_.cpus_of_node(0));
  const auto verdicts = score(burstable(0, std::int64_t{2} << 30));
  EXPECT_LE(verdicts[0].score, -60);
  EXPECT_THAT(verdicts[0].reason, HasSubstr("node 0 has 1.0 GiB of memory uncommitted (2.0 GiB requested)"));
  EXPECT_EQ(verdicts[1].score, 100);
}

TEST_F(NumaShared, LetsAContainerOutOfASoftHome) {
  const auto is_soft = [this](Container container, const Values& options) {
    const Request request(machine_, ledger_, std::move(container), 0);
    Plugin plugin(topolet_plugin_v1, host_, options);
    const std::size_t home = request.position(set_of({0}));
    EXPECT_FALSE(plugin.pick(request, home).softened) << "nothing is chosen yet";
    return plugin.pick(request, home, machine_.cpus_of_node(0)).softened;
  };
  const auto with = [](std::string name, std::string value) {
    Container container = burstable(500);
    container.settings = {{std::move(name), std::move(value)}};
    return container;
  };
  const Values soft = {{"shared-home", "soft"}};
  EXPECT_FALSE(is_soft(burstable(500), {}));
  EXPECT_FALSE(is_soft(burstable(500), {{"shared-home", "strict"}}));
  EXPECT_TRUE(is_soft(burstable(500), soft));
  EXPECT_TRUE(is_soft(with("zone", "0"), soft));
  EXPECT_FALSE(is_soft(with("zone", "0"), {{"shared-home", "soft"}, {"zone", "require"}}));
  EXPECT_TRUE(is_soft(burstable(500), {{"shared-home", "soft"}, {"zone", "require"}}));
  for (const char* strict : {"restricted", "single-numa-node"}) {
    EXPECT_FALSE(is_soft(burstable(500), {{"shared-home", "soft"}, {"policy", strict}})) << strict;
    EXPECT_FALSE(is_soft(with("numa-policy", strict), soft)) << strict;
  }
  EXPECT_TRUE(is_soft(with("numa-policy", "best-effort"), {{"shared-home", "soft"}, {"policy", "restricted"}}));
}

}  // namespace
}  // namespace topolet::numa
