// Reads files and directories that may not exist. Nothing here throws because one is missing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace topolet::gpu {

/// The content of a regular file of at most 16 MiB.
std::optional<std::string> read_file(const std::filesystem::path& path);

/// The first line of a file, trimmed; empty if it cannot be read.
std::string read_line(const std::filesystem::path& path);

/// The names in a directory, sorted; none if there is no such directory.
std::vector<std::string> list_directory(const std::filesystem::path& directory);

/// The path with all symbolic links resolved; empty if it leads nowhere.
std::filesystem::path canonical_path(const std::filesystem::path& path);

/// When a file was last written, in nanoseconds of the file system's clock; 0 if there is none.
std::int64_t modified_ns(const std::filesystem::path& path);

}  // namespace topolet::gpu
