#include "core/audit/time_text.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <ctime>
#include <optional>

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

/// A broken-down time, read with one of several formats; `rest` is what follows.
bool read(std::string_view text, const char* format, std::tm& when, std::string& rest) {
  const std::string copy(text);
  const char* end = ::strptime(copy.c_str(), format, &when);
  if (end == nullptr) return false;
  rest = end;
  return true;
}

/// ".250" and the time zone behind a time; nothing if it is something else.
struct Suffix {
  std::int64_t milliseconds = 0;
  std::optional<std::int64_t> offset_s;  ///< east of Greenwich; none: local time
};
std::optional<Suffix> read_suffix(std::string_view text) {
  Suffix suffix;
  if (!text.empty() && text[0] == '.') {
    std::size_t digits = 1;
    while (digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits])) != 0) ++digits;
    if (digits == 1) return std::nullopt;
    std::string fraction(text.substr(1, std::min<std::size_t>(3, digits - 1)));
    fraction.resize(3, '0');
    suffix.milliseconds = *number(fraction);
    text.remove_prefix(digits);
  }
  if (text.empty()) return suffix;
  if (text == "Z" || text == "z") {
    suffix.offset_s = 0;
    return suffix;
  }
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':') return std::nullopt;
  const auto hours = number(text.substr(1, 2));
  const auto minutes = number(text.substr(4, 2));
  if (!hours || !minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  suffix.offset_s = (*hours * 3600 + *minutes * 60) * (text[0] == '-' ? -1 : 1);
  return suffix;
}

std::optional<std::int64_t> to_ms(std::tm when, const Suffix& suffix) {
  std::tm given = when;
  std::int64_t seconds = 0;
  if (suffix.offset_s) {
    seconds = ::timegm(&when) - *suffix.offset_s;
  } else {
    when.tm_isdst = -1;
    seconds = ::mktime(&when);
  }
  // 31 February would be silently another day.
  if (when.tm_mday != given.tm_mday || when.tm_mon != given.tm_mon) return std::nullopt;
  return seconds * 1000 + suffix.milliseconds;
}

std::optional<std::int64_t> parse_date(std::string_view text) {
  for (const char* format :
       {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d"}) {
    std::tm when{};
    std::string rest;
    if (!read(text, format, when, rest)) continue;
    if (const auto suffix = read_suffix(rest)) return to_ms(when, *suffix);
  }
  return std::nullopt;
}

/// A time of a day so many days before today.
std::optional<std::int64_t> parse_time_of_day(std::string_view text, std::int64_t now_ms, int days_ago) {
  const std::time_t now = now_ms / 1000;
  std::tm today{};
  ::localtime_r(&now, &today);
  for (const char* format : {"%H:%M:%S", "%H:%M"}) {
    std::tm when{};
    std::string rest;
    if (!read(text, format, when, rest) || !rest.empty()) continue;
    when.tm_year = today.tm_year;
    when.tm_mon = today.tm_mon;
    when.tm_mday = today.tm_mday - days_ago;
    when.tm_isdst = -1;
    return ::mktime(&when) * std::int64_t{1000};
  }
  return std::nullopt;
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

std::string format_time(std::int64_t at_ms) {
  const std::time_t seconds = at_ms / 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds), at_ms % 1000);
}

}  // namespace topolet::audit
