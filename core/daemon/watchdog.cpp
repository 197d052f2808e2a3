#include "core/daemon/watchdog.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <cstdint>
#include <utility>

#include "core/base/log.hpp"
#include "core/base/mutex.hpp"

namespace topolet::daemon {

using SteadyTime = std::chrono::steady_clock::time_point;

/// The loops that have turned since the round began. Any thread.
class Watchdog::Round {
 public:
  explicit Round(std::size_t loops) : has_turned_(loops, true) {}

  void begin() TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    has_turned_.assign(has_turned_.size(), false);
  }
  void note_turn(std::size_t loop) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    has_turned_[loop] = true;
    changed_.notify_all();
  }
  void end() TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
  }

  enum class Outcome : std::uint8_t { kAllTurned, kTimeIsUp, kEnded };
  Outcome wait_for_turns(SteadyTime until) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (!is_over_ && !all_turned()) {
      if (!changed_.wait_until(mutex_, until)) break;
    }
    if (is_over_) return Outcome::kEnded;
    return all_turned() ? Outcome::kAllTurned : Outcome::kTimeIsUp;
  }
  /// False if it has ended before.
  bool rest(SteadyTime until) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (!is_over_ && changed_.wait_until(mutex_, until)) {
    }
    return !is_over_;
  }
  bool has_turned(std::size_t loop) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return has_turned_[loop];
  }

 private:
  bool all_turned() const TOPOLET_REQUIRES(mutex_) {
    for (const bool turned : has_turned_) {
      if (!turned) return false;
    }
    return true;
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<bool> has_turned_ TOPOLET_GUARDED_BY(mutex_);
  bool is_over_ TOPOLET_GUARDED_BY(mutex_) = false;
};

Watchdog::Watchdog(const Options& options, std::vector<Loop> loops, std::function<void()> on_round, Log& log)
    : options_(options),
      loops_(std::move(loops)),
      on_round_(std::move(on_round)),
      log_(log),
      round_(std::make_shared<Round>(loops_.size())),
      thread_([this] { run(); }) {
  ::pthread_setname_np(thread_.native_handle(), "topolet-watch");
}

Watchdog::~Watchdog() {
  round_->end();
  thread_.join();
}

void Watchdog::run() {
  do {
    if (!all_turn()) return;
    on_round_();
  } while (round_->rest(std::chrono::steady_clock::now() + options_.every));
}

/// Returns when all loops have turned; false if it has ended before. The next round begins only then: on a loop that
/// stands still nothing may pile up.
bool Watchdog::all_turn() {
  const SteadyTime began = std::chrono::steady_clock::now();
  round_->begin();
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    loops_[i].post([round = round_, i] { round->note_turn(i); });
  }
  Round::Outcome outcome = round_->wait_for_turns(began + options_.warn_after);
  if (outcome == Round::Outcome::kTimeIsUp) {
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      if (round_->has_turned(i)) continue;
      log_.error("{} has not turned for {} s: {}; a service manager with a watchdog will restart topoletd",
                 loops_[i].name, std::chrono::duration_cast<std::chrono::seconds>(options_.warn_after).count(),
                 loops_[i].effect);
    }
    outcome = round_->wait_for_turns(SteadyTime::max());
  }
  return outcome == Round::Outcome::kAllTurned;
}

}  // namespace topolet::daemon
