// The one thread that writes to the store.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/clock.hpp"
#include "core/base/log_fwd.hpp"
#include "core/base/mutex.hpp"
#include "core/base/result.hpp"
#include "core/engine/loop.hpp"
#include "core/engine/state/writer_options.hpp"
#include "store/retention_pace.hpp"
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
/// Checks twice a second that the database is still there. In the place of one that was removed, replaced or cut, or
/// that SQLite finds damaged, a new one is begun. It starts with what the ledger was when all that is written was, and
/// what still waits is written after that.
///
/// All functions are for the loop's thread.
class Writer {
 public:
  using Thread = WriterThread;
  using Options = WriterOptions;
  /// The time for which the store did not keep up, and the number of late writes.
  struct Gap {
    std::chrono::milliseconds duration{};
    std::size_t writes_late = 0;
  };
  using Write = std::function<Status(store::Store&)>;

  /// The contents of a database that is begun in the place of a lost one, written before everything that still waits.
  struct Rewrite {
    store::LastNumbers last;
    std::chrono::milliseconds wall_time{};
    Write write;
  };
  /// A lost database is written to again.
  struct Reopened {
    store::FileLoss loss;
    std::filesystem::path set_aside;  ///< where the file went that was there; empty if there was none or it was kept
  };
  /// All of them run on the loop.
  struct Callbacks {
    /// The writer is degraded no more.
    std::function<void(const Gap&)> recovered;
    /// As of what is written: written(). Without it, nobody checks that the database is still there.
    std::function<Rewrite(const store::FileLoss& loss)> rewrite = {};
    std::function<void(const Reopened&)> reopened = {};
    /// Tells that all submissions up to this one are written; callers that wait for one of them are told after this.
    std::function<void(std::uint64_t number)> written = {};
  };

  /// `store` and `loop` must outlive it.
  Writer(Options options, store::Store& store, Loop& loop, Clock clock, Log& log, Callbacks callbacks);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// `write` runs on the writer's thread, perhaps more than once; only its last run counts. `done` runs on the loop, in
  /// the order of the submissions, once that is durable as configured or patience is over.
  /// Returns the number of the submission, ascending from 1.
  std::uint64_t submit(std::uint64_t generation, Write write, std::function<void()> done,
                       Urgency urgency = Urgency::kNow);
  /// The newest submission that is written.
  std::uint64_t written() const { return last_written_; }
  /// Nobody waits to be told.
  bool idle() const { return waiters_.empty(); }
  bool degraded() const { return degraded_; }
  /// Returns why it is degraded, for people; empty if it is not.
  const std::string& degraded_because() const { return degraded_because_; }
  /// Writes what is left, as far as the store takes it now, and ends. Nobody is told any more. Idempotent.
  ///
  /// False if the store does not return, as on a frozen file system. Until a later call returns true, neither this nor
  /// the store or the loop may be destroyed, as its thread still uses them: the process has to end by _exit.
  bool stop();

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

  enum class Next : std::uint8_t { kWrite, kCheck, kRetentionPass, kEnd };

  void schedule_hurry() TOPOLET_EXCLUDES(mutex_);
  void wake_writer() TOPOLET_EXCLUDES(mutex_);
  void run() TOPOLET_EXCLUDES(mutex_);
  void serve() TOPOLET_EXCLUDES(mutex_);
  Next wait_for_work() TOPOLET_EXCLUDES(mutex_);
  void run_retention_pass();
  void take_group() TOPOLET_REQUIRES(mutex_);
  void write_rest() TOPOLET_EXCLUDES(mutex_);
  bool wait_until_ended() TOPOLET_EXCLUDES(mutex_);
  bool check_for_loss();
  void note_loss(store::FileLoss loss);
  bool reopen() TOPOLET_EXCLUDES(mutex_);
  std::optional<Rewrite> wait_for_rewrite() TOPOLET_EXCLUDES(mutex_);
  Status write_anew(const Rewrite& rewrite);
  void answer_rewrite(const store::FileLoss& loss) TOPOLET_EXCLUDES(mutex_);
  void write_on_loop() TOPOLET_EXCLUDES(mutex_);
  void finish_on_loop() TOPOLET_EXCLUDES(mutex_);
  void after(std::chrono::milliseconds delay, std::function<void()> work);
  bool wait_before_retry() TOPOLET_EXCLUDES(mutex_);
  bool write_group() TOPOLET_EXCLUDES(mutex_);
  void judge_failure(const Error& error);
  Status write_all();
  Status write_each_whole();
  void post(std::function<void()> work);
  void on_written(std::uint64_t number);
  void on_write_failed(const Error& error);
  void answer_first_waiter();
  void schedule_patience_check();
  void note_late();
  void check_patience();
  void enter_degraded_mode(const std::string& why);

  const Options options_;
  store::Store& store_;
  Loop& loop_;
  const Clock clock_;
  Log& log_;
  const Callbacks callbacks_;
  /// Tells functions posted to the loop that the writer has ended.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  std::deque<Waiter> waiters_;
  std::uint64_t last_number_ = 0;
  std::uint64_t last_written_ = 0;
  bool patience_check_scheduled_ = false;
  bool hurry_scheduled_ = false;
  bool writing_on_loop_ = false;  ///< with Thread::kLoop: a transaction, or the wait before it is tried again
  bool degraded_ = false;
  std::string degraded_because_;
  std::chrono::milliseconds degraded_since_{};  ///< wall clock
  std::size_t late_ = 0;

  /// The jobs of one transaction, until it is written. Used on the writer's thread only.
  std::vector<Job> group_;
  /// Used on the writer's thread only, too: why the store cannot write to its file any more; how often a group failed
  /// as no file that is whole makes it fail; when the file is checked next; when the history is tidied up next, how
  /// much at a time, and what has been deleted since that was logged last.
  std::optional<store::FileLoss> loss_;
  int failures_of_a_damaged_file_ = 0;
  std::chrono::steady_clock::time_point next_check_;
  std::chrono::steady_clock::time_point next_retention_pass_{};
  store::RetentionPace retention_pace_;
  std::int64_t deleted_ = 0;
  std::int64_t deleted_until_ms_ = 0;

  Mutex mutex_;
  CondVar wake_up_;
  std::deque<Job> jobs_ TOPOLET_GUARDED_BY(mutex_);
  bool hurry_ TOPOLET_GUARDED_BY(mutex_) = false;  ///< what is waiting is wanted now
  std::optional<Rewrite> rewrite_ TOPOLET_GUARDED_BY(mutex_);
  bool stopping_ TOPOLET_GUARDED_BY(mutex_) = false;
  bool ended_ TOPOLET_GUARDED_BY(mutex_) = false;  ///< the thread uses nothing of this any more
  std::thread thread_;
};

}  // namespace topolet::engine
