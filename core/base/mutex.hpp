// std::mutex with clang's thread-safety annotations, which libstdc++ does not carry.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define TOPOLET_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define TOPOLET_THREAD_ANNOTATION(x)
#endif

#define TOPOLET_GUARDED_BY(mutex) TOPOLET_THREAD_ANNOTATION(guarded_by(mutex))
#define TOPOLET_REQUIRES(mutex) TOPOLET_THREAD_ANNOTATION(requires_capability(mutex))
#define TOPOLET_EXCLUDES(mutex) TOPOLET_THREAD_ANNOTATION(locks_excluded(mutex))

namespace topolet {

class TOPOLET_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() TOPOLET_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void unlock() TOPOLET_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class TOPOLET_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) TOPOLET_THREAD_ANNOTATION(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() TOPOLET_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// Waits may wake without cause: callers loop on their condition.
class CondVar {
 public:
  void wait(Mutex& mutex) TOPOLET_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  /// False when `deadline` passed.
  bool wait_until(Mutex& mutex, std::chrono::steady_clock::time_point deadline) TOPOLET_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    const bool woken = condition_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return woken;
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace topolet
