// Containers whose CPUs go, and what they have again once those are back.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/simulate/smt_nodes.hpp"

namespace topolet::simulate {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

OperationResult offline(SimulatedNode& node, const std::string& cpus) {
  return node.apply(fmt::format(R"({{"op":"offline","cpus":"{}"}})", cpus));
}

OperationResult online(SimulatedNode& node, const std::string& cpus) {
  return node.apply(fmt::format(R"({{"op":"online","cpus":"{}"}})", cpus));
}

/// "CPUs" or "CPUs withheld".
std::string held_by(SimulatedNode& node, const std::string& pod) {
  for (const placement::LedgerEntry& entry : node.snapshot().ledger.entries) {
    if (entry.key.pod_uid != pod) continue;
    const std::string withheld = entry.placement.withheld.to_string();
    return entry.placement.cpus.to_string() + (withheld.empty() ? "" : " " + withheld);
  }
  return "nothing";
}

TEST(Hotplug, GivesACpuBackThatCouldNotBeSparedWhenItCame) {
  SimulatedNode node("numa:1 core:2 pu:2", with({"--placement.min-shared-cpus=2", "--plugins.required.smt=true"}));
  node.besteffort("shared");
  EXPECT_EQ(run(node, "own", "guaranteed", 2000, kIsolate).cpus.to_string(), "0-1");
  offline(node, "1,2");
  online(node, "1");
  EXPECT_EQ(held_by(node, "own"), "0") << "the pool would have one CPU";
  const OperationResult came = online(node, "2");
  EXPECT_EQ(held_by(node, "own"), "0-1");
  EXPECT_EQ(held_by(node, "shared"), "2-3");
  ASSERT_THAT(came.changed, SizeIs(2));
  EXPECT_THAT(came.changed[0].reason, HasSubstr("it returns to the CPUs that it was given when placed, 0-1"));
}

TEST(Hotplug, GivesAContainerThatLacksCpusThoseThatOthersGiveBack) {
  for (const char* const freed : {R"({"op":"remove_pod","pod":"other"})",
                                  R"({"op":"update","pod":"other","container":"main","cpu_request_milli":1000,)"
                                  R"("cpu_limit_milli":1000})"}) {
    SCOPED_TRACE(freed);
    SimulatedNode node("numa:1 core:6 pu:1");
    node.guaranteed("own", 2);
    node.guaranteed("other", 3);
    offline(node, "1");
    EXPECT_EQ(held_by(node, "own"), "0");
    node.apply(freed);
    const CpuSet own = *CpuSet::parse(held_by(node, "own"));
    EXPECT_EQ(own.size(), 2U) << own.to_string();
    EXPECT_TRUE(own.contains(0)) << own.to_string();
  }
}

TEST(Hotplug, GivesPartOfWhatIsLackedAndItsOwnFirst) {
  SimulatedNode node("numa:1 core:8 pu:1");
  node.guaranteed("own", 4);
  node.guaranteed("other", 3);
  offline(node, "1-3");
  EXPECT_EQ(held_by(node, "own"), "0");
  online(node, "2");
  EXPECT_EQ(held_by(node, "own"), "0,2");
  node.apply(R"({"op":"remove_pod","pod":"other"})");
  EXPECT_EQ(held_by(node, "own"), "0,2,4-5");
  online(node, "1,3");
  EXPECT_EQ(held_by(node, "own"), "0-3") << "it has as many as it was given, but others";
}

TEST(Hotplug, GivesAContainerThatHadToShareItsOwnCpusAgain) {
  SimulatedNode node("numa:1 core:4 pu:1", {"--placement.min-shared-cpus=2"});
  node.guaranteed("own", 2);
  offline(node, "0-1");
  EXPECT_EQ(node.snapshot().ledger.exclusive.to_string(), "");
  online(node, "0");
  EXPECT_EQ(node.snapshot().ledger.exclusive.to_string(), "");
  online(node, "1");
  EXPECT_EQ(node.snapshot().ledger.exclusive.to_string(), "0-1");
  EXPECT_EQ(held_by(node, "own"), "0-1");
}

TEST(Hotplug, WithholdsASiblingLaterThatCouldNotBeSparedWhenItCame) {
  SimulatedNode node("numa:1 core:2 pu:2", with({"--placement.min-shared-cpus=2"}));
  offline(node, "1");
  EXPECT_EQ(run(node, "own", "guaranteed", 1000, kIsolate).cpus.to_string(), "0");
  node.apply(R"({"op":"occupy","cpus":"3"})");
  online(node, "1");
  EXPECT_EQ(held_by(node, "own"), "0") << "it cannot be spared";
  const OperationResult vacated = node.apply(R"({"op":"vacate","cpus":"3"})");
  EXPECT_EQ(held_by(node, "own"), "0 1");
  ASSERT_THAT(vacated.changed, SizeIs(1));
  EXPECT_THAT(vacated.changed[0].reason, HasSubstr("CPU 1 withheld from now on"));
}

TEST(Hotplug, TakesAnIsolatedContainerBackToWhereItWasIsolated) {
  SimulatedNode node("numa:1 core:3 pu:2", with({}));
  node.besteffort("shared");
  run(node, "own", "guaranteed", 2000, kIsolate);
  node.apply(R"({"op":"occupy","cpus":"2,4"})");
  offline(node, "1");
  EXPECT_EQ(held_by(node, "own"), "0,3") << "no other core is whole";
  const OperationResult came = online(node, "1");
  EXPECT_EQ(held_by(node, "own"), "0-1");
  EXPECT_EQ(held_by(node, "shared"), "3,5");
  ASSERT_THAT(came.changed, SizeIs(2));
  EXPECT_THAT(came.changed[0].reason,
              HasSubstr("because this is dropped where it is now: smt: CPU 2 cannot be kept idle beside CPUs 0,3"));
}

TEST(Hotplug, TakesAContainerBackToItsNode) {
  SimulatedNode node("numa:2 core:4 pu:1", {"--plugins.enable=numa"});
  EXPECT_EQ(node.guaranteed("own", 3).cpus.to_string(), "0-2");
  offline(node, "0-1");
  EXPECT_EQ(held_by(node, "own"), "4-6");
  online(node, "0");
  EXPECT_EQ(held_by(node, "own"), "4-6") << "it lacks none";
  online(node, "1");
  EXPECT_EQ(held_by(node, "own"), "0-2");
}

TEST(Hotplug, KeepsSharedContainersApartThatPoliciesKeptApart) {
  for (const std::vector<std::string>& back : std::vector<std::vector<std::string>>{{"0,2,4"}, {"0", "2", "4"}}) {
    SimulatedNode node("numa:1 core:3 pu:2", with({"--smt.pair=true"}));
    run(node, "heavy", "burstable", 1000, kHeavy);
    run(node, "light", "burstable", 1000, kLight);
    EXPECT_EQ(held_by(node, "heavy"), "0,2,4");
    EXPECT_EQ(held_by(node, "light"), "1,3,5");
    offline(node, "0,2,4");
    EXPECT_EQ(held_by(node, "heavy"), "1,3,5");
    for (const std::string& cpus : back) {
      online(node, cpus);
      EXPECT_EQ(held_by(node, "light"), "1,3,5") << "nothing of its own was gone";
    }
    EXPECT_EQ(held_by(node, "heavy"), "0,2,4");
  }
}

TEST(Hotplug, AsksAnewAboutSharedContainersThatWerePlacedWhereLittleWasOpen) {
  SimulatedNode node("numa:1 core:3 pu:2", with({"--smt.pair=true"}));
  node.guaranteed("own", 5);
  run(node, "heavy", "burstable", 1000, kHeavy);
  run(node, "light", "burstable", 1000, kLight);
  node.besteffort("any");
  EXPECT_EQ(held_by(node, "heavy"), "5");
  const OperationResult left = node.apply(R"({"op":"remove_pod","pod":"own"})");
  EXPECT_EQ(held_by(node, "heavy"), "0,2,4");
  EXPECT_EQ(held_by(node, "light"), "1,3,5");
  EXPECT_EQ(held_by(node, "any"), "0-5");
  ASSERT_THAT(left.changed, SizeIs(3));
  EXPECT_THAT(left.changed[1].reason, HasSubstr("more CPUs are available to it; "));
}

TEST(Hotplug, AsksAnewAboutSharedContainersThatWerePlacedWhileCpusWereAway) {
  SimulatedNode node("numa:1 core:3 pu:2", with({"--smt.pair=true"}));
  offline(node, "0,2,4");
  run(node, "heavy", "burstable", 1000, kHeavy);
  EXPECT_EQ(held_by(node, "heavy"), "1,3,5");
  online(node, "0,2,4");
  EXPECT_EQ(held_by(node, "heavy"), "0,2,4");
}

/// The promises hold while CPUs go and come at random, and nobody lacks any once all are back.
TEST(Hotplug, LeavesNobodyShortOnceAllCpusAreBack) {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U, 6U}) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const std::vector<std::string> isolates = {"--smt.isolate-siblings=exclusive"};
    std::vector<std::string> flags = with(seed % 2 == 0 ? isolates : std::vector<std::string>());
    flags.emplace_back("--placement.min-shared-cpus=2");
    SimulatedNode node("pack:2 numa:1 core:4 pu:2", flags);
    node.besteffort("any");
    node.burstable("some", 1500);
    const std::vector<std::size_t> sizes = {3, 2, 4, 1};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      ASSERT_EQ(node.guaranteed("own" + std::to_string(i), static_cast<int>(sizes[i])).outcome, "placed");
    }
    for (int step = 0; step < 40; ++step) {
      const CpuSet away = node.snapshot().offline;
      const CpuSet cpus = {static_cast<std::uint32_t>(random() % 16), static_cast<std::uint32_t>(random() % 16)};
      const CpuSet back = cpus & away;
      if (back.empty()) {
        offline(node, cpus.to_string());
      } else {
        online(node, back.to_string());
      }
      CpuSet alone;
      for (const placement::LedgerEntry& entry : node.snapshot().ledger.entries) {
        if (entry.placement.mode != placement::Mode::kExclusive) continue;
        ASSERT_FALSE((entry.placement.cpus | entry.placement.withheld).intersects(alone));
        alone |= entry.placement.cpus | entry.placement.withheld;
      }
      for (const placement::LedgerEntry& entry : node.snapshot().ledger.entries) {
        ASSERT_TRUE(entry.placement.mode == placement::Mode::kExclusive || !entry.placement.cpus.intersects(alone));
      }
    }
    if (const CpuSet away = node.snapshot().offline; !away.empty()) online(node, away.to_string());
    for (const placement::LedgerEntry& entry : node.snapshot().ledger.entries) {
      if (entry.key.pod_uid.rfind("own", 0) != 0) continue;
      EXPECT_EQ(entry.placement.mode, placement::Mode::kExclusive);
      EXPECT_EQ(entry.placement.cpus.size(), sizes[entry.key.pod_uid.back() - '0']) << entry.key.pod_uid;
    }
  }
}

