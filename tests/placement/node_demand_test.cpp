#include "core/placement/node_demand.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/placement/machine.hpp"

namespace topolet::placement {
namespace {

using ::testing::ElementsAre;
using testing::machine;

LedgerEntry entry(Mode mode, const CpuSet& cpus, std::int64_t milli, std::int64_t bytes, const NodeSet& mems = {}) {
  LedgerEntry entry;
  entry.placement.mode = mode;
  entry.placement.cpus = cpus;
  entry.placement.mems = mems;
  entry.demand.cpu_request_milli = milli;
  entry.demand.memory_request_bytes = bytes;
  return entry;
}

std::vector<NodeDemand> demand_by_node(const topology::Topology& topology, std::initializer_list<LedgerEntry> entries) {
  LedgerEntries all;
  for (const LedgerEntry& entry : entries) all.push_back(entry);
  return placement::demand_by_node(topology, all);
}

TEST(NodeDemand, CountsAContainerWhereItRuns) {
  const auto topology = machine("numa:2 core:4 pu:1");
  EXPECT_THAT(demand_by_node(*topology, {entry(Mode::kExclusive, CpuSet{4, 5}, 2000, 64)}),
              ElementsAre(NodeDemand{}, NodeDemand{1, 2, 2000, 64}));
  EXPECT_THAT(demand_by_node(*topology, {entry(Mode::kShared, CpuSet{4, 5}, 500, 0)}),
              ElementsAre(NodeDemand{}, NodeDemand{1, 0, 500, 0}));
  EXPECT_EQ(demand_by_node(*topology, {entry(Mode::kForeign, CpuSet{0}, 0, 0)})[0].exclusive_cpus, 1U);
}

TEST(NodeDemand, DividesWhatSpansNodesAndLosesNothing) {
  const auto topology = machine("numa:3 core:2 pu:1");
  EXPECT_THAT(demand_by_node(*topology, {entry(Mode::kShared, CpuSet::range(0, 5), 1000, 10)}),
              ElementsAre(NodeDemand{1, 0, 333, 3}, NodeDemand{1, 0, 333, 3}, NodeDemand{1, 0, 334, 4}));
  EXPECT_THAT(demand_by_node(*topology, {entry(Mode::kExclusive, CpuSet{0, 1, 2}, 3000, 0)}),
              ElementsAre(NodeDemand{1, 2, 2000, 0}, NodeDemand{1, 1, 1000, 0}, NodeDemand{}));
  const std::int64_t terabytes = std::int64_t{8} << 40;
  std::int64_t sum = 0;
  for (const NodeDemand& node : demand_by_node(*topology, {entry(Mode::kShared, CpuSet::range(0, 5), 0, terabytes)})) {
    sum += node.memory_request_bytes;
  }
  EXPECT_EQ(sum, terabytes);
}

TEST(NodeDemand, PutsMemoryWhereItIsBound) {
  const auto topology = machine("numa:2 core:2 pu:1");
  EXPECT_THAT(demand_by_node(*topology, {entry(Mode::kShared, CpuSet{0}, 100, 50, NodeSet{1})}),
              ElementsAre(NodeDemand{1, 0, 100, 0}, NodeDemand{0, 0, 0, 50}));
}

TEST(NodeDemand, TellsContainersThatFollowEachOtherApart) {
  const auto topology = machine("numa:2 core:2 pu:1");
  const LedgerEntry first = entry(Mode::kShared, CpuSet{0, 1}, 100, 0);
  const LedgerEntry second = entry(Mode::kShared, CpuSet{2}, 200, 0);
  EXPECT_THAT(demand_by_node(*topology, {first, first, second}),
              ElementsAre(NodeDemand{2, 0, 200, 0}, NodeDemand{1, 0, 200, 0}));
}

TEST(NodeDemand, IsThatOfTheOthersWhenAContainerIsGone) {
  const auto topology = machine("numa:2 core:3 pu:1");
  const auto entries = [](const std::initializer_list<LedgerEntry>& of) {
    LedgerEntries all;
    for (const LedgerEntry& one : of) all.push_back(one);
    return all;
  };
  const LedgerEntry stays = entry(Mode::kExclusive, CpuSet{0, 1}, 2000, 64);
  const LedgerEntry goes = entry(Mode::kExclusive, CpuSet{2, 3, 4}, 1001, 77);
  NodeDemands demands(*topology);
  demands.add(entries({stays, goes}));
  EXPECT_EQ(demands.demands(), demand_by_node(*topology, {stays, goes}));
  demands.remove(entries({goes}));
  EXPECT_EQ(demands.demands(), demand_by_node(*topology, {stays}));
}

TEST(NodeDemand, LeavesOutWhatRunsOnNoNode) {
  topology::Topology topology = *machine("numa:1 core:2 pu:1");
  topology.nodes[0].cpus = CpuSet{0};
  EXPECT_THAT(demand_by_node(topology, {entry(Mode::kShared, CpuSet{1}, 100, 100)}), ElementsAre(NodeDemand{}));
}

}  // namespace
}  // namespace topolet::placement
