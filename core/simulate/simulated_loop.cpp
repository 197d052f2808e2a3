#include "core/simulate/simulated_loop.hpp"

#include <utility>

namespace topolet::simulate {

Clock SimulatedTime::clock() const {
  return {.wall = [now = now_, offset = wall_offset_] { return *now + *offset; },
          .steady = [now = now_] { return std::chrono::steady_clock::time_point(*now); }};
}

void SimulatedLoop::post(std::function<void()> work) {
  if (!stopped_) queue_.push_back(std::move(work));
}

void SimulatedLoop::after(std::chrono::milliseconds delay, std::function<void()> work) {
  if (!stopped_) timers_.emplace(time_.now() + delay, std::move(work));
}

void SimulatedLoop::stop() {
  stopped_ = true;
  queue_.clear();
  timers_.clear();
}

void SimulatedLoop::run() {
  while (!queue_.empty()) {
    const std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    work();
  }
}

void SimulatedLoop::advance(std::chrono::milliseconds time) {
  const std::chrono::milliseconds end = time_.now() + time;
  run();
  while (!timers_.empty() && timers_.begin()->first <= end) {
    auto timer = timers_.extract(timers_.begin());
    time_.set(timer.key());
    timer.mapped()();
    run();
  }
  if (!stopped_) time_.set(end);
}

std::optional<std::chrono::milliseconds> SimulatedLoop::next_timer() const {
  if (timers_.empty()) return std::nullopt;
  return timers_.begin()->first;
}

}  // namespace topolet::simulate
