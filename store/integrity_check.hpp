// Reads the whole database file to find damage, beside whoever uses it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "core/base/mutex.hpp"
#include "store/store.hpp"

namespace topolet::store {

/// Every row of every table and every entry of every index, by a read-only connection. Reads for no longer than a
/// slice at a time, because the log grows while a reader has the database open, and pauses between slices, because
/// others need the disk. Errors that are not damage, a locked database for example, end it without a report.
class IntegrityCheck {
 public:
  /// `report` runs on a thread of the check's own, once, unless the check is destroyed before.
  static std::unique_ptr<IntegrityCheck> start(const std::filesystem::path& file, IntegrityCheckPace pace,
                                               std::function<void(const IntegrityReport&)> report);
  /// Ends it early.
  ~IntegrityCheck();
  IntegrityCheck(const IntegrityCheck&) = delete;
  IntegrityCheck& operator=(const IntegrityCheck&) = delete;

 private:
  IntegrityCheck(std::filesystem::path file, IntegrityCheckPace pace,
                 std::function<void(const IntegrityReport&)> report);

  void run() TOPOLET_EXCLUDES(mutex_);
  /// False once it is to end.
  bool pause(std::chrono::milliseconds time) TOPOLET_EXCLUDES(mutex_);

  const std::filesystem::path file_;
  const IntegrityCheckPace pace_;
  const std::function<void(const IntegrityReport&)> report_;
  Mutex mutex_;
  CondVar wake_up_;
  bool stopping_ TOPOLET_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace topolet::store
