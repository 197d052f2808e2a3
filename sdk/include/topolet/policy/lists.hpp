// Reading lists of CPUs and nodes. <topolet/policy.hpp> does not include it.
#pragma once

#include <topolet/policy/views.hpp>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace topolet::sdk {

/// Reads the kernel's list format, "0-3,8"; an empty text is an empty set. Nothing for any other text, and for an index
/// above 65535, which no machine has.
inline std::optional<Set> parse_list(std::string_view list) {
  constexpr std::uint32_t kHighest = 65535;
  Set set;
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(','));
    const char* const end = part.data() + part.size();
    std::uint32_t first = 0;
    std::from_chars_result read = std::from_chars(part.data(), end, first);
    if (read.ec != std::errc()) return std::nullopt;
    std::uint32_t last = first;
    if (read.ptr != end && *read.ptr == '-') read = std::from_chars(read.ptr + 1, end, last);
    if (read.ec != std::errc() || read.ptr != end || last < first || last > kHighest) return std::nullopt;
    for (std::uint32_t index = first; index <= last; ++index) set.insert(index);
    if (part.size() == list.size()) return set;
    list.remove_prefix(part.size() + 1);
    if (list.empty()) return std::nullopt;
  }
  return set;
}

}  // namespace topolet::sdk
