// On this machine, whose kernel is said to have taken some CPUs offline.
#include "core/daemon/machine_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "core/topology/discover.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet {
namespace {

using std::chrono::milliseconds;

class MachineWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto here = discover({});
    ASSERT_TRUE(here.ok()) << here.error().message;
    all_ = (*here)->online;
    if (all_.size() < 2) GTEST_SKIP() << "this machine has one CPU";
    first_ = CpuSet{all_.first()};
    online(all_);
  }

  void online(const CpuSet& cpus) { root_.write("sys/devices/system/cpu/online", cpus.to_string() + '\n'); }

  void watch(PlacementOptions placement = {}) {
    watch_ = std::make_unique<MachineWatch>(MachineWatch::Options{.sysfs_root = root_.file("sys"),
                                                                  .cgroup_root = root_.file("cgroup"),
                                                                  .interval = milliseconds(5),
                                                                  .placement = std::move(placement)},
                                            *log_);
    watch_->start(*discover({.sysfs_root = root_.file("sys")}), [this](engine::Engine::Machine machine) {
      MutexLock lock(mutex_);
      machines_.push_back(std::move(machine));
    });
  }

  /// The newest machine, once there are so many.
  std::optional<engine::Engine::Machine> after(std::size_t changes) {
    for (int i = 0; i < 2000; ++i) {
      {
        MutexLock lock(mutex_);
        if (machines_.size() >= changes) return machines_.back();
      }
      std::this_thread::sleep_for(milliseconds(10));
    }
    ADD_FAILURE() << "no change was told";
    return std::nullopt;
  }

  std::size_t changes() {
    MutexLock lock(mutex_);
    return machines_.size();
  }

  TempDir root_;
  CpuSet all_;
  CpuSet first_;
  std::shared_ptr<Log> log_ = make_silent_log();
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

TEST_F(MachineWatchTest, TellsWhichCpusPodsMayUse) {
  watch();
  root_.write("cgroup/kubepods.slice/cpuset.cpus.effective", first_.to_string() + '\n');
  const auto narrowed = after(1);
  ASSERT_TRUE(narrowed);
  EXPECT_EQ(narrowed->cpus.allowed, first_);
  EXPECT_EQ(narrowed->topology->generation, 1U) << "the machine is the same";
}

TEST_F(MachineWatchTest, GoesOnWithoutAReservedCpuThatIsOffline) {
  PlacementOptions placement;
  placement.reserved_cpus = first_;
  watch(placement);
  online(all_ - first_);
  const auto machine = after(1);
  ASSERT_TRUE(machine);
  EXPECT_TRUE(machine->cpus.reserved.empty());
}

TEST_F(MachineWatchTest, KeepsTheMachineWhereNoCpuIsLeftUntilOneIs) {
  PlacementOptions placement;
  placement.allowed_cpus = first_;
  watch(placement);
  online(all_ - first_);
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(changes(), 0U);
  root_.write("sys/devices/system/cpu/isolated", (all_ - first_).to_string() + '\n');
  online(all_);
  ASSERT_TRUE(after(1));
}

TEST_F(MachineWatchTest, EndsAtOnce) {
  watch();
  watch_->stop();
  online(first_);
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_EQ(changes(), 0U);
}

}  // namespace
}  // namespace topolet
