#pragma once

#include <filesystem>
#include <system_error>

namespace topolet {

/// Whether there is a file, a directory or anything else. Follows links; what cannot be looked at counts as absent.
inline bool file_exists(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

}  // namespace topolet
