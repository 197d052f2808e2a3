// A thread for work that may never return: whoever waits for it leaves it behind after a while.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/mutex.hpp"
#include "core/base/result.hpp"
#include "core/plugin/guard/crash_mark.hpp"

namespace topolet::plugin {

/// Returns the CPU time that a thread has used, by its CPU clock; zero if the kernel does not tell.
inline std::chrono::nanoseconds cpu_time_by(clockid_t thread_clock) {
  timespec used{};
  if (::clock_gettime(thread_clock, &used) != 0) return {};
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

/// The limit that a call has exceeded.
enum class Overrun : std::uint8_t { kTime, kCpuTime };

/// The base of every task of an AbandonableThread. All of it is guarded by the mutex of that thread.
class AbandonableTask {
  template <class Task>
  friend class AbandonableThread;

  enum class Stage : std::uint8_t { kWaiting, kRunning, kDone, kAbandoned };
  Stage stage_ = Stage::kWaiting;
  std::optional<std::chrono::steady_clock::time_point> call_began_;
  /// The CPU time that the thread had used then, or a little less.
  std::chrono::nanoseconds cpu_time_before_{};
};

/// Runs tasks one after the other on a thread of its own. While a task is in a call that takes longer than the limit,
/// or uses more CPU time than the limit, the waiting thread abandons it: the thread and the task are left to
/// themselves, and another thread goes on with the next. A call that is back before the waiting thread has noticed is
/// not late.
///
/// A `Task` derives from AbandonableTask and must own all that it uses. Three functions of it are called:
///   void run()                 on the thread; must not throw. It marks calls that may hang with begin_call() and
///                              end_call().
///   void on_abandoned(Overrun) when it is abandoned, on the waiting thread, with the mutex held: it must not call this
///                              class. The members of the task that it reads were written before begin_call() and stay
///                              as they are until end_call().
///   void release()             on the thread, when an abandoned task has returned: frees all that it owns, before the
///                              task stops to count as abandoned.
///
/// Make it by std::make_shared: its threads share it, and an abandoned one keeps it as long as it runs. All functions
/// are safe from any thread, but only begin_call() and end_call() from inside a task.
template <class Task>
class AbandonableThread : public std::enable_shared_from_this<AbandonableThread<Task>> {
 public:
  /// The thread's behaviour without a task: it waits for the next, so that handing one over is cheap, or ends, so that
  /// an idle process has no such thread.
  enum class WhenIdle : std::uint8_t { kWait, kEnd };
  enum class Ending : std::uint8_t { kDone, kAbandoned };

  struct Options {
    const char* name;  ///< of the threads, for `ps` and debuggers: 15 bytes at most
    std::chrono::milliseconds limit{};
    /// Less than `limit`: the CPU time that a call may use; the thread's own, not that of others that it started.
    std::optional<std::chrono::milliseconds> cpu_limit = std::nullopt;
    std::function<std::chrono::nanoseconds(clockid_t)> cpu_time = &cpu_time_by;
    WhenIdle when_idle = WhenIdle::kEnd;
  };

  explicit AbandonableThread(Options options) : options_(std::move(options)) {}
  ~AbandonableThread() {
    if (thread_.joinable()) thread_.detach();
  }
  AbandonableThread(const AbandonableThread&) = delete;
  AbandonableThread& operator=(const AbandonableThread&) = delete;

  /// Queues the task. If no thread can be had now, it is run when the next task comes. As nobody may wait for it, its
  /// run() frees all that it owns.
  void post(std::shared_ptr<Task> task) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    queue_.push_back(std::move(task));
    static_cast<void>(ensure_thread());
  }

  /// Queues the task and waits for it. UNAVAILABLE, and the task is not run, if no thread can be had.
  Result<Ending> run(const std::shared_ptr<Task>& task) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    queue_.push_back(task);
    while (task->stage_ == Stage::kWaiting || task->stage_ == Stage::kRunning) {
      if (const Status started = ensure_thread(); !started) {
        queue_.erase(std::remove(queue_.begin(), queue_.end(), task), queue_.end());
        return started.error();
      }
      wait_or_abandon();
    }
    return task->stage_ == Stage::kDone ? Ending::kDone : Ending::kAbandoned;
  }

