#include "core/placement/shared_estimates.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace topolet::placement {
namespace {

using ::testing::ElementsAre;

/// A container of a Burstable pod; `limit` 0: none.
Workload estimated(std::int64_t bytes, std::int64_t oom_score_adj, std::int64_t limit = 0) {
  Workload workload;
  workload.qos = Qos::kBurstable;
  workload.demand.memory_request_bytes = limit > 0 ? std::min(bytes, limit) : bytes;
  workload.demand.memory_request_estimated = true;
  workload.demand.memory_limit_bytes = limit;
  workload.demand.oom_score_adj = oom_score_adj;
  return workload;
}

Workload told(std::int64_t bytes, std::int64_t limit = 0) {
  Workload workload;
  workload.demand.memory_request_bytes = bytes;
  workload.demand.memory_limit_bytes = limit;
  return workload;
}

Workload in_sandbox_of(std::int64_t limit, Workload workload) {
  workload.pod_demand.emplace().memory_limit_bytes = limit;
  return workload;
}

/// In their order.
std::vector<std::int64_t> booked(const std::vector<Workload>& containers) {
  std::vector<const Workload*> pointers;
  for (const Workload& container : containers) pointers.push_back(&container);
  std::vector<std::int64_t> bytes;
  for (const Demand& demand : booked_demands(pointers)) bytes.push_back(demand.memory_request_bytes);
  return bytes;
}

TEST(SharedEstimates, AreBookedOnceForTheLatest) {
  EXPECT_THAT(booked({estimated(48, 625)}), ElementsAre(48));
  EXPECT_THAT(booked({estimated(48, 625), estimated(48, 625)}), ElementsAre(0, 48));
  EXPECT_THAT(booked({estimated(48, 625), estimated(48, 625), estimated(48, 625)}), ElementsAre(0, 0, 48));
}

TEST(SharedEstimates, AreThoseOfOneValue) {
  EXPECT_THAT(booked({estimated(48, 625), estimated(1, 990), estimated(48, 625)}), ElementsAre(0, 1, 48));
  EXPECT_THAT(booked({estimated(8, 625, 8), estimated(8, 900, 8)}), ElementsAre(8, 8)) << "of one limit only";
  EXPECT_THAT(booked({estimated(48, 0), estimated(48, 625)}), ElementsAre(0, 48)) << "one of an older topolet's";
}

TEST(SharedEstimates, AreBookedForTheLargestLimit) {
  EXPECT_THAT(booked({estimated(48, 625, 60), estimated(48, 625, 1)}), ElementsAre(48, 0));
  EXPECT_THAT(booked({estimated(48, 625, 1), estimated(48, 625, 60)}), ElementsAre(0, 48));
  EXPECT_THAT(booked({estimated(48, 625), estimated(48, 625, 60)}), ElementsAre(48, 0)) << "no limit is the largest";
  EXPECT_THAT(booked({estimated(48, 625, 4), estimated(48, 625, 4)}), ElementsAre(0, 4)) << "never above a limit";
}

TEST(SharedEstimates, LeaveNothingToBeCountedByALimit) {
  const Workload app = estimated(48, 625, 60);
  const Workload proxy = estimated(48, 625, 1);
  EXPECT_EQ(booked_demands({&app, &proxy})[1].memory_limit_bytes, 0);
  EXPECT_EQ(booked_demands({&app, &proxy})[0].memory_limit_bytes, 60);
}

TEST(SharedEstimates, AreTogetherNoMoreThanTheSandboxMayHave) {
  EXPECT_THAT(booked({in_sandbox_of(16, estimated(48, 625))}), ElementsAre(16));
  EXPECT_THAT(booked({in_sandbox_of(50, estimated(48, 625)), in_sandbox_of(50, estimated(10, 900))}),
              ElementsAre(40, 10));
  EXPECT_THAT(booked({in_sandbox_of(5, estimated(48, 625)), in_sandbox_of(5, estimated(10, 900))}), ElementsAre(0, 5));
}

TEST(SharedEstimates, AreNotBoundByASumOfSomeLimits) {
  EXPECT_THAT(booked({in_sandbox_of(1, estimated(48, 625)), in_sandbox_of(1, estimated(48, 625, 1))}),
              ElementsAre(48, 0));
}

TEST(SharedEstimates, LeaveWhatIsTold) {
  EXPECT_THAT(booked({told(7), told(7), estimated(7, 900), told(0, 3)}), ElementsAre(7, 7, 7, 0));
}

}  // namespace
}  // namespace topolet::placement
