#include "core/plugin/call/plugin_host.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace topolet::plugin
