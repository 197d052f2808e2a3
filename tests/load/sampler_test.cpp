#include "core/load/sampler.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <filesystem>
#include <string>

#include "tests/support/temp_dir.hpp"

namespace topolet::load {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A machine of four CPUs on two nodes, whose files are as the test says, and time that passes when it says so.
class SamplerTest : public ::testing::Test {
 protected:
  SamplerTest() { write_stat(); }

  struct Ticks {
    std::uint64_t busy = 0;
    std::uint64_t steal = 0;
    bool online = true;
  };
  void write_stat() {
    std::string stat = "cpu  0 0 0 0 0 0 0 0 0 0\n";
    for (std::size_t cpu = 0; cpu < cpus_.size(); ++cpu) {
      if (!cpus_[cpu].online) continue;
      stat += fmt::format("cpu{} {} 0 0 50 0 0 0{}\n", cpu, cpus_[cpu].busy,
                          tells_steal_ ? fmt::format(" {} 0 0", cpus_[cpu].steal) : "");
    }
    dir_.write("stat", stat + "intr 1 2 3\n");
  }
  void write_usage(const std::string& id, std::uint64_t usage_us, int throttled = 0, std::uint64_t pressure_us = 0) {
    dir_.write(id + "/cpu.stat", fmt::format("usage_usec {}\nnr_throttled {}\n", usage_us, throttled));
    dir_.write(id + "/cpu.pressure", fmt::format("some avg10=0.00 total={}\n", pressure_us));
  }
  Sample step(milliseconds passed = seconds(1)) { return step(passed, passed); }
  Sample step(milliseconds steady, milliseconds wall) {
    steady_ += steady;
    wall_ += wall;
    write_stat();
    return sampler_.sample(subjects_);
  }
  /// Each CPU of node 0 is busy for half of each second, and robbed of as much as the test says.
  Sample run(int count, std::uint64_t steal_ticks) {
    Sample sample;
    for (int i = 0; i < count; ++i) {
      for (const std::size_t cpu : {0, 1}) {
        cpus_[cpu].busy += 50;
        cpus_[cpu].steal += steal_ticks;
      }
      sample = step();
    }
    return sample;
  }

