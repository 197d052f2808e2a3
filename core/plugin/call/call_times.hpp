// The durations of calls, without keeping each.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace topolet::plugin {

/// Counts durations in buckets of a quarter of an octave, from 1 µs to over an hour: within 25 % of the truth, and no
/// allocation a call. A plain value.
class CallTimes {
 public:
  void add(std::chrono::nanoseconds took) {
    const auto us = static_cast<std::uint64_t>(std::max<std::int64_t>((took.count() + 999) / 1000, 0));
    ++counts_[bucket_of(us)];
    ++total_;
  }

  /// Returns the duration that 99 of 100 calls stayed within, rounded up to its bucket's end; 0 if there was no call.
  std::uint64_t p99_us() const {
    const std::uint64_t wanted = total_ - total_ / 100;
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen >= wanted && total_ > 0) return end_of(i);
    }
    return 0;
  }

 private:
  static constexpr std::size_t kBuckets = 128;

  static std::size_t bucket_of(std::uint64_t us) {
    if (us < 4) return us;
    const auto octave = static_cast<std::size_t>(std::bit_width(us)) - 1;
    const std::size_t bucket = 4 * (octave - 1) + ((us >> (octave - 2)) & 3U);
    return std::min(bucket, kBuckets - 1);
  }
  static std::uint64_t end_of(std::size_t bucket) {
    if (bucket < 4) return bucket;
    return ((std::uint64_t{bucket % 4} + 5) << (bucket / 4 - 1)) - 1;
  }

  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t total_ = 0;
};

}  // namespace topolet::plugin
