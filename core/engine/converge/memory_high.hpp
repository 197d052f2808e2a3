// memory.high of a container's cgroup v2, and whether topolet has set it: a topoletd with a new database finds
// containers of which it knows nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "core/base/result.hpp"

namespace topolet::engine {

/// The extended attribute of the cgroup's directory that lists, separated by spaces, the bytes that topolet has had
/// memory.high set to. It ends with the cgroup.
inline constexpr const char* kMemoryHighMark = "user.topolet.memory_high";

/// Marks the cgroup: topolet has its memory.high set to `bytes`. A value in force that is marked stays marked, as the
/// new one may never be set. An error where the kernel takes no such attributes of cgroups (before Linux 5.7), or
/// topoletd must not write there.
Status mark_memory_high(const std::filesystem::path& cgroup, std::int64_t bytes);

/// Returns the memory.high in force, in bytes, if it is marked as topolet's; none otherwise. One that somebody has set
/// since then is not marked.
std::optional<std::int64_t> marked_memory_high(const std::filesystem::path& cgroup);

/// Sets memory.high to "max". An error says what the kernel says.
Status lift_memory_high(const std::filesystem::path& cgroup);

}  // namespace topolet::engine
