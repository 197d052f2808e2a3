// Containers with devices, on the machine of tests/vm/run: its disk is on node 1, CPUs 4-7.
#include <filesystem>

#include "tests/integration/node_test.hpp"

namespace topolet::integration {
namespace {

class DevicesTest : public NodeTest {
 protected:
  void SetUp() override {
    NodeTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    daemon_->end(SIGTERM);
    // The kernel knows /dev/full for no hardware, so what a table says of it is all there is.
    const Status serving = daemon_->start({"--plugins.enable=gpu", "--gpu.affinity=require",
                                           "--gpu.devices=far: path=/dev/full pci=link:class/nvme/nvme0/device"});
    ASSERT_TRUE(serving.has_value()) << serving.error().message;
  }

  static bool is_on(const CpuSet& cpus, const char* node) {
    return !cpus.empty() && (cpus - *CpuSet::parse(node)).empty();
  }
};

TEST_F(DevicesTest, ContainersRunBesideTheirDisk) {
  const TestPod none = running("none", guaranteed(1000, 64 * kMiB));
  EXPECT_TRUE(is_on(kernel(none).cpus, "0-3")) << kernel(none).cpus.to_string();

  const TestPod disk = running("disk", guaranteed(1000, 64 * kMiB), {.image = kImage, .devices = {"/dev/nvme0n1"}});
  EXPECT_TRUE(is_on(kernel(disk).cpus, "4-7")) << kernel(disk).cpus.to_string();

  const TestPod table = running("table", burstable(500, 64 * kMiB), {.image = kImage, .devices = {"/dev/full"}});
  EXPECT_TRUE(is_on(kernel(table).cpus, "4-7")) << kernel(table).cpus.to_string();

  ASSERT_TRUE(topolet_->stop(table.container_id).has_value());
  const TestPod wide = running("wide", guaranteed(4000, 64 * kMiB), {.image = kImage, .devices = {"/dev/nvme0n1"}});
  const CpuSet cpus = kernel(wide).cpus;
  EXPECT_EQ(cpus.size(), 4U);
  EXPECT_EQ((cpus & CpuSet::range(4, 7)).size(), 3U) << "all that are left there first: " << cpus.to_string();

  const TestPod late = pod("late", guaranteed(1000, 64 * kMiB));
  const auto denied = topolet_->create(late.pod, {.image = kImage, .devices = {"/dev/nvme0n1"}});
  ASSERT_FALSE(denied.has_value()) << "no CPU is left beside the disk";
  EXPECT_NE(denied.error().message.find("affinity = require"), std::string::npos) << denied.error().message;
}

}  // namespace
}  // namespace topolet::integration
