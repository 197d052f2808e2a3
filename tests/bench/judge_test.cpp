#include "tests/bench/judge.hpp"

#include <gmock/gmock.h>

namespace topolet::bench {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using State = ObservedContainer::State;

ObservedContainer trader(State state, CpuSet cpus = {2, 3}) {
  return {.id = "1", .name = "trader/main", .state = state, .cpus = std::move(cpus), .whole_cpus = 2};
}

ObservedContainer web(State state, CpuSet cpus) {
  return {.id = "2", .name = "web/main", .state = state, .cpus = std::move(cpus)};
}

TEST(Judge, SeesAContainerStartOnCpusThatAnotherHasNotLeft) {
  Judge judge;
  judge.observe("started", web(State::kRunning, {0, 1, 2}));
  judge.observe("created", trader(State::kCreated));
  EXPECT_EQ(judge.overlap_count(), 0U);
  judge.observe("started", trader(State::kRunning));
  EXPECT_EQ(judge.overlap_count(), 1U);
  EXPECT_THAT(judge.first_report(), HasSubstr("trader/main on CPUs 2-3, alone; and web/main on CPUs 0-2\n"));
  EXPECT_THAT(judge.first_report(), HasSubstr("created: trader/main"));
}

TEST(Judge, SeesAnUpdateOntoCpusThatAnotherHasAlone) {
  Judge judge;
  judge.observe("started", trader(State::kRunning));
  judge.observe("started", web(State::kRunning, {0, 1}));
  EXPECT_EQ(judge.overlap_count(), 0U);
  judge.observe("updated", web(State::kRunning, {0, 1, 2, 3}));
  EXPECT_EQ(judge.overlap_count(), 1U);
}

TEST(Judge, SeesTwoThatHaveTheSameCpuAlone) {
  Judge judge;
  ObservedContainer second = trader(State::kRunning, {3, 4});
  second.id = "3";
  judge.observe("started", trader(State::kRunning));
  judge.observe("started", second);
  EXPECT_EQ(judge.overlap_count(), 1U);
}

TEST(Judge, TakesAContainerWithoutACpusetForOneOnEveryCpu) {
  Judge judge;
  judge.observe("started", trader(State::kRunning));
  judge.observe("started", web(State::kRunning, {}));
  EXPECT_EQ(judge.overlap_count(), 1U);
}

TEST(Judge, CountsAnOverlapOnceForAsLongAsItLasts) {
  Judge judge;
  judge.observe("started", trader(State::kRunning));
  judge.observe("started", web(State::kRunning, {3}));
  judge.observe("updated", web(State::kRunning, {2, 3}));
  EXPECT_EQ(judge.overlap_count(), 1U);
  judge.observe("updated", web(State::kRunning, {0}));
  judge.observe("updated", web(State::kRunning, {3}));
  EXPECT_EQ(judge.overlap_count(), 2U);
}

TEST(Judge, IgnoresContainersThatDoNotRun) {
  Judge judge;
  judge.observe("created", web(State::kCreated, {0, 1, 2, 3}));
  judge.observe("started", trader(State::kRunning));
  judge.observe("stopped", trader(State::kExited));
  judge.observe("started", web(State::kRunning, {0, 1, 2, 3}));
  judge.observe("removed", web(State::kRemoved, {0, 1, 2, 3}));
  judge.observe("started", trader(State::kRunning));
  EXPECT_EQ(judge.overlap_count(), 0U);
  EXPECT_THAT(judge.first_report(), IsEmpty());
}

TEST(Judge, CountsTheContainersThatBeginToRunAlone) {
  Judge judge;
  judge.observe("created", trader(State::kCreated));
  EXPECT_EQ(judge.alone_count(), 0U);
  judge.observe("started", trader(State::kRunning));
  judge.observe("updated", trader(State::kRunning, {4, 5}));
  judge.observe("started", web(State::kRunning, {0, 1}));
  EXPECT_EQ(judge.alone_count(), 1U);
}

TEST(Judge, LetsContainersShareThatHaveNothingAlone) {
  Judge judge;
  ObservedContainer widened = trader(State::kRunning, {1, 2, 3});
  judge.observe("started", widened);
  judge.observe("started", web(State::kRunning, {1, 2, 3}));
  EXPECT_EQ(judge.overlap_count(), 0U);
}

}  // namespace
}  // namespace topolet::bench
