// The files of the state directory: who may open them, and what to do with a damaged one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace topolet::store {

/// The state directory, locked against a second topoletd for as long as this lives.
class StateDirectory {
 public:
  enum class IfAbsent : std::uint8_t {
    kMake,    ///< with mode 0700
    kRefuse,  ///< UNAVAILABLE: somebody has removed it, or has not mounted it yet
  };
  /// Locks the directory. FAILED_PRECONDITION while another topoletd holds the lock.
  static Result<StateDirectory> claim(const std::filesystem::path& directory, IfAbsent if_absent);

  /// Finds, without changing anything, what claim() and prepare_database() would; the errors are theirs.
  enum class Use : std::uint8_t {
    kNew,          ///< there is no database yet
    kHasDatabase,  ///< there is one
    kLocked,       ///< a topoletd runs with it
  };
  static Result<Use> inspect(const std::filesystem::path& directory);

  std::filesystem::path database() const { return directory_ / "state.db"; }

  /// False once another directory is there, or none, or the lock was removed from it: then claim it again.
  bool is_current() const;

  /// Makes an empty database file if there is none; it and what SQLite keeps beside it get mode 0600.
  Status prepare_database() const;

  /// Keeps the newest generation that was committed in a file of its own beside the database. Not synced; what fails is
  /// left out.
  void write_generation_file(const std::string& boot_id, std::uint64_t generation) const;
  /// Reads that file; none if it is empty, or was written in another boot.
  std::optional<std::uint64_t> read_generation_file(const std::string& boot_id) const;

  /// DATA_LOSS if the database file ends before its header says, and no log holds the rest.
  Status check_size() const;

  /// Notes, in a file beside it, that the database is damaged: the next start sets it aside. Synced. The note is for
  /// the very file that is there now, and says nothing of another one.
  Status mark_damaged(const std::string& why) const;
  /// Why the database was marked; none if it was not.
  std::optional<std::string> damage_mark() const;

  /// Renames the database and what SQLite keeps beside it, as far as they exist, to state.db.<kind>-<now_ms>…, or the
  /// next number that is free; returns the new name, or an empty one if there was nothing.
  Result<std::filesystem::path> set_database_aside(std::string_view kind, std::int64_t now_ms) const;

 private:
  StateDirectory(std::filesystem::path directory, UniqueFd lock, UniqueFd generation)
      : directory_(std::move(directory)), lock_(std::move(lock)), generation_(std::move(generation)) {}

  std::filesystem::path directory_;
  UniqueFd lock_;
  UniqueFd generation_;
};

}  // namespace topolet::store
