// The loop of a test that has other threads: work comes from all of them, time passes when the test says so.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "core/base/mutex.hpp"
#include "core/engine/loop.hpp"
#include "core/simulate/simulated_loop.hpp"

namespace topolet::engine {

/// Runs on the test's thread. Only post() is for any thread.
class WaitingLoop final : public Loop {
 public:
  bool is_on_thread() const override { return true; }
  void post(std::function<void()> work) override TOPOLET_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    queue_.push_back(std::move(work));
    posted_.notify_one();
  }
  void after(std::chrono::milliseconds delay, std::function<void()> work) override {
    timers_.emplace(time_.now() + delay, std::move(work));
  }
  void stop() override {}

  Clock clock() const { return time_.clock(); }

  /// Runs what is there by now.
  void run() {
    while (run_one()) {
    }
  }
  /// Runs what comes until `holds`.
  void run_until(const std::function<bool()>& holds) {
    while (!holds()) {
      if (!run_one() && !wait()) {
        ADD_FAILURE() << "what was waited for did not come";
        return;
      }
    }
  }
  void advance(std::chrono::milliseconds time) {
    const std::chrono::milliseconds end = time_.now() + time;
    run();
    while (!timers_.empty() && timers_.begin()->first <= end) {
      auto timer = timers_.extract(timers_.begin());
      time_.set(timer.key());
      timer.mapped()();
      run();
    }
    time_.set(end);
  }

 private:
  bool run_one() TOPOLET_EXCLUDES(mutex_) {
    std::function<void()> work;
    {
      const MutexLock lock(mutex_);
      if (queue_.empty()) return false;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
    return true;
  }
  /// False if no work has come for 60 s.
  bool wait() TOPOLET_EXCLUDES(mutex_) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    const MutexLock lock(mutex_);
    while (queue_.empty()) {
      if (!posted_.wait_until(mutex_, deadline)) return !queue_.empty();
    }
    return true;
  }

  simulate::SimulatedTime time_;
  std::multimap<std::chrono::milliseconds, std::function<void()>> timers_;
  Mutex mutex_;
  CondVar posted_;
  std::deque<std::function<void()>> queue_ TOPOLET_GUARDED_BY(mutex_);
};

}  // namespace topolet::engine
