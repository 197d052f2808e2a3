// How much of the upkeep is done at once.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "store/store.hpp"

namespace topolet::store {

/// Finds how many rows a slice may have so that whoever comes during it hardly notices.
class UpkeepPace {
 public:
  /// For the next slice.
  std::int64_t rows() const { return rows_; }

  /// What a slice of rows() did, and how long it took. One that had less to do tells nothing about more.
  void note(const Upkeep& done, std::chrono::steady_clock::duration took) {
    constexpr std::chrono::milliseconds kLongest{3};
    constexpr std::int64_t kFewest = 4;
    constexpr std::int64_t kMost = 400;
    if (done.rows > 0 && took > kLongest) {
      rows_ = std::max(kFewest, rows_ / 2);
    } else if (done.rows >= rows_ && took < kLongest / 2) {
      rows_ = std::min(kMost, rows_ * 5 / 4);
    }
  }

  /// Between two slices.
  static constexpr std::chrono::milliseconds kPause{5};

 private:
  std::int64_t rows_ = 16;
};

}  // namespace topolet::store
