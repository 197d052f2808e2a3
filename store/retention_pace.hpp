// How long a retention pass may be.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "store/store.hpp"

namespace topolet::store {

/// Finds how many rows a retention pass may have so that whoever comes during it hardly notices.
class RetentionPace {
 public:
  /// The rows for the next pass.
  std::int64_t rows() const { return rows_; }

  /// Learns from a pass of rows(): what it did and how long it took. One that had less to do tells nothing about more.
  void note(const RetentionPass& done, std::chrono::steady_clock::duration took) {
    constexpr std::chrono::milliseconds kLongest{3};
    constexpr std::int64_t kFewest = 4;
    constexpr std::int64_t kMost = 400;
    if (done.rows > 0 && took > kLongest) {
      rows_ = std::max(kFewest, rows_ / 2);
    } else if (done.rows >= rows_ && took < kLongest / 2) {
      rows_ = std::min(kMost, rows_ * 5 / 4);
    }
  }

  /// The pause between two passes.
  static constexpr std::chrono::milliseconds kPause{5};

 private:
  std::int64_t rows_ = 16;
};

}  // namespace topolet::store
