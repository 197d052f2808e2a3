// Time that passes only as tasks are done.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "cluster/api/api.hpp"

namespace topolet::extender {

using Milliseconds = std::chrono::milliseconds;

class VirtualClock {
 public:
  using Time = api::Api::Clock::time_point;

  Time now() const { return now_; }
  void at(Time time, std::function<void()> task) { tasks_.push({std::max(time, now_), ++last_, std::move(task)}); }
  void after(Milliseconds delay, std::function<void()> task) { at(now_ + delay, std::move(task)); }
  /// False when there is nothing left to do.
  bool step() {
    if (tasks_.empty()) return false;
    Task task = std::move(const_cast<Task&>(tasks_.top()));  // it is taken out before anybody compares it
    tasks_.pop();
    now_ = task.time;
    task.run();
    return true;
  }
  void run_until(Time time) {
    while (!tasks_.empty() && tasks_.top().time <= time) step();
    now_ = std::max(now_, time);
  }

 private:
  struct Task {
    Time time;
    std::uint64_t number = 0;
    std::function<void()> run;

    bool operator<(const Task& other) const { return std::pair(other.time, other.number) < std::pair(time, number); }
  };
  Time now_{std::chrono::hours(1)};
  std::uint64_t last_ = 0;
  std::priority_queue<Task> tasks_;
};

}  // namespace topolet::extender
