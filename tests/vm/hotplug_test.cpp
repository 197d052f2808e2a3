// CPUs that go offline under running containers and come back, by the kernel of the machine of tests/vm/run.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/integration/node_test.hpp"
#include "tests/vm/offline_cpus.hpp"

namespace topolet::integration {
namespace {

using ::testing::HasSubstr;

class HotplugTest : public NodeTest {
 protected:
  void restart_with(const std::vector<std::string>& flags, int signal = SIGTERM) {
    daemon_->end(signal);
    const Status serving = daemon_->start(flags);
    ASSERT_TRUE(serving.has_value()) << serving.error().message;
  }

  static ContainerSpec with_disk() { return {.image = kImage, .devices = {"/dev/nvme0n1"}}; }

  /// Ledger, scheduler and cgroup say the same, which is `cpus`.
  bool runs_on(const TestPod& actor, const CpuSet& cpus) {
    const auto row = ledger(actor);
    if (!row || row->cpus != cpus || kernel(actor).cpus != cpus) return false;
    const auto cgroup = cgroup_cpus_of(direct_->inspect(actor.container_id)->pid);
    return cgroup && cgroup->cpus == cpus;
  }
  void expect_soon_on(const TestPod& actor, const CpuSet& cpus) {
    EXPECT_TRUE(becomes([&] { return runs_on(actor, cpus); }))
        << actor.pod.name << " should be on " << cpus.to_string() << "; kernel: " << kernel(actor).cpus.to_string()
        << ", ledger: " << (ledger(actor) ? ledger(actor)->cpus.to_string() : "nothing");
  }
  /// Why a pod's container was last squeezed; empty if it never was.
  std::string why_squeezed(const TestPod& actor) {
    const auto rows = state_->audit(actor.pod.name);
    std::string why;
    for (const AuditRow& row : rows ? *rows : std::vector<AuditRow>()) {
      if (row.event == "squeezed") why = row.reason;
    }
    return why;
  }
  std::size_t times(const TestPod& actor, const std::string& event) {
    const auto rows = state_->audit(actor.pod.name);
    if (!rows) return 0;
    return static_cast<std::size_t>(
        std::count_if(rows->begin(), rows->end(), [&](const AuditRow& row) { return row.event == event; }));
  }
};

TEST_F(HotplugTest, APolicysNoYieldsForContainersThatRun) {
  restart_with({"--plugins.enable=gpu", "--gpu.affinity=require"});
  const TestPod own = running("own", guaranteed(2000, 64 * kMiB), with_disk());
  const TestPod some = running("some", burstable(500, 64 * kMiB), with_disk());
  const CpuSet first = kernel(own).cpus;
  ASSERT_EQ(first.size(), 2U);
  ASSERT_TRUE(first.is_subset_of(CpuSet::range(4, 7))) << first.to_string();
  const CpuSet shared = kernel(some).cpus;
  ASSERT_TRUE(shared.is_subset_of(CpuSet::range(4, 7))) << shared.to_string();
  {
    const OfflineCpus offline(CpuSet::range(4, 7));
    ASSERT_TRUE(offline.are_offline());
    EXPECT_TRUE(becomes([&] { return times(own, "squeezed") == 1 && times(some, "squeezed") == 1; }));
    EXPECT_THAT(why_squeezed(own), HasSubstr("wanted: 2 exclusive CPUs near node 1"));
    const CpuSet elsewhere = ledger(own)->cpus;
    EXPECT_EQ(elsewhere.size(), 2U);
    expect_soon_on(own, elsewhere);
    EXPECT_FALSE(ledger(some)->cpus.intersects(elsewhere));
    expect_soon_on(some, ledger(some)->cpus);
  }
  expect_soon_on(own, first);
  expect_soon_on(some, shared);
  EXPECT_THAT(daemon_->log_tail(), HasSubstr("is not squeezed any more"));
}

TEST_F(HotplugTest, ReservedCpusAreLentWhereNoSharedOneIsLeft) {
  restart_with({"--placement.reserved-cpus=0"});
  const TestPod own = running("own", guaranteed(6000, 64 * kMiB));
  const TestPod any = running("any", besteffort());
  const CpuSet alone = kernel(own).cpus;
  const CpuSet last = kernel(any).cpus;
  ASSERT_EQ(alone.size(), 6U);
  ASSERT_EQ(last.size(), 1U) << last.to_string();
  {
    const OfflineCpus offline(last);
    ASSERT_TRUE(offline.are_offline());
    expect_soon_on(any, {0});
    EXPECT_THAT(why_squeezed(any), HasSubstr("it gets the nearest reserved CPUs"));
    expect_soon_on(own, alone);
    restart_with({"--placement.reserved-cpus=0"}, SIGKILL);
    expect_soon_on(any, {0});
    expect_soon_on(own, alone);
  }
  expect_soon_on(any, last);
  EXPECT_EQ(times(any, "squeezed"), 1U) << "said once";
}

TEST_F(HotplugTest, WhoHasNoCpuLeftIsLeftToTheKernelUntilOneIsBack) {
  restart_with({});
  const TestPod own = running("own", guaranteed(7000, 64 * kMiB));
  const TestPod any = running("any", besteffort());
  const CpuSet alone = kernel(own).cpus;
  const CpuSet last = kernel(any).cpus;
  ASSERT_EQ(alone.size(), 7U);
  ASSERT_EQ(last.size(), 1U) << last.to_string();
  {
    const OfflineCpus offline(last);
    ASSERT_TRUE(offline.are_offline());
    EXPECT_TRUE(becomes([&] { return times(any, "squeezed") == 1; }));
    EXPECT_THAT(why_squeezed(any), HasSubstr("it runs wherever the kernel lets it"));
    expect_soon_on(own, alone);
    restart_with({}, SIGKILL);
    expect_soon_on(own, alone);
  }
  expect_soon_on(any, last);
  EXPECT_EQ(times(any, "squeezed"), 1U) << "said once";
}

TEST_F(HotplugTest, ACpuThatIsBackBeforeAnybodyLooksIsGivenBack) {
  const TestPod own = running("own", guaranteed(2000, 64 * kMiB));
  const TestPod any = running("any", besteffort());
  const CpuSet alone = kernel(own).cpus;
  const CpuSet shared = kernel(any).cpus;
  for (int round = 0; round < 3; ++round) {
    const OfflineCpus offline(alone);
  }
  EXPECT_TRUE(becomes([&] { return ledger(own)->cpus.size() == 2; }));
  EXPECT_TRUE(becomes([&] { return (ledger(own)->cpus | ledger(any)->cpus) == (alone | shared); }));
  expect_soon_on(own, ledger(own)->cpus);
  expect_soon_on(any, ledger(any)->cpus);
}

}  // namespace
}  // namespace topolet::integration
