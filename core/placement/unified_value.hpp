// Values for files of a container's cgroup v2.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace topolet::placement {

/// The one file that policies may set: where the kernel begins to reclaim a container's memory and slows it down.
inline constexpr std::string_view kMemoryHigh = "memory.high";
inline constexpr std::string_view kNoLimit = "max";

/// Reads decimal bytes, from 1 on; nothing for any other text.
std::optional<std::int64_t> parse_bytes(std::string_view text);

/// Returns true for bytes up to the memory limit, and for "max". A limit of 0 is none.
bool is_within_limit(std::string_view value, std::int64_t memory_limit_bytes);

}  // namespace topolet::placement