  /// Only where the thread ends when idle: waits until every task is done or abandoned, and the thread is gone.
  void drain() TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (has_thread_ || !queue_.empty()) {
      if (!ensure_thread()) return;
      wait_or_abandon();
    }
  }

  /// Ends the thread that waits for tasks. No task may come after it.
  void stop() TOPOLET_EXCLUDES(mutex_) {
    std::thread thread;
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      wake_thread_.notify_all();
      thread.swap(thread_);
    }
    if (thread.joinable()) thread.join();
  }

  /// By the task, on its thread: from here on it may be abandoned.
  void begin_call(Task& task, std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now())
      TOPOLET_EXCLUDES(mutex_) {
    const std::chrono::nanoseconds cpu_time = cpu_time_until(now);
    MutexLock lock(mutex_);
    task.call_began_ = now;
    task.cpu_time_before_ = cpu_time;
  }

  /// By the task, on its thread. False if it was abandoned; then nobody waits for the task any more.
  bool end_call(Task& task) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    task.call_began_.reset();
    return task.stage_ != Stage::kAbandoned;
  }

  /// An abandoned task that has not returned, and of which `is_it` is true; null if there is none.
  template <class IsIt>
  std::shared_ptr<const Task> find_abandoned(IsIt is_it) const TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const auto found =
        std::find_if(abandoned_.begin(), abandoned_.end(), [&](const auto& task) { return is_it(*task); });
    return found == abandoned_.end() ? nullptr : *found;
  }

  bool has_abandoned() const TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return !abandoned_.empty();
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Stage = AbandonableTask::Stage;

  /// UNAVAILABLE with the system's reason if none can be started.
  Status ensure_thread() TOPOLET_REQUIRES(mutex_) {
    if (queue_.empty()) return {};
    if (has_thread_) {
      wake_thread_.notify_one();
      return {};
    }
    try {
      std::thread thread([self = this->shared_from_this()] { self->work(); });
      pthread_setname_np(thread.native_handle(), options_.name);
      if (options_.when_idle == WhenIdle::kWait) {
        thread_ = std::move(thread);
      } else {
        thread.detach();
      }
    } catch (const std::system_error& error) {
      return Error{Code::kUnavailable, error.what()};
    }
    has_thread_ = true;
    return {};
  }

  /// Returns the CPU time that this thread has used. Asks the kernel only now and then, as that takes longer than many
  /// a call. After the last reading, the thread may have used less than the time that has passed.
  std::chrono::nanoseconds cpu_time_until(Clock::time_point now) const {
    if (!options_.cpu_limit) return {};
    struct Reading {
      std::optional<Clock::time_point> at;
      std::chrono::nanoseconds cpu_time{};
    };
    // No thread is one of two objects of this class.
    thread_local Reading t_last;
    if (!t_last.at || now - *t_last.at > *options_.cpu_limit / 16 || now < *t_last.at) {
      t_last = {now, options_.cpu_time(CLOCK_THREAD_CPUTIME_ID)};
    }
    return t_last.cpu_time + (now - *t_last.at);
  }

  /// The running call is not late before that.
  Clock::time_point earliest_end(Clock::time_point now) const TOPOLET_REQUIRES(mutex_) {
    const Clock::time_point last = *running_->call_began_ + options_.limit;
    if (!options_.cpu_limit) return last;
    // Without the CPU's time it may have used all of this one.
    const Clock::time_point first = *running_->call_began_ + *options_.cpu_limit;
    if (now < first) return std::min(first, last);
    constexpr std::chrono::nanoseconds kStep = std::chrono::milliseconds(1);
    return std::min(now + std::max(*options_.cpu_limit - cpu_time_of_call(), kStep), last);
  }
  std::chrono::nanoseconds cpu_time_of_call() const TOPOLET_REQUIRES(mutex_) {
    return options_.cpu_time(running_clock_) - running_->cpu_time_before_;
  }
  std::optional<Overrun> overrun_of_call(Clock::time_point now) const TOPOLET_REQUIRES(mutex_) {
    const Clock::duration took = now - *running_->call_began_;
    if (took >= options_.limit) return Overrun::kTime;
    if (!options_.cpu_limit || took < *options_.cpu_limit) return std::nullopt;
    return cpu_time_of_call() > *options_.cpu_limit ? std::optional(Overrun::kCpuTime) : std::nullopt;
  }

  /// Waits until something ends, or until the running task is late, and then abandons that.
  void wait_or_abandon() TOPOLET_REQUIRES(mutex_) {
    const Clock::time_point now = Clock::now();
    const bool in_call = running_ != nullptr && running_->call_began_;
    const std::optional<Overrun> overrun = in_call ? overrun_of_call(now) : std::nullopt;
    if (!overrun) {
      // A call that begins after this check cannot be late before the next.
      wake_waiters_.wait_until(mutex_, in_call ? earliest_end(now) : now + options_.cpu_limit.value_or(options_.limit));
      return;
    }
    running_->stage_ = Stage::kAbandoned;
    running_->on_abandoned(*overrun);
    abandoned_.push_back(std::exchange(running_, nullptr));
    has_thread_ = false;
    if (thread_.joinable()) thread_.detach();
    static_cast<void>(ensure_thread());
    wake_waiters_.notify_all();
  }

  void work() TOPOLET_EXCLUDES(mutex_) {
    const CrashStack stack;
    clockid_t clock = CLOCK_THREAD_CPUTIME_ID;
    static_cast<void>(::pthread_getcpuclockid(::pthread_self(), &clock));
    while (std::shared_ptr<Task> task = next_task(clock)) {
      task->run();
      if (!finish(std::move(task))) return;
    }
  }

  /// Null if the thread is to end. `clock`: the thread's.
  std::shared_ptr<Task> next_task(clockid_t clock) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (queue_.empty() && !stopping_ && options_.when_idle == WhenIdle::kWait) wake_thread_.wait(mutex_);
    if (queue_.empty()) {
      has_thread_ = false;
      wake_waiters_.notify_all();
      return nullptr;
    }
    running_ = std::move(queue_.front());
    queue_.pop_front();
    running_->stage_ = Stage::kRunning;
    running_clock_ = clock;
    return running_;
  }

  /// False if the task was abandoned, and another thread has taken over.
  bool finish(std::shared_ptr<Task> task) TOPOLET_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (task->stage_ != Stage::kAbandoned) {
        task->stage_ = Stage::kDone;
        running_ = nullptr;
        // Before whoever waits goes on, who then holds the last reference to all that the task owns.
        task = nullptr;
      }
    }
    if (task == nullptr) {
      wake_waiters_.notify_all();
      return true;
    }
    task->release();
    MutexLock lock(mutex_);
    abandoned_.erase(std::remove(abandoned_.begin(), abandoned_.end(), task), abandoned_.end());
    return false;
  }

  const Options options_;
  mutable Mutex mutex_;
  CondVar wake_thread_;
  CondVar wake_waiters_;
  std::deque<std::shared_ptr<Task>> queue_ TOPOLET_GUARDED_BY(mutex_);
  std::shared_ptr<Task> running_ TOPOLET_GUARDED_BY(mutex_);
  clockid_t running_clock_ TOPOLET_GUARDED_BY(mutex_) = CLOCK_THREAD_CPUTIME_ID;  ///< of its thread, as long as it runs
  std::vector<std::shared_ptr<Task>> abandoned_ TOPOLET_GUARDED_BY(mutex_);
  bool has_thread_ TOPOLET_GUARDED_BY(mutex_) = false;
  bool stopping_ TOPOLET_GUARDED_BY(mutex_) = false;
  /// The one that waits when idle; those that end are detached.
  std::thread thread_ TOPOLET_GUARDED_BY(mutex_);
};

}  // namespace topolet::plugin
