#include "core/engine/planning/place_cost.hpp"

#include <gmock/gmock.h>

#include "core/engine/planning/room_tries.hpp"
#include "tests/engine/ledgers.hpp"

namespace topolet::engine {
namespace {

/// Two nodes of two caches, each of two CPUs.
class PlaceCostTest : public ::testing::Test {
 protected:
  PlaceCost cost(const CpuSet& cpus, const std::vector<NodeSet>& devices = {}) const {
    return cost_of_exclusive(*machine_, cpus, devices);
  }

  const std::shared_ptr<const topology::Topology> machine_ = testing::machine("node:2 l3:2 core:2 pu:1");
};

TEST_F(PlaceCostTest, ComparesNodesThenDistanceThenDevicesThenCaches) {
  EXPECT_EQ(cost({0, 1}).nodes, 1U);
  EXPECT_EQ(cost({0, 1}).caches, 1U);
  EXPECT_LT(cost({0, 1}), cost({1, 2}));
  EXPECT_LT(cost({1, 2}), cost({3, 4}));
  EXPECT_LT(cost({1, 2}, {{0}}), cost({4, 5}, {{0}}));
}

TEST_F(PlaceCostTest, IsLessThanADenialWhereverItIs) {
  EXPECT_LT((PlanCost{.place = cost(CpuSet::range(0, 7), {{0}})}), PlanCost{.is_denied = true});
  EXPECT_LT((PlanCost{.place = cost(CpuSet::range(0, 7))}), (PlanCost{.misses_zone = true, .place = cost({0})}));
}

TEST_F(PlaceCostTest, CountsForEachDeviceTheCpusThatAreNotBesideIt) {
  EXPECT_EQ(cost({2, 3, 4}, {{0}}).remote, 1U);
  EXPECT_EQ(cost({2, 3, 4}, {{0}, {1}}).remote, 3U);
  const CpuSet open{2, 3, 4};
  EXPECT_EQ(least_remote(*machine_, open, 2, {{0}}), 0U);
  EXPECT_EQ(least_remote(*machine_, open, 2, {{1}}), 1U);
  EXPECT_EQ(least_remote(*machine_, open, 2, {{0}, {1}}), 2U) << "whichever they are";
  EXPECT_EQ(least_remote(*machine_, open, 3, {{0}, {0}, {1}}), 4U);
  EXPECT_EQ(least_remote(*machine_, open, 2, {}), 0U);
}

}  // namespace
}  // namespace topolet::engine
