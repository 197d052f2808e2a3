// Finds out if the files that the store writes to are still those in the directory.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "store/store.hpp"

namespace topolet::store {

/// Remembers which files are there when it is made. Looks at names and never opens anything: to close a file of a
/// database that is open in the same process gives up SQLite's locks on it (fcntl(2), "Advisory record locking").
class FileWatch {
 public:
  /// `database` is open, and so are its log and the log's index.
  explicit FileWatch(std::filesystem::path database);

  /// Tells what has become of them, if they are no longer the same. `needed_size` is asked for when the database has
  /// become smaller: how many bytes it must have.
  std::optional<FileLoss> look(const std::function<std::int64_t()>& needed_size);

 private:
  struct Identity {
    dev_t device = 0;
    ino_t number = 0;
    friend bool operator==(const Identity&, const Identity&) = default;
  };
  struct Seen {
    Identity identity;
    std::int64_t size = 0;
  };
  static std::optional<Seen> see(const std::filesystem::path& path);

  const std::filesystem::path database_;
  std::array<std::filesystem::path, 2> log_files_;
  std::optional<Seen> seen_;
  std::array<std::optional<Seen>, 2> log_files_seen_;
};

}  // namespace topolet::store
