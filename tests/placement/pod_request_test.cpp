// Containers whose pod has a request, and who have none of their own.
#include "core/placement/pod_request.hpp"
#include "core/placement/exclusive_claim.hpp"
#include "core/placement/policy.hpp"

#include <gtest/gtest.h>

namespace topolet::placement {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

Workload in_pod(std::int64_t milli, std::int64_t pod_milli, Qos qos = Qos::kGuaranteed) {
  Workload workload;
  workload.qos = qos;
  workload.demand.cpu_request_milli = workload.demand.cpu_limit_milli = milli;
  workload.pod_demand.emplace().cpu_request_milli = pod_milli;
  return workload;
}

TEST(PodRequest, IsNotThatOfAContainerThatHasItsOwn) {
  for (const auto& [own, pod, beside] : {std::tuple(2000, 2000, 0), std::tuple(2000, 2100, 100),
                                         std::tuple(2000, 6000, 4000), std::tuple(2000, 2003, 3)}) {
    const Workload workload = in_pod(own, pod);
    EXPECT_EQ(with_request_of_pod(workload, {beside, 0}), workload) << own << " of " << pod;
    EXPECT_EQ(describe_request_of_pod(workload), "");
  }
}

TEST(PodRequest, IsWhatTheOthersLeaveForOneThatIsToldThePodsLimit) {
  const Workload workload = with_request_of_pod(in_pod(6000, 6000), {2000, 0});
  EXPECT_EQ(workload.demand.cpu_request_milli, 4000);
  EXPECT_EQ(workload.demand.cpu_request_certainty, Certainty::kOfPod);
  EXPECT_EQ(exclusive_claim(workload, {}).why_not, NotExclusive::kNoOwnRequest);
  EXPECT_EQ(describe_request_of_pod(workload), "; its pod requests 6 CPUs as a whole");
  EXPECT_EQ(with_request_of_pod(in_pod(6000, 6000), {6000, 0}).demand.cpu_request_milli, 1) << "the second such one";
}

TEST(PodRequest, IsSeenAtOnceWhereThePodsLimitIsMore) {
  const Workload workload = with_request_of_pod(in_pod(8000, 2500, Qos::kBurstable), {});
  EXPECT_EQ(workload.demand.cpu_request_milli, 2500);
  EXPECT_EQ(describe_request_of_pod(workload), "; its pod requests 2.5 CPUs as a whole");
}

TEST(PodRequest, IsThatOfAGuaranteedContainerThatIsToldNone) {
  const Workload workload = with_request_of_pod(in_pod(0, 4000), {1000, 0});
  EXPECT_EQ(workload.demand.cpu_request_milli, 3000);
  EXPECT_EQ(workload.demand.cpu_request_certainty, Certainty::kOfPod);
  const Workload burstable = in_pod(0, 4000, Qos::kBurstable);
  EXPECT_EQ(with_request_of_pod(burstable, {}), burstable) << "the others of its pod may be still to come";
}

TEST(PodRequest, CountsForMemoryToo) {
  Workload workload = in_pod(6000, 6000);
  workload.pod_demand->memory_request_bytes = 8 * kGiB;
  workload.demand.memory_request_bytes = workload.demand.memory_limit_bytes = 8 * kGiB;
  EXPECT_EQ(with_request_of_pod(workload, {2000, 3 * kGiB}).demand.memory_request_bytes, 5 * kGiB);
  workload.demand.memory_request_bytes = kGiB;
  EXPECT_EQ(with_request_of_pod(workload, {2000, 3 * kGiB}).demand.memory_request_bytes, kGiB) << "its own";
}

TEST(PodRequest, IsLeftToTheKubeletThatHandsOutCpus) {
  Workload workload = in_pod(6000, 6000);
  workload.kubelet_cpus = CpuSet::range(0, 5);
  EXPECT_EQ(with_request_of_pod(workload, {2000, 0}), workload);
}

TEST(PodRequest, OfAGuaranteedContainerIsNoFractionWhereThereIsNone) {
  EXPECT_EQ(exclusive_claim(in_pod(0, 0), {}).why_not, NotExclusive::kNothingRequested);
  EXPECT_EQ(exclusive_claim(in_pod(500, 500), {}).why_not, NotExclusive::kFractionalRequest);
}

}  // namespace
}  // namespace topolet::placement
