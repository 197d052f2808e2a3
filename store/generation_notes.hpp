// Writes down the newest generation for those who must not wait for a disk.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>

#include "core/base/mutex.hpp"

namespace topolet::store {

/// A thread that begins with the first note. Safe from any thread.
class GenerationNotes {
 public:
  /// `write` runs on the thread; what it uses must outlive this.
  explicit GenerationNotes(std::function<void(std::uint64_t generation)> write) : write_(std::move(write)) {}
  /// Waits for a write that is under way, and leaves out what has not begun.
  ~GenerationNotes();
  GenerationNotes(const GenerationNotes&) = delete;
  GenerationNotes& operator=(const GenerationNotes&) = delete;

  /// Returns at once. Of several, the highest is written.
  void note(std::uint64_t generation) TOPOLET_EXCLUDES(mutex_);

 private:
  void run() TOPOLET_EXCLUDES(mutex_);

  const std::function<void(std::uint64_t generation)> write_;
  Mutex mutex_;
  CondVar wake_up_;
  std::uint64_t wanted_ TOPOLET_GUARDED_BY(mutex_) = 0;
  std::uint64_t written_ TOPOLET_GUARDED_BY(mutex_) = 0;
  bool stopping_ TOPOLET_GUARDED_BY(mutex_) = false;
  std::thread thread_ TOPOLET_GUARDED_BY(mutex_);
};

}  // namespace topolet::store
