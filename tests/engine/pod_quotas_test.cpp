#include "core/engine/converge/pod_quotas.hpp"
#include "core/placement/decide.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>

#include "tests/engine/converge_test.hpp"

namespace topolet::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// In the pod of another one.
Allocation beside(Allocation allocation, const std::string& name) {
  allocation.workload.key.pod_uid = "uid-" + name;
  allocation.workload.key.sandbox_id = "sandbox-" + name;
  return allocation;
}

Allocation unlimited(Allocation allocation) {
  allocation.quota = QuotaState::kDropped;
  return allocation;
}

Allocation limited(Allocation allocation, std::int64_t milli) {
  allocation.workload.demand.cpu_limit_milli = milli;
  return allocation;
}

/// In front of made-up trees of cgroup v2 (true) or v1 with the files of the controller cpu.
class PodQuotasTest : public ConvergeTest, public ::testing::WithParamInterface<bool> {
 protected:
  PodQuotasTest() {
    placement::PlacementRules rules;
    rules.drop_exclusive_quota = true;
    placer_ = Placer({topology_, placement::make_candidates(*topology_, topology_->allowed), rules,
                      [](const auto& request, const auto& given) { return decide(*request, given, {}); }});
  }

  fs::path make_cgroup(const std::string& pod, const std::string& quota) {
    const fs::path directory = root_ / "kubepods" / ("poduid-" + pod);
    fs::create_directories(directory);
    set(directory, quota);
    return directory;
  }
  void set(const fs::path& cgroup, const std::string& quota) const {
    if (GetParam()) {
      std::ofstream(cgroup / "cpu.max") << (quota == "-1" ? "max" : quota) << " 100000\n";
    } else {
      std::ofstream(cgroup / "cpu.cfs_quota_us") << quota << '\n';
      std::ofstream(cgroup / "cpu.cfs_period_us") << "100000\n";
    }
  }
  std::string quota_of(const fs::path& cgroup) const {
    std::ifstream in(cgroup / (GetParam() ? "cpu.max" : "cpu.cfs_quota_us"));
    std::string quota;
    in >> quota;
    return quota == "max" ? "-1" : quota;
  }
  void watch(std::optional<fs::path> root) {
    quotas_.emplace(PodQuotas::Deps{loop_, *committer_, std::move(root), *log_});
    committer_->subscribe(*quotas_);
    quotas_->on_reconciled();
    loop_.run();
  }
  void watch() { watch(root_); }
  void check() {
    quotas_->check();
    loop_.run();
  }
  std::optional<operations::CfsQuota> noted(const std::string& pod) const {
    return committer_->ledger().pods().at("sandbox-" + pod).dropped_quota;
  }

  TempDir cgroups_;
  const fs::path root_ = cgroups_.path();
  std::optional<PodQuotas> quotas_;
};

INSTANTIATE_TEST_SUITE_P(V, PodQuotasTest, ::testing::Bool(),
                         [](const auto& version) { return std::string(version.param ? "2" : "1"); });

TEST_P(PodQuotasTest, TakesItOffAndNotesWhatItWas) {
  const fs::path pod = make_cgroup("a", "200000");
  begin({unlimited(exclusive("a", {1, 2}))}, {pod_of("a")});
  watch();
  EXPECT_EQ(quota_of(pod), "-1");
  EXPECT_EQ(noted("a"), (operations::CfsQuota{200000, 100000}));
  EXPECT_THAT(quotas_->failures(), IsEmpty());
}

/// A resize of the kubelet's.
TEST_P(PodQuotasTest, TakesOffWhatTheKubeletSetsLater) {
  const fs::path pod = make_cgroup("a", "200000");
  begin({unlimited(exclusive("a", {1, 2}))}, {pod_of("a")});
  watch();
  set(pod, "300000");
  placement::Demand more = guaranteed("a", 3).demand;
  commit(event::DemandChanged{guaranteed("a", 2).key, more, "resized"});
  EXPECT_EQ(quota_of(pod), "-1") << "as soon as the container's own resize is known";
  EXPECT_EQ(noted("a"), (operations::CfsQuota{300000, 100000}));
  set(pod, "310000");
  check();
  EXPECT_EQ(quota_of(pod), "-1");
  EXPECT_EQ(noted("a"), (operations::CfsQuota{310000, 100000}));
}

TEST_P(PodQuotasTest, GivesItBackBeforeAContainerWithALimitIsMadeBeside) {
  const fs::path pod = make_cgroup("a", "250000");
  begin({unlimited(exclusive("a", {1, 2}))}, {pod_of("a")});
  watch();
  ASSERT_EQ(quota_of(pod), "-1");
  std::string when_admitted;
  Plan plan = plan_of({placement::Mode::kShared, CpuSet::range(3, 7), {}, {}}, CpuSet::range(0, 7));
  committer_->commit(event::CreateAdmitted{limited(beside(shared("b"), "a"), 500).workload, plan},
                     [&] { when_admitted = quota_of(pod); });
  loop_.run();
  EXPECT_EQ(when_admitted, "250000");
  EXPECT_EQ(noted("a"), std::nullopt);
  commit(event::Ended{beside(shared("b"), "a").workload.key, "exited"});
  check();
  EXPECT_EQ(quota_of(pod), "-1") << "only the other one is left";
}

TEST_P(PodQuotasTest, GivesBackWhatAnEarlierOneTookWhereQuotasAreKept) {
  const fs::path pod = make_cgroup("a", "-1");
  placer_ = Placer({topology_, placer_.candidates(), {}, {}});
  Pod known = pod_of("a");
  known.dropped_quota = operations::CfsQuota{50000, 25000};
  Allocation back = exclusive("a", {1, 2});
  back.quota = QuotaState::kGivenBack;
  begin({back}, {known});
  watch();
  EXPECT_EQ(quota_of(pod), "50000");
  EXPECT_EQ(read_quota(pod)->period_us, 25000);
  EXPECT_EQ(noted("a"), std::nullopt);
}

