// On this machine, whose kernel is said to have taken some CPUs offline.
#include "core/machine/machine_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ringbuffer_sink.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "core/base/log.hpp"
#include "core/base/mutex.hpp"
#include "core/topology/discover.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::machine {
namespace {

using std::chrono::milliseconds;
using ::testing::Contains;
using ::testing::HasSubstr;
using topolet::testing::eventually;

class MachineWatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto here = topology::discover({});
    ASSERT_TRUE(here.has_value()) << here.error().message;
    all_ = (*here)->online;
    if (all_.size() < 2) GTEST_SKIP() << "this machine has one CPU";
    first_ = CpuSet{all_.first()};
    online(all_);
  }

  /// All of it at once, as the kernel's file is never seen half written.
  void online(const CpuSet& cpus) {
    const auto written = root_.write("sys/devices/system/cpu/next", cpus.to_string() + '\n');
    std::filesystem::rename(written, root_.file("sys/devices/system/cpu/online"));
  }

  void watch(config::PlacementOptions placement = {}, milliseconds interval = milliseconds(5)) {
    watch_ = std::make_unique<MachineWatch>(MachineWatch::Options{.sysfs_root = root_.file("sys"),
                                                                  .cgroup_root = root_.file("cgroup"),
                                                                  .interval = interval,
                                                                  .hear_uevents = false,
                                                                  .placement = std::move(placement)},
                                            *log_);
    if (between_looks) between_looks();
    const auto topology = *topology::discover({.sysfs_root = root_.file("sys")});
    if (behind_topology) behind_topology();
    watch_->start(topology, {.on_change = [this](engine::Engine::Machine machine) {
                    MutexLock lock(mutex_);
                    machines_.push_back(std::move(machine));
                  }});
  }

  /// The newest machine, once there are so many.
  std::optional<engine::Engine::Machine> after(std::size_t changes) {
    if (!eventually([&] { return this->changes() >= changes; })) {
      ADD_FAILURE() << "no change was told";
      return std::nullopt;
    }
    MutexLock lock(mutex_);
    return machines_.back();
  }

  bool logs(const std::string& text) {
    return eventually([&] { return ::testing::Value(said_->last_formatted(), Contains(HasSubstr(text))); });
  }

  std::size_t changes() {
    MutexLock lock(mutex_);
    return machines_.size();
  }

  /// Actions between the watch's first look and the reading of the topology, and after that.
  std::function<void()> between_looks;
  std::function<void()> behind_topology;
  TempDir root_;
  CpuSet all_;
  CpuSet first_;
  std::shared_ptr<spdlog::sinks::ringbuffer_sink_mt> said_ = std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(100);
  std::shared_ptr<Log> log_ = std::make_shared<Log>("watch", said_);
  Mutex mutex_;
  std::vector<engine::Engine::Machine> machines_ TOPOLET_GUARDED_BY(mutex_);
  std::unique_ptr<MachineWatch> watch_;
};

TEST_F(MachineWatchTest, TellsWhatIsOnlineWhenThatChanges) {
  watch();
  online(first_);
  const auto gone = after(1);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->cpus.allowed, first_);
  EXPECT_EQ(gone->topology->online, first_);
  online(all_);
  const auto back = after(2);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->cpus.allowed, all_);
  EXPECT_GT(back->topology->generation, gone->topology->generation);
  EXPECT_EQ(changes(), 2U) << "only changes are told";
}

TEST_F(MachineWatchTest, NoticesThatACpuWasOfflineOnlyWhileTheTopologyWasRead) {
  between_looks = [this] { online(first_); };
  behind_topology = [this] { online(all_); };
  watch();
  const auto machine = after(1);
  ASSERT_TRUE(machine);
  EXPECT_EQ(machine->cpus.allowed, all_);
  EXPECT_EQ(machine->topology->online, all_);
}

TEST_F(MachineWatchTest, TellsWhichCpusPodsMayUse) {
  watch();
  root_.write("cgroup/kubepods.slice/cpuset.cpus.effective", first_.to_string() + '\n');
  const auto narrowed = after(1);
  ASSERT_TRUE(narrowed);
  EXPECT_EQ(narrowed->cpus.allowed, first_);
  EXPECT_EQ(narrowed->topology->generation, 1U) << "the machine is the same";
}

TEST_F(MachineWatchTest, GoesOnWithoutAReservedCpuThatIsOffline) {
  config::PlacementOptions placement;
  placement.reserved_cpus = first_;
  watch(placement);
  online(all_ - first_);
  const auto machine = after(1);
  ASSERT_TRUE(machine);
  EXPECT_TRUE(machine->cpus.reserved.empty());
}

TEST_F(MachineWatchTest, TellsThatNoCpuIsLeft) {
  config::PlacementOptions placement;
  placement.allowed_cpus = first_;
  watch(placement);
  online(all_ - first_);
  const auto nothing = after(1);
  ASSERT_TRUE(nothing);
  EXPECT_TRUE(nothing->cpus.allowed.empty());
  online(all_);
  const auto back = after(2);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->cpus.allowed, first_);
}

