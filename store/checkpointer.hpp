// Writes the write-ahead log into the database file, beside whoever writes to it.
#pragma once

#include <filesystem>
#include <memory>
#include <thread>

#include "core/base/mutex.hpp"
#include "store/database.hpp"

namespace topolet::store {

/// A thread with a connection of its own. A checkpoint waits for the disk, which nobody who commits should.
class Checkpointer {
 public:
  /// Makes a checkpoint of the log of `writer`, which must outlive it, whenever it has grown long enough. Null if the
  /// file cannot be opened once more; then the writer does so itself, as SQLite does by default.
  static std::unique_ptr<Checkpointer> start(Database& writer);

  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

 private:
  Checkpointer(Database& writer, Database own);

  void on_log_written(int pages) TOPOLET_EXCLUDES(mutex_);
  void run() TOPOLET_EXCLUDES(mutex_);

  Database& writer_;
  Database own_;  ///< the thread's
  Mutex mutex_;
  CondVar wake_up_;
  bool wanted_ TOPOLET_GUARDED_BY(mutex_) = false;
  bool is_at_work_ TOPOLET_GUARDED_BY(mutex_) = false;  ///< the thread, or the writer itself
  bool stopping_ TOPOLET_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace topolet::store
