#include "core/load/stolen_share.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace topolet::load {
namespace {

using Seconds = std::chrono::duration<double>;

void pass_time(StolenShare& share, int count, double busy, double steal) {
  for (int i = 0; i < count; ++i) share.add(Seconds(1), Seconds(busy), Seconds(steal));
}

TEST(StolenShare, IsOfTheTimeInWhichTheCpuWantsToRun) {
  StolenShare share;
  pass_time(share, 1, 0.3, 0.1);
  EXPECT_DOUBLE_EQ(share.value(), 0.25) << "the first is not averaged with nothing";
  EXPECT_EQ(share.effective_milli(), 750);
}

TEST(StolenShare, CountsACpuThatIsNeverLetRun) {
  StolenShare share;
  pass_time(share, 10, 0, 1);
  EXPECT_EQ(share.effective_milli(), 0);
}

TEST(StolenShare, IsAveragedOverAMinute) {
  StolenShare share;
  pass_time(share, 600, 1, 0);
  pass_time(share, 60, 0.5, 0.5);
  EXPECT_NEAR(share.value(), 0.5 * (1 - std::exp(-1.0)), 0.001);
}

TEST(StolenShare, StaysWhileTheCpuHardlyWantsToRunAndDecaysOverTenMinutes) {
  StolenShare share;
  pass_time(share, 600, 0.5, 0.5);
  pass_time(share, 10, 0.02, 0);
  EXPECT_NEAR(share.value(), 0.5, 0.01) << "an idle node under a busy host does not look perfect";
  pass_time(share, 590, 0, 0);
  EXPECT_NEAR(share.value(), 0.5 * std::exp(-1.0), 0.001);
}

TEST(StolenShare, OfACpuThatHasNeverWantedToRunIsNothing) {
  StolenShare share;
  pass_time(share, 100, 0.01, 0.03);
  EXPECT_EQ(share.effective_milli(), 1000);
}

}  // namespace
}  // namespace topolet::load
