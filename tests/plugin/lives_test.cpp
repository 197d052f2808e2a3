// Plugins that keep what they were shown longer than their call, their thread or their life.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <cstdlib>
#include <sstream>
#include <thread>

#include "core/base/log.hpp"
#include "core/base/run_in_child.hpp"
#include "core/plugin/call/policy_thread.hpp"
#include "core/plugin/host/in_memory_plugin_state.hpp"
#include "tests/plugin/plugins.hpp"
#include "tests/plugin/scripted.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::plugin {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// All that a plugin is answered when its life is over: TOPOLET_LATE, and the capabilities that it knows.
constexpr const char* kAllLate = "get 6 next 6 set 6 remove 6 create 6 score 6 error 6 same\n";

class Outlives : public ::testing::Test {
 protected:
  std::shared_ptr<PluginPolicy> start(const std::string& how) {
    const auto library = PluginLibrary::load(TOPOLET_BROKEN_DIR, "outlives");
    if (!library) {
      ADD_FAILURE() << library.error().message;
      return nullptr;
    }
    auto policy = library->create({{"how", how}, {"notes", directory_.file("notes")}}, log_,
                                  {.state = std::make_shared<InMemoryPluginState>()});
    if (!policy) ADD_FAILURE() << policy.error().message;
    return policy ? *policy : nullptr;
  }
  std::string notes() const { return directory_.read("notes"); }
  /// Makes an instance, asks it on the policy thread, and destroys it.
  void live(const std::string& how) {
    PolicyThread thread({.deadline = milliseconds(10'000), .decision_time = milliseconds(20'000), .clock = {}});
    const PluginVote asked = vote(start(how));
    EXPECT_THAT(thread.run_as<Answers>({asked}, ask_all(two_node_request())), ElementsAre("its own"));
  }
  /// The same in a process of its own, which then ends as programs do.
  void live_and_exit(const std::string& how) {
    const ChildEnd end = run_in_child(std::chrono::minutes(1), [&](const Progress&) -> std::string {
      live(how);
      std::exit(0);
    });
    EXPECT_EQ(end.kind, ChildEnd::Kind::kExited) << end.text;
    EXPECT_EQ(end.text, "0");
  }

  TempDir directory_;
  std::ostringstream lines_;
  std::shared_ptr<Log> log_ = std::make_shared<Log>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(lines_));
};

TEST_F(Outlives, ItsThreadsMayReadAndLogButNeitherAnswerNorWriteForACall) {
  live("joins");
  EXPECT_EQ(notes(),
            "created\nown thread: get 0 next 0 set 8 remove 8 create 6 score 6 error 6 same\nown thread: ends\n"
            "destroyed\n");
  EXPECT_THAT(lines_.str(), HasSubstr("outlives: here I am"));
}

TEST_F(Outlives, AThreadThatItDoesNotJoinIsToldThatItIsLate) {
  const ChildEnd end = run_in_child(std::chrono::minutes(1), [this](const Progress&) {
    live("detaches");
    while (notes().find("detached") == std::string::npos) std::this_thread::yield();
    return notes();
  });
  EXPECT_EQ(end.kind, ChildEnd::Kind::kReturned) << end.text;
  EXPECT_EQ(end.text, std::string("created\ndestroyed\ndetached: ") + kAllLate);
}

TEST_F(Outlives, SoIsAnExitHandler) {
  live_and_exit("exit-handler");
  EXPECT_EQ(notes(), std::string("created\ndestroyed\nexit handler: ") + kAllLate);
}

TEST_F(Outlives, SoIsADestructorOfAStaticObject) {
  live_and_exit("static");
  EXPECT_EQ(notes(), std::string("created\ndestroyed\nstatic destructor: ") + kAllLate);
}

TEST_F(Outlives, SoIsADestructorOfAThread) {
  live("thread-local");
  EXPECT_EQ(notes(), std::string("created\ndestroyed\nthread's destructor: ") + kAllLate);
}

TEST_F(Outlives, ADestroyThatThrowsIsNamedInTheLog) {
  live("throws");
  EXPECT_THAT(lines_.str(), HasSubstr("plugin outlives: destroy threw: the last of it"));
}

