#include "core/plugin/plugin_host.hpp"

#include <gtest/gtest.h>

namespace topolet {
namespace {

TEST(LogAllowance, LetsABurstThroughAndThenAFewASecond) {
  LogAllowance allowance;
  LogAllowance::Time now = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < LogAllowance::kBurst; ++i) EXPECT_EQ(allowance.take(now), 0U);
  for (int i = 0; i < 7; ++i) EXPECT_FALSE(allowance.take(now).has_value());

  now += std::chrono::seconds(1);
  EXPECT_EQ(allowance.take(now), 7U);
  for (std::uint64_t i = 1; i < LogAllowance::kASecond; ++i) EXPECT_EQ(allowance.take(now), 0U);
  EXPECT_FALSE(allowance.take(now).has_value());

  now += std::chrono::hours(1);
  for (std::uint64_t i = 0; i < LogAllowance::kBurst; ++i) EXPECT_TRUE(allowance.take(now).has_value());
  EXPECT_FALSE(allowance.take(now).has_value());
}

}  // namespace
}  // namespace topolet