  TempDir dir_;
  std::array<Ticks, 4> cpus_{};
  bool tells_steal_ = true;
  seconds::rep searched_ = 0;
  milliseconds steady_ = seconds(1000);
  milliseconds wall_ = seconds(1'000'000);
  Subjects subjects_{{}, {{0, CpuSet{0, 1}}, {1, CpuSet{2, 3}}}};
  Sampler sampler_{{.proc = dir_.path(),
                    .find_cgroup = [this](const RunningContainer& container) -> std::optional<CgroupDirectories> {
                      ++searched_;
                      const auto directory = dir_.path() / container.id;
                      if (!std::filesystem::exists(directory)) return std::nullopt;
                      return CgroupDirectories{.cpu = directory, .memory = directory, .unified = directory};
                    },
                    .clock = {.wall = [this] { return wall_; },
                              .steady = [this] { return std::chrono::steady_clock::time_point(steady_); }}}};
};

TEST_F(SamplerTest, KnowsNothingAtFirst) {
  const Sample first = step();
  EXPECT_THAT(first.load.nodes, IsEmpty());
  EXPECT_EQ(first.measured_for, seconds(0));
  EXPECT_EQ(first.error, "");
}

TEST_F(SamplerTest, TellsWhatIsUsedOfEachNode) {
  step();
  const Sample sample = run(7, 0);
  EXPECT_EQ(sample.load.nodes.at(0).used_milli, 1000);
  EXPECT_EQ(sample.load.nodes.at(1).used_milli, 0);
  EXPECT_EQ(sample.load.cpus.at(1).used_milli, 500);
  EXPECT_EQ(sample.measured_for, seconds(7));
}

TEST_F(SamplerTest, DoesNotKnowTheCapacityUnderAHypervisorThatNeverTells) {
  step();
  EXPECT_FALSE(run(60, 0).load.nodes.at(0).effective_milli);
  EXPECT_FALSE(run(60, 0).tells_steal);
}

TEST_F(SamplerTest, DoesNotKnowTheCapacityWithoutTheColumn) {
  tells_steal_ = false;
  step();
  const Sample sample = run(60, 10);
  EXPECT_FALSE(sample.load.nodes.at(0).effective_milli);
  EXPECT_EQ(sample.load.nodes.at(0).used_milli, 1000);
}

TEST_F(SamplerTest, KnowsTheCapacityWhereThereIsNoHypervisor) {
  const auto sample_with = [this](const std::string& flags) {
    dir_.write("cpuinfo", "processor\t: 0\nflags\t\t: fpu vme " + flags + " avx2\n");
    Sampler sampler({.proc = dir_.path(),
                     .find_cgroup = [](const RunningContainer&) { return std::optional<CgroupDirectories>(); },
                     .clock = {}});
    return sampler.sample(subjects_);
  };
  EXPECT_FALSE(sample_with("hypervisor").load.nodes.contains(0));
  const Sample bare = sample_with("ssse3");
  EXPECT_EQ(bare.load.nodes.at(0).effective_milli, 2000);
  EXPECT_FALSE(bare.has_hypervisor);
  EXPECT_FALSE(bare.tells_steal);
}

TEST_F(SamplerTest, LowersTheCapacityOfTheNodeThatIsRobbed) {
  step();
  const Sample sample = run(300, 50);
  EXPECT_TRUE(sample.tells_steal);
  EXPECT_EQ(sample.load.nodes.at(0).effective_milli, 1000) << "half of the time that its two CPUs wanted to run";
  EXPECT_EQ(sample.load.nodes.at(1).effective_milli, 2000);
  EXPECT_EQ(sample.load.cpus.at(0).effective_milli, 500);
}

TEST_F(SamplerTest, CountsOnlyCpusThatAreOnline) {
  step();
  run(10, 50);
  cpus_[1].online = false;
  const Sample without = run(10, 50);
  EXPECT_EQ(without.load.nodes.at(0).used_milli, 500);
  EXPECT_EQ(without.load.nodes.at(0).effective_milli, 500);
  cpus_[1] = {};  // The kernel counts from the start again.
  const Sample back = run(1, 0);
  EXPECT_FALSE(back.load.nodes.at(0).used_milli) << "one of its CPUs was read only once";
  EXPECT_EQ(run(1, 0).load.nodes.at(0).used_milli, 1000);
}

TEST_F(SamplerTest, DropsWhatACounterHasLost) {
  step();
  run(10, 50);
  cpus_[0].steal = 0;
  cpus_[0].busy += 50;
  const Sample sample = step();
  EXPECT_EQ(sample.load.cpus.at(0).effective_milli, 500) << "as before";
}

TEST_F(SamplerTest, DropsTheStealOfATimeOfWhichTheBusyTimeIsLost) {
  step();
  run(10, 50);
  cpus_[0].busy = 0;
  cpus_[0].steal += 5000;
  EXPECT_EQ(step().load.cpus.at(0).effective_milli, 500) << "as before";
  cpus_[0].busy += 50;
  cpus_[0].steal += 5000;
  EXPECT_EQ(step(seconds(1), seconds(3600)).load.cpus.at(0).effective_milli, 500) << "the machine was suspended";
}

TEST_F(SamplerTest, TellsWhatAContainerUses) {
  subjects_.containers = {{"a", 1}};
  write_usage("a", 0);
  step();
  write_usage("a", 1'504'000, 0, 250'000);
  const ContainerLoad load = step().load.containers.at("a");
  EXPECT_EQ(load.cpu_milli, 1500) << "rounded to a hundredth of a CPU";
  EXPECT_EQ(load.psi_some_permille, 250U);
  EXPECT_FALSE(load.is_throttled);
  EXPECT_EQ(load.age, seconds(0));
  EXPECT_FALSE(load.memory_bytes) << "there is no such file";
}

TEST_F(SamplerTest, SaysWhoIsHeldBackByItsOwnQuota) {
  subjects_.containers = {{"a", 1}};
  write_usage("a", 0, 5);
  step();
  write_usage("a", 100, 6);
  EXPECT_TRUE(step().load.containers.at("a").is_throttled);
  for (int i = 0; i < 5; ++i) step();
  EXPECT_FALSE(step().load.containers.at("a").is_throttled);
}

TEST_F(SamplerTest, ReadsMemoryEveryTenSeconds) {
  subjects_.containers = {{"a", 1}};
  write_usage("a", 0);
  dir_.write("a/memory.current", "1500000");
  step();
  EXPECT_EQ(step().load.containers.at("a").memory_bytes, 1 << 20) << "rounded to a MiB";
  dir_.write("a/memory.current", "9437184");
  EXPECT_EQ(step().load.containers.at("a").memory_bytes, 1 << 20);
  for (int i = 0; i < 8; ++i) step();
  EXPECT_EQ(step().load.containers.at("a").memory_bytes, 9 << 20);
}

TEST_F(SamplerTest, TellsHowOftenMemoryHighHoldsSomebodyBack) {
  subjects_.containers = {{"a", 1}};
  write_usage("a", 0);
  for (int i = 0; i < 12; ++i) step();
  EXPECT_FALSE(step().load.containers.at("a").memory_high_per_minute) << "there is no such file";
  dir_.write("a/memory.events", "low 0\nhigh 5\nmax 7\n");
  for (int i = 0; i < 10; ++i) step();
  EXPECT_FALSE(step().load.containers.at("a").memory_high_per_minute) << "it was read once";
  for (int i = 0; i < 10; ++i) step();
  EXPECT_EQ(step().load.containers.at("a").memory_high_per_minute, 0U);
  dir_.write("a/memory.events", "low 0\nhigh 15\nmax 7\n");
  for (int i = 0; i < 10; ++i) step();
  EXPECT_EQ(step().load.containers.at("a").memory_high_per_minute, 60U) << "10 in 10 s";
}

TEST_F(SamplerTest, LetsTheValuesOfAContainerThatVanishesGrowOld) {
  subjects_.containers = {{"a", 1}};
  write_usage("a", 0);
  step();
  write_usage("a", 500'000);
  step();
  dir_.write("a/cpu.stat", "");  // As the kernel has it for whoever has the file open.
  const Sample sample = step();
  EXPECT_EQ(sample.load.containers.at("a").age, seconds(1));
  subjects_.containers = {};
  EXPECT_THAT(step().load.containers, IsEmpty());
}

TEST_F(SamplerTest, LooksForACgroupThatIsNotThereYetEveryFiveSeconds) {
  subjects_.containers = {{"a", 1}};
  for (int i = 0; i < 10; ++i) EXPECT_THAT(step().load.containers, IsEmpty());
  EXPECT_EQ(searched_, 2);
  write_usage("a", 0);
  step();
  EXPECT_EQ(step().load.containers.count("a"), 1U);
  EXPECT_EQ(searched_, 3);
}

TEST_F(SamplerTest, DropsTheTimeInWhichTheMachineWasSuspended) {
  subjects_.containers = {{"a", 1}};
  write_usage("a", 0);
  step();
  write_usage("a", 1'000'000);
  step();
  // One clock goes on: nobody knows for how long the container ran.
  write_usage("a", 9'000'000);
  EXPECT_EQ(step(seconds(1), seconds(30)).load.containers.at("a").age, seconds(1));
  write_usage("a", 9'500'000);
  const Sample after = step();
  EXPECT_EQ(after.load.containers.at("a").cpu_milli, 500);
  // Both do.
  write_usage("a", 99'000'000);
  step(seconds(20));
  write_usage("a", 99'100'000);
  EXPECT_EQ(step().load.containers.at("a").cpu_milli, 100);
}

TEST_F(SamplerTest, BeginsAnewAfterALongTime) {
  step();
  run(100, 50);
  EXPECT_EQ(step(seconds(61)).measured_for, seconds(0));
  EXPECT_FALSE(step().load.nodes.empty());
}

TEST_F(SamplerTest, SaysWhyCpusCannotBeMeasuredAndGoesOnWithContainers) {
  subjects_.containers = {{"a", 1}};
  write_usage("a", 0);
  step();
  Sampler other(
      {.proc = dir_.path() / "none",
       .find_cgroup =
           [this](const RunningContainer& container) { return CgroupDirectories{.cpu = dir_.path() / container.id}; },
       .clock = {.wall = [this] { return wall_; },
                 .steady = [this] { return std::chrono::steady_clock::time_point(steady_); }}});
  EXPECT_THAT(other.sample(subjects_).error, HasSubstr("none/stat cannot be read: No such file or directory"));
  steady_ += seconds(1);
  wall_ += seconds(1);
  EXPECT_EQ(other.sample(subjects_).load.containers.count("a"), 1U);
}

}  // namespace
}  // namespace topolet::load