TEST(PluginHost, IsLateOnceItsLifeIsOverAndForEver) {
  const topolet_host* view = nullptr;
  const topolet_state* values = nullptr;
  {
    PluginHost host("late", make_silent_log(), std::make_shared<InMemoryPluginState>());
    view = host.view();
    values = static_cast<const topolet_state*>(view->get_capability(view, TOPOLET_STR(TOPOLET_STATE_ID)));
    const PluginHost::StateWriteScope writing(host);
    EXPECT_EQ(values->set(view, TOPOLET_STR("key"), TOPOLET_STR("value")), TOPOLET_OK);
  }
  std::vector<std::unique_ptr<PluginHost>> later;
  for (int i = 0; i < 200; ++i) {
    later.push_back(std::make_unique<PluginHost>("late", make_silent_log(), std::make_shared<InMemoryPluginState>()));
    EXPECT_NE(later.back()->view(), view) << "nobody else is shown it";
  }
  const PluginHost::StateWriteScope writing(*later.back());
  EXPECT_EQ(values->set(view, TOPOLET_STR("key"), TOPOLET_STR("value")), TOPOLET_LATE);
  EXPECT_EQ(view->get_capability(view, TOPOLET_STR(TOPOLET_STATE_ID)), values);
}

TEST(PluginHost, SaysWhichProgramItIs) {
  const auto text = [](topolet_str view) { return std::string(view.ptr, view.len); };
  const PluginHost host("any", make_silent_log(), nullptr);
  EXPECT_EQ(host.view()->struct_size, sizeof(topolet_host));
  EXPECT_EQ(host.view()->abi_minor, TOPOLET_ABI_MINOR);
  EXPECT_EQ(text(host.view()->name), "topoletd");
  EXPECT_THAT(text(host.view()->version), ::testing::MatchesRegex("[0-9]+\\.[0-9]+.*"));
  introduce_host_as("topolet simulate");
  const PluginHost later("any", make_silent_log(), nullptr);
  introduce_host_as("topoletd");
  EXPECT_EQ(text(later.view()->name), "topolet simulate");
  EXPECT_EQ(text(host.view()->name), "topoletd");
}

TEST(PluginHost, LetsStateBeWrittenOnTheThreadOfTheCallOnly) {
  PluginHost host("any", make_silent_log(), std::make_shared<InMemoryPluginState>());
  PluginHost other("any", make_silent_log(), std::make_shared<InMemoryPluginState>());
  const auto set = [](const PluginHost& of) {
    const topolet_host* const view = of.view();
    const auto* const values =
        static_cast<const topolet_state*>(view->get_capability(view, TOPOLET_STR(TOPOLET_STATE_ID)));
    return values->set(view, TOPOLET_STR("key"), TOPOLET_STR("value"));
  };
  const PluginHost::StateWriteScope writing(host);
  EXPECT_EQ(set(host), TOPOLET_OK);
  EXPECT_EQ(set(other), TOPOLET_FORBIDDEN);
  std::int32_t elsewhere = TOPOLET_OK;
  std::thread([&] { elsewhere = set(host); }).join();
  EXPECT_EQ(elsewhere, TOPOLET_FORBIDDEN);
  host.call_abandoned() = true;
  EXPECT_EQ(set(host), TOPOLET_LATE);
}

