// A wall clock that adopts changes of the system's clock only on request.
#pragma once

#include <chrono>
#include <optional>
#include <utility>

#include "core/base/clock.hpp"

namespace topolet::engine {

/// The wall clock at the last follow(), advanced by the steady clock: times stay comparable when the system's clock is
/// set. One thread; must outlive the clocks that clock() returns.
class SteadyWallClock {
 public:
  explicit SteadyWallClock(Clock system) : system_(std::move(system)), offset_(system_offset()) {}
  SteadyWallClock(const SteadyWallClock&) = delete;
  SteadyWallClock& operator=(const SteadyWallClock&) = delete;

  Clock clock() const {
    return {[this] { return steady() + offset_; }, system_.steady};
  }

  /// By how much the system's clock was set since the last call; nothing if it only drifted. From here on this one
  /// shows that time too.
  std::optional<std::chrono::milliseconds> follow() {
    const std::chrono::milliseconds set_by = system_offset() - offset_;
    if (std::chrono::abs(set_by) < kDrift) return std::nullopt;
    offset_ += set_by;
    return set_by;
  }

 private:
  static constexpr std::chrono::milliseconds kDrift{500};

  std::chrono::milliseconds steady() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(system_.steady().time_since_epoch());
  }
  std::chrono::milliseconds system_offset() const { return system_.wall() - steady(); }

  const Clock system_;
  std::chrono::milliseconds offset_;
};

}  // namespace topolet::engine
