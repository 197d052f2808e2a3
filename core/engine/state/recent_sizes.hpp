// The sizes of the exclusive containers that were placed in the last day. A plain value.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace topolet::engine {

/// The time for which the size of a container counts after it was placed. It is rounded up to the full hour, so that
/// the same size again within the hour changes nothing that is stored.
inline constexpr std::chrono::hours kSizeCounts{24};

/// Of the containers that were given CPUs of their own, those that no larger one came after: all that is needed to know
/// the largest of the last day at any later time. Stored whole, and changed by transitions only.
class RecentSizes {
 public:
  struct Size {
    std::uint32_t cpus = 0;               ///< with those that are kept idle for it
    std::chrono::milliseconds counted{};  ///< wall clock: the begin of the hour in which it was placed last

    friend bool operator==(const Size&, const Size&) = default;
  };

  RecentSizes() = default;
  /// As they are stored, in any order.
  explicit RecentSizes(std::vector<Size> sizes);

  /// The latest first, which are the smallest.
  const std::vector<Size>& sizes() const { return sizes_; }
  /// A container with so many CPUs was placed. Sizes of more than a day ago are forgotten.
  void note(std::uint32_t cpus, std::chrono::milliseconds now);
  /// Returns the size of the largest container that was placed in the last day; 0 if there was none.
  std::uint32_t largest(std::chrono::milliseconds now) const;
  /// The wall clock was set.
  void shift(std::chrono::milliseconds by);

  friend bool operator==(const RecentSizes&, const RecentSizes&) = default;

 private:
  std::vector<Size> sizes_;
};

}  // namespace topolet::engine
