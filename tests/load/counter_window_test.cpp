#include "core/load/counter_window.hpp"

#include <gtest/gtest.h>

namespace topolet::load {
namespace {

CounterWindow::Time second(int number) { return CounterWindow::Time(std::chrono::seconds(number)); }

TEST(CounterWindow, KnowsNothingOfOneReading) {
  CounterWindow window;
  EXPECT_FALSE(window.per_second());
  window.add(second(1), 100);
  EXPECT_FALSE(window.per_second());
}

TEST(CounterWindow, IsTheMeanOfTheLastFiveSeconds) {
  CounterWindow window;
  for (int i = 0; i <= 20; ++i) window.add(second(i), i <= 10 ? 0 : static_cast<std::uint64_t>(i - 10) * 60);
  EXPECT_DOUBLE_EQ(*window.per_second(), 60);
  for (int i = 21; i <= 25; ++i) {
    window.add(second(i), 600);
    EXPECT_DOUBLE_EQ(*window.per_second(), 60.0 * (25 - i) / 5);
  }
}

TEST(CounterWindow, ReachesBackToTheReadingBeforeWhereSomeAreMissing) {
  CounterWindow window;
  window.add(second(0), 0);
  window.add(second(10), 100);
  window.add(second(20), 400);
  EXPECT_DOUBLE_EQ(*window.per_second(), 30);
}

TEST(CounterWindow, BeginsAnewWithTheCounter) {
  CounterWindow window;
  window.add(second(1), 1000);
  window.add(second(2), 1010);
  window.add(second(3), 5);
  EXPECT_FALSE(window.per_second()) << "nobody has used minus a thousand";
  window.add(second(4), 7);
  EXPECT_DOUBLE_EQ(*window.per_second(), 2);
}

TEST(CounterWindow, BeginsAnewWhereNoTimeHasPassed) {
  CounterWindow window;
  window.add(second(1), 10);
  window.add(second(1), 20);
  EXPECT_FALSE(window.per_second());
}

}  // namespace
}  // namespace topolet::load
