// Reading files that may not be there. Nothing here throws for that.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace topolet::gpu {

/// Of a regular file of at most 16 MiB.
std::optional<std::string> read_text(const std::filesystem::path& path);

/// The first line of a small file, trimmed; empty if there is none.
std::string read_line(const std::filesystem::path& path);

/// Ascending; none if there is no such directory.
std::vector<std::string> names_in(const std::filesystem::path& directory);

/// Without symbolic links; empty if it leads nowhere.
std::filesystem::path resolved(const std::filesystem::path& path);

/// In nanoseconds on a clock of its own; 0 if there is none.
std::int64_t time_of_change(const std::filesystem::path& path);

}  // namespace topolet::gpu
