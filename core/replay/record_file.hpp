// The file of a record: lines are appended, and a full one is put aside.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace topolet::replay {

/// One thread.
class RecordFile {
 public:
  /// Opens FILE for appending, with mode 0600, and makes it if it is not there. FAILED_PRECONDITION if it is something
  /// else than a record: it is left as it is. Other errors are the system's, and name the file.
  static Result<RecordFile> open(const std::filesystem::path& file);

  /// Appends the line and a newline. After an error the end of the file may be a torn line.
  Status append(std::string_view line);
  /// Puts the file aside as FILE.1, in the place of one that was put aside before, and begins a new one.
  Status rotate();

  std::uint64_t size() const { return size_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit RecordFile(std::filesystem::path path) : path_(std::move(path)) {}
  Status open_file();
  Status end_torn_line();

  std::filesystem::path path_;
  UniqueFd fd_;
  std::uint64_t size_ = 0;
};

}  // namespace topolet::replay
