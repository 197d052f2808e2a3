// How fast a counter of the kernel grows.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace topolet::load {

/// The mean over the last five seconds, or since the first of what was read if that is later. Not over less than what
/// is between two readings.
class CounterWindow {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// A value smaller than the last one begins anew, as the counter has. So does a reading at the time of the last one.
  void add(Time at, std::uint64_t value);
  /// Forgets all readings: what happened since is not to be counted.
  void restart() { size_ = 0; }

  bool has_readings() const { return size_ > 0; }
  /// Returns the growth in a second; nothing if it was read less than twice.
  std::optional<double> per_second() const;

 private:
  struct Reading {
    Time at;
    std::uint64_t value = 0;
  };
  const Reading& newest() const { return readings_[size_ - 1]; }
  void drop_oldest();

  std::array<Reading, 7> readings_ = {};  ///< the oldest first
  std::size_t size_ = 0;
};

}  // namespace topolet::load
