// A node of its own for every test: private containerd, topoletd, clients to both.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/integration/node.hpp"
#include "tests/integration/process_cpuset.hpp"

namespace topolet::integration {

inline constexpr std::int64_t kMiB = 1 << 20;

/// A pod with one container.
struct TestPod {
  Pod pod;
  std::string container_id;
};

class NodeTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_containers(); !why.empty()) GTEST_SKIP() << why;
    auto started = PrivateRuntime::start();
    ASSERT_TRUE(started.has_value()) << started.error().message;
    runtime_ = std::move(*started);
    daemon_.emplace(runtime_->directory(), runtime_->endpoint());
    const Status serving = daemon_->start();
    ASSERT_TRUE(serving.has_value()) << serving.error().message;
    topolet_ = std::make_unique<CriClient>(daemon_->endpoint());
    direct_ = std::make_unique<CriClient>(runtime_->endpoint());
    state_ = std::make_unique<StateDb>(daemon_->state_db());
  }

  void TearDown() override {
    if (HasFailure() && daemon_) std::cerr << "The end of topoletd's log:\n" << daemon_->log_tail() << '\n';
  }

  /// The pod runs, its container does not exist yet.
  TestPod pod(const std::string& name, const Resources& resources) {
    TestPod actor{{name, "uid-" + name, resources, runtime_->cgroups(), {}, {}}, {}};
    const Status ran = topolet_->run(actor.pod);
    EXPECT_TRUE(ran.has_value()) << ran.error().message;
    return actor;
  }

  TestPod created(const std::string& name, const Resources& resources, const ContainerSpec& spec = {.image = kImage}) {
    TestPod actor = pod(name, resources);
    auto id = topolet_->create(actor.pod, spec);
    EXPECT_TRUE(id.has_value()) << name << ": " << id.error().message;
    if (id) actor.container_id = *id;
    return actor;
  }

  TestPod running(const std::string& name, const Resources& resources, const ContainerSpec& spec = {.image = kImage}) {
    TestPod actor = created(name, resources, spec);
    const Status started = topolet_->start(actor.container_id);
    EXPECT_TRUE(started.has_value()) << name << ": " << started.error().message;
    return actor;
  }

  /// Returns the CPUs and memory nodes that the container's process may use, as the kernel says.
  ProcessCpuset kernel(const TestPod& actor) {
    const auto container = direct_->inspect(actor.container_id);
    EXPECT_TRUE(container.has_value()) << container.error().message;
    const auto allowed = allowed_of(container ? container->pid : 0);
    EXPECT_TRUE(allowed.has_value()) << actor.pod.name << ": " << allowed.error().message;
    return allowed ? *allowed : ProcessCpuset{};
  }

  /// The ledger's row of a container; nothing if it holds none.
  std::optional<PlacementRow> ledger(const TestPod& actor) {
    for (PlacementRow& row : held()) {
      if (row.pod == actor.pod.name) return std::move(row);
    }
    return std::nullopt;
  }

  std::vector<PlacementRow> held() {
    auto rows = state_->held();
    EXPECT_TRUE(rows.has_value()) << rows.error().message;
    return rows ? *std::move(rows) : std::vector<PlacementRow>();
  }

  void expect_kernel_is_ledger(const TestPod& actor) {
    const auto row = ledger(actor);
    ASSERT_TRUE(row.has_value()) << actor.pod.name << " holds nothing";
    EXPECT_EQ(row->container_id, actor.container_id);
    EXPECT_EQ(row->state, "bound");
    const ProcessCpuset allowed = kernel(actor);
    EXPECT_EQ(allowed.cpus.to_string(), row->cpus.to_string()) << actor.pod.name;
    if (!row->mems.empty()) {
      EXPECT_EQ(allowed.mems.to_string(), row->mems.to_string()) << actor.pod.name;
    }
  }

  /// Asks for the containers as the kubelet does every second, until it is so.
  bool becomes(const std::function<bool()>& is_so) {
    return wait_until([&] { return topolet_->containers().has_value() && is_so(); });
  }

  void restart_daemon(int signal) {
    daemon_->end(signal);
    const Status serving = daemon_->start();
    ASSERT_TRUE(serving.has_value()) << serving.error().message;
  }

  /// All CPUs that a shared container gets while nobody holds any alone.
  CpuSet whole_pool() {
    const TestPod probe = running("probe", besteffort());
    CpuSet cpus = kernel(probe).cpus;
    EXPECT_TRUE(topolet_->stop(probe.pod).has_value());
    EXPECT_TRUE(topolet_->remove(probe.pod).has_value());
    return cpus;
  }

  std::unique_ptr<PrivateRuntime> runtime_;
  std::optional<Daemon> daemon_;
  std::unique_ptr<CriClient> topolet_;
  std::unique_ptr<CriClient> direct_;
  std::unique_ptr<StateDb> state_;
};

/// For tests in which a CPU is given away: one must be left for the pool.
class TwoCpuNodeTest : public NodeTest {
 protected:
  void SetUp() override {
    NodeTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    pool_ = whole_pool();
    if (pool_.size() < 2) GTEST_SKIP() << "with one CPU no container can have one alone";
  }

  CpuSet pool_;
};

}  // namespace topolet::integration
