#include "core/base/log.hpp"

#include <gtest/gtest.h>

namespace topolet {
namespace {

TEST(Log, TakesTheLevelsItNames) {
  const auto log = make_silent_log();
  EXPECT_TRUE(set_level(*log, "debug").has_value());
  EXPECT_TRUE(log->should_log(spdlog::level::debug));
  EXPECT_TRUE(set_level(*log, "error").has_value());
  EXPECT_FALSE(log->should_log(spdlog::level::warn));
}

TEST(Log, RefusesAnUnknownLevelByName) {
  const auto log = make_silent_log();
  EXPECT_EQ(set_level(*log, "loud").error().message,
            "unknown log level 'loud'; use trace, debug, info, warn, error or off");
}

}  // namespace
}  // namespace topolet
