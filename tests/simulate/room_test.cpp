// Containers that make room for one that is created or resized.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/simulate/simulated_node.hpp"

namespace topolet::simulate {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class MadeRoom : public ::testing::Test {
 protected:
  static constexpr const char* kTwoNodes = "pack:2 numa:1 core:8 pu:1";
  static constexpr const char* kNever = R"({"topolet.io/move":"never"})";

  static std::string runs_on(SimulatedNode& node, const std::string& pod) {
    for (const RunningContainer& container : node.runtime().running()) {
      if (container.pod == pod) return container.cpus.to_string();
    }
    return "nothing";
  }
  static std::string held_by(SimulatedNode& node, const std::string& pod) {
    for (const ContainerSnapshot& container : node.snapshot().containers) {
      if (container.key.pod_uid == pod) return container.cpus.to_string();
    }
    return "nothing";
  }
  static std::vector<std::string> with(std::vector<std::string> more) {
    more.emplace_back("--plugins.enable=numa");
    return more;
  }
  static OperationResult create(SimulatedNode& node, const std::string& pod, int cpus, const std::string& annotations,
                                const std::string& more = "") {
    node.apply(fmt::format(R"({{"op":"run_pod","pod":"{}","name":"{}","qos":"guaranteed","annotations":{}}})", pod, pod,
                           annotations));
    return node.apply(
        fmt::format(R"({{"op":"create","pod":"{}","container":"main","cpu_request_milli":{},"cpu_limit_milli":{},)"
                    R"("memory_request":1048576,"memory_limit":1048576{}}})",
                    pod, cpus * 1000, cpus * 1000, more));
  }

