// The containers of a pod stay together, as they are created, moved and told by kubelets that know resources of pods.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/simulate/smt_nodes.hpp"

namespace topolet::simulate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kPodMachine = "pack:2 numa:1(memory=68719476736) core:8 pu:2";
constexpr std::int64_t kGi = std::int64_t{1} << 30;

SimulatedNode with_numa(const Flags& more = {}, const std::string& machine = kPodMachine) {
  Flags flags = {"--plugins.enable=numa"};
  flags.insert(flags.end(), more.begin(), more.end());
  return SimulatedNode(machine, flags);
}

std::string asking_for(int milli, std::int64_t memory_bytes = 4096) {
  return fmt::format(R"("cpu_request_milli":{},"cpu_limit_milli":{},"memory_limit":{})", milli, milli, memory_bytes);
}

void begin_pod(SimulatedNode& node, const std::string& pod, const std::string& qos, const std::string& resources = "") {
  const std::string told = resources.empty() ? "" : fmt::format(R"(,"resources":{{{}}})", resources);
  node.apply(fmt::format(R"({{"op":"run_pod","pod":"{}","qos":"{}"{}}})", pod, qos, told));
}

OperationResult add(SimulatedNode& node, const std::string& pod, const std::string& container,
                    const std::string& resources = "") {
  return node.apply(fmt::format(R"({{"op":"create","pod":"{}","container":"{}"{}{}}})", pod, container,
                                resources.empty() ? "" : ",", resources));
}

CpuSet now_on(SimulatedNode& node, const std::string& pod, const std::string& container) {
  for (const placement::LedgerEntry& entry : node.snapshot().ledger.entries) {
    if (entry.key.pod_uid == pod && entry.key.name == container) return entry.placement.cpus;
  }
  return {};
}

placement::Demand demand_of(SimulatedNode& node, const std::string& pod, const std::string& container) {
  for (const placement::LedgerEntry& entry : node.snapshot().ledger.entries) {
    if (entry.key.pod_uid == pod && entry.key.name == container) return entry.demand;
  }
  return {};
}

TEST(PodOfTwo, IsOnOneNodeInEitherOrder) {
  for (const bool proxy_first : {true, false}) {
    SimulatedNode node = with_numa();
    for (int i = 0; i < 3; ++i) {
      const std::string pod = fmt::format("p{}", i);
      begin_pod(node, pod, "guaranteed", asking_for(4100));
      if (proxy_first) add(node, pod, "proxy", asking_for(100));
      add(node, pod, "app", asking_for(4000));
      if (!proxy_first) add(node, pod, "proxy", asking_for(100));
      const auto topology = node.snapshot().topology;
      EXPECT_EQ(topology->nodes_of(now_on(node, pod, "app")), topology->nodes_of(now_on(node, pod, "proxy"))) << pod;
    }
  }
}

TEST(PodOfTwo, BeginsWhereAllOfItHasRoom) {
  SimulatedNode node = with_numa();
  begin_pod(node, "other", "guaranteed");
  add(node, "other", "main", asking_for(10000));
  begin_pod(node, "p", "guaranteed", asking_for(8000));
  EXPECT_EQ(add(node, "p", "a", asking_for(4000)).cpus.to_string(), "16-19");
  EXPECT_EQ(add(node, "p", "b", asking_for(4000)).cpus.to_string(), "20-23");
}

TEST(PodOfTwo, KeepsTheLoaderBesideTheGpu) {
  SimulatedNode node = with_numa({"--plugins.enable=gpu"});
  for (const int gpu : {0, 1, 2}) {
    node.apply(fmt::format(R"({{"op":"device","path":"/dev/vacc{}","kind":"vacc","nodes":"{}"}})", gpu, gpu / 2));
  }
  begin_pod(node, "p", "guaranteed", asking_for(6000));
  EXPECT_TRUE(add(node, "p", "trainer", asking_for(4000) + R"(,"devices":["/dev/vacc0"])")
                  .cpus.is_subset_of(CpuSet::range(0, 15)));
  EXPECT_TRUE(add(node, "p", "loader", asking_for(2000)).cpus.is_subset_of(CpuSet::range(0, 15)));
}

TEST(PodOfTwo, StaysTogetherWhenItsProxiesHaveToLeave) {
  SimulatedNode node = with_numa({}, "pack:40 numa:1 core:4 pu:1");
  for (int i = 0; i < 36; ++i) {
    begin_pod(node, fmt::format("filler{}", i), "guaranteed");
    add(node, fmt::format("filler{}", i), "main", asking_for(4000));
  }
  // Each of them is alone on what is left; their apps leave them the rest of a node.
  for (int i = 0; i < 4; ++i) {
    const std::string pod = fmt::format("p{}", i);
    begin_pod(node, pod, "guaranteed", asking_for(2100));
    const CpuSet app = add(node, pod, "app", asking_for(2000)).cpus;
    const CpuSet proxy = add(node, pod, "proxy", asking_for(100)).cpus;
    const auto topology = node.snapshot().topology;
    EXPECT_EQ(topology->nodes_of(app), topology->nodes_of(proxy)) << pod;
  }
}

