// Checks of files: who may have written a trusted one, which file a path leads to, and where one can be created.
#pragma once

#include <sys/stat.h>

#include <filesystem>

#include "core/base/result.hpp"

namespace topolet {

/// PERMISSION_DENIED, with what to do, unless the file or directory is owned by root or us and not writable by others.
/// "Others" is the world, or a group other than root's or ours. `status` is that of `path`.
Status check_writers(const std::filesystem::path& path, const struct stat& status);

/// Tells whether both paths lead to the same file, also for sockets, which std::filesystem::equivalent() does not
/// support.
bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b);

/// Returns the path with links and ".." resolved as far as they exist. The file need not exist yet.
std::filesystem::path resolve_links(std::filesystem::path path);

/// Tells whether a file can be created in the directory, and, if it does not exist, the directory itself with those
/// above it: 0, or the errno with which that would fail. `at`: the file or directory in the way. Creates nothing.
int cannot_create_in(const std::filesystem::path& directory, std::filesystem::path& at);

}  // namespace topolet
