#include "tests/bench/statistics.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace topolet::bench {
namespace {

TEST(Statistics, QuantileIsTheValueAtThatPlaceInOrder) {
  const std::vector<double> values = {5, 1, 4, 2, 3};
  EXPECT_EQ(quantile(values, 0), 1);
  EXPECT_EQ(median(values), 3);
  EXPECT_EQ(quantile(values, 1), 5);
}

TEST(Statistics, RatioIgnoresWhatWeighsOnBoth) {
  const std::vector<double> bare = {10, 11, 500, 12, 10, 90};
  std::vector<double> twice = bare;
  for (double& value : twice) value *= 2;
  const Interval ratio = median_ratio(twice, bare, 1);
  EXPECT_DOUBLE_EQ(ratio.low, 2);
  EXPECT_DOUBLE_EQ(ratio.middle, 2);
  EXPECT_DOUBLE_EQ(ratio.high, 2);
}

TEST(Statistics, DifferenceIsTakenPlaceByPlace) {
  const Interval difference = median_difference({13, 503, 23, 93}, {10, 500, 20, 90}, 1);
  EXPECT_DOUBLE_EQ(difference.low, 3);
  EXPECT_DOUBLE_EQ(difference.middle, 3);
  EXPECT_DOUBLE_EQ(difference.high, 3);
}

TEST(Statistics, IntervalIsAsWideAsTheRoundsDisagree) {
  const std::vector<double> ones(9, 1);
  const Interval ratio = median_ratio({1, 2, 3, 4, 5, 6, 7, 8, 9}, ones, 1);
  EXPECT_EQ(ratio.middle, 5);
  EXPECT_GE(ratio.low, 1);
  EXPECT_LT(ratio.low, 4);
  EXPECT_GT(ratio.high, 6);
  EXPECT_LE(ratio.high, 9);
}

TEST(Statistics, IntervalIsTheSameForTheSameSeed) {
  const std::vector<double> above = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const std::vector<double> ones(9, 1);
  EXPECT_EQ(median_ratio(above, ones, 7).low, median_ratio(above, ones, 7).low);
}

}  // namespace
}  // namespace topolet::bench
