// The ground the other integration tests stand on: our CRI client on containerd itself, without topolet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/integration/node.hpp"
#include "tests/integration/process_cpuset.hpp"

namespace topolet::integration {
namespace {

class PrivateRuntimeTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_containers(); !why.empty()) GTEST_SKIP() << why;
    auto started = PrivateRuntime::start();
    ASSERT_TRUE(started.has_value()) << started.error().message;
    runtime_ = std::move(*started);
  }

  std::unique_ptr<PrivateRuntime> runtime_;
};

TEST_F(PrivateRuntimeTest, RunsAContainerAsTheKubeletAsks) {
  CriClient client(runtime_->endpoint());
  Pod pod{"ground", "5e1f", guaranteed(1000, 64 << 20), runtime_->cgroups(), {}, {}};
  const auto ran = client.run(pod);
  ASSERT_TRUE(ran.has_value()) << ran.error().message;
  const auto id = client.create(pod, {.image = kImage});
  ASSERT_TRUE(id.has_value()) << id.error().message;
  ASSERT_TRUE(client.start(*id).has_value());

  const auto container = client.inspect(*id);
  ASSERT_TRUE(container.has_value());
  ASSERT_GT(container->pid, 0);
  const auto outside = allowed_of(container->pid);
  ASSERT_TRUE(outside.has_value());
  const auto status = client.exec(*id, {"cat", "/proc/self/status"});
  ASSERT_TRUE(status.has_value()) << status.error().message;
  const auto inside = parse_allowed(status->out);
  ASSERT_TRUE(inside.has_value());
  EXPECT_EQ(*inside, *outside);

  cri::LinuxContainerResources one_cpu;
  one_cpu.set_cpuset_cpus("0");
  ASSERT_TRUE(client.update(*id, one_cpu).has_value());
  EXPECT_EQ(allowed_of(container->pid)->cpus, CpuSet{0});

  ASSERT_TRUE(client.stop(*id).has_value());
  EXPECT_EQ(client.inspect(*id)->exit_code, 0) << "the image's process ends well when told to";
  EXPECT_TRUE(client.remove(*id).has_value());
}

TEST_F(PrivateRuntimeTest, LeavesNothingBehind) {
  CriClient client(runtime_->endpoint());
  Pod pod{"ground", "5e1f", besteffort(), runtime_->cgroups(), {}, {}};
  ASSERT_TRUE(client.run(pod).has_value());
  const auto id = client.create(pod, {.image = kImage});
  ASSERT_TRUE(id.has_value()) << id.error().message;
  ASSERT_TRUE(client.start(*id).has_value());
  const pid_t pid = client.inspect(*id)->pid;
  ASSERT_TRUE(allowed_of(pid).has_value());
  const std::filesystem::path directory = runtime_->directory();

  runtime_.reset();
  EXPECT_FALSE(std::filesystem::exists(directory));
  EXPECT_TRUE(wait_until([&] { return !allowed_of(pid).has_value(); }));
  const auto found = run_to_end({"find", "/sys/fs/cgroup", "-maxdepth", "2", "-name", directory.filename()});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->out, "") << "cgroups";
}

}  // namespace
}  // namespace topolet::integration