TEST(Hotplug, GivesACpuBackThatWasAwayForAWhile) {
  for (const bool restarts : {false, true}) {
    SimulatedNode node("numa:1 core:8 pu:1", {"--plugins.enable=numa"});
    node.guaranteed("own", 4);
    node.burstable("shared", 500);
    offline(node, "1");
    EXPECT_EQ(held_by(node, "own"), "0,2-4");
    if (restarts) node.apply(R"({"op":"restart"})");
    const OperationResult came = online(node, "1");
    EXPECT_EQ(held_by(node, "own"), "0-3");
    EXPECT_EQ(held_by(node, "shared"), "4-7");
    ASSERT_FALSE(came.changed.empty());
    EXPECT_THAT(came.changed[0].reason, HasSubstr("it returns to the CPUs that it was given when placed, 0-3"));
  }
}

TEST(Hotplug, GivesEachCpuBackAsItComes) {
  SimulatedNode node("numa:1 core:8 pu:1", {"--plugins.enable=numa"});
  node.guaranteed("own", 4);
  offline(node, "1-2");
  EXPECT_EQ(held_by(node, "own"), "0,3-5");
  const OperationResult came = online(node, "2");
  EXPECT_EQ(held_by(node, "own"), "0,2-4");
  ASSERT_FALSE(came.changed.empty());
  EXPECT_THAT(came.changed[0].reason, HasSubstr("it gets CPU 2 back, which it was given when placed"));
  online(node, "1");
  EXPECT_EQ(held_by(node, "own"), "0-3");
}

