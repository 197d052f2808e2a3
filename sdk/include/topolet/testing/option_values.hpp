// Values of options as a plugin is given them. See <topolet/testing.hpp>.
#pragma once

#include <topolet/policy/lists.hpp>
#include <topolet/policy/views.hpp>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace topolet::sdk::testing {
namespace plain {

struct Unit {
  std::string_view name;
  std::int64_t size;
};

struct Amount {
  std::int64_t count = 0;
  std::size_t unit = 0;  ///< its position among the units

  template <std::size_t N>
  std::int64_t in(const std::array<Unit, N>& units) const {
    return count * units[unit].size;
  }
};

/// Takes a whole number and the unit behind it from the beginning of `rest`. Nothing if they are not there.
template <std::size_t N>
std::optional<Amount> take_amount(std::string_view& rest, const std::array<Unit, N>& units) {
  Amount amount;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), amount.count);
  if (error != std::errc() || amount.count < 0) return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  const std::string_view name = rest.substr(0, rest.find_first_of("0123456789"));
  while (amount.unit < N && units[amount.unit].name != name) ++amount.unit;
  if (amount.unit == N || amount.count > std::numeric_limits<std::int64_t>::max() / units[amount.unit].size)
    return std::nullopt;
  rest.remove_prefix(name.size());
  return amount;
}

/// "1m30s" in milliseconds: each unit once, the largest first.
inline std::optional<std::string> plain_duration(std::string_view value) {
  constexpr std::array<Unit, 5> kUnits = {{{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}}};
  if (value == "0") return "0";
  if (value.empty()) return std::nullopt;
  std::int64_t total = 0;
  for (std::size_t next_unit = 0; !value.empty();) {
    const std::optional<Amount> amount = take_amount(value, kUnits);
    if (!amount || amount->unit < next_unit) return std::nullopt;
    next_unit = amount->unit + 1;
    total += amount->in(kUnits);
  }
  return std::to_string(total);
}

/// "64Mi" in bytes.
inline std::optional<std::string> plain_size(std::string_view value) {
  constexpr std::array<Unit, 13> kUnits = {{{"", 1},
                                            {"Ki", 1LL << 10},
                                            {"Mi", 1LL << 20},
                                            {"Gi", 1LL << 30},
                                            {"Ti", 1LL << 40},
                                            {"Pi", 1LL << 50},
                                            {"Ei", 1LL << 60},
                                            {"k", 1'000},
                                            {"M", 1'000'000},
                                            {"G", 1'000'000'000},
                                            {"T", 1'000'000'000'000},
                                            {"P", 1'000'000'000'000'000},
                                            {"E", 1'000'000'000'000'000'000}}};
  const std::optional<Amount> amount = take_amount(value, kUnits);
  if (!amount || !value.empty()) return std::nullopt;
  return std::to_string(amount->in(kUnits));
}

/// "a , b" without the spaces around the items.
inline std::optional<std::string> plain_list(std::string_view value) {
  const auto trimmed = [](std::string_view item) {
    const std::size_t begin = item.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return std::string_view();
    return item.substr(begin, item.find_last_not_of(" \t") - begin + 1);
  };
  if (trimmed(value).empty()) return "";
  std::string items;
  for (std::size_t begin = 0, comma = 0; comma != std::string_view::npos; begin = comma + 1) {
    comma = value.find(',', begin);
    const std::string_view item = trimmed(value.substr(begin, comma == value.npos ? comma : comma - begin));
    if (item.empty()) return std::nullopt;
    items += (begin == 0 ? "" : ",") + std::string(item);
  }
  return items;
}

inline std::optional<std::string> plain_cpulist(std::string_view value) {
  const std::optional<Set> set = parse_list(value);
  if (!set) return std::nullopt;
  return set->empty() ? "" : set->to_string();
}

inline std::optional<std::string> plain_form(std::int32_t type, std::string_view value) {
  switch (type) {
    case TOPOLET_OPTION_DURATION:
      return plain_duration(value);
    case TOPOLET_OPTION_SIZE:
      return plain_size(value);
    case TOPOLET_OPTION_LIST:
      return plain_list(value);
    case TOPOLET_OPTION_CPULIST:
      return plain_cpulist(value);
    default:
      return std::string(value);
  }
}

}  // namespace plain

/// Returns a value, written as in the configuration, as the host gives it to the plugin: a duration in milliseconds, a
/// size in bytes, a list without spaces, CPUs in their shortest form. Throws std::invalid_argument if the host would
/// refuse it for its form; bounds and choices are not looked at.
inline std::string plain_value(const topolet_option& option, std::string_view value) {
  const topolet_strs words = option.allowed;
  for (std::size_t i = 0; i < words.count; ++i) {
    if (text(words.items[i]) == value) return std::string(value);
  }
  if (std::optional<std::string> form = plain::plain_form(option.type, value)) return *std::move(form);
  throw std::invalid_argument("the value '" + std::string(value) + "' cannot be read as one of the option " +
                              std::string(text(option.name)));
}

}  // namespace topolet::sdk::testing
