// Containers of reserved namespaces, where a policy chooses nodes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/simulate/simulated_node.hpp"

namespace topolet::simulate {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTwoNodesOf16 = "pack:2 numa:1 core:8 pu:2";

OperationResult create_system(SimulatedNode& node, const std::string& pod, int cpu_request_milli) {
  node.apply(fmt::format(R"({{"op":"run_pod","pod":"{}","namespace":"kube-system"}})", pod));
  return node.apply(
      fmt::format(R"({{"op":"create","pod":"{}","container":"main","cpu_request_milli":{}}})", pod, cpu_request_milli));
}

SimulatedNode node_with(const std::string& reserved, const std::string& plugin = "numa") {
  return SimulatedNode(kTwoNodesOf16, {"--placement.reserved-cpus=" + reserved, "--plugins.enable=" + plugin});
}

TEST(ReservedNamespace, CountsTheReservedCpusOfANodeAsShared) {
  SimulatedNode node = node_with("0-1");
  node.guaranteed("a", 14);
  node.guaranteed("b", 12);
  node.guaranteed("d", 3);
  for (const char* pod : {"k0", "k1", "k2"}) {
    const OperationResult system = create_system(node, pod, 500);
    EXPECT_EQ(system.mode, "reserved");
    EXPECT_TRUE(CpuSet::range(0, 1).is_subset_of(system.cpus)) << system.cpus.to_string();
    EXPECT_THAT(system.reason, HasSubstr("shared CPU"));
  }
  EXPECT_EQ(node.besteffort("other").cpus.to_string(), "31");
}

TEST(ReservedNamespace, HasTheReservedCpusAlsoOnAnotherNode) {
  SimulatedNode node = node_with("0-1");
  node.guaranteed("a", 14);
  const OperationResult system = create_system(node, "k", 4000);
  EXPECT_EQ(system.cpus.to_string(), "0-1,16-31");
  node.guaranteed("b", 10);
  node.guaranteed("c", 5);
  const OperationResult last = create_system(node, "k2", 100);
  EXPECT_TRUE(CpuSet::range(0, 1).is_subset_of(last.cpus));
}

TEST(ReservedNamespace, KeepsThemWhenCpusComeAndGo) {
  SimulatedNode node = node_with("0-1");
  node.guaranteed("a", 14);
  ASSERT_EQ(create_system(node, "k", 4000).cpus.to_string(), "0-1,16-31");
  const auto cpus_after = [&node](const std::string& line) {
    CpuSet cpus;
    for (const auto& changed : node.apply(line).changed) {
      if (changed.pod == "k") cpus = changed.cpus;
    }
    return cpus.to_string();
  };
  EXPECT_EQ(cpus_after(R"({"op":"offline","cpus":"20-31"})"), "0-1,16-19");
  EXPECT_EQ(cpus_after(R"({"op":"offline","cpus":"0"})"), "1,16-19");
  EXPECT_EQ(cpus_after(R"({"op":"online","cpus":"0,20-31"})"), "0-1,16-31");
}

TEST(ReservedNamespace, GetsThemWhenTheyComeOnline) {
  SimulatedNode node = node_with("0,16");
  node.apply(R"({"op":"offline","cpus":"16"})");
  ASSERT_EQ(create_system(node, "k", 500).cpus.to_string(), "0-15");
  const OperationResult online = node.apply(R"({"op":"online","cpus":"16"})");
  ASSERT_EQ(online.changed.size(), 1U);
  EXPECT_EQ(online.changed[0].cpus.to_string(), "0-16");
}

TEST(ReservedNamespace, BindsMemoryBesideTheCpusThatWereChosenAndGrows) {
  SimulatedNode node("pack:2 numa:1(memory=68719476736) core:8 pu:1",
                     {"--placement.reserved-cpus=0,8", "--plugins.enable=numa", "--numa.memory=bind",
                      "--numa.policy=single-numa-node"});
  node.apply(R"({"op":"run_pod","pod":"k","namespace":"kube-system","qos":"burstable"})");
  const OperationResult system = node.apply(
      R"({"op":"create","pod":"k","container":"main","cpu_request_milli":500,"memory_request":2147483648,"memory_limit":2147483648})");
  EXPECT_EQ(system.mems.to_string(), "0");
  EXPECT_TRUE(system.cpus.contains(8));
  const OperationResult grown = node.apply(
      R"({"op":"update","pod":"k","container":"main","memory_request":4294967296,"memory_limit":4294967296})");
  EXPECT_EQ(grown.outcome, "ok") << grown.reason;
  EXPECT_EQ(grown.mems.to_string(), "0");
  EXPECT_EQ(grown.cpus, system.cpus);
}

TEST(ReservedNamespace, StaysOnThemWhenItsNodeIsTaken) {
  SimulatedNode node = node_with("0-1");
  node.guaranteed("a", 14);
  ASSERT_EQ(create_system(node, "k", 4000).cpus.to_string(), "0-1,16-31");
  // All but one of the shared CPUs.
  const OperationResult all = node.guaranteed("b", 15);
  EXPECT_EQ(all.outcome, "placed");
  ASSERT_FALSE(all.changed.empty());
  EXPECT_EQ(all.changed[0].cpus.to_string(), "0-1,31");
}

TEST(ReservedNamespace, HasReservedCpusOfSeveralNodes) {
  SimulatedNode node = node_with("0,16");
  const OperationResult system = create_system(node, "k", 500);
  EXPECT_TRUE((CpuSet{0, 16}).is_subset_of(system.cpus)) << system.cpus.to_string();
}

TEST(ReservedNamespace, HasNoReservedCpusThatTheKubeletLeavesOut) {
  SimulatedNode node = node_with("0-1");
  node.apply(R"({"op":"run_pod","pod":"k","namespace":"kube-system"})");
  const OperationResult bounded =
      node.apply(R"({"op":"create","pod":"k","container":"main","cpu_request_milli":500,"cpuset_cpus":"4-7"})");
  EXPECT_EQ(bounded.cpus.to_string(), "4-7");
}

}  // namespace
}  // namespace topolet::simulate
