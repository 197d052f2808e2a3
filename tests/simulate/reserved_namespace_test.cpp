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
