#include "core/plugin/call/policy_thread.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <unistd.h>

#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "core/base/log.hpp"
#include "core/base/unique_fd.hpp"
#include "core/placement/decide.hpp"
#include "tests/plugin/plugins.hpp"
#include "tests/plugin/scripted.hpp"

namespace topolet::plugin {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

/// Long enough that a call that does nothing is never late, even on a machine that does other things.
constexpr milliseconds kDeadline{250};
constexpr milliseconds kDecisionTime{minutes(1)};

class PolicyThreadTest : public ::testing::Test {
 protected:
  Answers ask(const std::vector<PluginVote>& votes) {
    return thread_.run_as<Answers>(in_this_order(votes), ask_all(two_node_request()));
  }
  /// In a decision that has taken a day already.
  std::string ask_at_last(const Scripted& one) {
    return thread_.run_as<Answers>({vote(one)}, ask_all(two_node_request()), yesterday())[0];
  }
  static PolicyThread::RealTime yesterday() { return std::chrono::steady_clock::now() - std::chrono::hours(24); }
  std::string ask(const PluginVote& one) { return ask(std::vector<PluginVote>{one})[0]; }
  std::string ask(const Scripted& one) { return ask(vote(one)); }

  /// One call that is late, and comes back after the clock went on by `took`.
  std::string ask_late(const std::string& name, milliseconds took = {}) {
    auto gate = std::make_shared<Gate>();
    const std::string answer = ask(held_at(gate, name));
    now_ = now_.load() + took.count();
    gate->open();
    wait_until([this] { return !thread_.has_abandoned_calls(); });
    return answer;
  }

  PluginStatistics state_of(const std::string& name) {
    for (const PluginStatistics& state : thread_.states()) {
      if (state.name == name) return state;
    }
    return {};
  }

