// The files of the state directory: who may open them, and what to do with a damaged one.
#pragma once

#include <cstdint>
#include <filesystem>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace topolet {

/// The state directory, locked against a second topoletd for as long as this lives.
class StateDirectory {
 public:
  /// Makes the directory (0700) if absent and locks it. FAILED_PRECONDITION while another topoletd holds the lock.
  static Result<StateDirectory> claim(const std::filesystem::path& directory);

  std::filesystem::path database() const { return directory_ / "state.db"; }

  /// Makes an empty database file if there is none; it and what SQLite keeps beside it get mode 0600.
  Status prepare_database() const;

  /// Renames the database and what SQLite keeps beside it to state.db.damaged-<now_ms>…, or the next number that is
  /// free; returns the new name.
  Result<std::filesystem::path> set_database_aside(std::int64_t now_ms) const;

 private:
  StateDirectory(std::filesystem::path directory, UniqueFd lock)
      : directory_(std::move(directory)), lock_(std::move(lock)) {}

  std::filesystem::path directory_;
  UniqueFd lock_;
};

}  // namespace topolet