  /// Node 0 has the pods `four` and `two`, node 1 `six`: on each two CPUs are free.
  static void fill(SimulatedNode& node, const std::string& annotations_of_two = "{}",
                   const std::string& annotations_of_four = "{}") {
    create(node, "four", 4, annotations_of_four);
    create(node, "two", 2, annotations_of_two);
    node.guaranteed("six", 6);
    ASSERT_EQ(runs_on(node, "four"), "0-3");
    ASSERT_EQ(runs_on(node, "two"), "4-5");
    ASSERT_EQ(runs_on(node, "six"), "8-13");
  }
};

TEST_F(MadeRoom, MovesOneContainerForAnotherThatWouldBeWide) {
  SimulatedNode node(kTwoNodes, with({"--placement.heal=all"}));
  fill(node);
  const OperationResult three = node.guaranteed("three", 3);
  EXPECT_EQ(three.cpus.to_string(), "4-6");
  EXPECT_THAT(three.reason, HasSubstr("two"));
  EXPECT_EQ(runs_on(node, "three"), "4-6");
  EXPECT_EQ(runs_on(node, "two"), "14-15");
  ASSERT_THAT(three.changed, SizeIs(1));
  EXPECT_THAT(three.changed[0].reason, HasSubstr("makes room for default/three/main"));
}

TEST_F(MadeRoom, MovesNobodyWithExclusiveCpusByDefault) {
  SimulatedNode node(kTwoNodes, with({}));
  fill(node);
  EXPECT_EQ(node.guaranteed("three", 3).cpus.to_string(), "6-7,14");
  EXPECT_EQ(runs_on(node, "two"), "4-5");
}

TEST_F(MadeRoom, MovesWhoseAnnotationAllowsIt) {
  SimulatedNode node(kTwoNodes, with({}));
  fill(node, R"({"topolet.io/move":"allow"})");
  EXPECT_EQ(node.guaranteed("three", 3).cpus.to_string(), "4-6");
  EXPECT_EQ(runs_on(node, "two"), "14-15");
}

TEST_F(MadeRoom, LeavesAloneWhoseAnnotationForbidsIt) {
  SimulatedNode node(kTwoNodes, with({"--placement.heal=all"}));
  fill(node, kNever);
  EXPECT_EQ(node.guaranteed("three", 3).cpus.to_string(), "6-7,14");
}

TEST_F(MadeRoom, MovesNobodyToOtherNodesWhereThatIsNotWanted) {
  for (const char* how : {"off", "node"}) {
    SimulatedNode node(kTwoNodes, with({"--placement.heal=all", fmt::format("--placement.make-room={}", how)}));
    fill(node);
    EXPECT_EQ(node.guaranteed("three", 3).cpus.to_string(), "6-7,14") << how;
  }
}

TEST_F(MadeRoom, AdmitsWhatWouldBeDeniedForWantOfAPlace) {
  SimulatedNode node(kTwoNodes, with({"--placement.heal=all", "--numa.policy=single-numa-node"}));
  fill(node);
  EXPECT_EQ(node.guaranteed("three", 3).outcome, "placed");
  EXPECT_EQ(runs_on(node, "three"), "4-6");
}

TEST_F(MadeRoom, DeniesWhereCpusAreMissingNotAPlace) {
  SimulatedNode node(kTwoNodes, with({"--placement.heal=all", "--numa.policy=single-numa-node"}));
  fill(node);
  EXPECT_EQ(node.guaranteed("five", 5).outcome, "denied");
  EXPECT_EQ(runs_on(node, "two"), "4-5");
}

TEST_F(MadeRoom, PlacesWithoutTheMoveIfTheOtherDoesNotLeave) {
  SimulatedNode node(kTwoNodes, with({"--placement.heal=all"}));
  fill(node);
  node.apply(R"({"op":"stuck","pod":"two","container":"main"})");
  const OperationResult three = node.guaranteed("three", 3);
  EXPECT_EQ(three.outcome, "placed");
  EXPECT_EQ(three.cpus.to_string(), "6-7,14");
  EXPECT_EQ(runs_on(node, "two"), "4-5");
  EXPECT_EQ(held_by(node, "two"), "4-5");
}

TEST_F(MadeRoom, LeavesAloneForTenMinutesWhoHasMoved) {
  SimulatedNode node(kTwoNodes, with({"--placement.heal=all"}));
  fill(node, "{}", kNever);
  node.guaranteed("three", 3);
  ASSERT_EQ(runs_on(node, "two"), "14-15");
  node.apply(R"({"op":"remove_pod","pod":"three"})");
  node.apply(R"({"op":"remove_pod","pod":"six"})");
  EXPECT_EQ(node.guaranteed("seven", 7).cpus.to_string(), "4,8-13") << "who could make room has just moved";
  EXPECT_EQ(runs_on(node, "two"), "14-15");
  node.apply(R"({"op":"remove_pod","pod":"seven"})");
  node.apply(R"({"op":"clock","advance_s":600})");
  EXPECT_EQ(node.guaranteed("seven", 7).cpus.to_string(), "8-14");
  EXPECT_EQ(runs_on(node, "two"), "4-5");
}

TEST_F(MadeRoom, MovesNobodyWithADevice) {
  SimulatedNode node(kTwoNodes, with({"--placement.heal=all"}));
  node.apply(R"({"op":"device","path":"/dev/x","kind":"gpu","nodes":"0"})");
  node.guaranteed("four", 4);
  create(node, "two", 2, "{}", R"(,"devices":["/dev/x"])");
  node.guaranteed("six", 6);
  const OperationResult three = node.guaranteed("three", 3);
  EXPECT_EQ(runs_on(node, "two"), "4-5");
  EXPECT_EQ(three.cpus.to_string(), "6-7,14");
}

TEST_F(MadeRoom, KeepsOutOfNodesThatASchedulerHasPromised) {
  SimulatedNode node(kTwoNodes, with({"--placement.heal=all", "--daemon.node-name=n1"}));
  fill(node);
  node.apply(
      R"({"op":"run_pod","pod":"soon","name":"soon","qos":"guaranteed","annotations":{"topolet.io/zone":"{\"v\":1,\"node\":\"n1\",\"zones\":[1]}"}})");
  EXPECT_EQ(node.guaranteed("three", 3).cpus.to_string(), "6-7,14");
  EXPECT_EQ(runs_on(node, "two"), "4-5");
}

