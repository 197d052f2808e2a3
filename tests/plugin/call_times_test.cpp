#include "core/plugin/call/call_times.hpp"

#include <gtest/gtest.h>

namespace topolet::plugin {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;

TEST(CallTimes, KnowNothingBeforeTheFirstCall) { EXPECT_EQ(CallTimes().p99_us(), 0U); }

TEST(CallTimes, ForgiveOneSlowCallInAHundred) {
  CallTimes times;
  for (int i = 0; i < 99; ++i) times.add(microseconds(3));
  times.add(microseconds(5000));
  EXPECT_EQ(times.p99_us(), 3U);
  times.add(microseconds(5000));
  EXPECT_GE(times.p99_us(), 5000U);
}

TEST(CallTimes, AreRoundedUpByAQuarterAtMost) {
  for (std::uint64_t us = 1; us < 1000000; us = us * 5 / 4 + 1) {
    CallTimes times;
    times.add(microseconds(us));
    EXPECT_GE(times.p99_us(), us);
    EXPECT_LE(times.p99_us(), us + us / 4);
  }
}

TEST(CallTimes, TakeADurationBeyondTheLastBucket) {
  CallTimes times;
  times.add(hours(24 * 365));
  EXPECT_GT(times.p99_us(), 1U << 30);
}

}  // namespace
}  // namespace topolet::plugin