  std::atomic<std::int64_t> now_ = 0;  // ms
  PolicyThread thread_{
      {.deadline = kDeadline,
       .decision_time = kDecisionTime,
       .clock = {.steady = [this] { return std::chrono::steady_clock::time_point(milliseconds(now_)); }}}};
};

TEST_F(PolicyThreadTest, RunsAWholeDecisionOnOneThreadThatIsNotTheCallers) {
  std::set<std::thread::id> threads;
  const auto notes = [&threads](const topolet_score_sink&) -> std::int32_t {
    threads.insert(std::this_thread::get_id());
    return TOPOLET_OK;
  };
  ask({vote(scripted("a", notes)), vote(scripted("b", notes))});
  ask(scripted("a", notes));
  EXPECT_THAT(threads, SizeIs(1));
  EXPECT_EQ(threads.count(std::this_thread::get_id()), 0U);
  EXPECT_EQ(state_of("a").calls, 2U);
}

TEST_F(PolicyThreadTest, KeepsWeightAndFailureRuleOfEachVoter) {
  const PluginVote strict{"a", willing("a").plugin, 7, true};
  const auto kept = thread_.run_as<bool>({strict}, [](const std::vector<placement::Vote>& votes) {
    return votes.size() == 1 && votes[0].weight == 7 && votes[0].fail_closed && votes[0].policy->name() == "a";
  });
  EXPECT_TRUE(kept);
}

TEST_F(PolicyThreadTest, GoesOnWithoutAPolicyThatDoesNotComeBack) {
  auto gate = std::make_shared<Gate>();
  const auto before = willing("before");
  const auto after = willing("after");
  EXPECT_THAT(ask({vote(before), vote(held_at(gate)), vote(after)}),
              ElementsAre("before", "stuck: score: no answer within 500 ms", "after"));
  EXPECT_TRUE(thread_.has_abandoned_calls());
  EXPECT_TRUE(state_of("stuck").has_abandoned_call);
  EXPECT_EQ(state_of("stuck").lost.late, 1U);

  gate->open();
  wait_until([this] { return !thread_.has_abandoned_calls(); });
  EXPECT_FALSE(state_of("stuck").has_abandoned_call);
  EXPECT_EQ(*before.calls, 2);
  EXPECT_EQ(*after.calls, 1) << "the abandoned run must not ask anybody after its call is back";
}

TEST_F(PolicyThreadTest, LosesTwoPoliciesOfOneDecisionWhenBothHang) {
  auto gate = std::make_shared<Gate>();
  EXPECT_THAT(ask({vote(held_at(gate, "one")), vote(held_at(gate, "two")), vote(willing("three"))}),
              ElementsAre("one: score: no answer within 500 ms", "two: score: no answer within 500 ms", "three"));
  gate->open();
  wait_until([this] { return !thread_.has_abandoned_calls(); });
}

TEST_F(PolicyThreadTest, DecidesWithoutPluginsWhereNoThreadCanBeHad) {
  pthread_attr_t usual;
  ASSERT_EQ(::pthread_getattr_default_np(&usual), 0);
  pthread_attr_t impossible;
  ASSERT_EQ(::pthread_getattr_default_np(&impossible), 0);
  // More than any address space holds: a kernel that overcommits without bound gives out all that fits.
  ASSERT_EQ(::pthread_attr_setstacksize(&impossible, std::size_t{1} << 62), 0);
  ASSERT_EQ(::pthread_setattr_default_np(&impossible), 0);
  EXPECT_THAT(ask(willing("calm")), HasSubstr("calm: a thread to ask it on cannot be started"));
  ASSERT_EQ(::pthread_setattr_default_np(&usual), 0);
  EXPECT_EQ(ask(willing("calm")), "calm");
}

TEST_F(PolicyThreadTest, NeverCallsIntoAPolicyThatStillHasACallInside) {
  auto gate = std::make_shared<Gate>();
  const auto stuck = held_at(gate);
  ask(stuck);
  EXPECT_EQ(ask(stuck), "stuck: an earlier call has not returned");
  EXPECT_EQ(*stuck.calls, 1);
  gate->open();
  wait_until([this] { return !thread_.has_abandoned_calls(); });
  EXPECT_EQ(ask(stuck), "");
  EXPECT_EQ(*stuck.calls, 2);
}

TEST_F(PolicyThreadTest, OwnsTheInputsOfAnAbandonedCallUntilItIsBack) {
  auto gate = std::make_shared<Gate>();
  auto policy = held_at(gate).plugin;
  std::shared_ptr<const placement::PolicyRequest> request = two_node_request();
  const std::weak_ptr<PluginPolicy> watched_policy = policy;
  const std::weak_ptr<const placement::PolicyRequest> watched_request = request;
  thread_.run_as<Answers>({vote(std::move(policy))}, ask_all(std::move(request)));
  EXPECT_FALSE(watched_policy.expired());
  EXPECT_FALSE(watched_request.expired());
  gate->open();
  wait_until([this] { return !thread_.has_abandoned_calls(); });
  EXPECT_TRUE(watched_policy.expired());
  EXPECT_TRUE(watched_request.expired());
}

TEST_F(PolicyThreadTest, QuarantinesThreeLateCallsInTenMinutes) {
  ask_late("slow");
  ask_late("slow");
  EXPECT_EQ(ask(willing("slow")), "slow");
  ask_late("slow");
  EXPECT_EQ(state_of("slow").quarantine, "late 3 times in 10 minutes, last: slow: score: no answer within 500 ms");
  EXPECT_THAT(ask(willing("slow")), HasSubstr("slow: in quarantine: late 3 times in 10 minutes"));
  EXPECT_EQ(ask(willing("other")), "other");

  ASSERT_TRUE(thread_.reset("slow"));
  EXPECT_EQ(ask(willing("slow")), "slow");
}

TEST_F(PolicyThreadTest, QuarantinesACallThatComesBackFarTooLate) {
  ask_late("slow", 20 * kDeadline - milliseconds(1));
  EXPECT_THAT(state_of("slow").quarantine, IsEmpty());
  ask_late("slow", 20 * kDeadline);
  EXPECT_EQ(state_of("slow").quarantine, "a call took at least 5000 ms, 10 times what it may");
}

TEST_F(PolicyThreadTest, QuarantinesACallThatIsFarTooLateAndStillInside) {
  auto gate = std::make_shared<Gate>();
  ask(held_at(gate));
  EXPECT_THAT(state_of("stuck").quarantine, IsEmpty());
  now_ = (20 * kDeadline).count();
  EXPECT_THAT(ask(willing("stuck")), HasSubstr("in quarantine: a call took at least 5000 ms"));
  now_ = milliseconds(minutes(60)).count();
  EXPECT_THAT(ask(willing("stuck")), HasSubstr("an earlier call has not returned")) << "nor is it tried";

  const Status refused = thread_.reset("stuck");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("restart needed"));
  gate->open();
  wait_until([this] { return !thread_.has_abandoned_calls(); });
  EXPECT_TRUE(thread_.reset("stuck"));
  EXPECT_EQ(ask(willing("stuck")), "stuck");
}

TEST_F(PolicyThreadTest, QuarantinesThreeBadAnswersInTenMinutes) {
  const auto throws = throwing("wild");
  EXPECT_EQ(ask(throws), "wild: score threw: boom");
  now_ = milliseconds(minutes(11)).count();
  ask(throws);
  thread_.report_invalid_reply("wild", "picked CPU 9, which is foreign");
  EXPECT_THAT(state_of("wild").quarantine, IsEmpty());
  ask(throws);
  EXPECT_EQ(state_of("wild").quarantine, "failed 3 times in 10 minutes, last: wild: score threw: boom");
  EXPECT_EQ(state_of("wild").lost.total(), 4U);
}

