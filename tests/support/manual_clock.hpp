// Time that passes only when a test says so.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "core/base/clock.hpp"

namespace topolet::testing {

/// Any thread. Must outlive the clocks that were made of it.
class ManualClock {
 public:
  Clock clock() const {
    return {.wall = [this] { return now(); },
            .steady = [this] { return std::chrono::steady_clock::time_point(now()); }};
  }
  std::chrono::milliseconds now() const { return std::chrono::milliseconds(now_ms_.load()); }
  void advance(std::chrono::milliseconds time) { now_ms_ += time.count(); }

 private:
  /// Not 0, which in places means "never".
  std::atomic<std::int64_t> now_ms_{3'600'000};
};

}  // namespace topolet::testing
