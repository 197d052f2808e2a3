// The one thread that writes to the store.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/clock.hpp"
#include "core/base/log.hpp"
#include "core/base/mutex.hpp"
#include "core/base/result.hpp"
#include "core/engine/loop.hpp"
#include "store/store.hpp"

namespace topolet::engine {

/// When a write is wanted.
enum class Urgency : std::uint8_t {
  kNow,   ///< something waits for it
  kSoon,  ///< nothing does: it is written with what else comes from the work that the loop is at
};

/// Commits writes in the order in which they come, as many in one transaction as are waiting, each of them whole or not
/// at all. While the store fails, or takes longer than `patience`, those who wait go on from memory, and the writer is
/// degraded until everything is written.
///
/// All functions are for the loop's thread.
class Writer {
 public:
  /// On whose thread the store is written.
  enum class Thread : std::uint8_t {
    kOwn,
    kLoop,  ///< for a simulated loop: written at once, on the loop's thread; `done` still runs later
  };
  struct Options {
    Thread thread = Thread::kOwn;
    std::chrono::milliseconds patience{50};
    std::chrono::milliseconds retry{1000};  ///< after a failure
  };
  /// How long the store did not keep up, and how much was written late.
  struct Gap {
    std::chrono::milliseconds duration{};
    std::size_t writes_late = 0;
  };
  using Write = std::function<Status(store::Store&)>;

  /// `store` and `loop` must outlive it. `recovered` runs on the loop when the writer is degraded no more.
  Writer(Options options, store::Store& store, Loop& loop, Clock clock, Log& log,
         std::function<void(const Gap&)> recovered);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// `write` runs on the writer's thread, perhaps more than once; only its last run counts. `done` runs on the loop, in
  /// the order of the submissions, once that is durable as configured or patience is over.
  void submit(std::uint64_t generation, Write write, std::function<void()> done, Urgency urgency = Urgency::kNow);
  /// Nobody waits to be told.
  bool idle() const { return waiters_.empty(); }
  bool degraded() const { return degraded_; }
  /// Writes what is left, as far as the store takes it now, and ends. Nobody is told any more. Idempotent.
  void stop();

 private:
  struct Job {
    std::uint64_t number = 0;
    std::uint64_t generation = 0;
    Write write;
  };
  struct Waiter {
    std::uint64_t number = 0;
    std::uint64_t generation = 0;
    std::chrono::steady_clock::time_point since;
    std::function<void()> done;
  };

  void schedule_hurry() TOPOLET_EXCLUDES(mutex_);
  void run() TOPOLET_EXCLUDES(mutex_);
  void backfill_while_idle() TOPOLET_EXCLUDES(mutex_);
  void write_on_loop() TOPOLET_EXCLUDES(mutex_);
  bool wait_for_group() TOPOLET_EXCLUDES(mutex_);
  bool wait_before_retry() TOPOLET_EXCLUDES(mutex_);
  bool write_group() TOPOLET_EXCLUDES(mutex_);
  Status write_all();
  Status write_each_whole();
  void post(std::function<void()> work);
  void on_written(std::uint64_t number);
  void on_write_failed(const Error& error);
  void answer_first_waiter();
  void schedule_patience_check();
  void check_patience();
  void enter_degraded_mode(const std::string& why);

  const Options options_;
  store::Store& store_;
  Loop& loop_;
  const Clock clock_;
  Log& log_;
  const std::function<void(const Gap&)> recovered_;
  /// What was posted to the loop and comes after the writer has ended finds it gone.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  std::deque<Waiter> waiters_;
  std::uint64_t last_number_ = 0;
  std::uint64_t last_written_ = 0;
  bool patience_check_scheduled_ = false;
  bool hurry_scheduled_ = false;
  bool degraded_ = false;
  std::chrono::milliseconds degraded_since_{};  ///< wall clock
  std::size_t late_ = 0;

  /// What is written in one transaction, until it is. Of the thread that writes.
  std::vector<Job> group_;
  bool may_have_backfill_ = true;  ///< see Store::backfill(); of the writer's own thread

  Mutex mutex_;
  CondVar wake_up_;
  std::deque<Job> jobs_ TOPOLET_GUARDED_BY(mutex_);
  bool hurry_ TOPOLET_GUARDED_BY(mutex_) = false;  ///< what is waiting is wanted now
  bool stopping_ TOPOLET_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace topolet::engine