TEST(PodLevelResources, AreWhatTheReasonSpeaksOf) {
  SimulatedNode node = with_numa();
  begin_pod(node, "p", "guaranteed", asking_for(6000, 8 * kGi));
  const OperationResult a = add(node, "p", "a");
  EXPECT_EQ(a.mode, "shared");
  EXPECT_THAT(a.reason, AllOf(HasSubstr("it has no CPU request of its own; its pod requests 6 CPUs as a whole"),
                              Not(HasSubstr("whole number"))));
  EXPECT_EQ(demand_of(node, "p", "a").cpu_request_milli, 6000);
  EXPECT_EQ(demand_of(node, "p", "a").memory_request_bytes, 8 * kGi);
  const OperationResult b = add(node, "p", "b");
  EXPECT_THAT(b.reason, HasSubstr("it has no CPU request of its own; its pod requests 6 CPUs as a whole"));
  EXPECT_EQ(b.cpus, a.cpus) << "it is with its pod";
}

TEST(PodLevelResources, CountForWhereTheContainersGo) {
  SimulatedNode node = with_numa();
  begin_pod(node, "first", "burstable", R"("cpu_request_milli":6000,"memory_limit":4096)");
  EXPECT_TRUE(add(node, "first", "a", R"("memory_request":4096)").cpus.is_subset_of(CpuSet::range(0, 15)));
  begin_pod(node, "p", "guaranteed", asking_for(6000, 8 * kGi));
  EXPECT_TRUE(add(node, "p", "a").cpus.is_subset_of(CpuSet::range(0, 15)));
  begin_pod(node, "q", "guaranteed", asking_for(6000, 8 * kGi));
  EXPECT_TRUE(add(node, "q", "a").cpus.is_subset_of(CpuSet::range(16, 31))) << "the emptier one";
}

/// The kubelet tells a container without limits those of its pod, and of a request without one the limit.
TEST(PodLevelResources, AreToldOfContainersWithoutTheirOwn) {
  SimulatedNode node = with_numa({}, "pack:2 numa:1(memory=68719476736) core:4 pu:1");
  begin_pod(node, "p", "guaranteed", asking_for(6000, 8 * kGi));
  EXPECT_EQ(add(node, "p", "a", asking_for(2000, kGi)).mode, "exclusive") << "which is its own";
  const OperationResult b = add(node, "p", "b", asking_for(6000, 8 * kGi));
  EXPECT_EQ(b.outcome, "placed") << b.reason;
  EXPECT_EQ(b.mode, "shared");
  EXPECT_THAT(b.reason, HasSubstr("its pod requests 6 CPUs as a whole"));
  EXPECT_EQ(demand_of(node, "p", "b").cpu_request_milli, 4000);
  EXPECT_EQ(demand_of(node, "p", "b").memory_request_bytes, 7 * kGi);
  node.apply(R"({"op":"update","pod":"p","container":"b",)" + asking_for(6000, 8 * kGi) + "}");
  EXPECT_EQ(demand_of(node, "p", "b").cpu_request_milli, 4000);
}

TEST(PodLevelResources, AreNotSeenWhereAnInitContainerRequestsAsMuch) {
  SimulatedNode node = with_numa();
  begin_pod(node, "p", "guaranteed", asking_for(4000));
  EXPECT_EQ(add(node, "p", "init", asking_for(4000)).mode, "exclusive");
  node.apply(R"({"op":"exit","pod":"p","container":"init","exit_code":0})");
  EXPECT_EQ(add(node, "p", "main", asking_for(4000)).mode, "exclusive");
}

/// One that was stopped or has failed comes back, and has its CPUs meanwhile.
TEST(PodLevelResources, AreNotThoseOfOneWhileAnotherIsBetweenTwoAttempts) {
  for (const char* end :
       {R"({"op":"stop","pod":"p","container":"a"})", R"({"op":"exit","pod":"p","container":"a","exit_code":1})"}) {
    SCOPED_TRACE(end);
    SimulatedNode node = with_numa();
    begin_pod(node, "p", "guaranteed", asking_for(4000, 8 * kGi));
    add(node, "p", "a", asking_for(2000, kGi));
    add(node, "p", "b", asking_for(4000, 8 * kGi));
    node.apply(end);
    node.apply(R"({"op":"exit","pod":"p","container":"b","exit_code":1})");
    EXPECT_EQ(add(node, "p", "b", asking_for(4000, 8 * kGi)).mode, "shared");
    EXPECT_EQ(demand_of(node, "p", "b").cpu_request_milli, 2000);
  }
}

TEST(PodLevelResources, AreNotSeenWhereAContainerWasStoppedBeforeAnotherIsMade) {
  SimulatedNode node = with_numa();
  begin_pod(node, "p", "guaranteed", asking_for(4000));
  EXPECT_EQ(add(node, "p", "first", asking_for(4000)).mode, "exclusive");
  node.apply(R"({"op":"stop","pod":"p","container":"first"})");
  EXPECT_EQ(add(node, "p", "second", asking_for(4000)).mode, "exclusive");
}

TEST(PodLevelResources, AreNamedWhereAnAnnotationNeedsARequest) {
  SimulatedNode node = with_numa();
  node.apply(R"({"op":"run_pod","pod":"p","qos":"burstable","annotations":{"topolet.io/cpus":"exclusive"},)"
             R"("resources":{"cpu_request_milli":2500}})");
  const OperationResult a = add(node, "p", "a", R"("memory_request":4096)");
  EXPECT_EQ(a.mode, "shared");
  EXPECT_THAT(a.reason, HasSubstr("needs a CPU request; its pod requests 2.5 CPUs as a whole"));
}

}  // namespace
}  // namespace topolet::simulate
