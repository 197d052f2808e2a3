#include "core/load/cpu_times.hpp"

#include <gmock/gmock.h>

namespace topolet::load {
namespace {

TEST(CpuTimes, AreReadByCpu) {
  const auto times = read_cpu_times(
      "cpu  99 99 99 99 99 99 99 99 99 99\n"
      "cpu0 1 20 300 4000 5 60 7 8 1 0\n"
      "cpu12 0 0 0 0 0 0 0 0 0 0\n"
      "intr 5 1 2\n"
      "cpu3 1 1 1 1 1 1 1 1 1 1\n");
  ASSERT_EQ(times.size(), 2U) << "the total is of no CPU, and behind the interrupts there is none";
  EXPECT_EQ(times.at(0).busy, 1U + 20U + 300U + 60U + 7U) << "neither idle, nor waiting, nor guests a second time";
  EXPECT_EQ(times.at(0).steal, 8U);
  EXPECT_EQ(times.at(12).busy, 0U);
}

TEST(CpuTimes, SayWhereStealIsNotTold) {
  const auto times = read_cpu_times("cpu0 1 2 3 4 5 6 7\ncpu1 1 2 3 4 5 6 7 0");
  ASSERT_EQ(times.size(), 2U);
  EXPECT_FALSE(times.at(0).steal) << "a missing column is not zero";
  EXPECT_EQ(times.at(1).steal, 0U);
}

TEST(CpuTimes, LeaveOutWhatCannotBeRead) {
  EXPECT_TRUE(read_cpu_times("").empty());
  EXPECT_TRUE(read_cpu_times("no such thing").empty());
  EXPECT_EQ(read_cpu_times("cpu0 1 2\ncpux 1 2 3 4 5 6 7 8\ncpu2 1 2 3 4 5 6 7 8\n").size(), 1U);
}

}  // namespace
}  // namespace topolet::load
