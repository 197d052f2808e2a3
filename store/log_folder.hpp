// Folds the write-ahead log into the database file, beside whoever writes.
#pragma once

#include <filesystem>
#include <memory>
#include <thread>

#include "core/base/mutex.hpp"
#include "store/database.hpp"

namespace topolet::store {

/// A thread with a connection of its own. To fold the log means to wait for the disk, which nobody who commits should.
class LogFolder {
 public:
  /// Folds the log of `writer`, which must outlive it, whenever it has grown long enough. Null if the file cannot be
  /// opened once more; then the writer folds the log itself, as SQLite does by default.
  static std::unique_ptr<LogFolder> start(Database& writer);

  ~LogFolder();
  LogFolder(const LogFolder&) = delete;
  LogFolder& operator=(const LogFolder&) = delete;

 private:
  LogFolder(Database& writer, Database own);

  void on_log_written(int pages) TOPOLET_EXCLUDES(mutex_);
  void run() TOPOLET_EXCLUDES(mutex_);

  Database& writer_;
  Database own_;  ///< the thread's
  Mutex mutex_;
  CondVar wake_up_;
  bool wanted_ TOPOLET_GUARDED_BY(mutex_) = false;
  bool folding_ TOPOLET_GUARDED_BY(mutex_) = false;  ///< the thread, or the writer itself
  bool stopping_ TOPOLET_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace topolet::store
