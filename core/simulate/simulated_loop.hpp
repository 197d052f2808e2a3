// A loop in time that only passes when it is told to.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/clock.hpp"
#include "core/engine/loop.hpp"

namespace topolet::simulate {

/// The time of one simulation, counted from 0. Copies share it.
class SimulatedTime {
 public:
  std::chrono::milliseconds now() const { return *now_; }
  void set(std::chrono::milliseconds now) { *now_ = now; }
  /// The wall clock as somebody has set it.
  std::chrono::milliseconds wall() const { return *now_ + *wall_offset_; }
  void set_wall(std::chrono::milliseconds by) { *wall_offset_ += by; }
  /// Stays valid whatever becomes of this.
  Clock clock() const;

 private:
  std::shared_ptr<std::chrono::milliseconds> now_ = std::make_shared<std::chrono::milliseconds>(0);
  std::shared_ptr<std::chrono::milliseconds> wall_offset_ = std::make_shared<std::chrono::milliseconds>(0);
};

/// One thread, its caller's. Work waits for run(), timers for advance().
class SimulatedLoop final : public engine::Loop {
 public:
  explicit SimulatedLoop(SimulatedTime time = {}) : time_(std::move(time)) {}

  bool is_on_thread() const override { return true; }
  void post(std::function<void()> work) override;
  void after(std::chrono::milliseconds delay, std::function<void()> work) override;
  /// Stops for good, from inside its own work too: queued work is dropped, and so is later work.
  void stop() override;

  /// Runs the queued work, and work that this queues, until nothing is left.
  void run();
  /// Lets so much time pass; every timer that falls due runs at its own time. Time stands once the loop is stopped.
  void advance(std::chrono::milliseconds time);
  /// When the next timer falls due; nothing if there is none.
  std::optional<std::chrono::milliseconds> next_timer() const;

  Clock clock() const { return time_.clock(); }

 private:
  SimulatedTime time_;
  bool stopped_ = false;
  std::deque<std::function<void()>> queue_;
  std::multimap<std::chrono::milliseconds, std::function<void()>> timers_;
};

}  // namespace topolet::simulate
