// CPUs that share a cache: which nodes and which CPUs are chosen for that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <topolet/testing.hpp>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "plugins/numa/cache_groups.hpp"
#include "plugins/numa/core_order.hpp"
#include "tests/plugins/numa/packed.hpp"

namespace topolet::numa {
namespace {

using sdk::Set;
using sdk::testing::FakeHost;
using sdk::testing::Ledger;
using sdk::testing::Machine;
using sdk::testing::Plugin;
using sdk::testing::Request;
using sdk::testing::set_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NumaCaches : public ::testing::Test {
 protected:
  explicit NumaCaches(const char* machine = "pack:2 numa:1 l3:2 core:4 pu:1") : machine_(machine), ledger_(machine_) {}

  std::vector<sdk::testing::Verdict> score(std::uint32_t cpus, const Plugin::Values& options = {}) {
    return Plugin(topolet_plugin_v1, host_, packed(options)).score(Request(machine_, ledger_, {}, cpus));
  }

  /// The CPUs that are taken on the first node.
  std::string taken(std::uint32_t cpus, const Plugin::Values& options = {}) {
    std::vector<std::uint32_t> order =
        Plugin(topolet_plugin_v1, host_, options).order(Request(machine_, ledger_, {}, cpus), 0).order;
    order.resize(cpus);
    return set_of(order).to_string();
  }

  Machine machine_;  // node 0: L3s of CPUs 0-3 and 4-7; node 1: 8-11 and 12-15
  Ledger ledger_;
  FakeHost host_;
};

TEST(NumaCpusOutsideNodes, AreTakenOfOnePackage) {
  const Machine machine("pack:3 numa:1 core:3 pu:1");
  topolet_topology view = machine.view();
  std::vector<topolet_pu> cpus(view.pus, view.pus + view.pu_count);
  for (topolet_pu& cpu : cpus) {
    if (cpu.os_index > 2) cpu.node = TOPOLET_NONE;
  }
  view.pus = cpus.data();
  view.pu_stride = sizeof(topolet_pu);
  const std::vector<std::uint32_t> order = core_order(view, set_of({4, 5, 6, 7, 8}).view(), 3, Strategy::kPacked).cpus;
  EXPECT_EQ(set_of({order.begin(), order.begin() + 3}).to_string(), "6-8");
}

TEST_F(NumaCaches, ComeBeforeTheFullerNode) {
  ledger_.place_exclusive({.pod_uid = "other"}, set_of({0, 1, 4, 5, 8}));
  const auto verdicts = score(3);
  EXPECT_EQ(verdicts[1].score, 100);
  EXPECT_EQ(verdicts[1].reason, "all 3 CPUs requested fit on node 1 in one cache (7 free)");
  EXPECT_EQ(verdicts[0].score, 95);
  EXPECT_EQ(verdicts[0].reason,
            "all 3 CPUs requested fit on node 0 in 2 caches (4 free); other nodes have room in fewer caches");
}

TEST_F(NumaCaches, AreLeftWithAsLittleAsPossibleBeforeNodesAre) {
  ledger_.place_exclusive({.pod_uid = "other"}, set_of({0, 4, 8, 9}));
  const auto verdicts = score(2);
  EXPECT_EQ(verdicts[1].score, 100) << "two of one cache are just what is left there, though node 0 is as full";
  EXPECT_EQ(verdicts[0].score, 99);
  EXPECT_THAT(verdicts[0].reason, HasSubstr("strategy packed prefers caches of which less would be left over"));
  EXPECT_EQ(score(2, {{"strategy", "spread"}})[0].score, score(2, {{"strategy", "spread"}})[1].score);
}

TEST_F(NumaCaches, CountForLessThanNodesAndDistances) {
  machine_.distances({10, 21, 21, 10});
  ledger_.place_exclusive({.pod_uid = "other"}, set_of({0, 4, 8, 12}));
  const auto verdicts = score(4);
  EXPECT_EQ(verdicts[0].score, 100) << "one node, even if it takes two caches";
  EXPECT_LT(verdicts[2].score, 75);
}

TEST_F(NumaCaches, DoNotMatterWhereCpusAreToBeFarFromEachOther) {
  ledger_.place_exclusive({.pod_uid = "other"}, set_of({0, 1, 4, 5, 8}));
  EXPECT_EQ(score(3, {{"distribute-cpus-across-cores", "true"}})[0].score, 100);
}

TEST_F(NumaCaches, DoNotMatterToContainersThatShareCpus) {
  ledger_.place_exclusive({.pod_uid = "other"}, set_of({0, 1, 4, 5}));
  const Request request(machine_, ledger_, {.qos = TOPOLET_QOS_BURSTABLE, .cpu_request_milli = 3000}, 0);
  EXPECT_THAT(Plugin(topolet_plugin_v1, host_).score(request)[0].reason, Not(HasSubstr("cache")));
}

TEST_F(NumaCaches, TakesTheCacheThatIsFilledMost) {
  ledger_.place_exclusive({.pod_uid = "other"}, set_of({4}));
  EXPECT_EQ(taken(3), "5-7");
  EXPECT_EQ(taken(4), "0-3");
  EXPECT_EQ(taken(3, {{"strategy", "spread"}}), "0-2");
}

TEST_F(NumaCaches, TakesLittleOfTheLastCacheOfSeveral) {
  const Machine machine("numa:1 l3:3 core:4 pu:1");
  Ledger ledger(machine);
  ledger.place_exclusive({.pod_uid = "other"}, set_of({4, 5}));
  std::vector<std::uint32_t> order = Plugin(topolet_plugin_v1, host_).order(Request(machine, ledger, {}, 6), 0).order;
  order.resize(6);
  EXPECT_EQ(set_of(order).to_string(), "0-3,6-7") << "a whole one, and the rest of the one that is in part use";
}

class NumaCachesWithSiblings : public NumaCaches {
 protected:
  NumaCachesWithSiblings() : NumaCaches("numa:1 l3:3 core:3 pu:2") {}  // 0-5, 6-11, 12-17
};

TEST_F(NumaCachesWithSiblings, TakesWholeCoresOfOneCacheIfItHasThem) {
  ledger_.place_exclusive({.pod_uid = "other"}, set_of({0, 2, 6, 7}));
  EXPECT_EQ(taken(4), "8-11") << "the first cache has four CPUs as well, but on parts of cores";
}

TEST_F(NumaCachesWithSiblings, StaysInOneCacheEvenOnPartsOfCores) {
  ledger_.place_exclusive({.pod_uid = "other"}, set_of({0, 2, 6, 7, 8, 9, 12, 13, 14, 15}));
  EXPECT_EQ(taken(4), "1,3-5");
}

TEST_F(NumaCachesWithSiblings, TakesTheOddThreadWhereNoCoreIsDividedForIt) {
  ledger_.place_exclusive({.pod_uid = "other"}, set_of({6, 12, 13}));
  EXPECT_EQ(taken(3), "7-9") << "the third cache would be filled more, but one of its cores would be divided";
}

TEST(NumaCacheGroups, AreClustersOfCoresWhereTheLastCacheIsTheNodes) {
  const Machine machine("pack:2 numa:1 l3:1 l2:2 core:4 pu:2");
  const CacheGroups groups(machine.view());
  EXPECT_TRUE(groups.divide_nodes());
  EXPECT_EQ(groups.group_count(), 4U);
  EXPECT_EQ(groups.group_of(0), groups.group_of(7));
  EXPECT_NE(groups.group_of(7), groups.group_of(8));
}

TEST(NumaCacheGroups, AreTheLastCachesWhereANodeHasSeveral) {
  const CacheGroups groups(Machine("numa:1 l3:2 l2:2 core:2 pu:1").view());
  EXPECT_EQ(groups.group_count(), 2U);
}

TEST(NumaCacheGroups, SayNoMoreThanNodesWhereOnlyCoresHaveCachesOfTheirOwn) {
  for (const char* const synthetic :
       {"pack:2 numa:1 l3:1 l2:4 core:1 pu:2", "pack:2 numa:1 core:4 pu:2", "pack:2 numa:1 l3:4 core:1 pu:2"}) {
    EXPECT_FALSE(CacheGroups(Machine(synthetic).view()).divide_nodes()) << synthetic;
  }
}

/// Containers come and go on a machine of many caches; wherever one cache of any node has room, one is used.
TEST(NumaCacheChurn, StaysInOneCacheWhereverOneHasRoom) {
  const Machine machine("pack:2 numa:1 l3:4 core:4 pu:2");
  FakeHost host;
  Plugin plugin(topolet_plugin_v1, host);
  std::mt19937 dice(7);
  std::vector<Set> held;
  for (int step = 0; step < 400; ++step) {
    Ledger ledger(machine);
    Set free = machine.online();
    for (std::size_t i = 0; i < held.size(); ++i) {
      ledger.place_exclusive({.pod_uid = std::to_string(i)}, held[i]);
      free -= held[i];
    }
    const std::uint32_t wanted = 1 + dice() % 8;
    const Request request(machine, ledger, {}, wanted);
    const auto verdicts = plugin.score(request);
    std::size_t best = verdicts.size();
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      if (verdicts[i].kind != TOPOLET_VERDICT_SCORE) continue;
      if (best == verdicts.size() || verdicts[i].score > verdicts[best].score) best = i;
    }
    if (best < verdicts.size()) {
      std::vector<std::uint32_t> order = plugin.order(request, best).order;
      order.resize(wanted);
      const Set taken = set_of(order);
      bool has_room = false;
      bool is_inside = false;
      for (std::size_t i = 0; i < machine.view().l3_count; ++i) {
        has_room = has_room || sdk::size_of_both(machine.view().l3s[i], free.view()) >= wanted;
        is_inside = is_inside || sdk::size_of_both(machine.view().l3s[i], taken.view()) == wanted;
      }
      EXPECT_EQ(is_inside, has_room) << "step " << step << ": " << wanted << " of " << free.to_string();
      held.push_back(taken);
    }
    if (best == verdicts.size() || dice() % 3 == 0) {
      std::shuffle(held.begin(), held.end(), dice);
      if (!held.empty()) held.pop_back();
    }
  }
}

}  // namespace
}  // namespace topolet::numa
