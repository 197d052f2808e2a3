// What a container that shares CPUs would use over time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>

namespace topolet::bench {

/// Half of its request most of the time, and two to five times of it, but at least a CPU, for 20 to 120 seconds now and
/// then: after one to ten minutes. On average it uses about as much as it requests. The same seed and pod give the
/// same.
class BurstModel {
 public:
  BurstModel(std::uint64_t seed, std::size_t pod, std::int64_t request_milli)
      : random_(seed * 1'000'003 + pod), request_milli_(request_milli) {
    // Not all begin to rest together.
    ends_ = std::chrono::seconds(static_cast<std::int64_t>(below(600)));
  }

  struct Use {
    std::int64_t milli = 0;
    bool is_burst = false;
  };
  /// `at`: since it was created; never less than before.
  Use at(std::chrono::seconds at);

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  std::mt19937_64 random_;
  std::int64_t request_milli_;
  std::chrono::seconds ends_{0};  ///< when the present state does
  std::int64_t burst_milli_ = 0;
  bool is_burst_ = false;
};

}  // namespace topolet::bench
