// An engine's loop with a real thread, whose timers fall due when a test says so.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <utility>

#include "core/base/mutex.hpp"
#include "core/engine/loop.hpp"
#include "tests/support/manual_clock.hpp"

namespace topolet::testing {

/// As for any loop; advance() is the test's.
class ManualLoop final : public engine::Loop {
 public:
  /// `clock` is moved on by advance() alone, and must outlive this.
  explicit ManualLoop(ManualClock& clock) : clock_(clock) {}

  bool is_on_thread() const override { return thread_.is_on_thread(); }
  void post(std::function<void()> work) override { thread_.post(std::move(work)); }
  void after(std::chrono::milliseconds delay, std::function<void()> work) override TOPOLET_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    timers_.emplace(clock_.now() + delay, std::move(work));
  }
  void stop() override { thread_.stop(); }

  /// Lets so much time pass; every timer that falls due has run at its own time when this returns. Not after stop().
  void advance(std::chrono::milliseconds time) {
    const std::chrono::milliseconds end = clock_.now() + time;
    while (std::function<void()> work = take_due(end)) run(std::move(work));
    clock_.advance(end - clock_.now());
  }

 private:
  std::function<void()> take_due(std::chrono::milliseconds end) TOPOLET_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (timers_.empty() || timers_.begin()->first > end) return nullptr;
    auto timer = timers_.extract(timers_.begin());
    clock_.advance(timer.key() - clock_.now());
    return std::move(timer.mapped());
  }
  void run(std::function<void()> work) {
    std::promise<void> done;
    thread_.post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

  ManualClock& clock_;
  Mutex mutex_;
  std::multimap<std::chrono::milliseconds, std::function<void()>> timers_ TOPOLET_GUARDED_BY(mutex_);
  engine::ThreadLoop thread_;
};

}  // namespace topolet::testing
