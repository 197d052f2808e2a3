// CPUs that belong to no NUMA node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "tests/simulate/hwloc_xml.hpp"
#include "tests/simulate/smt_nodes.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::simulate {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

/// Nodes 0 and 1 with CPUs 0-3 and 4-7, and a package of CPUs 8-13 without a node, all in cores of two threads.
class CpusOutsideNodes : public ::testing::Test {
 protected:
  CpusOutsideNodes() {
    HwlocXml xml;
    const std::string packages = xml.package(0, 0, {{0, 1}, {2, 3}}) + xml.package(1, 1, {{4, 5}, {6, 7}}) +
                                 xml.package(2, std::nullopt, {{8, 9}, {10, 11}, {12, 13}});
    std::ofstream(file_) << xml.machine(0x3fff, 3, packages);
  }
  ~CpusOutsideNodes() override { std::filesystem::remove(file_); }

  SimulatedNode node(const Flags& flags = {}) const { return SimulatedNode(file_.string(), with(flags)); }
  static OperationResult container_of(SimulatedNode& node, const std::string& name, int cpus) {
    return node.apply(fmt::format(
        R"({{"op":"create","pod":"pod","container":"{}","cpu_request_milli":{},"cpu_limit_milli":{},"memory_limit":4096}})",
        name, cpus * 1000, cpus * 1000));
  }
  static void start_pod(SimulatedNode& node, int cpus) {
    node.apply(fmt::format(
        R"({{"op":"run_pod","pod":"pod","qos":"guaranteed","resources":{{"cpu_request_milli":{},"cpu_limit_milli":{}}}}})",
        cpus * 1000, cpus * 1000));
  }

  const CpuSet outside_ = CpuSet::range(8, 13);

 private:
  const std::filesystem::path file_ =
      std::filesystem::temp_directory_path() / fmt::format("topolet-outside-nodes-{}.xml", ::getpid());
};

TEST_F(CpusOutsideNodes, AreANodeForEveryPolicy) {
  for (const char* policy : {"best-effort", "restricted", "single-numa-node"}) {
    SimulatedNode machine = node({fmt::format("--numa.policy={}", policy)});
    const OperationResult first = run(machine, "first", "guaranteed", 5000);
    EXPECT_EQ(first.cpus.size(), 5U) << first.reason;
    EXPECT_TRUE(first.cpus.is_subset_of(outside_)) << first.reason;
    EXPECT_THAT(first.reason, HasSubstr("all 5 CPUs requested fit on the CPUs outside any node (6 free)"));
  }
}

TEST_F(CpusOutsideNodes, AreTakenOfOnePackage) {
  const TempDir root;
  HwlocXml xml;
  const std::string packages = xml.package(0, 0, {{0}, {1}}) + xml.package(1, std::nullopt, {{2}, {3}, {4}, {5}}) +
                               xml.package(2, std::nullopt, {{6}, {7}, {8}, {9}});
  std::ofstream(root.file("machine.xml")) << xml.machine(0x3ff, 1, packages);
  SimulatedNode machine(root.file("machine.xml"), with({}));
  machine.apply(R"({"op":"occupy","cpus":"2"})");
  EXPECT_EQ(run(machine, "first", "guaranteed", 4000).cpus, CpuSet::range(6, 9)) << "packages share no cache";
}

TEST_F(CpusOutsideNodes, AreToldAsANodeInADenial) {
  SimulatedNode machine = node({"--numa.policy=single-numa-node"});
  run(machine, "first", "guaranteed", 5000);
  const OperationResult second = run(machine, "second", "guaranteed", 6000);
  EXPECT_EQ(second.outcome, "denied");
  EXPECT_THAT(second.reason, HasSubstr("(node 0: 4, node 1: 4, CPUs outside any node: 1)"));
  EXPECT_THAT(second.reason,
              HasSubstr("the CPUs outside any node have 1 of 6 CPUs free, but the container requests 6"));
}

TEST_F(CpusOutsideNodes, AreWithANodeTheWholeMachine) {
  SimulatedNode machine = node();
  const OperationResult wide = run(machine, "wide", "guaranteed", 9000);
  EXPECT_EQ(wide.cpus.size(), 9U) << wide.reason;
  EXPECT_THAT(wide.reason, HasSubstr("nodes 0-1 and the CPUs outside any node"));
}

TEST_F(CpusOutsideNodes, KeepAPodTogether) {
  SimulatedNode machine = node({"--numa.policy=single-numa-node", "--numa.scope=pod"});
  start_pod(machine, 6);
  EXPECT_TRUE(container_of(machine, "a", 2).cpus.is_subset_of(outside_));
  EXPECT_TRUE(container_of(machine, "b", 3).cpus.is_subset_of(outside_)) << "though nodes 0 and 1 have room";
  run(machine, "other", "guaranteed", 1000, R"("topolet.io/numa-policy":"best-effort")");
  const OperationResult more = container_of(machine, "c", 2);
  EXPECT_EQ(more.outcome, "denied");
  EXPECT_THAT(more.reason, HasSubstr("it is not within the CPUs outside any node, where the pod was placed"));
}

