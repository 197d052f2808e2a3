#pragma once

#include <filesystem>
#include <system_error>

namespace topolet {

/// Returns true if there is a file, a directory or anything else. Follows links; if it cannot be examined, it counts as
/// absent.
inline bool file_exists(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

}  // namespace topolet
