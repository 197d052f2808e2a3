#include "core/base/rfc3339.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace topolet {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::chrono::sys_days kFirst{std::chrono::year{0} / std::chrono::January / 1};
constexpr std::chrono::sys_days kEnd{std::chrono::year{9999} / std::chrono::December / 31};

/// A time within the years that can be written.
template <class Duration>
Duration limited(Duration time) {
  return std::clamp<Duration>(time, kFirst.time_since_epoch(), kEnd.time_since_epoch() + days(1) - Duration(1));
}

std::string whole_seconds(seconds time) {
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date{std::chrono::sys_days(day)};
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count());
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Reads from the front of a text. Once something does not fit, all that follows does nothing.
class Reader {
 public:
  /// `loose`: numbers may have fewer digits.
  Reader(std::string_view text, bool loose) : rest_(text), loose_(loose) {}

  bool has_ended() const { return rest_.empty(); }
  bool failed() const { return failed_; }
  char peek() const { return rest_.empty() ? '\0' : rest_.front(); }

  void expect(std::string_view any_of) {
    failed_ = failed_ || rest_.empty() || any_of.find(rest_.front()) == std::string_view::npos;
    if (!failed_) rest_.remove_prefix(1);
  }
  /// A number of so many digits, from `least` to `most`.
  int number(std::size_t digits, int least, int most) {
    std::size_t found = 0;
    int value = 0;
    for (; found < digits && found < rest_.size() && is_digit(rest_[found]); ++found)
      value = 10 * value + (rest_[found] - '0');
    failed_ = failed_ || found < (loose_ ? 1 : digits) || value < least || value > most;
    if (failed_) return least;
    rest_.remove_prefix(found);
    return value;
  }
  /// Digits of any number; those behind the third are dropped.
  milliseconds fraction() {
    int value = 0;
    std::size_t count = 0;
    for (; is_digit(peek()); ++count, rest_.remove_prefix(1)) {
      if (count < 3) value = 10 * value + (rest_.front() - '0');
    }
    failed_ = failed_ || count == 0;
    for (; count < 3; ++count) value *= 10;
    return milliseconds(value);
  }

 private:
  std::string_view rest_;
  const bool loose_;
  bool failed_ = false;
};

std::chrono::year_month_day read_date(Reader& in) {
  const std::chrono::year year{in.number(4, 0, 9999)};
  in.expect("-");
  const std::chrono::month month{static_cast<unsigned>(in.number(2, 1, 12))};
  in.expect("-");
  const std::chrono::day day{static_cast<unsigned>(in.number(2, 1, 31))};
  return {year, month, day};
}

milliseconds read_clock(Reader& in, bool needs_seconds) {
  milliseconds time = hours(in.number(2, 0, 23));
  in.expect(":");
  time += minutes(in.number(2, 0, 59));
  if (!needs_seconds && in.peek() != ':') return time;
  in.expect(":");
  time += seconds(in.number(2, 0, 60));  // 60: a leap second
  if (in.peek() != '.') return time;
  in.expect(".");
  return time + in.fraction();
}

minutes read_offset(Reader& in) {
  if (in.peek() != '+' && in.peek() != '-') {
    in.expect("Zz");
    return minutes(0);
  }
  const int sign = in.peek() == '+' ? 1 : -1;
  in.expect("+-");
  const int whole_hours = in.number(2, 0, 23);
  in.expect(":");
  const int rest = in.number(2, 0, 59);
  return sign * (hours(whole_hours) + minutes(rest));
}

}  // namespace

std::string rfc3339(milliseconds time) { return whole_seconds(std::chrono::floor<seconds>(limited(time))) + "Z"; }

std::string rfc3339_ms(milliseconds time) {
  time = limited(time);
  const auto whole = std::chrono::floor<seconds>(time);
  return fmt::format("{}.{:03}Z", whole_seconds(whole), (time - whole).count());
}

std::string rfc3339_us(microseconds time) {
  time = limited(time);
  const auto whole = std::chrono::floor<seconds>(time);
  return fmt::format("{}.{:06}Z", whole_seconds(whole), (time - whole).count());
}

std::optional<milliseconds> parse_rfc3339(std::string_view text) {
  Reader in(text, /*loose=*/false);
  const std::chrono::year_month_day date = read_date(in);
  in.expect("Tt");
  const milliseconds clock = read_clock(in, /*needs_seconds=*/true);
  const minutes offset = read_offset(in);
  if (in.failed() || !in.has_ended() || !date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch() + clock - offset;
}

std::optional<WrittenTime> parse_written_time(std::string_view text) {
  Reader in(text, /*loose=*/true);
  const std::chrono::year_month_day date = read_date(in);
  WrittenTime written;
  if (!in.has_ended()) {
    in.expect("Tt ");
    written.clock = read_clock(in, /*needs_seconds=*/false);
    if (!in.has_ended()) written.offset = read_offset(in);
  }
  if (in.failed() || !in.has_ended() || !date.ok()) return std::nullopt;
  written.clock += std::chrono::sys_days(date).time_since_epoch();
  return written;
}

}  // namespace topolet