TEST_F(MadeRoom, KeepsThePodTogether) {
  SimulatedNode node(kTwoNodes, with({"--placement.heal=all"}));
  fill(node);
  node.apply(R"({"op":"create","pod":"two","container":"beside","cpu_request_milli":100,"cpu_limit_milli":100,)"
             R"("memory_request":1048576,"memory_limit":1048576})");
  EXPECT_EQ(node.guaranteed("three", 3).cpus.to_string(), "6-7,14");
}

/// As the kubelet does, it says with the sandbox what the pod requests.
TEST_F(MadeRoom, MovesPodsThatSayWhatTheyRequest) {
  SimulatedNode node(kTwoNodes, with({"--placement.heal=all"}));
  create(node, "four", 4, "{}");
  node.apply(R"({"op":"run_pod","pod":"two","name":"two","qos":"guaranteed","resources":{"cpu_request_milli":2000,)"
             R"("cpu_limit_milli":2000,"memory_request":1048576,"memory_limit":1048576}})");
  node.apply(R"({"op":"create","pod":"two","container":"main","cpu_request_milli":2000,"cpu_limit_milli":2000,)"
             R"("memory_request":1048576,"memory_limit":1048576})");
  node.guaranteed("six", 6);
  ASSERT_EQ(runs_on(node, "two"), "4-5");
  EXPECT_EQ(node.guaranteed("three", 3).cpus.to_string(), "4-6");
  EXPECT_EQ(runs_on(node, "two"), "14-15");
}

TEST_F(MadeRoom, IsMadeForOneThatGrows) {
  SimulatedNode node(kTwoNodes, with({"--placement.heal=all"}));
  fill(node);
  const OperationResult grown =
      node.apply(R"({"op":"update","pod":"four","container":"main","cpu_request_milli":7000,"cpu_limit_milli":7000})");
  EXPECT_EQ(grown.outcome, "ok");
  EXPECT_EQ(runs_on(node, "four"), "0-6");
  EXPECT_EQ(runs_on(node, "two"), "14-15");
}

TEST_F(MadeRoom, GrowsWithoutTheMoveIfTheOtherDoesNotLeave) {
  SimulatedNode node(kTwoNodes, with({"--placement.heal=all"}));
  fill(node);
  node.apply(R"({"op":"stuck","pod":"two","container":"main"})");
  node.apply(R"({"op":"update","pod":"four","container":"main","cpu_request_milli":7000,"cpu_limit_milli":7000})");
  EXPECT_EQ(runs_on(node, "four"), "0-3,6-7,14");
  EXPECT_EQ(runs_on(node, "two"), "4-5");
}

TEST_F(MadeRoom, IsMadeInACacheWithinTheNode) {
  SimulatedNode node("pack:1 numa:1 l3:3 core:4 pu:1", with({"--placement.heal=all", "--placement.make-room=node"}));
  for (const auto& [pod, cpus] : {std::pair("a", 2), {"b", 3}, {"c", 2}, {"d", 2}}) node.guaranteed(pod, cpus);
  node.apply(R"({"op":"remove_pod","pod":"a"})");
  SCOPED_TRACE(fmt::format("b {} c {} d {}", runs_on(node, "b"), runs_on(node, "c"), runs_on(node, "d")));
  const OperationResult four = node.guaranteed("e", 4);
  EXPECT_TRUE(four.cpus == CpuSet::range(0, 3) || four.cpus == CpuSet::range(8, 11)) << four.cpus.to_string();
  EXPECT_THAT(four.changed, SizeIs(1));
}

TEST_F(MadeRoom, IsMadeBesideADeviceByUpToThree) {
  SimulatedNode node(kTwoNodes, with({"--placement.heal=all", "--plugins.enable=gpu", "--gpu.headroom=0"}));
  node.apply(R"({"op":"device","path":"/dev/nvidia0","kind":"gpu","nodes":"0"})");
  for (const char* pod : {"a", "b", "c"}) node.guaranteed(pod, 2);
  SCOPED_TRACE(fmt::format("a {} b {} c {}", runs_on(node, "a"), runs_on(node, "b"), runs_on(node, "c")));
  const OperationResult gpu = create(node, "gpu", 6, "{}", R"(,"devices":["/dev/nvidia0"])");
  EXPECT_EQ(gpu.outcome, "placed");
  EXPECT_TRUE(gpu.cpus.is_subset_of(CpuSet::range(0, 7))) << gpu.cpus.to_string() << ": " << gpu.reason;
}

