// Calls that count as late on a busy machine, and the end of a quarantine for that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/plugin/call/policy_thread.hpp"
#include "core/plugin/host/in_memory_plugin_state.hpp"
#include "tests/plugin/plugins.hpp"
#include "tests/plugin/scripted.hpp"

namespace topolet::plugin {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// Long enough that a call that does nothing is never late, even on a machine that does other things.
constexpr milliseconds kInTime{250};
constexpr milliseconds kWall{1'700'000'000'000};
/// By the thread, for other calls.
constexpr minutes kUsedBefore{60};

class Lateness : public ::testing::Test {
 protected:
  static Answers ask(PolicyThread& thread, const Scripted& one) {
    return thread.run_as<Answers>({vote(one)}, ask_all(two_node_request()));
  }
  std::string ask(const Scripted& one) { return ask(thread_, one)[0]; }
  void be_late(const std::string& name) {
    auto gate = std::make_shared<Gate>();
    ask(held_at(gate, name));
    gate->open();
    wait_until([this] { return !thread_.has_abandoned_calls(); });
  }
  static PluginStatistics state_of(const PolicyThread& thread, const std::string& name) {
    for (const PluginStatistics& state : thread.states()) {
      if (state.name == name) return state;
    }
    return {};
  }
  PluginStatistics state_of(const std::string& name) const { return state_of(thread_, name); }

  PolicyThread::Options options(milliseconds deadline) {
    return {.deadline = deadline,
            .decision_time = minutes(10),
            .clock = {.wall = [this] { return kWall + milliseconds(now_ms_); },
                      .steady = [this] { return std::chrono::steady_clock::time_point(milliseconds(now_ms_)); }},
            .cpu_time = [this](clockid_t thread) -> nanoseconds {
              if (thread == CLOCK_THREAD_CPUTIME_ID) return kUsedBefore;
              return kUsedBefore + (looked_at_ ? looked_at_() : used_);
            },
            .on_quarantine = [this](const std::string& plugin,
                                    const std::string& why) { quarantines_.push_back(plugin + ": " + why); }};
  }