TEST_F(PolicyThreadTest, AsksNobodyOnceTheDecisionHasTakenTooLong) {
  const auto calm = willing("calm");
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(ask_at_last(calm),
              "calm: was not asked to score the candidates: the decision had taken 60000 ms already "
              "(placement.decision-ms)");
  }
  EXPECT_EQ(*calm.calls, 0);
  EXPECT_EQ(state_of("calm").calls, 0U);
  EXPECT_EQ(state_of("calm").lost.out_of_time, 5U);
  EXPECT_EQ(state_of("calm").lost.total(), 5U);
  EXPECT_THAT(state_of("calm").quarantine, IsEmpty()) << "it is not the plugin's fault";
  EXPECT_EQ(ask(calm), "calm");
}

TEST_F(PolicyThreadTest, DeniesOnlyWhereAVoteThatThereIsNoTimeForMustNotBeLost) {
  const auto decide_at_last = [this](PluginVote vote) {
    const auto request = two_node_request();
    const auto job = [request](const auto& votes) { return placement::decide(*request, {}, votes); };
    return thread_.run_as<placement::Decision>({std::move(vote)}, job, yesterday());
  };
  PluginVote calm = vote(willing("calm"));
  const placement::Decision open = decide_at_last(calm);
  EXPECT_FALSE(open.denied);
  EXPECT_TRUE(open.reason.ends_with("; calm lost its vote")) << open.reason;
  EXPECT_THAT(open.verdicts.lost_votes, ElementsAre(HasSubstr("calm: was not asked to score the candidates: ")));
  calm.fail_closed = true;
  EXPECT_TRUE(decide_at_last(calm).denied);
  calm.fail_closed = false;
  calm.required = true;
  EXPECT_THAT(decide_at_last(calm).reason, HasSubstr("plugin calm lost its vote (calm: was not asked to score"));
}

TEST_F(PolicyThreadTest, CountsWhoMustNotBeAskedAnywayAsBefore) {
  thread_.quarantine("wild", "it was told to");
  EXPECT_EQ(ask_at_last(willing("wild")), "wild: in quarantine: it was told to");
  EXPECT_EQ(state_of("wild").lost.not_asked, 1U);
  EXPECT_EQ(state_of("wild").lost.out_of_time, 0U);
}

TEST_F(PolicyThreadTest, CountsADecisionWithoutTimeOnce) {
  const auto request = two_node_request();
  const auto job = [request](const std::vector<placement::Vote>& votes) {
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(votes[0].policy->score(*request));
    return votes[0].policy->pick(*request, 0, CpuSet{0, 1}, 2).error().message;
  };
  EXPECT_THAT(thread_.run_as<std::string>({vote(willing("calm"))}, job, yesterday()),
              HasSubstr("was not asked to score the candidates"));
  EXPECT_EQ(state_of("calm").lost.out_of_time, 1U);
}

TEST_F(PolicyThreadTest, MissesNothingThatThePluginCannotDo) {
  const auto request = two_node_request();
  const auto job = [request](const std::vector<placement::Vote>& votes) {
    const placement::ChosenPlacement chosen{0, {}, {}};
    return votes[0].policy->pick(*request, 0, CpuSet{0, 1}, 2).has_value() &&
           votes[0].policy->review_pick(*request, 0, CpuSet{0, 1}, CpuSet{0, 1}).has_value() &&
           votes[0].policy->propose(*request).has_value() && votes[0].policy->adjust(*request, chosen).has_value();
  };
  EXPECT_TRUE(thread_.run_as<bool>({vote(willing("scores-only"))}, job, yesterday()));
  EXPECT_EQ(state_of("scores-only").lost.total(), 0U);
}

TEST(PolicyThread, CountsTheTimeOfADecisionOverAllItsAttempts) {
  PolicyThread thread({.deadline = milliseconds(1), .decision_time = milliseconds(1), .clock = {}});
  auto gate = std::make_shared<Gate>();
  const auto after = willing("after");
  const Answers answers =
      thread.run_as<Answers>(in_this_order({vote(held_at(gate)), vote(after)}), ask_all(two_node_request()));
  EXPECT_THAT(answers[1], HasSubstr("after: was not asked to score the candidates"));
  EXPECT_EQ(*after.calls, 0);
  gate->open();
  wait_until([&thread] { return !thread.has_abandoned_calls(); });
}

