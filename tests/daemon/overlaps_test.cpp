#include "core/daemon/overlaps.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace topolet::daemon {
namespace {

engine::Overlap overlap(const std::string& container, const std::string& owner, int seen_for_ms) {
  return {.container = container, .owner = owner, .cpus = {0, 2}, .seen_for = std::chrono::milliseconds(seen_for_ms)};
}

TEST(Overlaps, AreCountedByContainer) {
  EXPECT_EQ(count_overlapping({}), 0U);
  EXPECT_EQ(count_overlapping({overlap("a", "x", 1), overlap("a", "y", 1), overlap("b", "x", 1)}), 2U);
}

TEST(Overlaps, AreToldTheLongestFirst) {
  control::v1::StatusResponse response;
  tell_overlaps({overlap("a", "x", 5), overlap("b", "y", 7)}, response);
  EXPECT_EQ(response.overlapping_containers(), 2U);
  ASSERT_EQ(response.overlaps_size(), 2);
  EXPECT_EQ(response.overlaps(0).container(), "b");
  EXPECT_EQ(response.overlaps(0).owner(), "y");
  EXPECT_EQ(response.overlaps(0).cpus(), "0,2");
  EXPECT_EQ(response.overlaps(0).seen_for_ms(), 7);
}

TEST(Overlaps, AreAllCountedThoughNotAllAreTold) {
  std::vector<engine::Overlap> many;
  for (int i = 0; i < 250; ++i) many.push_back(overlap(fmt::format("a-{}", i), "x", i));
  control::v1::StatusResponse response;
  tell_overlaps(many, response);
  EXPECT_EQ(response.overlapping_containers(), 250U);
  ASSERT_EQ(response.overlaps_size(), 100);
  EXPECT_EQ(response.overlaps(99).container(), "a-150");
}

TEST(Overruled, AreToldTheLongestFirstAndAllCounted) {
  std::vector<engine::OverruledContainer> many;
  for (int i = 0; i < 120; ++i)
    many.push_back({fmt::format("a-{}", i), CpuSet{0}, CpuSet{3}, std::chrono::milliseconds(i)});
  control::v1::StatusResponse response;
  tell_overruled(many, response);
  EXPECT_EQ(response.overruled_containers(), 120U);
  ASSERT_EQ(response.overruled_size(), 100);
  EXPECT_EQ(response.overruled(0).container(), "a-119");
  EXPECT_EQ(response.overruled(0).cpus(), "0");
  EXPECT_EQ(response.overruled(0).seen_on(), "3");
  EXPECT_EQ(response.overruled(0).lasts_ms(), 119);
}

}  // namespace
}  // namespace topolet::daemon
