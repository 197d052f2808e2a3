// Containers that share too few CPUs while others idle.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/simulate/simulated_node.hpp"

namespace topolet::simulate {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

class Crowd : public ::testing::Test {
 protected:
  static constexpr const char* kTwoNodes = "pack:2 numa:1 core:8 pu:1";

  static OperationResult clock(SimulatedNode& node, int seconds = 1) {
    return node.apply(fmt::format(R"({{"op":"clock","advance_s":{}}})", seconds));
  }
  static OperationResult remove(SimulatedNode& node, const std::string& pod) {
    return node.apply(fmt::format(R"({{"op":"remove_pod","pod":"{}"}})", pod));
  }
  static std::string cpus_of(SimulatedNode& node, const std::string& pod) {
    for (const ContainerSnapshot& container : node.snapshot().containers) {
      if (container.key.pod_uid == pod) return container.cpus.to_string();
    }
    return "nothing";
  }
  static std::string runs_on(SimulatedNode& node, const std::string& pod) {
    for (const RunningContainer& container : node.runtime().running()) {
      if (container.pod == pod) return container.cpus.to_string();
    }
    return "nothing";
  }

  /// Three containers ask for six CPUs of node 0, of which two are left, while the eight of node 1 idle.
  static SimulatedNode three_on_two_cpus(std::vector<std::string> more = {}) {
    more.emplace_back("--plugins.enable=numa");
    SimulatedNode node(kTwoNodes, more);
    node.guaranteed("other", 8);
    for (const char* pod : {"a", "b", "c"}) node.burstable(pod, 2000);
    EXPECT_EQ(cpus_of(node, "a"), "8-15");
    node.guaranteed("own", 6);
    EXPECT_EQ(cpus_of(node, "c"), "14-15");
    remove(node, "other");
    return node;
  }
};

TEST_F(Crowd, LeavesForCpusThatIdleOneASecond) {
  SimulatedNode node = three_on_two_cpus();
  EXPECT_EQ(cpus_of(node, "a"), "14-15") << "what comes and goes together is there together first";
  const OperationResult first = clock(node);
  ASSERT_THAT(first.changed, SizeIs(1));
  EXPECT_EQ(first.changed[0].pod, "a");
  EXPECT_EQ(first.changed[0].cpus.to_string(), "0-7");
  EXPECT_THAT(
      first.changed[0].reason,
      StartsWith("its CPUs 14-15 are shared by containers that request 6 CPUs; it moves to node 0, where 8 CPUs "
                 "have 0 requested; numa: "));
  EXPECT_EQ(runs_on(node, "a"), "0-7");
  const OperationResult second = clock(node);
  ASSERT_THAT(second.changed, SizeIs(1));
  EXPECT_EQ(second.changed[0].pod, "b");
  EXPECT_THAT(second.changed[0].reason, HasSubstr("where 8 CPUs have 2 requested"));
  EXPECT_THAT(clock(node, 600).changed, IsEmpty()) << "c has the two CPUs that it asks for";
}

TEST_F(Crowd, GoesOnAfterARestartAsIfThereHadBeenNone) {
  SimulatedNode node = three_on_two_cpus();
  node.apply(R"({"op":"restart"})");
  EXPECT_THAT(clock(node).changed, SizeIs(1));
  EXPECT_THAT(node.apply(R"({"op":"restart"})").changed, IsEmpty());
  EXPECT_THAT(clock(node).changed, SizeIs(1));
  node.apply(R"({"op":"restart"})");
  EXPECT_THAT(clock(node, 600).changed, IsEmpty());
  EXPECT_EQ(cpus_of(node, "a"), "0-7");
  EXPECT_EQ(cpus_of(node, "b"), "0-7");
  EXPECT_EQ(cpus_of(node, "c"), "14-15");
}

TEST_F(Crowd, IsWhereItWentWhenTheDaemonIsKilledOverTheMove) {
  for (const char* at : {"before-answer", "after-answer", "in-flight"}) {
    SCOPED_TRACE(at);
    SimulatedNode node = three_on_two_cpus();
    node.apply(fmt::format(R"({{"op":"restart","at":"{}"}})", at));
    EXPECT_THAT(clock(node).reason, HasSubstr("killed at UpdateContainerResources"));
    EXPECT_EQ(runs_on(node, "a"), "0-7");
    clock(node, 60);
    EXPECT_EQ(runs_on(node, "b"), "0-7");
    EXPECT_EQ(runs_on(node, "c"), "14-15");
  }
}

TEST_F(Crowd, IsFoundWhenMoreIsRequested) {
  SimulatedNode node(kTwoNodes, {"--plugins.enable=numa"});
  node.guaranteed("other", 8);
  node.burstable("a", 4000);
  node.burstable("b", 4000);
  remove(node, "other");
  EXPECT_THAT(clock(node, 5).changed, IsEmpty());
  node.apply(R"({"op":"update","pod":"b","container":"main","cpu_request_milli":8000})");
  EXPECT_THAT(clock(node).changed, SizeIs(1));
  EXPECT_NE(cpus_of(node, "a"), cpus_of(node, "b"));
}

TEST_F(Crowd, StaysBesideItsDevice) {
  for (const char* affinity : {"prefer", "require"}) {
    SCOPED_TRACE(affinity);
    SimulatedNode node(kTwoNodes,
                       {"--plugins.enable=numa", "--plugins.enable=gpu", std::string("--gpu.affinity=") + affinity});
    node.apply(R"({"op":"device","path":"/dev/x0","kind":"gpu","nodes":"1"})");
    for (const char* pod : {"a", "b"}) {
      node.apply(fmt::format(R"({{"op":"run_pod","pod":"{}","qos":"burstable"}})", pod));
      node.apply(fmt::format(R"({{"op":"create","pod":"{}","container":"main","cpu_request_milli":3000,)"
                             R"("devices":["/dev/x0"]}})",
                             pod));
    }
    node.apply(R"({"op":"occupy","cpus":"8-13"})");
    EXPECT_EQ(cpus_of(node, "a"), "14-15");
    EXPECT_THAT(clock(node, 60).changed, IsEmpty());
  }
}

TEST_F(Crowd, IsNotMadeByThoseWhoGoBack) {
  SimulatedNode node("pack:2 numa:1 core:4 pu:1", {"--plugins.enable=numa"});
  node.guaranteed("other", 4);
  node.burstable("a", 2000);
  node.burstable("b", 2000);
  ASSERT_EQ(cpus_of(node, "b"), "4-7");
  remove(node, "other");
  node.apply(R"({"op":"occupy","cpus":"4-7"})");
  EXPECT_EQ(cpus_of(node, "a"), "0-3");
  EXPECT_EQ(cpus_of(node, "b"), "0-3");
  clock(node, 60);
  EXPECT_THAT(node.apply(R"({"op":"vacate","cpus":"7"})").changed, IsEmpty()) << "four CPUs are requested";
  EXPECT_THAT(clock(node, 60).changed, IsEmpty());
  EXPECT_THAT(node.apply(R"({"op":"vacate","cpus":"5-6"})").changed, SizeIs(1)) << "there is room for one of them";
  EXPECT_THAT(clock(node, 60).changed, IsEmpty());
}

}  // namespace
}  // namespace topolet::simulate