TEST_F(PolicyThreadTest, DoesNotHoldAVoteGivenUpAgainstAPlugin) {
  const auto gives_up = unable("unable");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ask(gives_up), "unable: score failed: no sysfs");
  EXPECT_EQ(state_of("unable").lost.declined, 5U);
  EXPECT_THAT(state_of("unable").quarantine, IsEmpty());
}

TEST(PolicyThread, LogsEachLostVoteWithItsReason) {
  std::ostringstream lines;
  auto log = std::make_shared<Log>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(lines));
  PolicyThread thread({.deadline = kDeadline, .clock = {}, .log = log});
  for (const Scripted& plugin : {throwing("wild"), unable("unable")}) {
    thread.run_as<Answers>({vote(plugin)}, ask_all(two_node_request()));
  }
  thread.report_invalid_reply("wide", "picked CPU 9, which is foreign");
  EXPECT_THAT(lines.str(), HasSubstr("plugin wild: score threw: boom; its vote is lost"));
  EXPECT_THAT(lines.str(), HasSubstr("plugin unable: score failed: no sysfs; its vote is lost"));
  EXPECT_THAT(lines.str(), HasSubstr("plugin wide: picked CPU 9, which is foreign; its vote is lost"));
}

TEST_F(PolicyThreadTest, HasNothingToResetForAPluginNeverAsked) {
  EXPECT_EQ(thread_.reset("ghost").error().code, Code::kNotFound);
}

TEST_F(PolicyThreadTest, PassesOnWhatTheJobThrowsAndStaysUsable) {
  const auto buggy = [](const std::vector<placement::Vote>&) -> int { throw std::logic_error("a bug in decide"); };
  EXPECT_THROW(thread_.run_as<int>({}, buggy), std::logic_error);
  EXPECT_EQ(ask(willing("a")), "a");
}

TEST_F(PolicyThreadTest, TakesDecisionsFromManyThreadsOneAtATime) {
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  const auto counting = scripted("a", [&](const topolet_score_sink&) -> std::int32_t {
    most = std::max(most.load(), ++inside);
    --inside;
    return TOPOLET_OK;
  });
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int j = 0; j < 50; ++j) ask(counting);
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(*counting.calls, 200);
  EXPECT_EQ(most, 1);
}

TEST(PolicyThread, EndsWhileACallIsStillInside) {
  auto gate = std::make_shared<Gate>();
  auto policy = held_at(gate).plugin;
  const std::weak_ptr<PluginPolicy> watched = policy;
  {
    PolicyThread thread({.deadline = milliseconds(1), .clock = {}});
    thread.run_as<Answers>({vote(std::move(policy))}, ask_all(two_node_request()));
  }
  EXPECT_FALSE(watched.expired());
  gate->open();
  wait_until([&watched] { return watched.expired(); });
}

TEST_F(PolicyThreadTest, AsksPluginsOnSharedViews) {
  const auto numa = start_plugin(TOPOLET_BUILT_PLUGINS, "numa");
  const auto request = two_node_request();
  const auto picked = thread_.run_as<CpuSet>({vote(numa)}, [request](const std::vector<placement::Vote>& votes) {
    CpuSet cpus;
    const auto verdicts = votes[0].policy->score(*request);
    if (!verdicts || (*verdicts)[0].score != 100) return cpus;
    const auto pick = votes[0].policy->order_pick(*request, 0, CpuSet{1, 2, 3}, 2);
    if (pick) cpus = CpuSet{pick->order[0], pick->order[1]};
    return cpus;
  });
  EXPECT_EQ(picked, (CpuSet{2, 3}));
}

TEST_F(PolicyThreadTest, TellsAPluginThatItIsLate) {
  const auto slow = start_plugin(TOPOLET_BROKEN_DIR, "until-late");
  const auto request = two_node_request();
  const auto answer = thread_.run_as<std::string>({vote(slow)}, [request](const std::vector<placement::Vote>& votes) {
    const auto pick = votes[0].policy->pick(*request, 0, CpuSet{0, 1}, 2);
    return pick ? std::string("answered") : pick.error().message;
  });
  EXPECT_THAT(answer, StartsWith("until-late: pick: no answer within "));
  wait_until([this] { return !thread_.has_abandoned_calls(); });
}

TEST_F(PolicyThreadTest, LeavesAStuckPluginItsInputs) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const auto stuck = start_plugin(TOPOLET_BROKEN_DIR, "stuck", {{"fd", std::to_string(reader.get())}});
  EXPECT_EQ(ask(vote(stuck)), "stuck: score: no answer within 500 ms");
  EXPECT_TRUE(thread_.has_abandoned_calls());
  writer.reset();  // The plugin aborts the test if it finds its request gone.
  wait_until([this] { return !thread_.has_abandoned_calls(); });
}

}  // namespace
}  // namespace topolet::plugin