TEST_P(PodQuotasTest, LeavesWhatTheKubeletHasSetMeanwhile) {
  const fs::path pod = make_cgroup("a", "150000");
  Pod known = pod_of("a");
  known.dropped_quota = operations::CfsQuota{200000, 100000};
  Allocation now = limited(shared("a"), 1500);
  now.quota = QuotaState::kGivenBack;
  begin({now}, {known});
  watch();
  EXPECT_EQ(quota_of(pod), "150000");
  EXPECT_EQ(noted("a"), std::nullopt);
}

TEST_P(PodQuotasTest, LeavesPodsAloneThatOthersShareIn) {
  const fs::path pod = make_cgroup("a", "250000");
  begin({unlimited(exclusive("a", {1, 2})), limited(beside(shared("b"), "a"), 500)}, {pod_of("a")});
  watch();
  EXPECT_EQ(quota_of(pod), "250000");
  EXPECT_EQ(noted("a"), std::nullopt);
}

/// Only the pod's own limit can be what is more than that of all its containers.
TEST_P(PodQuotasTest, KeepsTheLimitOfAPodThatBindsWhoHasNone) {
  const fs::path pod = make_cgroup("a", "400000");
  begin({unlimited(exclusive("a", {1, 2})), beside(shared("b"), "a")}, {pod_of("a")});
  watch();
  EXPECT_EQ(quota_of(pod), "400000");
  set(pod, "200000");
  check();
  EXPECT_EQ(quota_of(pod), "-1") << "every container that has a limit has its own CPUs";
}

TEST_P(PodQuotasTest, StaysOffBetweenTheAttemptsOfAContainer) {
  const fs::path pod = make_cgroup("a", "200000");
  begin({unlimited(exclusive("a", {1, 2}))}, {pod_of("a")});
  watch();
  commit(event::Exited{guaranteed("a", 2).key, 1});
  check();
  EXPECT_EQ(quota_of(pod), "-1");
  commit(event::Ended{guaranteed("a", 2).key, "crash-hold"});
  check();
  EXPECT_EQ(quota_of(pod), "-1");
  EXPECT_EQ(noted("a"), (operations::CfsQuota{200000, 100000}));
}

TEST_P(PodQuotasTest, SaysNothingOfAPodThatHasEnded) {
  const fs::path pod = make_cgroup("a", "200000");
  begin({unlimited(exclusive("a", {1, 2}))}, {pod_of("a")});
  watch();
  commit(event::Exited{guaranteed("a", 2).key, std::nullopt, "stopped"});
  fs::remove_all(pod);
  check();
  EXPECT_THAT(quotas_->failures(), IsEmpty()) << "what is kept for its next attempt needs no quota";
  commit(event::Ended{guaranteed("a", 2).key, "pod-stopped"});
  check();
  EXPECT_THAT(quotas_->failures(), IsEmpty());
  commit(event::PodRemoved{"sandbox-a"});
  check();
  EXPECT_THAT(quotas_->failures(), IsEmpty());
}

TEST_P(PodQuotasTest, DoesNothingToPodsOfOthers) {
  const fs::path pod = make_cgroup("b", "200000");
  begin({unlimited(exclusive("a", {1, 2})), exclusive("b", {3})}, {pod_of("a"), pod_of("b")});
  make_cgroup("a", "200000");
  watch();
  check();
  EXPECT_EQ(quota_of(pod), "200000");
}

TEST_P(PodQuotasTest, SaysWhyItStaysAndTriesAgain) {
  begin({unlimited(exclusive("a", {1, 2}))}, {pod_of("a")});
  watch();
  ASSERT_EQ(quotas_->failures().count("default/a"), 1U);
  EXPECT_THAT(quotas_->failures().at("default/a"), HasSubstr("there is no cgroup of pod uid-a"));
  const fs::path pod = make_cgroup("a", "200000");
  for (int i = 0; i < 40; ++i) check();
  EXPECT_EQ(quota_of(pod), "-1");
  EXPECT_THAT(quotas_->failures(), IsEmpty());
}

TEST_P(PodQuotasTest, SaysWhatCannotBeRead) {
  const fs::path pod = root_ / "kubepods" / "poduid-a";
  fs::create_directories(pod);
  begin({unlimited(exclusive("a", {1, 2}))}, {pod_of("a")});
  watch();
  EXPECT_THAT(quotas_->failures().at("default/a"), HasSubstr("cannot be read"));
  EXPECT_EQ(noted("a"), std::nullopt);
  commit(event::Ended{guaranteed("a", 2).key, "removed"});
  check();
  EXPECT_THAT(quotas_->failures(), IsEmpty()) << "it is over";
}

TEST_P(PodQuotasTest, FindsThePodsOfSystemd) {
  const fs::path pod = root_ / "kubepods.slice" / "kubepods-poduid_a.slice";
  fs::create_directories(pod);
  set(pod, "200000");
  begin({unlimited(exclusive("a", {1, 2}))}, {pod_of("a")});
  watch();
  EXPECT_EQ(quota_of(pod), "-1");
}

TEST_P(PodQuotasTest, DoesNothingWithoutAHierarchy) {
  begin({unlimited(exclusive("a", {1, 2}))}, {pod_of("a")});
  watch(std::nullopt);
  check();
  EXPECT_THAT(quotas_->failures(), IsEmpty()) << "that is said at the start";
}

}  // namespace
}  // namespace topolet::engine