TEST_F(MachineWatchTest, GivesPodsTheCpuBackThatTheKernelTookFromThem) {
  const std::string pods = "cgroup/cpuset/kubepods/";
  for (const std::string& group : {pods, pods + "pod1/", pods + "pod1/main/"}) {
    root_.write(group + "cpuset.effective_cpus", all_.to_string() + '\n');
    root_.write(group + "cpuset.cpus", all_.to_string() + '\n');
    root_.write(group + "cgroup.procs", "");
  }
  root_.write(pods + "pod1/main/cgroup.procs", "77\n");
  watch();
  const std::string left = (all_ - first_).to_string();
  for (const std::string& group : {pods, pods + "pod1/", pods + "pod1/main/"}) {
    root_.write(group + "cpuset.cpus", left + '\n');
  }
  online(all_ - first_);
  ASSERT_TRUE(after(1));
  EXPECT_EQ(root_.read(pods + "cpuset.cpus"), left + '\n');
  online(all_);
  ASSERT_TRUE(after(2));
  EXPECT_EQ(root_.read(pods + "cpuset.cpus"), all_.to_string());
  EXPECT_EQ(root_.read(pods + "pod1/cpuset.cpus"), all_.to_string());
  EXPECT_EQ(root_.read(pods + "pod1/main/cpuset.cpus"), left + '\n') << "a container's";
}

TEST_F(MachineWatchTest, GivesPodsACpuBackThatWentWhileTheTopologyWasRead) {
  const std::string pods = "cgroup/cpuset/kubepods/";
  root_.write(pods + "cpuset.effective_cpus", all_.to_string() + '\n');
  root_.write(pods + "cpuset.cpus", all_.to_string() + '\n');
  root_.write(pods + "cgroup.procs", "");
  const std::string left = (all_ - first_).to_string();
  between_looks = [&] {
    root_.write(pods + "cpuset.effective_cpus", left + '\n');
    root_.write(pods + "cpuset.cpus", left + '\n');
    online(all_ - first_);
  };
  watch();
  ASSERT_TRUE(after(1));
  online(all_);
  EXPECT_TRUE(eventually([&] { return root_.read(pods + "cpuset.cpus") == all_.to_string(); }));
}

TEST_F(MachineWatchTest, GivesPodsACpuBackThatTheyLostBeforeItWasSaidToBeOffline) {
  const std::string pods = "cgroup/cpuset/kubepods/";
  root_.write(pods + "cpuset.effective_cpus", all_.to_string() + '\n');
  root_.write(pods + "cpuset.cpus", all_.to_string() + '\n');
  root_.write(pods + "cgroup.procs", "");
  watch();
  const std::string left = (all_ - first_).to_string();
  root_.write(pods + "cpuset.cpus", left + '\n');
  root_.write(pods + "cpuset.effective_cpus", left + '\n');
  ASSERT_TRUE(after(1));
  online(all_ - first_);
  ASSERT_TRUE(after(2));
  online(all_);
  EXPECT_TRUE(eventually([&] { return root_.read(pods + "cpuset.cpus") == all_.to_string(); }));
}

TEST_F(MachineWatchTest, GivesPodsACpuBackThatWentAgainWhileItWasGivenBack) {
  const std::string pods = "cgroup/cpuset/kubepods/";
  const std::string left = (all_ - first_).to_string();
  const auto kernel_takes_it = [&] {
    root_.write(pods + "cpuset.effective_cpus", left + '\n');
    root_.write(pods + "cpuset.cpus", left + '\n');
    online(all_ - first_);
  };
  root_.write(pods + "cpuset.effective_cpus", all_.to_string() + '\n');
  root_.write(pods + "cpuset.cpus", all_.to_string() + '\n');
  root_.write(pods + "cgroup.procs", "");
  watch();
  kernel_takes_it();
  ASSERT_TRUE(after(1));
  // Whoever opens a pipe waits for the other end: so the watch is held up at the pod, the last that it writes.
  const std::string of_pod = root_.write(pods + "pod1/of_pod", left + '\n');
  const std::string pipe = root_.file(pods + "pod1/cpuset.cpus");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  online(all_);
  std::ofstream(pipe) << left << std::endl;
  std::ifstream written(pipe);
  kernel_takes_it();
  std::filesystem::rename(of_pod, pipe);
  std::string line;
  std::getline(written, line);
  EXPECT_EQ(line, all_.to_string());
  online(all_);
  EXPECT_TRUE(eventually([&] { return root_.read(pods + "cpuset.cpus") == all_.to_string(); }));
}

TEST_F(MachineWatchTest, KeepsTheMachineWhileTheKernelsListCannotBeRead) {
  watch();
  root_.write("sys/devices/system/cpu/online", "nonsense\n");
  EXPECT_TRUE(logs("containers stay as they are"));
  EXPECT_EQ(changes(), 0U);
  online(all_ - first_);
  ASSERT_TRUE(after(1));
}

TEST_F(MachineWatchTest, EndsWithoutAnotherLook) {
  watch({}, std::chrono::hours(24));
  watch_->stop();
}

}  // namespace
}  // namespace topolet::machine
