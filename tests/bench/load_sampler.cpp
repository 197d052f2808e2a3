// What one round of measurements costs, of 110 containers and 256 CPUs; see README.md.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "core/load/sampler.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::bench {
namespace {

constexpr int kContainers = 110;
constexpr int kCpus = 256;
constexpr const char* kPressure =
    "some avg10=0.00 avg60=0.00 avg300=0.00 total=123456\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1234\n";

std::string name_of(int container) { return fmt::format("container-{}", container); }

std::string stat_of_many_cpus() {
  std::string text = "cpu  1 2 3 4 5 6 7 8 9 10\n";
  for (int cpu = 0; cpu < kCpus; ++cpu) text += fmt::format("cpu{} 123456 0 65432 9876543 12 0 345 678 0 0\n", cpu);
  return text + "intr 1 2 3\nctxt 4\n";
}

/// Its clock goes a second on with each round.
class Machine {
 public:
  virtual ~Machine() = default;

  load::Sample round() {
    now_ += std::chrono::seconds(1);
    return sampler_->sample(subjects_);
  }

 protected:
  void begin(std::filesystem::path proc, std::function<std::filesystem::path(const std::string&)> directory) {
    for (int i = 0; i < kContainers; ++i) subjects_.containers.push_back({name_of(i), i + 1});
    subjects_.nodes = {{0, CpuSet::range(0, kCpus / 2 - 1)}, {1, CpuSet::range(kCpus / 2, kCpus - 1)}};
    sampler_ = std::make_unique<load::Sampler>(
        load::Sampler::Deps{.proc = std::move(proc),
                            .find_cgroup =
                                [directory = std::move(directory)](const load::RunningContainer& container) {
                                  const auto at = directory(container.id);
                                  return load::CgroupDirectories{.cpu = at, .cpuacct = at, .memory = at, .unified = at};
                                },
                            .clock = {.wall = [this] { return now_; },
                                      .steady = [this] { return std::chrono::steady_clock::time_point(now_); }}});
  }

 private:
  std::chrono::milliseconds now_{1'000'000};
  load::Subjects subjects_;
  std::unique_ptr<load::Sampler> sampler_;
};

/// Files in a temporary folder, as those of cgroup v2 are.
class FilesOnDisk final : public Machine {
 public:
  FilesOnDisk() {
    dir_.write("stat", stat_of_many_cpus());
    for (int i = 0; i < kContainers; ++i) {
      const std::string name = name_of(i);
      dir_.write(name + "/cpu.stat", "usage_usec 1234567\nuser_usec 1\nsystem_usec 2\nnr_throttled 3\n");
      for (const char* file : {"/cpu.pressure", "/memory.pressure", "/io.pressure"}) dir_.write(name + file, kPressure);
      dir_.write(name + "/memory.current", "123456789\n");
    }
    begin(dir_.path(), [this](const std::string& id) { return dir_.path() / id; });
  }
  const TempDir& dir() const { return dir_; }

 private:
  TempDir dir_;
};

/// Empty cgroups of this machine, as the kernel makes their files: with v1, of the hierarchy that accounts for CPU
/// time.
class RealCgroups final : public Machine {
 public:
  RealCgroups() {
    const std::filesystem::path v1 = "/sys/fs/cgroup/cpu,cpuacct";
    root_ = (std::filesystem::exists(v1 / "cpu.stat") ? v1 : std::filesystem::path("/sys/fs/cgroup")) /
            fmt::format("topolet-bench-{}", ::getpid());
    if (!std::filesystem::exists(root_.parent_path() / "cpuacct.usage") &&
        std::filesystem::exists("/sys/fs/cgroup/cpuacct/cpuacct.usage"))
      root_ = std::filesystem::path("/sys/fs/cgroup/cpuacct") / root_.filename();
    std::error_code failed;
    std::filesystem::create_directory(root_, failed);
    for (int i = 0; i < kContainers && !failed; ++i) std::filesystem::create_directory(root_ / name_of(i), failed);
    works_ = !failed;
    begin("/proc", [this](const std::string& id) { return root_ / id; });
  }
  ~RealCgroups() override {
    std::error_code ignored;
    for (int i = 0; i < kContainers; ++i) std::filesystem::remove(root_ / name_of(i), ignored);
    std::filesystem::remove(root_, ignored);
  }
  RealCgroups(const RealCgroups&) = delete;
  RealCgroups& operator=(const RealCgroups&) = delete;
  bool works() const { return works_; }

 private:
  std::filesystem::path root_;
  bool works_ = false;
};

void measure_round(benchmark::State& state) {
  FilesOnDisk machine;
  for (auto _ : state) benchmark::DoNotOptimize(machine.round());
}

/// The yardstick: the files that are read every second, opened, read and closed, and nothing made of them.
void read_the_same_files(benchmark::State& state) {
  FilesOnDisk machine;
  const auto read = [&machine](const std::string& file) {
    std::ifstream in(machine.dir().path() / file);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  for (auto _ : state) {
    benchmark::DoNotOptimize(read("stat"));
    for (int i = 0; i < kContainers; ++i) {
      benchmark::DoNotOptimize(read(name_of(i) + "/cpu.stat"));
      benchmark::DoNotOptimize(read(name_of(i) + "/cpu.pressure"));
    }
  }
}

void measure_round_of_real_cgroups(benchmark::State& state) {
  RealCgroups machine;
  if (!machine.works()) {
    state.SkipWithError("no cgroups can be made here; run it as root");
    return;
  }
  for (auto _ : state) {
    if (machine.round().load.cpus.empty()) state.SkipWithError("nothing was measured");
  }
}

BENCHMARK(measure_round)->Unit(benchmark::kMicrosecond);
BENCHMARK(read_the_same_files)->Unit(benchmark::kMicrosecond);
BENCHMARK(measure_round_of_real_cgroups)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace topolet::bench

BENCHMARK_MAIN();
