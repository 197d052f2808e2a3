#include "tests/bench/churn.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "tests/bench/headroom_model.hpp"
#include "tests/bench/quality_table.hpp"

namespace topolet::bench {
namespace {

std::vector<PodSize> sizes(const char* list) {
  auto read = parse_sizes(list);
  EXPECT_TRUE(read) << list;
  return read ? *std::move(read) : std::vector<PodSize>{};
}

ChurnOptions with_gpus(std::uint64_t seed) {
  return {.cpus = 128,
          .fill_percent = 85,
          .pods = 500,
          .sizes = sizes("2,4,8"),
          .gpus = 8,
          .gpu_pods_percent = 40,
          .gpu_sizes = sizes("8:3,16"),
          .seed = seed};
}

TEST(Churn, ReadsSizesWithAndWithoutWeights) {
  const std::vector<PodSize> read = sizes("1:4,12,0.2:3");
  ASSERT_EQ(read.size(), 3U);
  EXPECT_EQ(read[0].milli_cpus, 1000);
  EXPECT_EQ(read[0].weight, 4U);
  EXPECT_EQ(read[1].milli_cpus, 12000);
  EXPECT_EQ(read[1].weight, 1U);
  EXPECT_EQ(read[2].milli_cpus, 200);
  for (const char* wrong : {"", "x", "1:", "1:x", "1;2", "0", "-1", "1:0", "1:2:3"}) {
    EXPECT_FALSE(parse_sizes(wrong)) << wrong;
  }
}

TEST(Churn, NeverAsksForMoreThanTheLevel) {
  std::map<std::size_t, std::int64_t> live;
  const Churn churn = make_churn(with_gpus(1));
  for (std::size_t pod = 0; pod < churn.size(); ++pod) {
    for (const std::size_t ended : churn[pod].ended_before) ASSERT_EQ(live.erase(ended), 1U);
    live[pod] = churn[pod].milli_cpus;
    std::int64_t used = 0;
    for (const auto& [unused, milli_cpus] : live) used += milli_cpus;
    ASSERT_LE(used, 128'000 * 85 / 100);
    ASSERT_TRUE(!churn[pod].is_counted || used > 128'000 * 85 / 100 - 32'000);
  }
}

TEST(Churn, GivesAGpuToOnePodAtATime) {
  for (const bool lowest : {true, false}) {
    ChurnOptions options = with_gpus(1);
    options.takes_lowest_gpu = lowest;
    const Churn churn = make_churn(options);
    std::set<std::uint32_t> used;
    int with_gpu = 0;
    for (const Arrival& arrival : churn) {
      for (const std::size_t ended : arrival.ended_before) {
        if (churn[ended].gpu) used.erase(*churn[ended].gpu);
      }
      if (!arrival.gpu) continue;
      ++with_gpu;
      ASSERT_LT(*arrival.gpu, 8U);
      for (std::uint32_t gpu = 0; lowest && gpu < *arrival.gpu; ++gpu) ASSERT_TRUE(used.count(gpu));
      ASSERT_TRUE(used.insert(*arrival.gpu).second);
    }
    EXPECT_NEAR(with_gpu, 200, 60);
  }
}

TEST(Churn, IsTheSameForASeed) {
  const auto sizes_of = [](std::uint64_t seed) {
    std::vector<std::int64_t> milli_cpus;
    for (const Arrival& arrival : make_churn(with_gpus(seed))) milli_cpus.push_back(arrival.milli_cpus);
    return milli_cpus;
  };
  EXPECT_EQ(sizes_of(3), sizes_of(3));
  EXPECT_NE(sizes_of(3), sizes_of(4));
}

Arrival pod_of(std::uint32_t cpus, std::optional<std::uint32_t> gpu = std::nullopt) {
  Arrival arrival;
  arrival.milli_cpus = std::int64_t{cpus} * 1000;
  arrival.gpu = gpu;
  return arrival;
}

TEST(HeadroomModel, LeavesRoomForGpusThatNobodyHas) {
  HeadroomModel rule({16, 16}, {0, 0});
  EXPECT_TRUE(rule.admit(0, pod_of(8)));
  EXPECT_TRUE(rule.admit(1, pod_of(8)));
  EXPECT_TRUE(rule.admit(2, pod_of(8, 0)));
  EXPECT_TRUE(rule.admit(3, pod_of(8, 1)));
}

TEST(HeadroomModel, GivesTheRoomAwayWhereThereIsNoOther) {
  HeadroomModel rule({16, 16}, {0, 0});
  EXPECT_TRUE(rule.admit(0, pod_of(16)));
  EXPECT_TRUE(rule.admit(1, pod_of(4)));
  EXPECT_TRUE(rule.admit(2, pod_of(8, 0)));
  rule.end(0);
  EXPECT_FALSE(rule.admit(3, pod_of(8, 1)));
}

TEST(HeadroomModel, SpansNodesWhereTheGpusOwnHasTooLittle) {
  HeadroomModel rule({4, 4}, {0});
  EXPECT_TRUE(rule.admit(0, pod_of(3)));
  EXPECT_FALSE(rule.admit(1, pod_of(5, 0)));
}

TEST(QualityTable, LeavesOutSharesOfNothing) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  EXPECT_DOUBLE_EQ(mean_and_spread({1, none, 3}).mean, 2);
  EXPECT_DOUBLE_EQ(mean_and_spread({1, none, 3}).spread, std::sqrt(2.0));
  EXPECT_EQ(mean_and_spread({5}).spread, 0);
  EXPECT_TRUE(std::isnan(mean_and_spread({none}).mean));
}

}  // namespace
}  // namespace topolet::bench