  std::atomic<std::int64_t> now_ms_ = 0;
  /// The CPU time that a call is found to have used when it has taken its deadline by the clock.
  nanoseconds used_{};
  std::function<nanoseconds()> looked_at_;
  std::vector<std::string> quarantines_;
  PolicyThread thread_{options(kInTime)};
};

TEST_F(Lateness, IsNotThatOfACallWhoseThreadWasNotRun) {
  auto gate = std::make_shared<Gate>();
  std::atomic<int> looks = 0;
  looked_at_ = [&]() -> nanoseconds {
    ++looks;
    gate->open();
    return {};
  };
  EXPECT_EQ(ask(scripted("starved",
                         [gate](const topolet_score_sink& sink) -> std::int32_t {
                           gate->pass();
                           return sink.set(&sink, 0, TOPOLET_VERDICT_SCORE, 1, TOPOLET_STR("at last"));
                         })),
            "at last");
  EXPECT_GT(looks, 0) << "it answered within its deadline";
  EXPECT_EQ(state_of("starved").lost.total(), 0U);
}

TEST_F(Lateness, IsThatOfACallThatSleepsTwiceItsDeadline) {
  auto gate = std::make_shared<Gate>();
  EXPECT_EQ(ask(held_at(gate, "asleep")), "asleep: score: no answer within 500 ms");
  EXPECT_EQ(state_of("asleep").lost.late, 1U);
  gate->open();
  wait_until([this] { return !thread_.has_abandoned_calls(); });
}

TEST_F(Lateness, IsThatOfACallThatUsesMoreCpuTimeThanItsDeadline) {
  auto gate = std::make_shared<Gate>();
  used_ = 2 * kInTime;
  EXPECT_EQ(ask(held_at(gate, "busy")), "busy: score: no answer within 250 ms of CPU time");
  gate->open();
  wait_until([this] { return !thread_.has_abandoned_calls(); });
}

TEST_F(Lateness, IsNotThatOfACallThatUsesJustItsDeadline) {
  auto gate = std::make_shared<Gate>();
  used_ = kInTime;
  EXPECT_EQ(ask(held_at(gate, "busy")), "busy: score: no answer within 500 ms") << "as it does not come back";
  gate->open();
  wait_until([this] { return !thread_.has_abandoned_calls(); });
}

TEST_F(Lateness, OfThreeVotesIsEndedByATrial) {
  for (int i = 0; i < 3; ++i) be_late("slow");
  EXPECT_EQ(state_of("slow").trial_at, kWall + minutes(10));
  now_ms_ = milliseconds(minutes(10)).count() - 1;
  EXPECT_EQ(ask(willing("slow")),
            "slow: in quarantine: late 3 times in 10 minutes, last: slow: score: no answer within 500 ms");
  now_ms_ = milliseconds(minutes(10)).count();
  EXPECT_EQ(ask(willing("slow")), "slow");
  EXPECT_THAT(state_of("slow").quarantine, IsEmpty());
  EXPECT_EQ(state_of("slow").trial_at, std::nullopt);
  EXPECT_THAT(quarantines_, ElementsAre(AllOf(StartsWith("slow: late 3 times in 10 minutes, last: slow: score: "),
                                              EndsWith("; it is tried again in 10 minutes")),
                                        "slow: "));
}

TEST_F(Lateness, InATrialDoublesTheTimeUntilTheNext) {
  for (int i = 0; i < 3; ++i) be_late("slow");
  now_ms_ = milliseconds(minutes(10)).count();
  be_late("slow");
  EXPECT_EQ(state_of("slow").quarantine, "late in its trial: slow: score: no answer within 500 ms");
  EXPECT_EQ(state_of("slow").trial_at, kWall + minutes(30));
  now_ms_ = milliseconds(minutes(30)).count();
  be_late("slow");
  EXPECT_EQ(state_of("slow").trial_at, kWall + minutes(70));
  EXPECT_THAT(quarantines_,
              ElementsAre(EndsWith("in 10 minutes"), EndsWith("in 20 minutes"), EndsWith("in 40 minutes")));
}

TEST_F(Lateness, IsNotTriedByWhatThePluginCannotDo) {
  for (int i = 0; i < 3; ++i) be_late("slow");
  now_ms_ = milliseconds(minutes(10)).count();
  const auto request = two_node_request();
  const auto pick = [request](const std::vector<placement::Vote>& votes) {
    return votes[0].policy->pick(*request, 0, CpuSet{0, 1}, 2).error().message;
  };
  EXPECT_THAT(thread_.run_as<std::string>({vote(willing("slow"))}, pick), HasSubstr("in quarantine"));
  EXPECT_EQ(ask(willing("slow")), "slow");
}

TEST_F(Lateness, OfBadAnswersIsNone) {
  for (int i = 0; i < 3; ++i) ask(throwing("wild"));
  EXPECT_EQ(state_of("wild").trial_at, std::nullopt);
  now_ms_ = milliseconds(minutes(60 * 48)).count();
  EXPECT_THAT(ask(willing("wild")), HasSubstr("in quarantine: failed 3 times"));
}

class LateTicks : public Lateness {
 protected:
  std::shared_ptr<PluginPolicy> start(const std::string& answer) const {
    const auto library = PluginLibrary::load(TOPOLET_BROKEN_DIR, "lively");
    return library->create({{"answer", answer}}, make_silent_log(), {.state = state_}).value();
  }
  void begin_tick(const std::shared_ptr<PluginPolicy>& plugin, std::shared_ptr<const topology::Topology> machine) {
    now_ms_ += 1000;
    hasty_.tick({vote(plugin)}, [&machine] {
      TickSnapshot seen;
      seen.topology = std::move(machine);
      return std::make_shared<const TickSnapshot>(std::move(seen));
    });
  }
  void tick(const std::shared_ptr<PluginPolicy>& plugin) {
    begin_tick(plugin, two_node_request()->topology);
    wait_until([this] { return !hasty_.has_abandoned_calls(); });
  }
  /// One whose copy for plugins takes longer than the deadline.
  static std::shared_ptr<const topology::Topology> huge_machine() {
    topology::Topology machine = *two_node_request()->topology;
    machine.cores.assign(8000, CpuSet{40'000});
    return std::make_shared<const topology::Topology>(std::move(machine));
  }

  const std::shared_ptr<InMemoryPluginState> state_ = std::make_shared<InMemoryPluginState>();
  PolicyThread hasty_{options(milliseconds(1))};
};

TEST_F(LateTicks, LoseNothingButTheTick) {
  used_ = milliseconds(2);
  const auto lively = start("tick-stuck");
  for (int i = 0; i < 9; ++i) tick(lively);
  const PluginStatistics state = state_of(hasty_, "lively");
  EXPECT_EQ(state.late_ticks, 9U);
  EXPECT_EQ(state.lost.total(), 0U);
  EXPECT_THAT(state.quarantine, IsEmpty());
}

TEST_F(LateTicks, AreToldSoIfTheyWereAbandonedBeforeThePluginWasEntered) {
  used_ = milliseconds(2);
  const auto lively = start("tick-stuck");
  begin_tick(lively, huge_machine());
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  wait_until([&] { return !hasty_.has_abandoned_calls() || std::chrono::steady_clock::now() > patience; });
  EXPECT_FALSE(hasty_.has_abandoned_calls()) << "the plugin works on, as nobody tells it that it is late";
}

TEST_F(LateTicks, QuarantineThePluginWhenThereAreTenInTenMinutes) {
  used_ = milliseconds(2);
  const auto lively = start("tick-stuck");
  for (int i = 0; i < 11; ++i) tick(lively);
  const PluginStatistics state = state_of(hasty_, "lively");
  EXPECT_THAT(state.quarantine,
              StartsWith("late in ticks 10 times in 10 minutes, last: lively: tick: no answer within "));
  EXPECT_EQ(state.late_ticks, 10U);
  EXPECT_EQ(state.lost.total(), 0U) << "nobody waits for the tick that it was not asked for";
  EXPECT_EQ(state.trial_at, kWall + milliseconds(10'000) + minutes(10));
}

}  // namespace
}  // namespace topolet::plugin
