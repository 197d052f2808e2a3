// The files of the state directory: who may open them, and what to do with a damaged one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace topolet::store {

/// The state directory, locked against a second topoletd for as long as this lives.
class StateDirectory {
 public:
  /// Makes the directory (0700) if absent and locks it. FAILED_PRECONDITION while another topoletd holds the lock.
  static Result<StateDirectory> claim(const std::filesystem::path& directory);

  std::filesystem::path database() const { return directory_ / "state.db"; }

  /// Makes an empty database file if there is none; it and what SQLite keeps beside it get mode 0600.
  Status prepare_database() const;

  /// Keeps the newest generation that was committed in a file of its own beside the database. Not synced; what fails is
  /// left out.
  void write_generation_file(const std::string& boot_id, std::uint64_t generation) const;
  /// What that file says; none if it says nothing, or was written in another boot.
  std::optional<std::uint64_t> read_generation_file(const std::string& boot_id) const;

  /// Renames the database and what SQLite keeps beside it to state.db.damaged-<now_ms>…, or the next number that is
  /// free; returns the new name.
  Result<std::filesystem::path> set_database_aside(std::int64_t now_ms) const;

 private:
  StateDirectory(std::filesystem::path directory, UniqueFd lock, UniqueFd generation)
      : directory_(std::move(directory)), lock_(std::move(lock)), generation_(std::move(generation)) {}

  std::filesystem::path directory_;
  UniqueFd lock_;
  UniqueFd generation_;
};

}  // namespace topolet::store
