#include "cluster/api/rfc3339.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

namespace topolet::api {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Reads from the front of a text.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool has_ended() const { return rest_.empty(); }
  bool failed() const { return failed_; }
  char peek() const { return rest_.empty() ? '\0' : rest_.front(); }

  void expect(std::string_view any_of) {
    failed_ = failed_ || rest_.empty() || any_of.find(rest_.front()) == std::string_view::npos;
    if (!rest_.empty()) rest_.remove_prefix(1);
  }
  /// A number of just so many digits, from `least` to `most`.
  int number(std::size_t digits, int least, int most) {
    const std::string_view text = rest_.substr(0, digits);
    failed_ = failed_ || text.size() < digits || !std::all_of(text.begin(), text.end(), is_digit);
    if (failed_) return least;
    rest_.remove_prefix(digits);
    const int value = std::stoi(std::string(text));
    failed_ = value < least || value > most;
    return value;
  }
  /// Digits of any number; what is behind the third is dropped.
  std::chrono::milliseconds fraction() {
    int value = 0;
    std::size_t count = 0;
    for (; is_digit(peek()); ++count, rest_.remove_prefix(1)) {
      if (count < 3) value = 10 * value + (rest_.front() - '0');
    }
    failed_ = failed_ || count == 0;
    for (; count < 3; ++count) value *= 10;
    return std::chrono::milliseconds(value);
  }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace

std::optional<std::chrono::milliseconds> parse_rfc3339(std::string_view text) {
  using std::chrono::hours;
  using std::chrono::minutes;
  using std::chrono::seconds;
  Reader in(text);
  const std::chrono::year year{in.number(4, 0, 9999)};
  in.expect("-");
  const std::chrono::month month{static_cast<unsigned>(in.number(2, 1, 12))};
  in.expect("-");
  const std::chrono::day day{static_cast<unsigned>(in.number(2, 1, 31))};
  in.expect("Tt");
  std::chrono::milliseconds time = hours(in.number(2, 0, 23));
  in.expect(":");
  time += minutes(in.number(2, 0, 59));
  in.expect(":");
  time += seconds(in.number(2, 0, 60));  // 60: a leap second
  if (in.peek() == '.') {
    in.expect(".");
    time += in.fraction();
  }
  if (in.peek() == '+' || in.peek() == '-') {
    const int sign = in.peek() == '+' ? -1 : 1;
    in.expect("+-");
    time += sign * hours(in.number(2, 0, 23));
    in.expect(":");
    time += sign * minutes(in.number(2, 0, 59));
  } else {
    in.expect("Zz");
  }
  const std::chrono::year_month_day date{year, month, day};
  if (in.failed() || !in.has_ended() || !date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch() + time;
}

}  // namespace topolet::api