TEST(Hotplug, GivesNoCpuBackAcrossNodes) {
  SimulatedNode node("pack:2 numa:1 core:4 pu:1", {"--plugins.enable=numa"});
  node.guaranteed("own", 3);
  offline(node, "0-2");
  EXPECT_EQ(held_by(node, "own"), "4-6");
  online(node, "0");
  EXPECT_EQ(held_by(node, "own"), "4-6") << "it would be on two nodes";
  online(node, "1-2");
  EXPECT_EQ(held_by(node, "own"), "0-2");
}

TEST(Hotplug, GivesACpuBackOnAFullMachine) {
  SimulatedNode node("numa:1 core:8 pu:1", {"--plugins.enable=numa"});
  node.guaranteed("own", 4);
  offline(node, "1");
  node.guaranteed("other", 2);
  EXPECT_EQ(held_by(node, "own"), "0,2-4");
  EXPECT_EQ(held_by(node, "other"), "5-6");
  online(node, "1");
  EXPECT_EQ(held_by(node, "own"), "0-3");
  EXPECT_EQ(held_by(node, "other"), "5-6");
}

/// On whole cores again.
TEST(Hotplug, GivesACpuBackToAContainerThatWasResizedMeanwhile) {
  for (const bool restarts : {false, true}) {
    SimulatedNode node("numa:1 core:4 pu:2", {"--plugins.enable=numa"});
    node.guaranteed("own", 4);
    offline(node, "1");
    EXPECT_EQ(held_by(node, "own"), "0,2-4");
    node.apply(R"({"op":"update","pod":"own","container":"main","cpu_request_milli":6000,"cpu_limit_milli":6000})");
    EXPECT_EQ(held_by(node, "own"), "0,2-6");
    if (restarts) node.apply(R"({"op":"restart"})");
    online(node, "1");
    EXPECT_EQ(held_by(node, "own"), "0-5");
  }
}

