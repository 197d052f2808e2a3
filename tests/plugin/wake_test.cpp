// Ticks that plugins want beside those of their interval.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/plugin/call/policy_thread.hpp"
#include "core/plugin/host/in_memory_plugin_state.hpp"
#include "tests/plugin/plugins.hpp"

namespace topolet::plugin {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

std::int32_t tick_soon(const topolet_host* view) {
  const auto* const wake = static_cast<const topolet_wake*>(view->get_capability(view, TOPOLET_STR(TOPOLET_WAKE_ID)));
  return wake->tick_soon(view);
}

TEST(Wake, IsOneCallForEachTick) {
  std::vector<milliseconds> calls;
  PluginHost host("any", make_silent_log(), nullptr);
  host.wake_by([&](milliseconds until) { calls.push_back(until); });
  EXPECT_EQ(tick_soon(host.view()), TOPOLET_OK);
  EXPECT_EQ(tick_soon(host.view()), TOPOLET_OK);
  EXPECT_THAT(calls, ElementsAre(milliseconds(0)));
  EXPECT_TRUE(host.wants_tick());
  EXPECT_TRUE(host.begin_tick());
  EXPECT_FALSE(host.wants_tick());
  EXPECT_EQ(tick_soon(host.view()), TOPOLET_OK) << "while a tick runs it is for the next";
  ASSERT_THAT(calls, SizeIs(2));
  EXPECT_THAT(calls[1], Le(milliseconds(TOPOLET_TICK_MIN_MS)));
  EXPECT_TRUE(host.begin_tick());
  EXPECT_FALSE(host.begin_tick());
}

TEST(Wake, OfTheCreationIsNotForgotten) {
  PluginHost host("any", make_silent_log(), nullptr);
  EXPECT_EQ(tick_soon(host.view()), TOPOLET_OK);
  int calls = 0;
  host.wake_by([&](milliseconds) { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(Wake, IsLateWhenItsLifeIsOver) {
  const topolet_host* view = nullptr;
  int calls = 0;
  {
    PluginHost host("any", make_silent_log(), nullptr);
    host.wake_by([&](milliseconds) { ++calls; });
    view = host.view();
  }
  EXPECT_EQ(tick_soon(view), TOPOLET_LATE);
  EXPECT_EQ(calls, 0);
}

TEST(Wake, LetsATickComeEarlyButNotSoonerThanTheShortestInterval) {
  std::int64_t now_ms = 0;
  PolicyThread thread(
      {.deadline = milliseconds(10'000),
       .decision_time = milliseconds(20'000),
       .clock = {.steady = [&] { return std::chrono::steady_clock::time_point(milliseconds(now_ms)); }}});
  const auto library = PluginLibrary::load(TOPOLET_BROKEN_DIR, "lively");
  ASSERT_TRUE(library) << library.error().message;
  const auto policy =
      library->create({{"answer", "nothing"}}, make_silent_log(), {.state = std::make_shared<InMemoryPluginState>()});
  ASSERT_TRUE(policy) << policy.error().message;
  const std::vector<PluginVote> votes{{"lively", *policy}};
  const auto tick = [&] {
    TickSnapshot seen;
    seen.topology = two_node_request()->topology;
    std::vector<std::string> woken;
    thread.tick(
        votes, [&] { return std::make_shared<const TickSnapshot>(seen); }, &woken);
    return woken;
  };
  EXPECT_THAT(tick(), IsEmpty());
  EXPECT_EQ(thread.until_tick(votes), milliseconds(1000));
  (*policy)->set_wants_tick(true);
  EXPECT_EQ(thread.until_tick(votes), milliseconds(TOPOLET_TICK_MIN_MS));
  now_ms = TOPOLET_TICK_MIN_MS - 1;
  EXPECT_THAT(tick(), IsEmpty());
  EXPECT_EQ(thread.states().at(0).calls, 1U);
  now_ms = TOPOLET_TICK_MIN_MS;
  EXPECT_THAT(tick(), ElementsAre("lively"));
  EXPECT_EQ(thread.states().at(0).calls, 2U);
  EXPECT_EQ(thread.until_tick(votes), milliseconds(1000)) << "an interval later";
}

}  // namespace
}  // namespace topolet::plugin
