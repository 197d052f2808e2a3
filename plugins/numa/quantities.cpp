#include "plugins/numa/quantities.hpp"

#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace topolet::numa {

std::string format_bytes(std::int64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  constexpr std::array<const char*, 5> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  std::int64_t size = 1024;
  for (; unit + 1 < kUnits.size() && bytes / 1024 >= size; ++unit) size *= 1024;
  const std::int64_t tenths = bytes % size * 10 / size;
  return std::to_string(bytes / size) + '.' + std::to_string(tenths) + ' ' + kUnits[unit];
}

std::string format_milli(std::int64_t milli) {
  std::string text = std::to_string(milli / 1000);
  if (milli % 1000 == 0) return text;
  std::string part = std::to_string(1000 + milli % 1000);
  part[0] = '.';
  while (part.back() == '0') part.pop_back();
  return text + part;
}

std::string format_milli_cpus(std::int64_t milli) { return format_milli(milli) + (milli == 1000 ? " CPU" : " CPUs"); }

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 9> kSuffixes = {
      {{"", 1},
       {"k", 1000},
       {"M", 1000 * 1000},
       {"G", 1000 * 1000 * 1000},
       {"T", std::int64_t{1000} * 1000 * 1000 * 1000},
       {"Ki", 1 << 10},
       {"Mi", 1 << 20},
       {"Gi", 1 << 30},
       {"Ti", std::int64_t{1} << 40}}};
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || number < 0) return std::nullopt;
  const std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
  for (const auto& [name, factor] : kSuffixes) {
    if (suffix != name) continue;
    if (number > std::numeric_limits<std::int64_t>::max() / factor) return std::nullopt;
    return number * factor;
  }
  return std::nullopt;
}

}  // namespace topolet::numa