TEST(Hotplug, LeavesAContainerAloneThatHasNoOthersAnyMore) {
  SimulatedNode node("numa:1 core:8 pu:1", {"--plugins.enable=numa"});
  node.guaranteed("own", 4);
  offline(node, "1");
  node.apply(R"({"op":"update","pod":"own","container":"main","cpu_request_milli":3000,"cpu_limit_milli":3000})");
  EXPECT_EQ(held_by(node, "own"), "0,2-3");
  online(node, "1");
  EXPECT_EQ(held_by(node, "own"), "0,2-3");
}

/// Nobody shares any, and none has to stay shared.
TEST(Hotplug, TakesTheLastCpusOfThePoolWhereNobodySharesThem) {
  SimulatedNode node("pack:2 numa:1 core:4 pu:1", {"--plugins.enable=numa", "--placement.min-shared-cpus=0"});
  node.guaranteed("own", 4);
  offline(node, "0-3");
  EXPECT_EQ(held_by(node, "own"), "4-7");
  online(node, "0-3");
  EXPECT_EQ(held_by(node, "own"), "0-3");
  node.burstable("shared", 100);
  offline(node, "0-3");
  EXPECT_EQ(held_by(node, "shared"), "4-7") << "which has no others";
  EXPECT_EQ(held_by(node, "own"), "4-7") << "and shares them";
}

/// Others would run on the cores that it has whole.
TEST(Hotplug, KeepsSiblingsIdleThatComeBesideWholeCores) {
  for (const int cpus : {2, 3}) {
    SimulatedNode node("numa:1 core:4 pu:2(indexes=0,4,1,5,2,6,3,7)",
                       {"--plugins.enable=numa", "--numa.full-pcpus-only=true"});
    offline(node, "4-7");
    node.burstable("shared", 100);
    node.guaranteed("own", cpus);
    EXPECT_EQ(held_by(node, "own"), fmt::format("0-{}", cpus - 1));
    online(node, "4-7");
    EXPECT_EQ(held_by(node, "own"), fmt::format("0-{} 4-{}", cpus - 1, cpus + 3)) << "they are whole cores";
    EXPECT_EQ(held_by(node, "shared"), cpus == 2 ? "2-3,6-7" : "3,7");
  }
}

TEST(Hotplug, KeepsEachSiblingIdleThatComesBesideAWholeCore) {
  SimulatedNode node("numa:1 core:4 pu:2(indexes=0,4,1,5,2,6,3,7)",
                     {"--plugins.enable=numa", "--numa.full-pcpus-only=true"});
  offline(node, "4-7");
  node.guaranteed("own", 2);
  online(node, "5");
  EXPECT_EQ(held_by(node, "own"), "0-1 5");
  online(node, "4");
  EXPECT_EQ(held_by(node, "own"), "0-1 4-5");
}

TEST(Hotplug, KeepsSiblingsIdleThatComeBesideWholeCoresWhileNoDaemonRuns) {
  for (const char* const way : {R"({"op":"restart","online":"4-7"})", R"({"op":"restart"})"}) {
    SimulatedNode node("numa:1 core:4 pu:2(indexes=0,4,1,5,2,6,3,7)",
                       {"--plugins.enable=numa", "--numa.full-pcpus-only=true"});
    offline(node, "4-7");
    node.burstable("shared", 100);
    node.guaranteed("own", 2);
    node.apply(way);
    node.apply(R"({"op":"clock","advance_s":1})");
    const bool came = std::string(way).find("online") != std::string::npos;
    EXPECT_EQ(held_by(node, "own"), came ? "0-1 4-5" : "0-1");
    EXPECT_EQ(held_by(node, "shared"), "2-3");
  }
}

TEST(Hotplug, LeavesSiblingsToOthersWhereCoresNeedNotBeWhole) {
  SimulatedNode node("numa:1 core:4 pu:2(indexes=0,4,1,5,2,6,3,7)", {"--plugins.enable=numa"});
  offline(node, "4-7");
  node.burstable("shared", 100);
  node.guaranteed("own", 2);
  online(node, "4-7");
  EXPECT_EQ(held_by(node, "own"), "0-1");
  EXPECT_EQ(held_by(node, "shared"), "2-7");
}

}  // namespace
}  // namespace topolet::simulate
