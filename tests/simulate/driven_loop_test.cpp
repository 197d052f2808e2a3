#include "core/simulate/driven_loop.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace topolet::simulate {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

TEST(DrivenLoop, RunsWhatWorkQueuesToo) {
  DrivenLoop loop;
  std::vector<int> ran;
  loop.post([&] {
    ran.push_back(1);
    loop.post([&] { ran.push_back(3); });
  });
  loop.post([&] { ran.push_back(2); });
  loop.run();
  EXPECT_THAT(ran, ElementsAre(1, 2, 3));
}

TEST(DrivenLoop, RunsTimersAtTheirOwnTimeAndOnlyWhenItComes) {
  DrivenLoop loop;
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

}  // namespace
}  // namespace topolet::simulate
