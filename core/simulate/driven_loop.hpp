// A loop in time that only passes when it is told to.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>

#include "core/base/clock.hpp"
#include "core/daemon/loop.hpp"

namespace topolet::simulate {

/// One thread, its caller's. Work waits for run(), timers for advance().
class DrivenLoop final : public Loop {
 public:
  void post(std::function<void()> work) override { queue_.push_back(std::move(work)); }
  void after(std::chrono::milliseconds delay, std::function<void()> work) override {
    timers_.emplace(*now_ + delay, std::move(work));
  }
  void stop() override;

  /// Runs what is queued, and what that queues, until nothing is left.
  void run();
  /// Lets so much time pass; every timer that falls due runs at its own time.
  void advance(std::chrono::milliseconds time);

  /// This loop's time, counted from 0; stays valid after the loop.
  Clock clock() const;

 private:
  std::shared_ptr<std::chrono::milliseconds> now_ = std::make_shared<std::chrono::milliseconds>(0);
  std::deque<std::function<void()>> queue_;
  std::multimap<std::chrono::milliseconds, std::function<void()>> timers_;
};

}  // namespace topolet::simulate
