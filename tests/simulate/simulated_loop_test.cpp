#include "core/simulate/simulated_loop.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace topolet::simulate {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

TEST(SimulatedLoop, RunsWhatWorkQueuesToo) {
  SimulatedLoop loop;
  std::vector<int> ran;
  loop.post([&] {
    ran.push_back(1);
    loop.post([&] { ran.push_back(3); });
  });
  loop.post([&] { ran.push_back(2); });
  loop.run();
  EXPECT_THAT(ran, ElementsAre(1, 2, 3));
}

TEST(SimulatedLoop, RunsTimersAtTheirOwnTimeAndOnlyWhenItComes) {
  SimulatedLoop loop;
  const Clock clock = loop.clock();
  std::vector<std::int64_t> at;
  loop.after(milliseconds(20), [&] { at.push_back(clock.wall().count()); });
  loop.after(milliseconds(10), [&] {
    at.push_back(clock.wall().count());
    loop.after(milliseconds(5), [&] { at.push_back(clock.wall().count()); });
  });
  loop.after(milliseconds(31), [&] { at.push_back(clock.wall().count()); });
  loop.advance(milliseconds(30));
  EXPECT_THAT(at, ElementsAre(10, 15, 20));
  EXPECT_EQ(clock.wall(), milliseconds(30));
}

TEST(SimulatedLoop, DoesNothingOnceItIsStopped) {
  SimulatedLoop loop;
  int ran = 0;
  loop.after(milliseconds(10), [&] {
    loop.post([&] { ++ran; });
    loop.stop();
    loop.post([&] { ++ran; });
    loop.after(milliseconds(1), [&] { ++ran; });
  });
  loop.after(milliseconds(20), [&] { ++ran; });
  loop.advance(milliseconds(30));
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(loop.clock().wall(), milliseconds(10));
}

TEST(SimulatedLoop, GoesOnFromAnothersTime) {
  const SimulatedTime time;
  SimulatedLoop(time).advance(milliseconds(30));
  SimulatedLoop next(time);
  EXPECT_EQ(next.next_timer(), std::nullopt);
  next.after(milliseconds(5), [] {});
  EXPECT_EQ(next.next_timer(), milliseconds(35));
  EXPECT_EQ(time.now(), milliseconds(30));
}

TEST(SimulatedTime, HasAWallClockThatIsSetWithoutTimePassing) {
  SimulatedTime time;
  const Clock clock = time.clock();
  time.set(std::chrono::milliseconds(5000));
  time.set_wall(std::chrono::seconds(60));
  EXPECT_EQ(clock.wall(), std::chrono::milliseconds(65'000));
  EXPECT_EQ(clock.steady().time_since_epoch(), std::chrono::milliseconds(5000));
  time.set_wall(std::chrono::seconds(-70));
  EXPECT_EQ(clock.wall(), std::chrono::milliseconds(-5000));
  EXPECT_EQ(time.now(), std::chrono::milliseconds(5000));
}

}  // namespace
}  // namespace topolet::simulate
