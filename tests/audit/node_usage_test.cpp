#include "core/audit/node_usage.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace topolet::audit {
namespace {

/// Two nodes of four CPUs, the first of which is reserved, and one without CPUs.
MachineRecord machine() {
  MachineRecord machine;
  machine.allowed = CpuSet::range(0, 7);
  machine.reserved = {0};
  machine.nodes = {
      {0, CpuSet::range(0, 3), 1 << 30, false}, {1, CpuSet::range(4, 7), 1 << 30, false}, {2, {}, 1 << 30, true}};
  return machine;
}

Record shared(std::int64_t decision, CpuSet within, std::int64_t milli) {
  Record record;
  record.decision = decision;
  record.within = record.cpus = std::move(within);
  record.cpu_request_milli = milli;
  return record;
}

TEST(NodeUsage, CountsByNode) {
  Record alone;
  alone.decision = 1;
  alone.mode = placement::Mode::kExclusive;
  alone.cpus = {4, 5};
  alone.withheld = {6};
  alone.mems = {1};
  alone.memory_request_bytes = 512;
  PoolRecord pool;
  pool.pool = {1, 2, 3, 7};
  const State state({{1, alone}, {2, shared(2, CpuSet::range(0, 7), 2000)}}, pool);
  const std::vector<NodeUsage> usage = usage_by_node(machine(), state, 1);
  ASSERT_EQ(usage.size(), 3U);
  EXPECT_EQ(usage[0].reserved, CpuSet{0});
  EXPECT_EQ(usage[0].pool, (CpuSet{1, 2, 3}));
  EXPECT_EQ(usage[0].containers, 1U);
  EXPECT_EQ(usage[0].shared_request_milli, 1500) << "three of the four CPUs that it runs on are here";
  EXPECT_EQ(usage[0].largest_exclusive, 3U);
  EXPECT_EQ(usage[1].exclusive, (CpuSet{4, 5}));
  EXPECT_EQ(usage[1].withheld, CpuSet{6});
  EXPECT_EQ(usage[1].pool, CpuSet{7});
  EXPECT_EQ(usage[1].containers, 2U);
  EXPECT_EQ(usage[1].memory_request_bytes, 512);
  EXPECT_EQ(usage[1].largest_exclusive, 1U);
  EXPECT_TRUE(usage[2].memory_only);
  EXPECT_TRUE(usage[2].cpus.empty());
}

TEST(NodeUsage, CountsAsFreeWhatIsKeptForANextAttempt) {
  Record ended;
  ended.decision = 1;
  ended.mode = placement::Mode::kExclusive;
  ended.cpus = {4, 5};
  ended.memory_request_bytes = 512;
  ended.is_kept = true;
  PoolRecord pool;
  pool.pool = {1, 2, 3, 6, 7};
  const std::vector<NodeUsage> usage = usage_by_node(machine(), State({{1, ended}}, pool), 1);
  EXPECT_EQ(usage[1].exclusive, CpuSet());
  EXPECT_EQ(usage[1].pool, CpuSet::range(4, 7));
  EXPECT_EQ(usage[1].largest_exclusive, 4U);
  EXPECT_EQ(usage[1].containers, 0U);
  EXPECT_EQ(usage[1].memory_request_bytes, 0);
}

TEST(NodeUsage, CountsAnEstimateOfSeveralContainersOnce) {
  Record first = shared(1, CpuSet::range(1, 3), 100);
  first.pod_uid = "p";
  first.memory_request_bytes = 512;
  first.memory_request_estimated = true;
  first.oom_score_adj = 625;
  Record second = first;
  second.decision = 2;
  second.cpus = second.within = CpuSet::range(4, 7);
  const std::vector<NodeUsage> usage = usage_by_node(machine(), State({{1, first}, {2, second}}, {}), 1);
  EXPECT_EQ(usage[0].memory_request_bytes, 0);
  EXPECT_EQ(usage[1].memory_request_bytes, 512);
  second.is_kept = true;
  const std::vector<NodeUsage> left = usage_by_node(machine(), State({{1, first}, {2, second}}, {}), 1);
  EXPECT_EQ(left[0].memory_request_bytes, 512) << "what is kept for the other is free";
  EXPECT_EQ(left[1].memory_request_bytes, 0);
}

TEST(NodeUsage, KeepsWhatMustStayShared) {
  EXPECT_EQ(largest_exclusive(CpuSet::range(0, 3), CpuSet::range(0, 7), 0), 4U);
  EXPECT_EQ(largest_exclusive(CpuSet::range(0, 3), CpuSet::range(0, 7), 6), 2U);
  EXPECT_EQ(largest_exclusive(CpuSet::range(0, 3), CpuSet::range(0, 7), 9), 0U);
}

}  // namespace
}  // namespace topolet::audit
