// numa.strategy = roomy with the daemon's own ledger: what it remembers, and over which restarts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/simulate/recorded_run.hpp"
#include "tests/simulate/simulated_node.hpp"

namespace topolet::simulate {
namespace {

constexpr const char* kTwoNodesOfEight = "pack:2 numa:1 core:8 pu:1";  // node 0: CPUs 0-7; node 1: 8-15
const std::vector<std::string> kRoomy = {"--plugins.enable=numa", "--numa.strategy=roomy"};

void end_pod(SimulatedNode& node, const std::string& pod) { node.apply(R"({"op":"remove_pod","pod":")" + pod + "\"}"); }

/// 6 CPUs of node 0 and 4 of node 1 are held, for more than a day.
void hold_ten_cpus(SimulatedNode& node) {
  node.guaranteed("six", 6);
  node.guaranteed("four", 4);
  node.apply(R"({"op":"clock","advance_s":93600})");
}

int node_of(const OperationResult& placed) { return placed.cpus.intersects(CpuSet::range(0, 7)) ? 0 : 1; }

TEST(Roomy, SpreadsUntilHalfOfTheMachineIsHeld) {
  SimulatedNode node(kTwoNodesOfEight, kRoomy);
  EXPECT_EQ(node_of(node.guaranteed("a", 4)), 0);
  EXPECT_EQ(node_of(node.guaranteed("b", 2)), 1);
  EXPECT_EQ(node_of(node.guaranteed("c", 2)), 1) << "the emptier one: half of the machine is still free";
}

TEST(Roomy, KeepsHalfANodeWhereNothingIsKnownOfTheLastDay) {
  SimulatedNode node(kTwoNodesOfEight, kRoomy);
  hold_ten_cpus(node);
  EXPECT_EQ(node_of(node.guaranteed("new", 2)), 0) << "the fuller one";
}

TEST(Roomy, KeepsRoomForTheLargestContainerOfTheLastDay) {
  SimulatedNode node(kTwoNodesOfEight, kRoomy);
  hold_ten_cpus(node);
  node.guaranteed("short", 1);
  end_pod(node, "short");
  EXPECT_EQ(node_of(node.guaranteed("new", 2)), 1) << "the emptier one: 4 CPUs stay free, and nobody had more than one";
}

TEST(Roomy, RemembersTheLargestContainerOverRestarts) {
  SimulatedNode node(kTwoNodesOfEight, kRoomy);
  hold_ten_cpus(node);
  node.guaranteed("short", 1);
  end_pod(node, "short");
  node.apply(R"({"op":"restart"})");
  EXPECT_EQ(node_of(node.guaranteed("new", 2)), 1);
  end_pod(node, "new");
  node.apply(R"({"op":"clock","advance_s":93600})");
  node.apply(R"({"op":"restart"})");
  EXPECT_EQ(node_of(node.guaranteed("later", 2)), 0) << "a day has passed";
}

TEST(Roomy, CountsContainersThatItFindsWhereTheDatabaseIsLost) {
  SimulatedNode node(kTwoNodesOfEight, kRoomy);
  hold_ten_cpus(node);
  node.guaranteed("short", 1);
  end_pod(node, "short");
  node.apply(R"({"op":"restart","database":"lost"})");
  EXPECT_EQ(node_of(node.guaranteed("new", 2)), 0);
}

TEST(Roomy, DecidesTheSameInAReplay) {
  const RecordedRun run;
  {
    SimulatedNode node(kTwoNodesOfEight, kRoomy, run.options());
    hold_ten_cpus(node);
    node.guaranteed("short", 1);
    end_pod(node, "short");
    node.apply(R"({"op":"restart"})");
    EXPECT_EQ(node_of(node.guaranteed("new", 2)), 1);
  }
  const replay::ReplayResult result = run.replay();
  EXPECT_EQ(first_difference(result), "");
  EXPECT_EQ(result.decisions, 4U);
}

TEST(Roomy, KeepsReplicasApart) {
  SimulatedNode node(kTwoNodesOfEight, kRoomy);
  node.guaranteed("other", 3);
  const auto replica = [&node](const std::string& pod) {
    node.apply(R"({"op":"run_pod","pod":")" + pod + R"(","labels":{"app":"db","apps.kubernetes.io/pod-index":")" + pod +
               "\"}}");
    return node_of(node.apply(R"({"op":"create","pod":")" + pod + R"(","container":"main","cpu_request_milli":1000,)" +
                              R"("cpu_limit_milli":1000,"memory_request":1048576,"memory_limit":1048576})"));
  };
  EXPECT_EQ(replica("0"), 1);
  EXPECT_EQ(replica("1"), 0) << "the fuller node";
  EXPECT_EQ(replica("2"), 1);
}

}  // namespace
}  // namespace topolet::simulate
