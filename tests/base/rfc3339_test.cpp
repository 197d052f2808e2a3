#include "core/base/rfc3339.hpp"

#include <gtest/gtest.h>

namespace topolet {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;

constexpr std::int64_t kMoment = 1'769'860'800'000;  // 2026-01-31T12:00:00Z, as date(1) says

TEST(Rfc3339, IsReadInAllItsForms) {
  const auto read = [](std::string_view text) { return parse_rfc3339(text).value_or(milliseconds(-1)).count(); };
  EXPECT_EQ(read("2026-01-31T12:00:00Z"), kMoment);
  EXPECT_EQ(read("2026-01-31t12:00:00z"), kMoment);
  EXPECT_EQ(read("2026-01-31T13:30:00+01:30"), kMoment);
  EXPECT_EQ(read("2026-01-31T04:00:00-08:00"), kMoment);
  EXPECT_EQ(read("2026-01-31T12:00:00.5Z"), kMoment + 500);
  EXPECT_EQ(read("2026-01-31T12:00:00.250999999Z"), kMoment + 250);
  EXPECT_EQ(read("2026-01-31T11:59:60Z"), kMoment) << "a leap second";
  EXPECT_EQ(read("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(read("2024-02-29T00:00:00Z"), 1'709'164'800'000);
}

TEST(Rfc3339, IsNothingElse) {
  for (const char* text :
       {"", "now", "2026-01-31", "2026-01-31T12:00Z", "2026-01-31T12:00:00", "2026-01-31 12:00:00Z",
        "2026-13-01T12:00:00Z", "2026-02-30T12:00:00Z", "2026-01-31T24:00:00Z", "2026-01-31T12:60:00Z",
        "2026-01-31T12:00:00.Z", "2026-01-31T12:00:00+1:00", "2026-01-31T12:00:00Z ", "2026-01-31T12:00:00Zx",
        "+026-01-31T12:00:00Z", "2026-1-31T12:00:00Z", "2026-01-31T12:00:00+25:00", "20260131T120000Z"})
    EXPECT_FALSE(parse_rfc3339(text).has_value()) << text;
}

TEST(Rfc3339, IsWrittenWithAsManyDigitsAsAreWanted) {
  EXPECT_EQ(rfc3339(milliseconds(kMoment + 250)), "2026-01-31T12:00:00Z");
  EXPECT_EQ(rfc3339_ms(milliseconds(kMoment + 25)), "2026-01-31T12:00:00.025Z");
  EXPECT_EQ(rfc3339_us(microseconds(kMoment * 1000 + 25)), "2026-01-31T12:00:00.000025Z");
  EXPECT_EQ(rfc3339(milliseconds(0)), "1970-01-01T00:00:00Z");
}

TEST(Rfc3339, IsWrittenOfAnyTime) {
  EXPECT_EQ(rfc3339_ms(milliseconds(-1)), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(rfc3339(milliseconds::max()), "9999-12-31T23:59:59Z");
  EXPECT_EQ(rfc3339_ms(milliseconds::max()), "9999-12-31T23:59:59.999Z");
  EXPECT_EQ(rfc3339_us(microseconds::max()), "9999-12-31T23:59:59.999999Z");
  EXPECT_EQ(rfc3339_ms(milliseconds::min()), "0000-01-01T00:00:00.000Z");
}

TEST(WrittenTime, HasShorterFormsWithoutAZone) {
  for (const char* text : {"2026-01-31 12:00", "2026-01-31T12:00", "2026-01-31 12:00:00", "2026-1-31 12:0:0"}) {
    const auto written = parse_written_time(text);
    ASSERT_TRUE(written.has_value()) << text;
    EXPECT_EQ(written->clock, milliseconds(kMoment)) << text;
    EXPECT_EQ(written->offset, std::nullopt) << text;
  }
  EXPECT_EQ(parse_written_time("2026-01-31")->clock, milliseconds(kMoment - 12 * 3'600'000));
  EXPECT_EQ(parse_written_time("2026-01-31 12:00:00.25")->clock, milliseconds(kMoment + 250));
}

TEST(WrittenTime, KeepsTheZoneApart) {
  EXPECT_EQ(parse_written_time("2026-01-31 12:00Z")->offset, minutes(0));
  const auto written = parse_written_time("2026-01-31T12:00:00-00:30");
  EXPECT_EQ(written->clock, milliseconds(kMoment));
  EXPECT_EQ(written->offset, minutes(-30));
}

TEST(WrittenTime, IsNothingElse) {
  for (const char* text : {"", "noon", "12:00", "2026-01", "2026-02-31", "2026-01-31T", "2026-01-31 ", "2026-01-31Z",
                           "2026-01-31 12", "2026-01-31 12:00 ", "2026-01-31T12:00:00X", "2026-01-31 12:00:00.",
                           "2026-01-31 24:00", "2026-01-31 12:00+1", "20260-01-31"})
    EXPECT_FALSE(parse_written_time(text).has_value()) << text;
}

}  // namespace
}  // namespace topolet
