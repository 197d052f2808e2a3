// Where containers end up on a real runtime: the kernel read back, against the ledger.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include "tests/integration/node_test.hpp"

namespace topolet::integration {
namespace {

using PlacementTest = NodeTest;
using ExclusiveTest = TwoCpuNodeTest;
using testing::HasSubstr;

TEST_F(PlacementTest, SharedContainersRunOnThePoolAndTheDatabaseSaysWhy) {
  const TestPod web = running("web", burstable(250, 64 * kMiB));
  const TestPod batch = running("batch", besteffort());
  expect_kernel_is_ledger(web);
  expect_kernel_is_ledger(batch);
  EXPECT_EQ(ledger(web)->mode, "shared");
  EXPECT_EQ(ledger(web)->cpus, ledger(batch)->cpus);
  EXPECT_FALSE(ledger(web)->reason.empty());
}

TEST_F(PlacementTest, NoContainerIsCreatedWithoutACpuset) {
  const TestPod batch = created("batch", besteffort());
  const auto container = topolet_->inspect(batch.container_id);
  ASSERT_TRUE(container.has_value());
  EXPECT_THAT(container->info, HasSubstr("\"cpus\":\"" + ledger(batch)->cpus.to_string() + "\""));
}

TEST_F(PlacementTest, ExecRunsWhereTheContainerRuns) {
  const TestPod web = running("web", burstable(250, 64 * kMiB));
  const auto status = topolet_->exec(web.container_id, {"cat", "/proc/self/status"});
  ASSERT_TRUE(status.has_value()) << status.error().message;
  EXPECT_EQ(status->exit_code, 0);
  const auto inside = parse_allowed(status->out);
  ASSERT_TRUE(inside.has_value());
  EXPECT_EQ(inside->cpus, ledger(web)->cpus);
}

TEST_F(PlacementTest, ACreateThatTheRuntimeRefusesArrivesUnchangedAndLeavesNothing) {
  const TestPod web = pod("web", guaranteed(1000, 64 * kMiB));
  const ContainerSpec no_image{.image = "topolet.io/no-such-image:1"};
  const auto directly = direct_->create(web.pod, no_image);
  const auto through = topolet_->create(web.pod, no_image);
  ASSERT_FALSE(directly.has_value());
  ASSERT_FALSE(through.has_value());
  EXPECT_EQ(through.error().code, directly.error().code);
  EXPECT_EQ(through.error().message, directly.error().message);
  EXPECT_THAT(held(), testing::IsEmpty());
}

TEST_F(PlacementTest, AskingForEveryCpuIsDeniedWithAReason) {
  const CpuSet pool = whole_pool();
  const TestPod greedy = pod("greedy", guaranteed(static_cast<std::int64_t>(pool.size()) * 1000, 64 * kMiB));
  const auto id = topolet_->create(greedy.pod, {.image = kImage});
  ASSERT_FALSE(id.has_value());
  EXPECT_FALSE(id.error().message.empty());
  const auto reason = state_->last_denial("greedy");
  ASSERT_TRUE(reason.has_value());
  EXPECT_FALSE(reason->empty());
  EXPECT_THAT(held(), testing::IsEmpty());
  EXPECT_THAT(*direct_->containers(), testing::IsEmpty()) << "the runtime was not to be asked";
}

TEST_F(PlacementTest, RemovingGivesEverythingBack) {
  const TestPod web = running("web", burstable(250, 64 * kMiB));
  ASSERT_TRUE(topolet_->stop(web.container_id).has_value());
  ASSERT_TRUE(topolet_->remove(web.container_id).has_value());
  ASSERT_TRUE(topolet_->stop(web.pod).has_value());
  ASSERT_TRUE(topolet_->remove(web.pod).has_value());
  EXPECT_THAT(held(), testing::IsEmpty());
  const auto story = state_->audit("web");
  ASSERT_TRUE(story.has_value());
  ASSERT_FALSE(story->empty());
  EXPECT_EQ(story->front().event, "placed");
  EXPECT_EQ(story->back().event, "ended");
}

TEST_F(ExclusiveTest, TheCpuIsTheContainersAloneWhenItStarts) {
  const TestPod web = running("web", burstable(250, 64 * kMiB));
  const TestPod batch = running("batch", besteffort());
  ASSERT_EQ(kernel(web).cpus, pool_);

  const TestPod trader = running("trader", guaranteed(1000, 64 * kMiB));
  const CpuSet alone = kernel(trader).cpus;
  EXPECT_EQ(alone.size(), 1U);
  EXPECT_EQ(kernel(web).cpus, pool_ - alone);
  EXPECT_EQ(kernel(batch).cpus, pool_ - alone);
  EXPECT_EQ(ledger(trader)->mode, "exclusive");
  for (const TestPod* actor : {&web, &batch, &trader}) expect_kernel_is_ledger(*actor);
}

TEST_F(ExclusiveTest, ThoseWhoComeLaterKeepOffIt) {
  const TestPod trader = running("trader", guaranteed(1000, 64 * kMiB));
  const TestPod web = running("web", burstable(250, 64 * kMiB));
  EXPECT_EQ(kernel(web).cpus, pool_ - kernel(trader).cpus);
}

TEST_F(ExclusiveTest, ANeighbourCreatedBeforeAndStartedAfterKeepsOffIt) {
  const TestPod web = created("web", burstable(250, 64 * kMiB));
  const TestPod trader = running("trader", guaranteed(1000, 64 * kMiB));
  ASSERT_TRUE(topolet_->start(web.container_id).has_value());
  EXPECT_EQ(kernel(web).cpus, pool_ - kernel(trader).cpus);
}

TEST_F(ExclusiveTest, AFractionIsShared) {
  const TestPod half = running("half", guaranteed(1500, 64 * kMiB));
  EXPECT_EQ(ledger(half)->mode, "shared");
  EXPECT_EQ(kernel(half).cpus, pool_);
}

TEST_F(ExclusiveTest, TheLastCpuStaysInThePool) {
  std::vector<TestPod> traders;
  for (std::size_t i = 0; i + 1 < pool_.size() && i < 64; ++i) {
    traders.push_back(running("trader-" + std::to_string(i), guaranteed(1000, 16 * kMiB)));
  }
  if (traders.size() + 1 < pool_.size()) GTEST_SKIP() << "too many CPUs to fill the machine";
  const TestPod late = pod("late", guaranteed(1000, 16 * kMiB));
  EXPECT_FALSE(topolet_->create(late.pod, {.image = kImage}).has_value());
  EXPECT_FALSE(state_->last_denial("late")->empty());
  const TestPod web = running("web", besteffort());
  EXPECT_EQ(kernel(web).cpus.size(), 1U);
}

TEST_F(ExclusiveTest, AStoppedContainersCpuIsKeptUntilItsPodIsStopped) {
  const TestPod web = running("web", burstable(250, 64 * kMiB));
  const TestPod trader = running("trader", guaranteed(1000, 64 * kMiB));
  const CpuSet shared = kernel(web).cpus;
  ASSERT_NE(shared, pool_);
  ASSERT_TRUE(topolet_->stop(trader.container_id).has_value());
  EXPECT_TRUE(ledger(trader).has_value()) << "for its next attempt";
  EXPECT_EQ(kernel(web).cpus, shared);
  ASSERT_TRUE(topolet_->stop(trader.pod).has_value());
  EXPECT_FALSE(ledger(trader).has_value());
  EXPECT_TRUE(becomes([&] { return kernel(web).cpus == pool_; }));
  expect_kernel_is_ledger(web);
}

TEST_F(ExclusiveTest, StoppingThePodGivesItsCpuToTheNeighbours) {
  const TestPod web = running("web", burstable(250, 64 * kMiB));
  const TestPod trader = running("trader", guaranteed(1000, 64 * kMiB));
  ASSERT_TRUE(topolet_->stop(trader.pod).has_value());
  EXPECT_FALSE(ledger(trader).has_value());
  EXPECT_TRUE(becomes([&] { return kernel(web).cpus == pool_; }));
}

TEST_F(ExclusiveTest, AnExitKeepsTheCpuUntilThePodIsStopped) {
  const TestPod web = running("web", burstable(250, 64 * kMiB));
  const TestPod trader = running("trader", guaranteed(1000, 64 * kMiB));
  const pid_t shell = direct_->inspect(trader.container_id)->pid;
  // Asked until it is gone: the first process of a PID namespace misses SIGTERM until the shell has set its trap, which
  // makes it end with 0.
  ASSERT_TRUE(becomes([&] { return kill(shell, SIGTERM) != 0; }));
  EXPECT_TRUE(becomes([&] {
    const auto rows = state_->audit("trader");
    return !rows->empty() && rows->back().event == "kept";
  }));
  EXPECT_NE(kernel(web).cpus, pool_);
  ASSERT_TRUE(topolet_->stop(trader.pod).has_value());
  EXPECT_TRUE(becomes([&] { return !ledger(trader).has_value() && kernel(web).cpus == pool_; }));
}

TEST_F(ExclusiveTest, AnUpdateOfOtherResourcesMovesNobody) {
  const TestPod web = running("web", burstable(250, 64 * kMiB));
  const TestPod trader = running("trader", guaranteed(1000, 64 * kMiB));
  const CpuSet alone = kernel(trader).cpus;

  cri::LinuxContainerResources more_memory;
  more_memory.set_memory_limit_in_bytes(96 * kMiB);
  ASSERT_TRUE(topolet_->update(trader.container_id, more_memory).has_value());
  cri::LinuxContainerResources more_shares;
  more_shares.set_cpu_shares(512);
  ASSERT_TRUE(topolet_->update(web.container_id, more_shares).has_value());

  EXPECT_EQ(kernel(trader).cpus, alone);
  EXPECT_EQ(kernel(web).cpus, pool_ - alone);
  expect_kernel_is_ledger(trader);
  expect_kernel_is_ledger(web);
}

TEST_F(ExclusiveTest, AnUpdateCannotReachACpuThatIsAnothersAlone) {
  const TestPod web = running("web", burstable(250, 64 * kMiB));
  const TestPod trader = running("trader", guaranteed(1000, 64 * kMiB));
  cri::LinuxContainerResources every_cpu;
  every_cpu.set_cpuset_cpus(pool_.to_string());
  (void)topolet_->update(web.container_id, every_cpu);
  EXPECT_EQ(kernel(web).cpus, pool_ - kernel(trader).cpus);
}

/// Holds for cgroup v1 and v2. The hand writes the file again as soon as the container is elsewhere.
TEST_F(ExclusiveTest, WhoMovesAContainerAgainAndAgainIsToldOnceAndNothingIsCalledExclusive) {
  const TestPod web = running("web", burstable(250, 64 * kMiB));
  const TestPod trader = running("trader", guaranteed(1000, 64 * kMiB));
  const CpuSet alone = kernel(trader).cpus;
  const pid_t pid = static_cast<pid_t>(direct_->inspect(web.container_id)->pid);
  const auto count_rows = [&](const std::string& event) {
    const auto rows = state_->audit("web");
    return !rows ? 0
                 : std::count_if(rows->begin(), rows->end(), [&](const AuditRow& row) { return row.event == event; });
  };
  std::atomic<bool> has_gone = false;
  std::thread hand([&] {
    while (!has_gone) {
      const auto now = cgroup_cpus_of(pid);
      if (now && now->cpus != alone) put_cgroup_on(pid, alone);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  const bool is_told = becomes([&] { return count_rows("overruled") > 0 && ledger(trader)->mode == "overlapped"; });
  has_gone = true;
  hand.join();
  EXPECT_TRUE(is_told);
  EXPECT_EQ(count_rows("overruled"), 1);
  EXPECT_LE(count_rows("drift"), 1);
  EXPECT_TRUE(becomes([&] { return ledger(trader)->mode == "exclusive"; }));
  EXPECT_EQ(kernel(web).cpus, pool_ - alone);
}

}  // namespace
}  // namespace topolet::integration
