// topoletd dies and comes back: the same containers hold the same CPUs, none leaked, none doubled. Kills at any moment
// are the part of kill_run_test.cpp.
#include "tests/integration/node_test.hpp"

namespace topolet::integration {
namespace {

using RestartTest = TwoCpuNodeTest;

TEST_F(RestartTest, AfterAKillTheSameContainersHoldTheSameCpus) {
  const TestPod web = running("web", burstable(250, 64 * kMiB));
  const TestPod trader = running("trader", guaranteed(1000, 64 * kMiB));
  const CpuSet alone = kernel(trader).cpus;

  restart_daemon(SIGKILL);
  EXPECT_EQ(held().size(), 2U);
  EXPECT_EQ(kernel(trader).cpus, alone);
  expect_kernel_is_ledger(web);
  expect_kernel_is_ledger(trader);

  const TestPod late = running("late", besteffort());
  EXPECT_EQ(kernel(late).cpus, pool_ - alone);
  ASSERT_TRUE(topolet_->stop(trader.pod).has_value());
  EXPECT_TRUE(becomes([&] { return kernel(web).cpus == pool_ && kernel(late).cpus == pool_; }));
}

TEST_F(RestartTest, AnOrderlyEndIsNoDifferent) {
  const TestPod trader = running("trader", guaranteed(1000, 64 * kMiB));
  const CpuSet alone = kernel(trader).cpus;
  restart_daemon(SIGTERM);
  EXPECT_EQ(held().size(), 1U);
  EXPECT_EQ(kernel(trader).cpus, alone);
  expect_kernel_is_ledger(trader);
}

TEST_F(RestartTest, AKillBetweenCreateAndStartKeepsThePlace) {
  const TestPod web = running("web", burstable(250, 64 * kMiB));
  const TestPod trader = created("trader", guaranteed(1000, 64 * kMiB));
  const auto before = ledger(trader);
  ASSERT_TRUE(before.has_value());

  restart_daemon(SIGKILL);
  ASSERT_TRUE(topolet_->start(trader.container_id).has_value());
  EXPECT_EQ(ledger(trader)->cpus, before->cpus);
  expect_kernel_is_ledger(trader);
  expect_kernel_is_ledger(web);
  EXPECT_FALSE(kernel(web).cpus.intersects(kernel(trader).cpus));
}

TEST_F(RestartTest, WhatEndedMeanwhileIsGivenBackBeforeTheFirstCreate) {
  const TestPod trader = running("trader", guaranteed(1000, 64 * kMiB));
  daemon_->end(SIGKILL);
  ASSERT_TRUE(direct_->stop(trader.container_id).has_value());
  ASSERT_TRUE(direct_->remove(trader.container_id).has_value());
  ASSERT_TRUE(direct_->stop(trader.pod).has_value());
  ASSERT_TRUE(daemon_->start().has_value());
  const TestPod web = running("web", besteffort());
  EXPECT_FALSE(ledger(trader).has_value());
  EXPECT_EQ(kernel(web).cpus, pool_);
}

}  // namespace
}  // namespace topolet::integration
