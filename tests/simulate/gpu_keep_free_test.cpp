// Containers without devices on machines with GPUs that are kept free.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/simulate/gpu_decisions.hpp"

namespace topolet::simulate {
namespace {

using testing::HasSubstr;

class NodesOfGpusKeptFree : public GpuDecisions {
 protected:
  /// GPUs on these nodes.
  SimulatedNode keeping(const char* machine, const std::vector<int>& nodes,
                        const std::vector<std::string>& more = {}) const {
    std::vector<std::string> options = {"--gpu.keep-free=true", "--placement.min-shared-cpus=0"};
    options.insert(options.end(), more.begin(), more.end());
    SimulatedNode node = this->machine(machine, options);
    for (const int preferred_nodes : nodes) {
      node.apply(
          fmt::format(R"({{"op":"device","path":"/dev/vacc{0}","kind":"vacc","nodes":"{0}"}})", preferred_nodes));
    }
    return node;
  }
};

TEST_F(NodesOfGpusKeptFree, GiveOnlyWhatTheOthersLack) {
  SimulatedNode node = keeping("pack:2 numa:1 core:8 pu:1", {0});
  const OperationResult placed = create(node, "a", "", 10000);
  EXPECT_EQ(placed.cpus, CpuSet::range(8, 15) | CpuSet::range(0, 1));
  EXPECT_THAT(placed.reason, HasSubstr("gpu: nodes 0-1: 8 of 10 CPUs can be kept away from the GPUs of node 0"));
}

TEST_F(NodesOfGpusKeptFree, GiveWholeCoresWhereNumaWantsThem) {
  SimulatedNode node = keeping("pack:2 numa:1 core:4 pu:2", {0}, {"--numa.full-pcpus-only=true"});
  EXPECT_EQ(create(node, "a", "", 10000).cpus, CpuSet::range(8, 15) | CpuSet::range(0, 1));
}

TEST_F(NodesOfGpusKeptFree, AreAsFewAsCanBe) {
  SimulatedNode node = keeping("pack:2 numa:2 core:8 pu:1", {0, 2, 3});
  EXPECT_EQ(create(node, "a", "", 10000).cpus, CpuSet::range(8, 15) | CpuSet::range(0, 1));
  EXPECT_EQ(create(node, "b", "", 6000).cpus, CpuSet::range(2, 7)) << "the one that is taken from already";
}

TEST_F(NodesOfGpusKeptFree, AreNoReasonToSpreadWhatFitsOne) {
  SimulatedNode node = keeping("pack:2 numa:1 core:8 pu:1", {0});
  EXPECT_EQ(create(node, "a", "", 4000).cpus, CpuSet::range(8, 11));
  const OperationResult one = create(node, "b", "", 7000);
  EXPECT_EQ(one.cpus, CpuSet::range(0, 6)) << one.reason;
  EXPECT_THAT(one.reason, HasSubstr("gpu: node 0: nothing can be kept away from the GPUs of node 0"));
}

TEST_F(NodesOfGpusKeptFree, LeaveAllOthersToWhoRequestsNothing) {
  for (const char* const machine : {"pack:4 numa:1 core:8 pu:1", "pack:12 numa:1 core:2 pu:1"}) {
    SimulatedNode node = keeping(machine, {1});
    node.apply(R"({"op":"run_pod","pod":"b","qos":"besteffort"})");
    const OperationResult placed = node.apply(R"({"op":"create","pod":"b","container":"main"})");
    EXPECT_EQ(nodes_of(node, placed).size(), node.snapshot().topology->nodes.size() - 1) << placed.reason;
    EXPECT_FALSE(nodes_of(node, placed).contains(1));
  }
}

TEST_F(NodesOfGpusKeptFree, GiveNoMoreThanTheyMustOnAnyMachine) {
  std::mt19937 dice(3);
  for (int times = 0; times < 40; ++times) {
    const int nodes = 2 + static_cast<int>(dice() % 4);
    std::vector<int> homes;
    for (int i = 0; i < nodes; ++i) {
      if (dice() % 2 == 0) homes.push_back(i);
    }
    SimulatedNode node = keeping(fmt::format("pack:1 numa:{} core:4 pu:1", nodes).c_str(), homes);
    // More than any node has, so that several have to be used.
    const std::size_t cpus = 5 + dice() % static_cast<unsigned>(4 * nodes - 4);
    const OperationResult placed = create(node, "a", "", static_cast<int>(1000 * cpus));
    const std::size_t away = 4 * (static_cast<std::size_t>(nodes) - homes.size());
    std::size_t beside = 0;
    for (const int preferred_nodes : homes) {
      beside += (placed.cpus & CpuSet::range(static_cast<unsigned>(4 * preferred_nodes),
                                             static_cast<unsigned>(4 * preferred_nodes + 3)))
                    .size();
    }
    EXPECT_EQ(placed.cpus.size(), cpus);
    EXPECT_EQ(beside, cpus - std::min(cpus, away))
        << nodes << " nodes, " << placed.cpus.to_string() << ' ' << placed.reason;
  }
}

}  // namespace
}  // namespace topolet::simulate
