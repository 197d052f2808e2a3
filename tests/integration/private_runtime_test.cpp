// The ground the other integration tests stand on: our CRI client on containerd itself, without topolet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/integration/kernel.hpp"
#include "tests/integration/node.hpp"

namespace topolet::integration {
namespace {

class PrivateRuntimeTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_containers(); !why.empty()) GTEST_SKIP() << why;
    auto started = PrivateRuntime::start();
    ASSERT_TRUE(started.ok()) << started.error().message;
    runtime_ = std::move(*started);
  }

  std::unique_ptr<PrivateRuntime> runtime_;
};

TEST_F(PrivateRuntimeTest, RunsAContainerAsTheKubeletAsks) {
  CriClient client(runtime_->endpoint());
  Pod pod{"ground", "5e1f", guaranteed(1000, 64 << 20), runtime_->cgroups(), {}, {}};
  const auto ran = client.run(pod);
  ASSERT_TRUE(ran.ok()) << ran.error().message;
  const auto id = client.create(pod, {.image = kImage});
  ASSERT_TRUE(id.ok()) << id.error().message;
  ASSERT_TRUE(client.start(*id).ok());

  const auto container = client.inspect(*id);
  ASSERT_TRUE(container.ok());
  ASSERT_GT(container->pid, 0);
  const auto outside = allowed_of(container->pid);
  ASSERT_TRUE(outside.ok());
  const auto status = client.exec(*id, {"cat", "/proc/self/status"});
  ASSERT_TRUE(status.ok()) << status.error().message;
  const auto inside = parse_allowed(status->out);
  ASSERT_TRUE(inside.ok());
  EXPECT_EQ(*inside, *outside);

  cri::LinuxContainerResources one_cpu;
  one_cpu.set_cpuset_cpus("0");
  ASSERT_TRUE(client.update(*id, one_cpu).ok());
  EXPECT_EQ(allowed_of(container->pid)->cpus, CpuSet{0});

  ASSERT_TRUE(client.stop(*id).ok());
  EXPECT_EQ(client.inspect(*id)->exit_code, 0) << "the image's process ends well when told to";
  EXPECT_TRUE(client.remove(*id).ok());
}

TEST_F(PrivateRuntimeTest, LeavesNothingBehind) {
  CriClient client(runtime_->endpoint());
  Pod pod{"ground", "5e1f", besteffort(), runtime_->cgroups(), {}, {}};
  ASSERT_TRUE(client.run(pod).ok());
  const auto id = client.create(pod, {.image = kImage});
  ASSERT_TRUE(id.ok()) << id.error().message;
  ASSERT_TRUE(client.start(*id).ok());
  const pid_t pid = client.inspect(*id)->pid;
  ASSERT_TRUE(allowed_of(pid).ok());
  const std::filesystem::path room = runtime_->room();

  runtime_.reset();
  EXPECT_FALSE(std::filesystem::exists(room));
  EXPECT_TRUE(wait_until([&] { return !allowed_of(pid).ok(); }));
  const auto found = run_to_end({"find", "/sys/fs/cgroup", "-maxdepth", "2", "-name", room.filename()});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->out, "") << "cgroups";
}

}  // namespace
}  // namespace topolet::integration
