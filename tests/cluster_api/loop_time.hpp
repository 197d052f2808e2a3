// Time for what runs on a loop: it passes when a test says so, and what is due has been done when that returns.
#pragma once

#include <chrono>
#include <functional>
#include <future>

#include "cluster/api/http_loop.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/manual_clock.hpp"

namespace topolet::testing {

/// Does it on the loop's thread, and returns when it is done.
inline void on_loop(api::HttpLoop& loop, const std::function<void()>& work) {
  std::promise<void> done;
  loop.post([&] {
    work();
    done.set_value();
  });
  done.get_future().wait();
}

/// Not on the loop's thread. Answers of servers may come later than this returns.
inline void advance(api::HttpLoop& loop, ManualClock& clock, std::chrono::milliseconds time) {
  on_loop(loop, [&] { clock.advance(time); });
  // In each round, the loop does what was posted before what is due.
  on_loop(loop, [] {});
}

/// Lets time pass until it holds. Time is no faster than ten times the real one, as servers need that to answer before
/// requests time out.
inline bool pass_time_until(api::HttpLoop& loop, ManualClock& clock, const std::function<bool()>& condition) {
  return eventually([&] {
    if (condition()) return true;
    advance(loop, clock, std::chrono::milliseconds(20));
    return false;
  });
}

}  // namespace topolet::testing
