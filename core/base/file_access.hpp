// Who may have written a file that is to be trusted.
#pragma once

#include <sys/stat.h>

#include <filesystem>

#include "core/base/result.hpp"

namespace topolet {

/// PERMISSION_DENIED, with what to do, unless the file or directory is owned by root or us and not writable by others.
/// "Others" is the world, or a group other than root's or ours. `status` is that of `path`.
Status check_writers(const std::filesystem::path& path, const struct stat& status);

}  // namespace topolet
