#include "cluster/api/rfc3339.hpp"

#include <gtest/gtest.h>

namespace topolet::api {
namespace {

TEST(Rfc3339, IsReadInAllItsForms) {
  constexpr std::int64_t kMoment = 1'769'860'800'000;  // 2026-01-31T12:00:00Z, as date(1) says
  const auto read = [](std::string_view text) {
    return parse_rfc3339(text).value_or(std::chrono::milliseconds(-1)).count();
  };
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

}  // namespace
}  // namespace topolet::api
