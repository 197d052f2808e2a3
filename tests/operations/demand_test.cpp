#include "core/operations/demand.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace topolet::operations {
namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

struct CgroupCase {
  const char* cgroup;
  std::optional<placement::Qos> qos;
};

TEST(QosOfCgroup, ReadsEveryFormAKubeletWrites) {
  const std::vector<CgroupCase> cases = {
      {"/kubepods/burstable/pod1234-56", placement::Qos::kBurstable},
      {"/kubepods/besteffort/pod1234-56", placement::Qos::kBestEffort},
      {"/kubepods/pod1234-56", placement::Qos::kGuaranteed},
      {"kubepods/burstable/pod1", placement::Qos::kBurstable},
      {"/foo/kubepods/burstable/podX", placement::Qos::kBurstable},
      {"/foo/bar/kubepods/podX", placement::Qos::kGuaranteed},
      {"/kubepods/burstable/podX/0123abcd", placement::Qos::kBurstable},
      {"kubepods-burstable-pod1234_56.slice", placement::Qos::kBurstable},
      {"kubepods-besteffort-pod1234_56.slice", placement::Qos::kBestEffort},
      {"kubepods-pod1234_56.slice", placement::Qos::kGuaranteed},
      {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice", placement::Qos::kBurstable},
      {"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1.slice", placement::Qos::kBestEffort},
      {"/kubepods.slice/kubepods-pod1.slice", placement::Qos::kGuaranteed},
      {"kubepods-burstable.slice", placement::Qos::kBurstable},
      {"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod1.slice",
       placement::Qos::kBurstable},
      {"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod1.slice", placement::Qos::kGuaranteed},
      {"kubepods-burstable-pod1.slice:cri-containerd:0123abcd", placement::Qos::kBurstable},
      {"kubepods-pod1.slice:cri-containerd:0123abcd", placement::Qos::kGuaranteed},
  };
  for (const CgroupCase& c : cases) EXPECT_EQ(qos_of_cgroup(c.cgroup), c.qos) << c.cgroup;
}

TEST(QosOfCgroup, TakesTheInnermostKubelet) {
  EXPECT_EQ(qos_of_cgroup("/kubepods/burstable/pod1/abc/kubepods/besteffort/pod2"), placement::Qos::kBestEffort);
  EXPECT_EQ(qos_of_cgroup("/kubepods/besteffort/pod1/abc/kubepods/pod2"), placement::Qos::kGuaranteed);
}

TEST(QosOfCgroup, SaysNothingWithoutAPodBelowKubepods) {
  for (const char* cgroup : {"", "/", "/kubepods", "/kubepods/", "kubepods.slice", ".slice", "/system.slice", "k8s.io",
                             "/podX", "/burstable/podX", "/mykubepods/podX", "/kubepods/pod", "/kubepods/other/podX",
                             "-.slice", ":", "kubepods:podX", "/kubepodsburstable/podX"}) {
    EXPECT_EQ(qos_of_cgroup(cgroup), std::nullopt) << cgroup;
  }
}

TEST(QosOfOomScoreAdj, IsGuaranteedOnlyWhenTheKubeletSaidSo) {
  EXPECT_EQ(qos_of_oom_score_adj(kMin), placement::Qos::kGuaranteed);
  EXPECT_EQ(qos_of_oom_score_adj(-998), placement::Qos::kGuaranteed);
  EXPECT_EQ(qos_of_oom_score_adj(-997), placement::Qos::kGuaranteed);
  EXPECT_EQ(qos_of_oom_score_adj(-996), placement::Qos::kBurstable);
  EXPECT_EQ(qos_of_oom_score_adj(0), placement::Qos::kBurstable);
  EXPECT_EQ(qos_of_oom_score_adj(999), placement::Qos::kBurstable);
  EXPECT_EQ(qos_of_oom_score_adj(1000), placement::Qos::kBestEffort);
  EXPECT_EQ(qos_of_oom_score_adj(kMax), placement::Qos::kBestEffort);
}

// The kubelet's own formulas, for round trips.
std::int64_t kubelet_shares(std::int64_t milli) { return std::clamp<std::int64_t>(milli * 1024 / 1000, 2, 262144); }
std::int64_t kubelet_quota(std::int64_t milli, std::int64_t period_us) {
  return std::max<std::int64_t>(milli * period_us / 1000, 1000);
}

TEST(CpuRequest, GivesBackEveryRequestThatSharesCanCarry) {
  for (std::int64_t milli = 3; milli <= 256000; ++milli) {
    ASSERT_EQ(cpu_request_milli(kubelet_shares(milli), 0), milli) << kubelet_shares(milli) << " shares";
  }
}

TEST(CpuRequest, IsNoneAtTheKernelsMinimumAndBelow) {
  for (std::int64_t shares : {kMin, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, std::int64_t{2}}) {
    EXPECT_EQ(cpu_request_milli(shares, 4000), 0) << shares;
  }
}

TEST(CpuRequest, UsesTheLimitWhereSharesAreCapped) {
  EXPECT_EQ(cpu_request_milli(kubelet_shares(300000), 300000), 300000);
  EXPECT_EQ(cpu_request_milli(kubelet_shares(300000), 0), 256000);
  EXPECT_EQ(cpu_request_milli(262144, 128000), 256000);
  EXPECT_EQ(cpu_request_milli(262143, 300000), 256000) << "below the cap the limit says nothing";
  EXPECT_EQ(cpu_request_milli(kMax, 0), 256000);
}

TEST(CpuLimit, GivesBackEveryLimitForEveryPeriod) {
  for (std::int64_t period_us : {1000, 1500, 5000, 33333, 100000, 1000000}) {
    for (std::int64_t milli = 1; milli <= 70000; ++milli) {
      const std::int64_t quota_us = kubelet_quota(milli, period_us);
      if (quota_us == 1000) continue;  // the smallest quota stands for all that are smaller
      ASSERT_EQ(cpu_limit_milli(quota_us, period_us), milli) << quota_us << " / " << period_us;
    }
  }
}

TEST(CpuLimit, IsNoneWithoutAQuota) {
  EXPECT_EQ(cpu_limit_milli(0, 100000), 0);
  EXPECT_EQ(cpu_limit_milli(-1, 100000), 0);
  EXPECT_EQ(cpu_limit_milli(kMin, 0), 0);
}

TEST(CpuLimit, TakesTheKernelsPeriodWhenNoneIsGiven) {
  EXPECT_EQ(cpu_limit_milli(250000, 0), 2500);
  EXPECT_EQ(cpu_limit_milli(250000, -5), 2500);
}

TEST(CpuLimit, StaysInBoundsOnNonsense) {
  EXPECT_EQ(cpu_limit_milli(kMax, 1), 65536000);
  EXPECT_EQ(cpu_limit_milli(kMax, kMax), 1000);
  EXPECT_EQ(cpu_limit_milli(1, kMax), 1);
}

TEST(MemoryRequest, OfAGuaranteedContainerIsItsLimit) {
  EXPECT_EQ(memory_request(placement::Qos::kGuaranteed, -997, 5 * kGiB, 64 * kGiB), (MemoryRequest{5 * kGiB, false}));
  EXPECT_EQ(memory_request(placement::Qos::kGuaranteed, -997, 0, 64 * kGiB), MemoryRequest{});
  EXPECT_EQ(memory_request(placement::Qos::kGuaranteed, -997, -1, 64 * kGiB), MemoryRequest{});
}

TEST(MemoryRequest, OfABurstableContainerIsWithinAStepOfTheTruth) {
  const std::int64_t total = 64 * kGiB + 12345;
  for (std::int64_t request = total / 400; request < total / 1000 * 996; request += total / 700) {
    const std::int64_t oom_score_adj = 1000 - 1000 * request / total;
    const MemoryRequest estimate = memory_request(placement::Qos::kBurstable, oom_score_adj, 0, total);
    EXPECT_TRUE(estimate.estimated);
    EXPECT_LE(estimate.bytes, request);
    EXPECT_GT(estimate.bytes, request - total / 1000 - 1);
  }
}

TEST(MemoryRequest, IsUnknownWhereTheScoreSaysNothing) {
  for (std::int64_t oom_score_adj :
       {kMin, std::int64_t{-997}, std::int64_t{0}, std::int64_t{3}, std::int64_t{999}, std::int64_t{1000}, kMax}) {
    EXPECT_EQ(memory_request(placement::Qos::kBurstable, oom_score_adj, 0, 64 * kGiB), MemoryRequest{})
        << oom_score_adj;
  }
  EXPECT_EQ(memory_request(placement::Qos::kBurstable, 900, 0, 0), MemoryRequest{});
  EXPECT_EQ(memory_request(placement::Qos::kBestEffort, 900, kGiB, 64 * kGiB), MemoryRequest{});
}

TEST(MemoryRequest, IsNeverMoreThanTheLimitAndNeverOverflows) {
  EXPECT_EQ(memory_request(placement::Qos::kBurstable, 500, kGiB, 64 * kGiB), (MemoryRequest{kGiB, true}));
  EXPECT_EQ(memory_request(placement::Qos::kBurstable, 4, 0, kMax).bytes, kMax / 1000 * 996 + kMax % 1000 * 996 / 1000);
}

TEST(DemandOf, PutsTheNumbersTogether) {
  const RawResources raw{.cpu_period_us = 100000,
                         .cpu_quota_us = 200000,
                         .cpu_shares = 2048,
                         .memory_limit_bytes = kGiB,
                         .oom_score_adj = -997,
                         .hugepage_limit_bytes = {{"2MB", 4 << 20}}};
  const placement::Demand expected{.cpu_request_milli = 2000,
                                   .cpu_limit_milli = 2000,
                                   .memory_request_bytes = kGiB,
                                   .memory_request_estimated = false,
                                   .memory_limit_bytes = kGiB,
                                   .hugepage_limit_bytes = {{"2MB", 4 << 20}},
                                   .cpu_period_us = 100000};
  EXPECT_EQ(demand_of(raw, placement::Qos::kGuaranteed, 64 * kGiB), expected);
  EXPECT_EQ(demand_of({}, placement::Qos::kBestEffort, 64 * kGiB), placement::Demand{});
}

KnownDemand demand_told(const ToldResources& told, std::size_t seen_cpus = 0) {
  return demand_of(told, seen_cpus, 64 * kGiB);
}

TEST(DemandOfTold, IsUnknownWhereNobodyTellsAnything) {
  const KnownDemand known = demand_told({});
  EXPECT_EQ(known.qos, placement::Qos::kUnknown);
  EXPECT_EQ(known.demand.cpu_request_certainty, placement::Certainty::kUnknown);
  EXPECT_EQ(known.demand.cpu_request_milli, 1000);
}

TEST(DemandOfTold, CountsAnUnknownRequestAsItsLimit) {
  const KnownDemand known =
      demand_told({.qos = placement::Qos::kBurstable, .cpu_period_us = 100000, .cpu_quota_us = 2500000});
  EXPECT_EQ(known.demand.cpu_request_certainty, placement::Certainty::kUnknown);
  EXPECT_EQ(known.demand.cpu_request_milli, 25000);
}

TEST(DemandOfTold, KnowsThatBestEffortAsksForNothing) {
  for (const ToldResources& told :
       {ToldResources{.qos = placement::Qos::kBestEffort}, ToldResources{.oom_score_adj = 1000},
        ToldResources{.qos = placement::Qos::kBestEffort, .cpu_weight = 100}}) {
    EXPECT_EQ(demand_told(told).qos, placement::Qos::kBestEffort);
    EXPECT_EQ(demand_told(told).demand, placement::Demand());
  }
}

TEST(DemandOfTold, ReadsSharesExactly) {
  const KnownDemand known =
      demand_told({.qos = placement::Qos::kBurstable, .cpu_shares = 1536, .cpu_weight = 7, .oom_score_adj = 984});
  EXPECT_EQ(known.demand.cpu_request_milli, 1500);
  EXPECT_EQ(known.demand.cpu_request_certainty, placement::Certainty::kTold);
  EXPECT_EQ(known.demand.memory_request_bytes, 64 * kGiB / 1000 * 16 + 64 * kGiB % 1000 * 16 / 1000);
}

TEST(DemandOfTold, KnowsTheRequestOfAGuaranteedContainerByItsLimit) {
  const KnownDemand known = demand_told({.qos = placement::Qos::kGuaranteed,
                                         .cpu_period_us = 100000,
                                         .cpu_quota_us = 200000,
                                         .cpu_weight = 79,
                                         .memory_limit_bytes = kGiB});
  EXPECT_EQ(known.demand.cpu_request_milli, 2000);
  EXPECT_EQ(known.demand.cpu_request_certainty, placement::Certainty::kTold);
  EXPECT_EQ(known.demand.memory_request_bytes, kGiB);
}

/// As with the kubelet's cpuCFSQuota = false.
TEST(DemandOfTold, KnowsAWholeRequestByWeightAndCpusTogether) {
  for (const std::int64_t weight : {79, 174}) {
    const ToldResources told{.qos = placement::Qos::kGuaranteed, .cpu_quota_us = -1, .cpu_weight = weight};
    EXPECT_EQ(demand_told(told, 2).demand.cpu_request_milli, 2000) << weight;
    EXPECT_EQ(demand_told(told, 2).demand.cpu_request_certainty, placement::Certainty::kTold) << weight;
    EXPECT_EQ(demand_told(told, 3).demand.cpu_request_certainty, placement::Certainty::kEstimated) << weight;
  }
}

TEST(DemandOfTold, TakesAWeightForTheMostThatItMayMean) {
  ToldResources told{.qos = placement::Qos::kBurstable, .cpu_quota_us = -1, .cpu_weight = 39};
  EXPECT_EQ(demand_told(told).demand.cpu_request_milli, 1000);
  EXPECT_EQ(demand_told(told).demand.cpu_request_certainty, placement::Certainty::kEstimated);
  told.cpu_weight = 100;
  EXPECT_EQ(demand_told(told).demand.cpu_request_milli, 2562);
  told.cpu_quota_us = 150000;
  EXPECT_EQ(demand_told(told).demand.cpu_request_milli, 1000) << "more than its limit was not meant";
  told.cpu_weight = 1;
  EXPECT_LE(demand_told(told).demand.cpu_request_milli, 30);
}

TEST(CpuWeight, IsReadAsBothFormulasMakeIt) {
  EXPECT_EQ(read_cpu_weight(39).most_milli, 1000);
  EXPECT_EQ(read_cpu_weight(100).least_milli, 1000);
  EXPECT_EQ(read_cpu_weight(10000).most_milli, 256000);
  EXPECT_EQ(read_cpu_weight(0).least_milli, 0);
  EXPECT_EQ(read_cpu_weight(kMax).most_milli, 256000);
}

TEST(ToldResources, AreFilledInOneByOne) {
  ToldResources told{.cpu_period_us = 50000, .cpu_quota_us = 100000};
  told.fill_in({.qos = placement::Qos::kBurstable, .cpu_period_us = 100000, .cpu_quota_us = 1, .cpu_weight = 39});
  EXPECT_EQ(told,
            (ToldResources{
                .qos = placement::Qos::kBurstable, .cpu_period_us = 50000, .cpu_quota_us = 100000, .cpu_weight = 39}));
  EXPECT_FALSE(tells_all(told));
}

}  // namespace
}  // namespace topolet::operations
