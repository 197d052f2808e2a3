// Containers of one pod whose memory requests are read from one oom_score_adj: they are booked once.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulate/simulated_node.hpp"

namespace topolet::simulate {
namespace {

constexpr std::int64_t kSidecarGiB = std::int64_t{1} << 30;
constexpr const char* kSidecarMachine = "pack:2 numa:1(memory=68719476736) core:8 pu:1";

/// On 128 GiB, 625 stands for 48 GiB.
class SidecarMemory : public ::testing::Test {
 protected:
  void run_burstable_pod(const std::string& more = "") {
    node_.apply(fmt::format(R"({{"op":"run_pod","pod":"p","qos":"burstable"{}}})", more));
  }
  OperationResult create(const std::string& container, const std::string& more = "") {
    return node_.apply(
        fmt::format(R"({{"op":"create","pod":"p","container":"{}","cpu_request_milli":100,"oom_score_adj":625{}}})",
                    container, more));
  }
  std::string create_guaranteed(const std::string& pod, int gib) {
    node_.apply(fmt::format(R"({{"op":"run_pod","pod":"{}","qos":"guaranteed"}})", pod));
    return node_
        .apply(fmt::format(
            R"({{"op":"create","pod":"{}","container":"main","cpu_request_milli":1000,"cpu_limit_milli":1000,"memory_limit":{}}})",
            pod, gib * kSidecarGiB))
        .outcome;
  }

  SimulatedNode node_{kSidecarMachine,
                      {"--plugins.enable=numa", "--numa.memory=bind", "--numa.policy=single-numa-node"}};
};

TEST_F(SidecarMemory, IsBookedOnce) {
  for (const auto& [first, second] : {std::pair("app", "proxy"), std::pair("proxy", "app")}) {
    node_ = SimulatedNode(kSidecarMachine,
                          {"--plugins.enable=numa", "--numa.memory=bind", "--numa.policy=single-numa-node"});
    run_burstable_pod();
    EXPECT_EQ(create(first).outcome, "placed");
    EXPECT_EQ(create(second).outcome, "placed");
    EXPECT_EQ(create_guaranteed("w", 60), "placed");
    EXPECT_EQ(create_guaranteed("v", 17), "denied") << "48 GiB are booked once";
    EXPECT_EQ(create_guaranteed("v", 15), "placed");
  }
}

TEST_F(SidecarMemory, IsBookedOnceAfterARestart) {
  run_burstable_pod();
  create("app");
  create("proxy");
  node_.apply(R"({"op":"restart"})");
  EXPECT_EQ(create_guaranteed("w", 60), "placed");
  EXPECT_EQ(create_guaranteed("v", 17), "denied");
}

TEST_F(SidecarMemory, IsBookedForWhoIsLeft) {
  run_burstable_pod();
  create("app");
  create("proxy");
  node_.apply(R"({"op":"exit","pod":"p","container":"proxy"})");
  EXPECT_EQ(create_guaranteed("w", 60), "placed");
  EXPECT_EQ(create_guaranteed("v", 17), "denied");
  EXPECT_EQ(create("proxy").outcome, "placed");
  EXPECT_EQ(create_guaranteed("v", 15), "placed");
}

TEST_F(SidecarMemory, IsNoMoreThanTheLargestLimit) {
  run_burstable_pod();
  create("app", fmt::format(R"(,"memory_limit":{})", 4 * kSidecarGiB));
  create("proxy", fmt::format(R"(,"memory_limit":{})", kSidecarGiB));
  EXPECT_EQ(create_guaranteed("w", 59), "placed");
  EXPECT_EQ(create_guaranteed("v", 59), "placed");
  EXPECT_EQ(create_guaranteed("u", 6), "denied");
}

TEST_F(SidecarMemory, IsNoMoreThanTheSandboxMayHave) {
  run_burstable_pod(fmt::format(R"(,"resources":{{"memory_limit":{}}})", 4 * kSidecarGiB));
  create("app");
  create("proxy");
  EXPECT_EQ(create_guaranteed("w", 59), "placed");
  EXPECT_EQ(create_guaranteed("v", 59), "placed");
}

TEST_F(SidecarMemory, IsNoneWhereNobodyTellsIt) {
  run_burstable_pod();
  node_.apply(R"({"op":"create","pod":"p","container":"app","cpu_request_milli":100,"oom_score_adj":-997})");
  node_.apply(R"({"op":"create","pod":"p","container":"proxy","cpu_request_milli":100,"oom_score_adj":0})");
  EXPECT_EQ(create_guaranteed("w", 63), "placed");
  EXPECT_EQ(create_guaranteed("v", 63), "placed");
}

}  // namespace
}  // namespace topolet::simulate
