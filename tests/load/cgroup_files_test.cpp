#include "core/load/cgroup_files.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/temp_dir.hpp"

namespace topolet::load {
namespace {

constexpr const char* kStat =
    "usage_usec 2500000\nuser_usec 1\nsystem_usec 2\nnr_periods 9\nnr_throttled 3\nthrottled_usec 4\n";
constexpr const char* kPressure =
    "some avg10=0.00 avg60=0.00 avg300=0.00 total=123\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=99\n";

class CgroupFilesTest : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) { dir_.write(file, text); }
  CgroupDirectories v2() const { return {.cpu = dir_.path(), .memory = dir_.path(), .unified = dir_.path()}; }
  CgroupDirectories v1() const {
    return {.cpu = dir_.path() / "cpu", .cpuacct = dir_.path() / "cpuacct", .memory = dir_.path() / "memory"};
  }

  TempDir dir_;
};

TEST_F(CgroupFilesTest, AreReadOfVersion2) {
  write("cpu.stat", kStat);
  write("cpu.pressure", kPressure);
  write("memory.current", "1048577\n");
  write("memory.pressure", kPressure);
  CgroupFiles files(v2());
  const auto cpu = files.read_cpu();
  ASSERT_TRUE(cpu);
  EXPECT_EQ(cpu->usage_us, 2500000U);
  EXPECT_EQ(cpu->throttled, 3U);
  EXPECT_EQ(cpu->pressure_us, 123U);
  const MemoryCounters memory = files.read_memory();
  EXPECT_EQ(memory.bytes, 1048577);
  EXPECT_EQ(memory.memory_pressure_us, 123U);
  EXPECT_FALSE(memory.io_pressure_us) << "what is missing is not zero";
}

TEST_F(CgroupFilesTest, AreReadOfVersion1) {
  write("cpu/cpu.stat", "nr_periods 9\nnr_throttled 3\nthrottled_time 4\n");
  write("cpuacct/cpuacct.usage", "2500000999\n");
  write("memory/memory.usage_in_bytes", "4096\n");
  CgroupFiles files(v1());
  const auto cpu = files.read_cpu();
  ASSERT_TRUE(cpu);
  EXPECT_EQ(cpu->usage_us, 2500000U);
  EXPECT_EQ(cpu->throttled, 3U);
  EXPECT_FALSE(cpu->pressure_us);
  EXPECT_EQ(files.read_memory().bytes, 4096);
}

TEST_F(CgroupFilesTest, AreReadAnewEachTime) {
  write("cpu.stat", "usage_usec 1\n");
  CgroupFiles files(v2());
  EXPECT_EQ(files.read_cpu()->usage_us, 1U);
  write("cpu.stat", "usage_usec 22\n");
  EXPECT_EQ(files.read_cpu()->usage_us, 22U);
}

TEST_F(CgroupFilesTest, TellNothingOfACgroupThatIsGoneOrMakesNoSense) {
  EXPECT_FALSE(CgroupFiles(v2()).read_cpu());
  EXPECT_FALSE(CgroupFiles(v1()).read_cpu());
  EXPECT_FALSE(CgroupFiles({}).read_cpu());
  write("cpu.stat", "usage_usec\nnr_throttled x\n");
  EXPECT_FALSE(CgroupFiles(v2()).read_cpu());
  write("memory.current", "max\n");
  EXPECT_FALSE(CgroupFiles(v2()).read_memory().bytes);
}

TEST(CgroupText, HasANumberBehindAWholeKeyOnly) {
  EXPECT_EQ(number_after("core_usage 1\nusage 2\n", "usage"), 2U);
  EXPECT_FALSE(number_after("usage_usec 1\n", "usage"));
  EXPECT_FALSE(number_after("", "usage"));
}

TEST(CgroupText, HasPressureOfTheFirstLine) {
  EXPECT_FALSE(pressure_in("some avg10=0.00\nfull total=99\n"));
  EXPECT_FALSE(pressure_in("full avg10=0.00 total=99\n"));
}

}  // namespace
}  // namespace topolet::load
