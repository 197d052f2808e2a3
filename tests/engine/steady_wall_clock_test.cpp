#include "core/engine/steady_wall_clock.hpp"

#include <gtest/gtest.h>

namespace topolet::engine {
namespace {

using std::chrono::milliseconds;

class FollowedClockTest : public ::testing::Test {
 protected:
  milliseconds wall_{1'000'000};
  milliseconds steady_{5000};
  SteadyWallClock followed_{
      Clock{[this] { return wall_; }, [this] { return std::chrono::steady_clock::time_point(steady_); }}};
};

TEST_F(FollowedClockTest, GoesOnWithTheSteadyClock) {
  const Clock clock = followed_.clock();
  steady_ += milliseconds(300);
  wall_ += milliseconds(300);
  EXPECT_EQ(clock.wall(), milliseconds(1'000'300));
  EXPECT_EQ(clock.steady().time_since_epoch(), milliseconds(5300));
  EXPECT_FALSE(followed_.follow());
}

TEST_F(FollowedClockTest, IsSetOnlyWhenItFollows) {
  const Clock clock = followed_.clock();
  for (const milliseconds step : {milliseconds(3'600'000), milliseconds(-7'200'000)}) {
    const milliseconds before = clock.wall();
    wall_ += step;
    EXPECT_EQ(clock.wall(), before);
    EXPECT_EQ(followed_.follow(), step);
    EXPECT_EQ(clock.wall(), wall_);
    EXPECT_FALSE(followed_.follow());
  }
}

TEST_F(FollowedClockTest, LeavesADriftAlone) {
  wall_ += milliseconds(400);
  EXPECT_FALSE(followed_.follow());
  wall_ += milliseconds(400);
  EXPECT_EQ(followed_.follow(), milliseconds(800)) << "until it adds up";
}

}  // namespace
}  // namespace topolet::engine
