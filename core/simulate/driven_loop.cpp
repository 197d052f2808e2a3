#include "core/simulate/driven_loop.hpp"

#include <utility>

namespace topolet::simulate {

void DrivenLoop::stop() {
  queue_.clear();
  timers_.clear();
}

void DrivenLoop::run() {
  while (!queue_.empty()) {
    const std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    work();
  }
}

void DrivenLoop::advance(std::chrono::milliseconds time) {
  const std::chrono::milliseconds end = *now_ + time;
  run();
  while (!timers_.empty() && timers_.begin()->first <= end) {
    auto timer = timers_.extract(timers_.begin());
    *now_ = timer.key();
    timer.mapped()();
    run();
  }
  *now_ = end;
}

Clock DrivenLoop::clock() const {
  return {.wall = [now = now_] { return *now; },
          .steady = [now = now_] { return std::chrono::steady_clock::time_point(*now); }};
}

}  // namespace topolet::simulate
