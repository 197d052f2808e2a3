#include "cluster/api/quantity.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace topolet::api {
namespace {

__extension__ using Wide = __int128;

constexpr Wide kMost = std::numeric_limits<std::int64_t>::max();
/// Products of two numbers below it fit.
constexpr Wide kWideLimit = Wide{1} << 62U;
constexpr int kMaxDigits = 18;

/// A suffix multiplies by `times` and divides by `divided_by`.
struct Scale {
  std::int64_t times = 1;
  std::int64_t divided_by = 1;
};

std::optional<Scale> power_of_ten(int exponent) {
  if (exponent < -kMaxDigits || exponent > kMaxDigits) return std::nullopt;
  std::int64_t power = 1;
  for (int i = 0; i < (exponent < 0 ? -exponent : exponent); ++i) power *= 10;
  return exponent < 0 ? Scale{1, power} : Scale{power, 1};
}

std::optional<Scale> scale_of(std::string_view suffix) {
  static constexpr std::array<std::pair<std::string_view, Scale>, 16> kSuffixes{{
      {"", {1, 1}},
      {"n", {1, 1'000'000'000}},
      {"u", {1, 1'000'000}},
      {"m", {1, 1'000}},
      {"k", {1'000, 1}},
      {"M", {1'000'000, 1}},
      {"G", {1'000'000'000, 1}},
      {"T", {1'000'000'000'000, 1}},
      {"P", {1'000'000'000'000'000, 1}},
      {"E", {1'000'000'000'000'000'000, 1}},
      {"Ki", {std::int64_t{1} << 10U, 1}},
      {"Mi", {std::int64_t{1} << 20U, 1}},
      {"Gi", {std::int64_t{1} << 30U, 1}},
      {"Ti", {std::int64_t{1} << 40U, 1}},
      {"Pi", {std::int64_t{1} << 50U, 1}},
      {"Ei", {std::int64_t{1} << 60U, 1}},
  }};
  for (const auto& [text, scale] : kSuffixes) {
    if (text == suffix) return scale;
  }
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return std::nullopt;
  suffix.remove_prefix(suffix[1] == '+' ? 2 : 1);
  int exponent = 0;
  const auto [end, error] = std::from_chars(suffix.data(), suffix.data() + suffix.size(), exponent);
  if (error != std::errc() || end != suffix.data() + suffix.size()) return std::nullopt;
  return power_of_ten(exponent);
}

std::optional<std::int64_t> parse(std::string_view text, std::int64_t per_unit) {
  if (text.starts_with('+')) text.remove_prefix(1);
  Wide digits = 0;
  int decimals = 0;
  std::size_t read = 0;
  bool any = false;
  bool has_point = false;
  for (; read < text.size(); ++read) {
    const char c = text[read];
    if (c == '.' && !has_point) {
      has_point = true;
    } else if (c >= '0' && c <= '9') {
      any = true;
      // Further decimals are below any amount that matters.
      if (decimals == kMaxDigits) continue;
      digits = digits * 10 + (c - '0');
      decimals += has_point ? 1 : 0;
      if (digits >= kWideLimit) return has_point ? std::nullopt : std::optional<std::int64_t>(kMost);
    } else {
      break;
    }
  }
  const std::optional<Scale> scale = scale_of(text.substr(read));
  const std::optional<Scale> point = power_of_ten(-decimals);
  if (!any || !scale || !point) return std::nullopt;
  // Not all three factors in one product: it may not fit.
  Wide amount = digits * scale->times;
  Wide divided_by = Wide{scale->divided_by} * point->divided_by;
  while (divided_by % 10 == 0 && amount % 10 == 0 && amount > 0) {
    amount /= 10;
    divided_by /= 10;
  }
  if (amount / divided_by > kMost) return kMost;
  const Wide whole = amount / divided_by * per_unit;
  const Wide rest = amount % divided_by;
  // `rest` times a thousand may not fit where it is divided by much: then it is divided first, and rounded up.
  const Wide rest_divisor = divided_by / per_unit;
  const Wide part =
      rest_divisor > 1 ? (rest + rest_divisor - 1) / rest_divisor : (rest * per_unit + divided_by - 1) / divided_by;
  const Wide all = whole + part;
  return static_cast<std::int64_t>(all > kMost ? kMost : all);
}

}  // namespace

std::optional<std::int64_t> parse_milli(std::string_view text) { return parse(text, 1000); }
std::optional<std::int64_t> parse_units(std::string_view text) { return parse(text, 1); }

std::string page_size_text(std::int64_t bytes) {
  static constexpr std::array<std::pair<const char*, unsigned>, 3> kUnits{{{"Gi", 30U}, {"Mi", 20U}, {"Ki", 10U}}};
  for (const auto& [unit, shift] : kUnits) {
    if (bytes >= std::int64_t{1} << shift && bytes % (std::int64_t{1} << shift) == 0)
      return fmt::format("{}{}", bytes >> shift, unit);
  }
  return std::to_string(bytes);
}

}  // namespace topolet::api
