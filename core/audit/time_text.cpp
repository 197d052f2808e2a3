#include "core/audit/time_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <ctime>
#include <optional>
#include <utility>

#include "core/base/rfc3339.hpp"

namespace topolet::audit {
namespace {

constexpr std::int64_t kDayMs = 86'400'000;

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty() || value < 0) return std::nullopt;
  return value;
}

Error bad_time(std::string_view text) {
  return {Code::kInvalidArgument,
          fmt::format("'{}' is no time; write 2026-01-31T12:00:00Z, '2026-01-31 12:00' (local time), 12:00, "
                      "'yesterday 12:00', now, or how long ago: 90s, 15m, 2h, 7d",
                      text)};
}

/// The moment at which clocks of this place show `clock`.
std::int64_t local_ms(std::chrono::milliseconds clock) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(clock);
  const std::time_t as_utc = seconds.count();
  std::tm when{};
  ::gmtime_r(&as_utc, &when);
  when.tm_isdst = -1;
  return ::mktime(&when) * std::int64_t{1000} + (clock - seconds).count();
}

std::optional<std::int64_t> parse_date(std::string_view text) {
  const auto written = parse_written_time(text);
  if (!written) return std::nullopt;
  return written->offset ? (written->clock - *written->offset).count() : local_ms(written->clock);
}

/// A time of a day so many days before today.
std::optional<std::int64_t> parse_time_of_day(std::string_view text, std::int64_t now_ms, int days_ago) {
  const std::time_t now = now_ms / 1000;
  std::tm day{};
  ::localtime_r(&now, &day);
  day.tm_mday -= days_ago;
  day.tm_isdst = -1;
  ::mktime(&day);  // a day before the first of a month is one of the month before
  const auto written =
      parse_written_time(fmt::format("{:04}-{:02}-{:02} {}", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday, text));
  if (!written || written->offset) return std::nullopt;
  return local_ms(written->clock);
}

}  // namespace

Result<std::int64_t> parse_duration(std::string_view text) {
  const Error bad{Code::kInvalidArgument, fmt::format("'{}' is no duration; write 90s, 15m, 2h or 7d", text)};
  if (text.size() < 2) return bad;
  constexpr std::array<std::pair<char, std::int64_t>, 4> kUnits{
      {{'s', 1000}, {'m', 60'000}, {'h', 3'600'000}, {'d', kDayMs}}};
  const auto* const unit =
      std::find_if(kUnits.begin(), kUnits.end(), [&](const auto& known) { return known.first == text.back(); });
  const auto count = number(text.substr(0, text.size() - 1));
  if (unit == kUnits.end() || !count || *count > 1'000'000'000) return bad;
  return *count * unit->second;
}

Result<std::int64_t> parse_time(std::string_view text, std::int64_t now_ms) {
  if (text == "now") return now_ms;
  if (const auto ago = parse_duration(text)) return now_ms - *ago;
  if (text.size() >= 12) {
    if (const auto milliseconds = number(text)) return *milliseconds;
  }
  std::string_view day = text;
  int days_ago = 0;
  for (const auto& [word, days] : {std::pair<std::string_view, int>{"yesterday", 1}, {"today", 0}}) {
    if (!text.starts_with(word)) continue;
    days_ago = days;
    day = text.substr(word.size());
    if (day.empty()) day = " 00:00";
    if (day[0] != ' ') return bad_time(text);
    day.remove_prefix(1);
  }
  if (const auto at = parse_time_of_day(day, now_ms, days_ago)) return *at;
  if (const auto at = parse_date(text)) return *at;
  return bad_time(text);
}

}  // namespace topolet::audit
