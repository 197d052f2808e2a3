// Who gets parts of cores beside others, and whole cores elsewhere that are free.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/simulate/hybrid_machine.hpp"
#include "tests/simulate/simulated_node.hpp"

namespace topolet::simulate {
namespace {

using Flags = std::vector<std::string>;

constexpr const char* kSmtNodes = "pack:2 numa:1 core:4 pu:2";

/// Where `cpus` exclusive CPUs are taken if others have `used`.
std::string taken(const char* machine, const std::string& used, std::uint32_t cpus, Flags flags = {}) {
  flags.insert(flags.begin(), {"--plugins.enable=numa", "--placement.min-shared-cpus=0"});
  SimulatedNode node(machine, flags);
  node.apply(R"({"op":"occupy","cpus":")" + used + R"("})");
  return node.guaranteed("pod", cpus).cpus.to_string();
}

TEST(CrowdedCores, AreAvoidedWhereANodeJustAsNearHasWholeOnes) {
  EXPECT_EQ(taken(kSmtNodes, "0,2,4-7", 2), "8-9");
  EXPECT_EQ(taken(kSmtNodes, "0,2,4", 4), "8-11") << "one whole core is not enough";
  EXPECT_EQ(taken(kSmtNodes, "0,2,4-7", 2, {"--numa.policy=single-numa-node"}), "8-9");
  EXPECT_EQ(taken(kSmtNodes, "0,2,4-7", 2, {"--numa.prefer-align-cpus-by-uncorecache=true"}), "8-9");
  EXPECT_EQ(taken("pack:1 numa:2 core:2 pu:4", "0-1,4-5", 4), "8-11") << "cores of four threads";
}

TEST(CrowdedCores, AreUsedWhereNothingIsWonElsewhere) {
  EXPECT_EQ(taken(kSmtNodes, "0,4-7", 3), "1-3") << "a third thread is beside somebody anywhere";
  EXPECT_EQ(taken(kSmtNodes, "0,2,4-7", 1), "1");
  EXPECT_EQ(taken(kSmtNodes, "0,2,4-7,8,10,12,14", 2), "1,3") << "no core is whole";
  EXPECT_EQ(taken(kSmtNodes, "0,2,4-7,9-15", 2), "1,3") << "one node comes before whole cores";
  EXPECT_EQ(taken("pack:2 numa:1 core:4 pu:1", "0,2", 2), "1,3") << "cores of one thread are always whole";
}

TEST(CrowdedCores, AreUsedInOneCacheRatherThanWholeOnesInTwo) {
  EXPECT_EQ(taken("pack:2 numa:1 l3:2 core:3 pu:2", "1,3,6-11,14-17,20-23", 4), "0,2,4-5");
}

TEST(CrowdedCores, AreThoseTwoCpusOfTheContainerShareIfItsCpusAreToBeSpread) {
  const Flags across = {"--numa.distribute-cpus-across-cores=true"};
  EXPECT_EQ(taken(kSmtNodes, "0-3", 4, across), "8,10,12,14");
  EXPECT_EQ(taken(kSmtNodes, "0,8-11", 4, across), "1-2,4,6") << "four cores, whoever has the other threads";
  EXPECT_EQ(taken(kSmtNodes, "0-1,8-11", 4, across), "2-4,6") << "three cores of one node, before four of two";
}

TEST(CrowdedCores, AreAlsoThoseOfOthersForWhoIsToBeSpread) {
  const Flags across = {"--numa.distribute-cpus-across-cores=true"};
  EXPECT_EQ(taken(kSmtNodes, "0,2,4,6", 4, across), "8,10,12,14") << "four cores that nobody is on";
  EXPECT_EQ(taken(kSmtNodes, "0,2,8-15", 2, across), "4,6") << "the same in one node";
  EXPECT_EQ(taken(kSmtNodes, "0,2,8-15", 3, across), "1,4,6") << "a third core comes before a second thread";
  EXPECT_EQ(taken(kSmtNodes, "0,2,4,6,8,10,12,14", 4, across), "1,3,5,7") << "all have somebody on them";
  EXPECT_EQ(taken("numa:1 core:3 pu:4", "0-1,4-6,8", 2, across), "2,9") << "one other rather than three";
}

TEST(CrowdedCores, AreNothingToPolicyNone) {
  EXPECT_EQ(taken(kSmtNodes, "0,2,4-7", 2, {"--numa.policy=none"}), "8-9");
  EXPECT_EQ(taken(kSmtNodes, "0-3", 4, {"--numa.policy=none", "--numa.distribute-cpus-across-cores=true"}), "4-7");
  EXPECT_EQ(taken(kSmtNodes, "0,2,8-15", 2, {"--numa.policy=none", "--numa.distribute-cpus-across-cores=true"}), "1,3");
}

TEST(CrowdedCores, OfAFasterKindAreAvoidedWhileSlowOnesAreWhole) {
  for (const bool two_nodes : {false, true}) {
    SCOPED_TRACE(two_nodes);
    const HybridMachine machine({.two_nodes = two_nodes});
    SimulatedNode node(machine.file(), {"--plugins.enable=numa", "--placement.min-shared-cpus=0"});
    std::vector<CpuSet> taken;
    for (const char* const pod : {"a", "b", "c", "d", "e"}) taken.push_back(node.guaranteed(pod, 1).cpus);
    CpuSet fast;
    for (const CpuSet& cpus : taken) {
      EXPECT_EQ(cpus.size(), 1U);
      fast |= cpus & CpuSet::range(0, 3);
    }
    EXPECT_EQ((fast & CpuSet::range(0, 1)).size() + (fast & CpuSet::range(2, 3)).size(), fast.size());
    EXPECT_LE((fast & CpuSet::range(0, 1)).size(), 1U) << "two share a fast core";
    EXPECT_LE((fast & CpuSet::range(2, 3)).size(), 1U) << "two share a fast core";
  }
}

TEST(CrowdedCores, OfAFasterKindAreAvoidedOnFreeCoresOfItFirst) {
  const HybridMachine machine({});
  SimulatedNode node(machine.file(), {"--plugins.enable=numa", "--placement.min-shared-cpus=0"});
  std::vector<std::string> taken;
  for (const char* const pod : {"a", "b", "c", "d", "e", "f", "g", "h"})
    taken.push_back(node.guaranteed(pod, 1).cpus.to_string());
  EXPECT_THAT(taken, ::testing::ElementsAre("0", "2", "4", "5", "6", "7", "1", "3"));
}

TEST(CrowdedCores, OfTheFastestKindAreWholeForWhoFillsThem) {
  const HybridMachine machine({});
  SimulatedNode node(machine.file(), {"--plugins.enable=numa", "--placement.min-shared-cpus=0"});
  EXPECT_EQ(node.guaranteed("one", 1).cpus.to_string(), "0") << "the fastest comes first";
  EXPECT_EQ(node.guaranteed("two", 2).cpus.to_string(), "2-3");
  EXPECT_EQ(node.guaranteed("other", 2).cpus.to_string(), "4-5");
}

TEST(CrowdedCores, OfAFasterKindAreUsedWhereSlowOnesAreTooFew) {
  const HybridMachine machine({});
  EXPECT_EQ(taken(machine.file().c_str(), "0,2,4-6", 2), "1,3") << "the slow kind has one CPU left";
}

}  // namespace
}  // namespace topolet::simulate
