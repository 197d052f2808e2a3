// Somebody who keeps a database locked for moments, so that others commit late.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

struct sqlite3;

namespace topolet::bench {

/// Takes SQLite's write lock again and again, on a thread of its own, until it goes. Must not be in a process that has
/// the database open otherwise.
class DatabaseLocks {
 public:
  /// Throws if the database cannot be opened. `seed`: of the times between two locks.
  DatabaseLocks(const std::string& database, std::uint64_t seed);
  ~DatabaseLocks();
  DatabaseLocks(const DatabaseLocks&) = delete;
  DatabaseLocks& operator=(const DatabaseLocks&) = delete;

  /// How often the lock was had.
  std::size_t count() const { return count_; }

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };

  void take_locks(std::uint64_t seed);

  std::unique_ptr<sqlite3, Close> database_;
  std::atomic<std::size_t> count_ = 0;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace topolet::bench
