// The plugin through its entry, on machines as hwloc describes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <topolet/testing.hpp>

#include "tests/plugins/numa/packed.hpp"

namespace topolet::numa {
namespace {

using sdk::testing::FakeHost;
using sdk::testing::Ledger;
using sdk::testing::Machine;
using sdk::testing::Plugin;
using sdk::testing::Request;
using sdk::testing::set_of;
using ::testing::ElementsAre;

class NumaPluginTest : public ::testing::Test {
 protected:
  Machine machine_{"pack:2 numa:2 l3:1 core:2 pu:2"};
  Ledger ledger_{machine_};
  FakeHost host_;
};

TEST_F(NumaPluginTest, PrefersTheFullerOrTheEmptierOfEqualNodesAsItsOptionSays) {
  ledger_.place_exclusive({}, set_of({0, 1}));
  const Request request(machine_, ledger_, {}, 2);
  EXPECT_EQ(Plugin(topolet_plugin_v1, host_, packed()).score(request)[0].score, 100);
  Plugin spread(topolet_plugin_v1, host_, {{"strategy", "spread"}});
  EXPECT_EQ(spread.score(request)[0].score, 99);
  EXPECT_EQ(spread.score(request)[1].score, 100);
}

TEST_F(NumaPluginTest, DeniesOddRequestsUnderFullPcpusOnlyUnlessTheSmtPluginRoundsThemUp) {
  const Plugin::Values full = {{"full-pcpus-only", "true"}};
  const Request odd(machine_, ledger_, {}, 3);
  const auto kind = [&](const Plugin::Values& others) {
    return Plugin(topolet_plugin_v1, host_, full, others).score(odd)[0].kind;
  };
  EXPECT_EQ(kind({}), TOPOLET_VERDICT_REJECT) << "the kubelet's way";
  EXPECT_EQ(kind({{"smt.round", "deny"}}), TOPOLET_VERDICT_REJECT);
  EXPECT_EQ(kind({{"smt.round", "idle-sibling"}}), TOPOLET_VERDICT_SCORE);
}

TEST_F(NumaPluginTest, CountsWhatIsRoundedUpInWholeCores) {
  ledger_.place_exclusive({}, set_of({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  Plugin plugin(topolet_plugin_v1, host_, {{"full-pcpus-only", "true"}}, {{"smt.round", "idle-sibling"}});
  EXPECT_EQ(plugin.score(Request(machine_, ledger_, {}, 3))[0].reason,
            "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 3, requested CPUs = 3, CPUs "
            "per core = 2 (full-pcpus-only)");
}

TEST_F(NumaPluginTest, OrdersNothingOnceCpusAreChosen) {
  const Request request(machine_, ledger_, {}, 2);
  EXPECT_TRUE(Plugin(topolet_plugin_v1, host_).pick(request, 0, set_of({0, 1})).order.empty());
}

TEST_F(NumaPluginTest, PlacesWhatFitsOnNoNodeOnAPackage) {
  const Request request(machine_, ledger_, {}, 6);
  const auto verdicts = Plugin(topolet_plugin_v1, host_).score(request);
  EXPECT_EQ(verdicts[0].kind, TOPOLET_VERDICT_REJECT);
  EXPECT_EQ(verdicts[0].reason, "node 0 has only 4 CPUs, but the container requests 6");
  EXPECT_EQ(verdicts[request.position(set_of({0, 1}))].score, 100);
  EXPECT_EQ(verdicts[request.position(set_of({0, 1, 2, 3}))].score, 40);
}

TEST_F(NumaPluginTest, PrefersCloseNodesOfAsMany) {
  machine_.distances({10, 12, 32, 32, 12, 10, 32, 32, 32, 32, 10, 12, 32, 32, 12, 10});
  Request request(machine_, ledger_, {}, 6);
  request.candidate(set_of({1, 2}));
  const auto verdicts = Plugin(topolet_plugin_v1, host_).score(request);
  EXPECT_EQ(verdicts[request.position(set_of({0, 1}))].score, 100);
  EXPECT_EQ(verdicts[request.position(set_of({1, 2}))].score, 86);
}

TEST_F(NumaPluginTest, FillsPartlyUsedCoresWithOddThreads) {
  ledger_.place_exclusive({}, set_of({2}));
  const Request request(machine_, ledger_, {}, 3);
  const auto picked = Plugin(topolet_plugin_v1, host_).order(request, 0);
  EXPECT_THAT(picked.order, ElementsAre(3, 0, 1));
  EXPECT_EQ(picked.reason, "1 whole core and 1 thread of partly used cores");
}

TEST_F(NumaPluginTest, HasNoOpinionOnSharedContainers) {
  const Request request(machine_, ledger_, {}, 0);
  Plugin plugin(topolet_plugin_v1, host_);
  for (const auto& verdict : plugin.score(request)) EXPECT_EQ(verdict.kind, TOPOLET_VERDICT_ABSTAIN);
  EXPECT_TRUE(plugin.order(request, 0).order.empty());
}

}  // namespace
}  // namespace topolet::numa
