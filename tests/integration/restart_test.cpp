// topoletd dies and comes back: the same containers hold the same CPUs, none leaked, none doubled.
#include <set>
#include <thread>

#include "tests/integration/node_test.hpp"

namespace topolet::integration {
namespace {

class RestartTest : public TwoCpuNodeTest {
 protected:
  std::multiset<std::string> bound_ids() {
    std::multiset<std::string> ids;
    for (const Held& row : held()) {
      if (row.state == "bound") ids.insert(row.container_id);
    }
    return ids;
  }

  CpuSet ledger_cpus(const std::string& container_id) {
    for (const Held& row : held()) {
      if (row.container_id == container_id) return row.cpus;
    }
    return {};
  }
};

TEST_F(RestartTest, AfterAKillTheSameContainersHoldTheSameCpus) {
  const Actor web = running("web", burstable(250, 64 * kMiB));
  const Actor trader = running("trader", guaranteed(1000, 64 * kMiB));
  const CpuSet alone = kernel(trader).cpus;

  restart_daemon(SIGKILL);
  EXPECT_EQ(held().size(), 2U);
  EXPECT_EQ(kernel(trader).cpus, alone);
  expect_kernel_is_ledger(web);
  expect_kernel_is_ledger(trader);

  const Actor late = running("late", besteffort());
  EXPECT_EQ(kernel(late).cpus, pool_ - alone);
  ASSERT_TRUE(topolet_->stop(trader.container_id).ok());
  EXPECT_TRUE(becomes([&] { return kernel(web).cpus == pool_ && kernel(late).cpus == pool_; }));
}

TEST_F(RestartTest, AnOrderlyEndIsNoDifferent) {
  const Actor trader = running("trader", guaranteed(1000, 64 * kMiB));
  const CpuSet alone = kernel(trader).cpus;
  restart_daemon(SIGTERM);
  EXPECT_EQ(held().size(), 1U);
  EXPECT_EQ(kernel(trader).cpus, alone);
  expect_kernel_is_ledger(trader);
}

TEST_F(RestartTest, AKillBetweenCreateAndStartKeepsThePlace) {
  const Actor web = running("web", burstable(250, 64 * kMiB));
  const Actor trader = created("trader", guaranteed(1000, 64 * kMiB));
  const auto before = ledger(trader);
  ASSERT_TRUE(before.has_value());

  restart_daemon(SIGKILL);
  ASSERT_TRUE(topolet_->start(trader.container_id).ok());
  EXPECT_EQ(ledger(trader)->cpus, before->cpus);
  expect_kernel_is_ledger(trader);
  expect_kernel_is_ledger(web);
  EXPECT_FALSE(kernel(web).cpus.intersects(kernel(trader).cpus));
}

TEST_F(RestartTest, WhatEndedMeanwhileIsGivenBackBeforeTheFirstCreate) {
  const Actor trader = running("trader", guaranteed(1000, 64 * kMiB));
  daemon_->end(SIGKILL);
  ASSERT_TRUE(direct_->stop(trader.container_id).ok());
  ASSERT_TRUE(direct_->remove(trader.container_id).ok());
  ASSERT_TRUE(daemon_->start().ok());
  const Actor web = running("web", besteffort());
  EXPECT_FALSE(ledger(trader).has_value());
  EXPECT_EQ(kernel(web).cpus, pool_);
}

TEST_F(RestartTest, AKillDuringCreatesLosesNoContainerAndDoublesNone) {
  constexpr int kRounds = 6;
  for (int round = 0; round < kRounds; ++round) {
    Actor web = pod("web-" + std::to_string(round), burstable(100, 16 * kMiB));
    std::thread killer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1 + 2 * round));
      daemon_->end(SIGKILL);
    });
    (void)topolet_->create(web.pod, {.image = kImage});
    killer.join();
    const Status serving = daemon_->start();
    ASSERT_TRUE(serving.ok()) << serving.error().message;
  }

  std::multiset<std::string> there;
  const auto containers = direct_->containers();
  ASSERT_TRUE(containers.ok());
  for (const cri::Container& container : *containers) there.insert(container.id());
  EXPECT_TRUE(becomes([&] { return bound_ids() == there; }));
  for (const std::string& id : there) {
    const Status started = topolet_->start(id);
    // A create that containerd 1.6 sees cancelled while it asks for the sandbox's process leaves a container that joins
    // the namespaces of process 0, and that nobody can start.
    if (!started && started.error().message.find("/proc/0/ns") != std::string::npos) continue;
    ASSERT_TRUE(started.ok()) << started.error().message;
    EXPECT_EQ(allowed_of(direct_->inspect(id)->pid)->cpus, ledger_cpus(id));
  }
}

}  // namespace
}  // namespace topolet::integration