TEST(PluginHost, GivesSixtyFourKibibytesInADecisionAndNoMore) {
  std::ostringstream lines;
  const auto log = std::make_shared<Log>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(lines));
  const auto state = std::make_shared<InMemoryPluginState>();
  ASSERT_TRUE(state->set("reads", "half", std::string(TOPOLET_STATE_MAX_READ / 2, 'x')));
  ASSERT_TRUE(state->set("reads", "one", "1"));
  PluginHost host("reads", log, state);
  const topolet_host* const view = host.view();
  const auto* const values =
      static_cast<const topolet_state*>(view->get_capability(view, TOPOLET_STR(TOPOLET_STATE_ID)));
  std::vector<char> buffer(TOPOLET_STATE_MAX_READ);
  std::size_t size = 0;
  const auto get = [&](topolet_str key, std::size_t capacity = TOPOLET_STATE_MAX_READ) {
    return values->get(view, key, buffer.data(), capacity, &size);
  };
  for (int i = 0; i < 2; ++i) {
    const DecisionReads decision;
    EXPECT_EQ(get(TOPOLET_STR("half")), TOPOLET_OK);
    EXPECT_EQ(get(TOPOLET_STR("half"), 1), TOPOLET_OUT_OF_RANGE) << "which gives nothing";
    EXPECT_EQ(get(TOPOLET_STR("half")), TOPOLET_OK);
    EXPECT_EQ(get(TOPOLET_STR("one")), TOPOLET_FAILED);
    EXPECT_EQ(values->next(view, {nullptr, 0}, buffer.data(), buffer.size(), &size), TOPOLET_FAILED);
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(get(TOPOLET_STR("half")), TOPOLET_OK) << "outside of decisions";
  const std::string said = lines.str();
  const auto first = said.find("reads: reads more than 65536 bytes of its state in a decision");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(said.find("in a decision", first + 70), std::string::npos) << "it is told once: " << said;
}

TEST_F(Outlives, ItsReadsAreLimitedInEachDecisionAnew) {
  PolicyThread thread({.deadline = milliseconds(10'000), .decision_time = milliseconds(20'000), .clock = {}});
  const std::vector<PluginVote> asked{vote(start("reads"))};
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(thread.run_as<Answers>(asked, ask_all(two_node_request())), ElementsAre("name 0 half 0 half 1"));
  }
  EXPECT_THAT(lines_.str(), HasSubstr("outlives: reads more than 65536 bytes of its state in a decision"));
}

/// Says in score() what a sink of a call that has returned, or of another function, answers.
TEST(Sinks, AreLateOutsideOfTheirCall) {
  PluginHost host("any", make_silent_log(), nullptr);
  const Sinks& sinks = host.sinks();
  std::vector<std::int32_t> in_score;
  PolicyThread thread({.deadline = milliseconds(10'000), .decision_time = milliseconds(20'000), .clock = {}});
  const Scripted asked = scripted("asked", [&](const topolet_score_sink& sink) {
    in_score.push_back(sinks.pick.reason(&sinks.pick, TOPOLET_STR("of another function")));
    in_score.push_back(sinks.event.error(&sinks.event, TOPOLET_STR("the same")));
    std::thread([&] { in_score.push_back(sink.error(&sink, TOPOLET_STR("of another thread"))); }).join();
    return sink.set(&sink, 0, TOPOLET_VERDICT_SCORE, 1, TOPOLET_STR("fine"));
  });
  EXPECT_THAT(thread.run_as<Answers>({vote(asked)}, ask_all(two_node_request())), ElementsAre("fine"));
  EXPECT_THAT(in_score, ElementsAre(TOPOLET_LATE, TOPOLET_LATE, TOPOLET_LATE));
  EXPECT_EQ(sinks.score.error(&sinks.score, TOPOLET_STR("after the call")), TOPOLET_LATE);
  EXPECT_EQ(sinks.create.set(&sinks.create, TOPOLET_STR("the same")), TOPOLET_LATE);
}

