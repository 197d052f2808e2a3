// On the machine of tests/vm/run: two packages with a node each, a disk on node 1.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/integration/node_test.hpp"
#include "tests/vm/offline_cpus.hpp"

namespace topolet::integration {
namespace {

using ::testing::HasSubstr;

CpuSet cpus_of_node(int node) {
  const auto cpus = CpuSet::parse(line_of("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist"));
  EXPECT_TRUE(cpus.has_value()) << "the machine has no node " << node;
  return cpus ? *cpus : CpuSet{};
}

/// The node that has all of these CPUs; -1 if it takes more than one.
int node_of(const CpuSet& cpus) {
  for (const int node : {0, 1}) {
    if ((cpus - cpus_of_node(node)).empty()) return node;
  }
  return -1;
}

TEST(Machine, HasTwoPackagesWithANodeEach) {
  EXPECT_EQ(line_of("/sys/devices/system/node/online"), "0-1");
  EXPECT_EQ(cpus_of_node(0).to_string(), "0-3");
  EXPECT_EQ(cpus_of_node(1).to_string(), "4-7");
  EXPECT_EQ(line_of("/sys/devices/system/cpu/cpu3/topology/physical_package_id"), "0");
  EXPECT_EQ(line_of("/sys/devices/system/cpu/cpu4/topology/physical_package_id"), "1");
}

TEST(Machine, HasTwoThreadsInACore) {
  EXPECT_EQ(line_of("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list"), "0-1");
  EXPECT_EQ(line_of("/sys/devices/system/cpu/cpu7/topology/thread_siblings_list"), "6-7");
}

TEST(Machine, HasTheCgroupsThatItsCommandLineNames) {
  const bool is_v1 = line_of("/proc/cmdline").find("cgroup=v1") != std::string::npos;
  EXPECT_EQ(std::filesystem::exists("/sys/fs/cgroup/cpuset/cpuset.cpus"), is_v1);
  EXPECT_EQ(std::filesystem::exists("/sys/fs/cgroup/cgroup.controllers"), !is_v1);
}

TEST(Machine, HasAnNvmeDiskOnNode1) {
  EXPECT_TRUE(std::filesystem::is_block_file("/dev/nvme0n1"));
  EXPECT_EQ(line_of("/sys/block/nvme0n1/device/numa_node"), "1");
}

class TwoNodesTest : public NodeTest {
 protected:
  /// Ledger, scheduler and cgroup say the same of every container.
  void expect_agreement(const std::vector<const TestPod*>& actors) {
    for (const TestPod* actor : actors) {
      expect_kernel_is_ledger(*actor);
      const auto row = ledger(*actor);
      ASSERT_TRUE(row.has_value());
      const auto cgroup = cgroup_cpus_of(direct_->inspect(actor->container_id)->pid);
      ASSERT_TRUE(cgroup.has_value()) << actor->pod.name << " runs in no cgroup";
      EXPECT_EQ(cgroup->cpus.to_string(), row->cpus.to_string()) << actor->pod.name << ", cpuset.cpus.effective";
    }
  }
};

TEST_F(TwoNodesTest, EachContainerStaysOnOneNodeThroughAKillAndACpuThatGoesOffline) {
  const TestPod web = running("web", burstable(250, 64 * kMiB));
  EXPECT_NE(node_of(kernel(web).cpus), -1)
      << "it asks for little and should stay on a node: " << kernel(web).cpus.to_string();

  const TestPod first = running("first", guaranteed(2000, 64 * kMiB));
  const CpuSet of_first = kernel(first).cpus;
  EXPECT_EQ(of_first.size(), 2U);
  ASSERT_NE(node_of(of_first), -1) << "CPUs of both nodes: " << of_first.to_string();
  EXPECT_FALSE(kernel(web).cpus.intersects(of_first));

  const TestPod second = running("second", guaranteed(3000, 64 * kMiB));
  const CpuSet of_second = kernel(second).cpus;
  EXPECT_EQ(of_second.size(), 3U);
  EXPECT_EQ(node_of(of_second), 1 - node_of(of_first)) << "it fits only on the other node: " << of_second.to_string();
  EXPECT_FALSE(kernel(web).cpus.intersects(of_first | of_second));
  expect_agreement({&web, &first, &second});

  restart_daemon(SIGKILL);
  EXPECT_EQ(held().size(), 3U);
  EXPECT_EQ(kernel(first).cpus, of_first);
  EXPECT_EQ(kernel(second).cpus, of_second);
  expect_agreement({&web, &first, &second});

  ASSERT_TRUE(topolet_->stop(first.container_id).has_value());
  ASSERT_TRUE(ledger(first).has_value()) << "its CPUs are kept for its next attempt";
  // Nobody waits until it has grown.
  EXPECT_TRUE(becomes([&] { return kernel(web).cpus == ledger(web)->cpus; })) << kernel(web).cpus.to_string();
  expect_agreement({&web, &second});
  const TestPod third = running("third", guaranteed(2000, 64 * kMiB));
  EXPECT_EQ(node_of(kernel(third).cpus), node_of(of_first)) << kernel(third).cpus.to_string();

  const int home = node_of(of_first);
  const CpuSet of_third = kernel(third).cpus;
  const auto cpus = std::vector<std::uint32_t>(of_third.begin(), of_third.end());
  const std::uint32_t gone = cpus.back();
  {
    const OfflineCpus offline(CpuSet{gone});
    ASSERT_TRUE(offline.are_offline()) << "the kernel keeps CPU " << gone << " online";
    EXPECT_TRUE(becomes([&] { return ledger(third)->cpus.size() == 2 && !ledger(third)->cpus.contains(gone); }));
    EXPECT_THAT(ledger(third)->reason, HasSubstr("CPU " + std::to_string(gone) + " is no longer available"));
    EXPECT_TRUE(becomes([&] { return kernel(third).cpus == ledger(third)->cpus; })) << kernel(third).cpus.to_string();
    EXPECT_EQ(node_of(kernel(third).cpus), home) << kernel(third).cpus.to_string();
  }
  EXPECT_TRUE(becomes([&] { return kernel(web).cpus == ledger(web)->cpus; })) << kernel(web).cpus.to_string();
}

TEST_F(TwoNodesTest, MemoryIsBoundAWideRequestDeniedAndAResizeStaysOnTheNode) {
  daemon_->end(SIGTERM);
  const Status serving = daemon_->start({"--numa.memory=bind", "--numa.policy=single-numa-node"});
  ASSERT_TRUE(serving.has_value()) << serving.error().message;

  const TestPod trader = running("trader", guaranteed(2000, 64 * kMiB));
  const int node = node_of(kernel(trader).cpus);
  ASSERT_NE(node, -1) << kernel(trader).cpus.to_string();
  EXPECT_EQ(kernel(trader).mems.to_string(), std::to_string(node));

  const TestPod wide = pod("wide", guaranteed(5000, 64 * kMiB));
  const auto denied = topolet_->create(wide.pod, {.image = kImage});
  ASSERT_FALSE(denied.has_value());
  EXPECT_THAT(denied.error().message, HasSubstr("single-numa-node"));

  const Status resized = topolet_->update(trader.container_id, as_the_kubelet_sends(guaranteed(3000, 64 * kMiB)));
  ASSERT_TRUE(resized.has_value()) << resized.error().message;
  EXPECT_TRUE(becomes([&] { return kernel(trader).cpus.size() == 3; })) << kernel(trader).cpus.to_string();
  EXPECT_EQ(node_of(kernel(trader).cpus), node) << kernel(trader).cpus.to_string();
  expect_agreement({&trader});
}

}  // namespace
}  // namespace topolet::integration
