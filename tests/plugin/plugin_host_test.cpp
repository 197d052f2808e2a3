#include "core/plugin/call/plugin_host.hpp"

#include <gtest/gtest.h>

#include "core/plugin/call/abi_request.hpp"
#include "core/plugin/host/in_memory_plugin_state.hpp"

namespace topolet::plugin {
namespace {

TEST(LogRateLimiter, LetsABurstThroughAndThenAFewASecond) {
  LogRateLimiter allowance;
  LogRateLimiter::Time now = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < LogRateLimiter::kBurstLines; ++i) EXPECT_EQ(allowance.try_acquire(now), 0U);
  for (int i = 0; i < 7; ++i) EXPECT_FALSE(allowance.try_acquire(now).has_value());

  now += std::chrono::seconds(1);
  EXPECT_EQ(allowance.try_acquire(now), 7U);
  for (std::uint64_t i = 1; i < LogRateLimiter::kLinesPerSecond; ++i) EXPECT_EQ(allowance.try_acquire(now), 0U);
  EXPECT_FALSE(allowance.try_acquire(now).has_value());

  now += std::chrono::hours(1);
  for (std::uint64_t i = 0; i < LogRateLimiter::kBurstLines; ++i) EXPECT_TRUE(allowance.try_acquire(now).has_value());
  EXPECT_FALSE(allowance.try_acquire(now).has_value());
}

TEST(PluginHost, KeepsAsManyValuesAsAPluginMayHaveAndNoMore) {
  const auto state = std::make_shared<InMemoryPluginState>();
  ASSERT_TRUE(state->set("other", "key", "of another").has_value());
  PluginHost host("full", make_silent_log(), state);
  const topolet_host* view = host.view();
  const PluginHost::StateWriteScope writing(host);
  const auto* const values =
      static_cast<const topolet_state*>(view->get_capability(view, TOPOLET_STR(TOPOLET_STATE_ID)));
  const auto set = [&](const std::string& key) {
    return values->set(view, {key.data(), key.size()}, TOPOLET_STR("value"));
  };
  for (std::size_t i = 0; i < kMaxStateKeys; ++i) ASSERT_EQ(set(std::to_string(i)), TOPOLET_OK);
  EXPECT_EQ(set("one more"), TOPOLET_FAILED);
  EXPECT_EQ(set("7"), TOPOLET_OK) << "what is there may be changed";
  EXPECT_EQ(values->remove(view, TOPOLET_STR("8")), TOPOLET_OK);
  EXPECT_EQ(set("one more"), TOPOLET_OK);
}

TEST(PluginHost, SaysOutOfRangeOfValuesOnlyAndInvalidOfKeys) {
  PluginHost host("keys", make_silent_log(), std::make_shared<InMemoryPluginState>());
  const topolet_host* view = host.view();
  const PluginHost::StateWriteScope writing(host);
  const auto* const values =
      static_cast<const topolet_state*>(view->get_capability(view, TOPOLET_STR(TOPOLET_STATE_ID)));
  const std::string longest(TOPOLET_STATE_MAX_KEY, 'k');
  const std::string longer = longest + 'k';
  char buffer[TOPOLET_STATE_MAX_KEY];
  std::size_t size = 0;
  ASSERT_EQ(values->set(view, view_of(longest), TOPOLET_STR("value")), TOPOLET_OK);
  EXPECT_EQ(values->get(view, view_of(longest), buffer, 1, &size), TOPOLET_OUT_OF_RANGE);
  EXPECT_EQ(size, 5U);
  for (const topolet_str bad : {view_of(longer), topolet_str{nullptr, 3}, topolet_str{nullptr, 0}}) {
    EXPECT_EQ(values->set(view, bad, TOPOLET_STR("value")), TOPOLET_INVALID);
    EXPECT_EQ(values->remove(view, bad), TOPOLET_INVALID);
    EXPECT_EQ(values->get(view, bad, buffer, sizeof(buffer), &size), TOPOLET_INVALID);
  }
  EXPECT_EQ(values->next(view, view_of(longer), buffer, sizeof(buffer), &size), TOPOLET_INVALID);
  EXPECT_EQ(values->next(view, {nullptr, 0}, buffer, sizeof(buffer), &size), TOPOLET_OK);
  EXPECT_EQ(size, longest.size());
  const std::string too_much(TOPOLET_STATE_MAX_VALUE + 1, 'v');
  EXPECT_EQ(values->set(view, view_of(longest), view_of(too_much)), TOPOLET_OUT_OF_RANGE);
}

}  // namespace
}  // namespace topolet::plugin