TEST_F(MadeRoom, OutlivesARestartAtEachCall) {
  for (const char* at : {"before-answer", "after-answer", "in-flight"}) {
    for (int calls = 1; calls <= 6; ++calls) {
      SCOPED_TRACE(fmt::format("{} {}", at, calls));
      SimulatedNode node(kTwoNodes, with({"--placement.heal=all"}));
      fill(node);
      node.apply(fmt::format(R"({{"op":"restart","at":"{}","calls":{}}})", at, calls));
      const OperationResult three = node.guaranteed("three", 3);
      node.apply(R"({"op":"clock","advance_s":60})");
      EXPECT_EQ(three.outcome, "placed") << three.reason;
      EXPECT_EQ(runs_on(node, "three"), "4-6");
      EXPECT_EQ(runs_on(node, "two"), "14-15");
    }
  }
}

TEST_F(MadeRoom, IsNotMadeByOneThatDoesNotLeaveWhateverDaemonHasMovedIt) {
  for (const char* at : {"before-answer", "after-answer", "in-flight"}) {
    for (int calls = 1; calls <= 6; ++calls) {
      SCOPED_TRACE(fmt::format("{} {}", at, calls));
      SimulatedNode node(kTwoNodes, with({"--placement.heal=all"}));
      fill(node);
      node.apply(R"({"op":"stuck","pod":"two","container":"main"})");
      node.apply(fmt::format(R"({{"op":"restart","at":"{}","calls":{}}})", at, calls));
      const OperationResult three = node.guaranteed("three", 3);
      node.apply(R"({"op":"clock","advance_s":60})");
      EXPECT_EQ(three.outcome, "placed") << three.reason;
      EXPECT_EQ(runs_on(node, "three"), "6-7,14");
      EXPECT_EQ(runs_on(node, "two"), "4-5");
      EXPECT_EQ(held_by(node, "two"), "4-5");
    }
  }
}

TEST_F(MadeRoom, IsNotMadeForOneThatGrowsByOneThatDoesNotLeaveWhateverDaemonHasMovedIt) {
  for (const char* at : {"before-answer", "after-answer", "in-flight"}) {
    for (int calls = 1; calls <= 6; ++calls) {
      SCOPED_TRACE(fmt::format("{} {}", at, calls));
      SimulatedNode node(kTwoNodes, with({"--placement.heal=all"}));
      fill(node);
      node.apply(R"({"op":"stuck","pod":"two","container":"main"})");
      node.apply(fmt::format(R"({{"op":"restart","at":"{}","calls":{}}})", at, calls));
      const OperationResult grown = node.apply(
          R"({"op":"update","pod":"four","container":"main","cpu_request_milli":7000,"cpu_limit_milli":7000})");
      node.apply(R"({"op":"clock","advance_s":60})");
      EXPECT_EQ(grown.outcome, "ok") << grown.reason;
      EXPECT_EQ(runs_on(node, "four"), "0-3,6-7,14");
      EXPECT_EQ(runs_on(node, "two"), "4-5");
      EXPECT_EQ(held_by(node, "two"), "4-5");
    }
  }
}

/// Its kubelet never asks for it again.
TEST_F(MadeRoom, IsTakenBackWhereTheNewcomerDoesNotCome) {
  SimulatedNode node(kTwoNodes, with({"--placement.heal=all"}));
  fill(node);
  node.apply(R"({"op":"stuck","pod":"two","container":"main"})");
  node.apply(R"({"op":"restart","at":"before-answer","calls":1,"repeat":false})");
  node.guaranteed("three", 3);
  node.apply(R"({"op":"clock","advance_s":1200})");
  EXPECT_EQ(runs_on(node, "three"), "nothing");
  EXPECT_EQ(held_by(node, "three"), "nothing");
  EXPECT_EQ(held_by(node, "two"), "4-5");
}

}  // namespace
}  // namespace topolet::simulate