TEST(PolicyThread, MayCallAnInstanceOnAnotherThreadTheNextTime) {
  PolicyThread thread({.deadline = milliseconds(50), .decision_time = milliseconds(60'000), .clock = {}});
  std::vector<std::thread::id> threads;
  const Scripted asked = scripted("asked", [&](const topolet_score_sink&) -> std::int32_t {
    threads.push_back(std::this_thread::get_id());
    return TOPOLET_OK;
  });
  const auto gate = std::make_shared<Gate>();
  thread.run_as<Answers>({vote(asked)}, ask_all(two_node_request()));
  thread.run_as<Answers>({vote(held_at(gate))}, ask_all(two_node_request()));
  thread.run_as<Answers>({vote(asked)}, ask_all(two_node_request()));
  ASSERT_EQ(threads.size(), 2U);
  EXPECT_NE(threads[0], threads[1]);
  gate->open();
  wait_until([&] { return !thread.has_abandoned_calls(); });
}

TEST(CallTurns, AreOneForEachPlugin) {
  CallTurns turns;
  turns.begin("one");
  const auto now = std::chrono::steady_clock::now();
  EXPECT_FALSE(turns.begin_until("one", now));
  EXPECT_TRUE(turns.begin_until("two", now));
  turns.end("one");
  EXPECT_TRUE(turns.begin_until("one", now));
}

TEST(CallTurns, KeepADecisionAndACreateApart) {
  ControlThread control({.limit = std::chrono::minutes(1)});
  PolicyThread thread(
      {.deadline = milliseconds(20'000), .decision_time = milliseconds(40'000), .clock = {}, .turns = control.turns()});
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  const auto come_and_go = [&] {
    most = std::max(most.load(), ++inside);
    std::this_thread::sleep_for(milliseconds(1));
    --inside;
  };
  const Scripted asked = scripted("asked", [&](const topolet_score_sink&) -> std::int32_t {
    come_and_go();
    return TOPOLET_OK;
  });
  std::atomic<bool> is_over = false;
  std::thread creates([&] {
    while (!is_over) EXPECT_TRUE(control.run("asked", "create", come_and_go));
  });
  for (int i = 0; i < 50; ++i)
    EXPECT_THAT(thread.run_as<Answers>({vote(asked)}, ask_all(two_node_request())), ElementsAre(""));
  is_over = true;
  creates.join();
  EXPECT_EQ(most, 1);
}

TEST(CallTurns, OfAPluginThatIsBeingCreatedCostItsVoteAndNobodyElses) {
  ControlThread control({.limit = std::chrono::minutes(1)});
  PolicyThread thread(
      {.deadline = milliseconds(50), .decision_time = milliseconds(60'000), .clock = {}, .turns = control.turns()});
  const auto gate = std::make_shared<Gate>();
  std::atomic<bool> is_inside = false;
  std::thread creates([&] {
    EXPECT_TRUE(control.run("slow", "create", [&] {
      is_inside = true;
      gate->pass();
    }));
  });
  wait_until([&] { return is_inside.load(); });
  const std::vector<PluginVote> votes = in_this_order({vote(willing("slow")), vote(willing("other"))});
  EXPECT_THAT(
      thread.run_as<Answers>(votes, ask_all(two_node_request())),
      ElementsAre("slow: was not asked to score the candidates: an instance of it is being created or destroyed",
                  "other"));
  EXPECT_EQ(thread.states().at(1).lost.out_of_time, 1U);
  gate->open();
  creates.join();
  EXPECT_THAT(thread.run_as<Answers>(votes, ask_all(two_node_request())), ElementsAre("slow", "other"));
}

TEST(CallTurns, AreGivenBackByCallsThatAreAbandoned) {
  ControlThread control({.limit = milliseconds(50)});
  PolicyThread thread(
      {.deadline = milliseconds(50), .decision_time = milliseconds(60'000), .clock = {}, .turns = control.turns()});
  const auto gate = std::make_shared<Gate>();
  EXPECT_FALSE(control.run("stuck", "create", [gate] { gate->pass(); }));
  EXPECT_THAT(thread.run_as<Answers>({vote(willing("stuck"))}, ask_all(two_node_request())), ElementsAre("stuck"));
  EXPECT_THAT(thread.run_as<Answers>({vote(held_at(gate))}, ask_all(two_node_request())),
              ElementsAre(HasSubstr("no answer within")));
  EXPECT_TRUE(control.run("stuck", "create", [] {}));
  gate->open();
  wait_until([&] { return !thread.has_abandoned_calls() && !control.has_abandoned_calls(); });
}

TEST(ControlThread, TellsACallThatItWasAbandoned) {
  ControlThread control({.limit = milliseconds(50)});
  const auto gate = std::make_shared<Gate>();
  const auto was_abandoned = std::make_shared<std::atomic<int>>(-1);
  EXPECT_FALSE(control.run("stuck", "create", [gate, was_abandoned] {
    if (is_abandoned_control_call()) return;
    gate->pass();
    *was_abandoned = is_abandoned_control_call() ? 1 : 0;
  }));
  gate->open();
  wait_until([&] { return *was_abandoned != -1; });
  EXPECT_EQ(*was_abandoned, 1);
  EXPECT_FALSE(is_abandoned_control_call());
}

}  // namespace
}  // namespace topolet::plugin
