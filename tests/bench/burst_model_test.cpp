#include "tests/bench/burst_model.hpp"

#include <gtest/gtest.h>

namespace topolet::bench {
namespace {

using std::chrono::seconds;

TEST(BurstModel, IsTheSameForTheSameSeedAndPod) {
  BurstModel one(1, 7, 500);
  BurstModel same(1, 7, 500);
  BurstModel other(1, 8, 500);
  bool differs = false;
  for (seconds at{0}; at < seconds(3600); at += seconds(10)) {
    const BurstModel::Use use = one.at(at);
    EXPECT_EQ(use.milli, same.at(at).milli);
    differs = differs || use.milli != other.at(at).milli;
  }
  EXPECT_TRUE(differs);
}

TEST(BurstModel, UsesAboutItsRequestOnAverage) {
  BurstModel model(1, 1, 2000);
  double sum = 0;
  int samples = 0;
  for (seconds at{0}; at < seconds(400'000); at += seconds(10)) {
    const BurstModel::Use use = model.at(at);
    EXPECT_EQ(use.milli, use.is_burst ? std::max<std::int64_t>(use.milli, 4000) : 1000);
    sum += static_cast<double>(use.milli);
    ++samples;
  }
  EXPECT_NEAR(sum / samples, 2000, 400);
}

}  // namespace
}  // namespace topolet::bench
