#include "core/load/sampler_thread.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>

#include "tests/support/eventually.hpp"
#include "tests/support/manual_clock.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::load {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using topolet::testing::eventually;

class SamplerThreadTest : public ::testing::Test {
 protected:
  SamplerThreadTest() {
    dir_.write("stat", "cpu0 1 0 0 0 0 0 0 1 0 0\n");
    dir_.write("cpu.stat", "usage_usec 0\nnr_throttled 0\n");
  }

  void start(Sampling sampling) {
    thread_.emplace(SamplerThread::Deps{.sampler = {.proc = dir_.path(),
                                                    .find_cgroup =
                                                        [this](const RunningContainer&) {
                                                          return std::optional<CgroupDirectories>(
                                                              {.cpu = dir_.path(), .memory = {}, .unified = {}});
                                                        },
                                                    .clock = clock_.clock()},
                                        .sampling = sampling,
                                        .ask_for_subjects =
                                            [this] {
                                              ++asked_;
                                              thread_->tell({{{"a", 1}}, {{0, CpuSet{0}}}});
                                            },
                                        .is_read = [this] { return is_read_.load(); },
                                        .on_sample =
                                            [this](const Sample&, const Subjects&) {
                                              ++samples_;
                                              clock_.advance(seconds(1));
                                            },
                                        .period = milliseconds(1)});
    thread_->start();
  }
  bool measures() const { return thread_->state().is_measuring; }

  TempDir dir_;
  testing::ManualClock clock_;
  std::atomic<bool> is_read_{false};
  std::atomic<int> asked_{0};
  std::atomic<int> samples_{0};
  std::optional<SamplerThread> thread_;
};

TEST_F(SamplerThreadTest, MeasuresAllTheTimeIfItIsOn) {
  start(Sampling::kOn);
  EXPECT_TRUE(eventually([&] { return thread_->load() && thread_->load()->nodes.count(0) == 1; }));
  EXPECT_GE(asked_, 1);
}

TEST_F(SamplerThreadTest, IsUsedForDecisionsAfterAMinute) {
  start(Sampling::kOn);
  EXPECT_TRUE(eventually([&] { return thread_->load() && thread_->load()->is_settled(); }));
  EXPECT_GE(samples_, 60);
}

TEST_F(SamplerThreadTest, MeasuresWhileAPluginReads) {
  start(Sampling::kAuto);
  is_read_ = true;
  EXPECT_TRUE(eventually([&] { return measures(); }));
  is_read_ = false;
  EXPECT_TRUE(eventually([&] { return !measures(); })) << "what is old is forgotten";
  EXPECT_EQ(thread_->load(), nullptr);
}

TEST_F(SamplerThreadTest, MeasuresForAMinuteAfterSomebodyHasAsked) {
  start(Sampling::kAuto);
  EXPECT_FALSE(measures());
  thread_->note_reader();
  EXPECT_TRUE(eventually([&] { return samples_ >= 60; }));
  EXPECT_TRUE(eventually([&] { return !measures(); }));
}

TEST_F(SamplerThreadTest, MeasuresNothingIfItIsOff) {
  start(Sampling::kOff);
  is_read_ = true;
  thread_->note_reader();
  thread_->stop();
  EXPECT_EQ(samples_, 0);
  EXPECT_FALSE(measures());
}

TEST_F(SamplerThreadTest, GivesTheAgeOfValuesInWholeSeconds) {
  start(Sampling::kOn);
  EXPECT_TRUE(eventually([&] { return samples_ >= 3; }));
  thread_->stop();
  const auto now = thread_->load();
  EXPECT_EQ(now->nodes.at(0).age, seconds(1));
  EXPECT_EQ(now->containers.at("a").age, seconds(1));
  clock_.advance(milliseconds(900));
  EXPECT_EQ(thread_->load(), now);
  clock_.advance(milliseconds(8100));
  EXPECT_EQ(thread_->load()->nodes.at(0).age, seconds(10));
  EXPECT_EQ(thread_->load()->cpus.at(0).age, seconds(10));
  EXPECT_EQ(thread_->load()->containers.at("a").age, seconds(10));
  EXPECT_FALSE(recent_load_of(*thread_->load(), 0U)) << "values of long ago say nothing";
}

}  // namespace
}  // namespace topolet::load
