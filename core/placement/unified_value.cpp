#include "core/placement/unified_value.hpp"

#include <algorithm>
#include <charconv>

namespace topolet::placement {

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_digit)) return std::nullopt;
  std::int64_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error != std::errc() || end != text.data() + text.size() || bytes == 0) return std::nullopt;
  return bytes;
}

bool is_within_limit(std::string_view value, std::int64_t memory_limit_bytes) {
  if (value == kNoLimit) return true;
  const std::optional<std::int64_t> bytes = parse_bytes(value);
  return bytes && (memory_limit_bytes == 0 || *bytes <= memory_limit_bytes);
}

}  // namespace topolet::placement