TEST_F(CpusOutsideNodes, AreSharedUntilTheyAreOvercommitted) {
  SimulatedNode machine = node({"--numa.shared-strategy=packed"});
  EXPECT_EQ(run(machine, "first", "burstable", 5000).cpus, outside_);
  const OperationResult second = run(machine, "second", "burstable", 2000);
  EXPECT_EQ(machine.snapshot().topology->nodes_of(second.cpus).size(), 1U) << second.reason;
  EXPECT_EQ(run(machine, "third", "burstable", 1000).cpus.size(), 6U) << "there is one CPU left";
  run(machine, "fourth", "guaranteed", 4000);
  run(machine, "fifth", "guaranteed", 4000);
}

TEST_F(CpusOutsideNodes, HaveTheirMemoryOnSomeNode) {
  SimulatedNode machine = node({"--numa.memory=bind"});
  const OperationResult bound = run(machine, "bound", "guaranteed", 5000);
  EXPECT_EQ(bound.mems.to_string(), "0");
  EXPECT_THAT(bound.reason, EndsWith("memory is bound to node 0"));
}

TEST_F(CpusOutsideNodes, TakeBackWhoHadThem) {
  SimulatedNode machine = node();
  const CpuSet own = run(machine, "own", "guaranteed", 5000).cpus;
  machine.apply(R"({"op":"remove_pod","pod":"own"})");
  run(machine, "shared", "burstable", 5000);
  machine.apply(R"({"op":"offline","cpus":"13"})");
  EXPECT_EQ(cpus_of(machine, "shared"), CpuSet::range(8, 12));
  machine.apply(R"({"op":"online","cpus":"13"})");
  EXPECT_EQ(cpus_of(machine, "shared"), outside_);
  machine.apply(R"({"op":"offline","cpus":"8-13"})");
  EXPECT_FALSE(cpus_of(machine, "shared").empty());
  EXPECT_FALSE(cpus_of(machine, "shared").intersects(outside_));
  machine.apply(R"({"op":"online","cpus":"8-13"})");
  EXPECT_EQ(cpus_of(machine, "shared"), outside_);
  EXPECT_TRUE(own.is_subset_of(outside_));
}

TEST_F(CpusOutsideNodes, GiveANodesContainerBackToItsNode) {
  SimulatedNode machine = node();
  EXPECT_EQ(run(machine, "node-0", "guaranteed", 4000).cpus, CpuSet::range(0, 3));
  EXPECT_EQ(run(machine, "node-1", "guaranteed", 4000).cpus, CpuSet::range(4, 7));
  machine.apply(R"({"op":"offline","cpus":"0-3"})");
  EXPECT_TRUE(cpus_of(machine, "node-0").is_subset_of(outside_));
  machine.apply(R"({"op":"online","cpus":"0-3"})");
  EXPECT_EQ(cpus_of(machine, "node-0"), CpuSet::range(0, 3));
}

/// A container that may be on one node only is, or is on none at all.
TEST_F(CpusOutsideNodes, AreNeverMixedWithANode) {
  SimulatedNode machine = node({"--numa.policy=single-numa-node", "--numa.memory=bind", "--smt.pair=true"});
  std::mt19937_64 random(7);
  std::size_t outside = 0;
  for (int step = 0; step < 300; ++step) {
    if (random() % 2 == 0) {
      machine.apply(fmt::format(R"({{"op":"remove_pod","pod":"p{}"}})", random() % static_cast<unsigned>(step + 1)));
      continue;
    }
    const bool shares = random() % 3 == 0;
    run(machine, "p" + std::to_string(step), shares ? "burstable" : "guaranteed",
        static_cast<int>(1000 * (1 + random() % 4)), random() % 3 == 0 ? kHeavy : "");
    const Snapshot snapshot = machine.snapshot();
    for (const placement::LedgerEntry& entry : snapshot.ledger.entries) {
      if (entry.placement.mode != placement::Mode::kExclusive) continue;
      const std::size_t nodes = snapshot.topology->nodes_of(entry.placement.cpus).size();
      ASSERT_EQ(nodes, entry.placement.cpus.intersects(outside_) ? 0U : 1U) << entry.placement.cpus.to_string();
      ASSERT_EQ(entry.placement.mems.size(), 1U);
      outside += nodes == 0 ? 1 : 0;
    }
  }
  EXPECT_GT(outside, 50U);
}

}  // namespace
}  // namespace topolet::simulate
