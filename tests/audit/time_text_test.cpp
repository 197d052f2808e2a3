#include "core/audit/time_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <string>

#include "core/base/rfc3339.hpp"

namespace topolet::audit {
namespace {

constexpr std::int64_t kNow = 1'769'860'800'000;  // 2026-01-31T12:00:00Z
constexpr std::int64_t kHour = 3'600'000;

/// Two hours east of Greenwich in winter, three in summer.
class TimeTextTest : public ::testing::Test {
 protected:
  TimeTextTest() {
    ::setenv("TZ", "EET-2EEST,M3.5.0/3,M10.5.0/4", 1);
    ::tzset();
  }
  ~TimeTextTest() override {
    ::unsetenv("TZ");
    ::tzset();
  }

  static std::string read(const std::string& text) {
    const auto at = parse_time(text, kNow);
    return at ? rfc3339_ms(std::chrono::milliseconds(*at)) : at.error().message;
  }
};

TEST_F(TimeTextTest, ReadsWhatTheViewsShow) {
  EXPECT_EQ(read("2026-01-31T12:00:00.250Z"), "2026-01-31T12:00:00.250Z");
  EXPECT_EQ(read("2026-01-31T12:00:00Z"), "2026-01-31T12:00:00.000Z");
  EXPECT_EQ(read("2026-01-31T12:00:00+01:00"), "2026-01-31T11:00:00.000Z");
  EXPECT_EQ(read("2026-01-31T12:00:00.5-00:30"), "2026-01-31T12:30:00.500Z");
  EXPECT_EQ(read("1769860800001"), "2026-01-31T12:00:00.001Z");
}

TEST_F(TimeTextTest, ReadsLocalTime) {
  EXPECT_EQ(read("2026-01-31 12:00"), "2026-01-31T10:00:00.000Z");
  EXPECT_EQ(read("2026-07-31 12:00:01"), "2026-07-31T09:00:01.000Z");
  EXPECT_EQ(read("2026-01-31"), "2026-01-30T22:00:00.000Z");
  EXPECT_EQ(read("14:03"), "2026-01-31T12:03:00.000Z");
  EXPECT_EQ(read("yesterday 14:03"), "2026-01-30T12:03:00.000Z");
  EXPECT_EQ(read("yesterday"), "2026-01-29T22:00:00.000Z");
  EXPECT_EQ(read("today 01:00"), "2026-01-30T23:00:00.000Z");
}

TEST_F(TimeTextTest, ReadsHowLongAgo) {
  EXPECT_EQ(parse_time("now", kNow).value(), kNow);
  EXPECT_EQ(parse_time("2h", kNow).value(), kNow - 2 * kHour);
  EXPECT_EQ(parse_time("90s", kNow).value(), kNow - 90'000);
  EXPECT_EQ(parse_time("7d", kNow).value(), kNow - 7 * 24 * kHour);
  EXPECT_EQ(parse_duration("15m").value(), kHour / 4);
}

TEST_F(TimeTextTest, SaysWhatATimeIs) {
  for (const char* bad : {"", "noon", "12:61", "2026-02-31", "2026-01-31T12:00:00X", "2026-01-31 12:00 ", "-2h", "5",
                          "yesterday at noon", "yesterday12:00", "9999999999h", "2026-13-01"}) {
    const auto at = parse_time(bad, kNow);
    ASSERT_FALSE(at.has_value()) << bad << " was read as " << rfc3339_ms(std::chrono::milliseconds(*at));
    EXPECT_EQ(at.error().code, Code::kInvalidArgument);
    EXPECT_THAT(at.error().message, ::testing::HasSubstr(std::string("'") + bad + "' is no time; write 2026-"));
  }
}

}  // namespace
}  // namespace topolet::audit
