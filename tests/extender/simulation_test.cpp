// Zones are promised once, whatever happens to the API server, to the nodes' objects and to the replicas.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/extender/simulated_cluster.hpp"

namespace topolet::extender {
namespace {

/// TOPOLET_SIMULATED_PODS: how many, where another number is wanted.
std::size_t pods_to_bind() {
  const char* given = std::getenv("TOPOLET_SIMULATED_PODS");
  return given == nullptr ? 2000 : std::strtoul(given, nullptr, 10);
}

TEST(SimulatedClusterTest, NoZoneIsPromisedTwice) {
  const auto result = SimulatedCluster({.seed = 1, .nodes = 12, .pods = pods_to_bind()}).run();
  EXPECT_EQ(result.double_promises, 0U) << result.first_double;
  EXPECT_EQ(result.without_zone, 0U);
  EXPECT_EQ(result.left_promises, 0U);
  EXPECT_GE(result.bound, pods_to_bind());
  // The events that the test is about must have happened.
  EXPECT_GT(result.kills, pods_to_bind() / 500);
  EXPECT_GT(result.pauses, 0U);
  EXPECT_GT(result.terms, result.kills / 4);
  EXPECT_GT(result.lost_answers, 0U);
  EXPECT_GT(result.repeated, 0U);
  EXPECT_GT(result.refused_binds, 0U);
  RecordProperty("bound", static_cast<int>(result.bound));
}

TEST(SimulatedClusterTest, TheSameSeedGivesTheSameHistory) {
  const SimulatedCluster::Options options{.seed = 3, .nodes = 6, .pods = 300};
  const auto first = SimulatedCluster(options).run();
  const auto second = SimulatedCluster(options).run();
  EXPECT_EQ(first.refused_binds, second.refused_binds);
  EXPECT_EQ(first.lost_answers, second.lost_answers);
  EXPECT_EQ(first.bound, second.bound);
}

}  // namespace
}  // namespace topolet::extender
