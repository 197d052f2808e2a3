#include "tests/bench/oracle.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace topolet::bench {
namespace {

/// Each of the largest first into the bin where least is left. A quick yes for most.
bool fits_greedily(std::vector<std::uint32_t> bins, const std::vector<std::uint32_t>& sizes) {
  for (const std::uint32_t size : sizes) {
    auto best = bins.end();
    for (auto bin = bins.begin(); bin != bins.end(); ++bin) {
      if (*bin >= size && (best == bins.end() || *bin < *best)) best = bin;
    }
    if (best == bins.end()) return false;
    *best -= size;
  }
  return true;
}

/// Fills one bin after the other.
class Packing {
 public:
  Packing(std::vector<std::uint32_t> bins, const std::vector<std::uint32_t>& sizes) : bins_(std::move(bins)) {
    std::map<std::uint32_t, std::uint32_t, std::greater<>> counts;
    for (const std::uint32_t size : sizes) ++counts[size];
    for (const auto& [size, count] : counts) {
      sizes_.push_back(size);
      left_.push_back(count);
    }
  }

  /// `slack`: how much of all bins may stay empty.
  bool solve(std::uint32_t slack) { return fill_from(0, slack); }

 private:
  bool fill_from(std::size_t bin, std::uint32_t slack) {
    const auto largest = std::find_if(left_.begin(), left_.end(), [](std::uint32_t count) { return count > 0; });
    if (largest == left_.end()) return true;
    if (bin == bins_.size()) return false;
    const std::vector<std::uint32_t> before = left_;
    if (failed_.count({bin, before}) != 0) return false;
    // Some bin holds a largest one. Where all that follow are alike, let it be this one.
    const std::uint32_t least = bins_[bin] == bins_.back() ? 1 : 0;
    const auto place = static_cast<std::size_t>(largest - left_.begin());
    if (add(bin, place, bins_[bin], slack, least)) return true;
    failed_.emplace(bin, before);
    return false;
  }

  /// Adds sizes from `place` on to the bin, which has `room` left, the larger ones first, and as many as possible
  /// first; at least `least` of the first.
  bool add(std::size_t bin, std::size_t place, std::uint32_t room, std::uint32_t slack, std::uint32_t least) {
    if (place == sizes_.size()) return room <= slack && fill_from(bin + 1, slack - room);
    const std::uint32_t most = std::min(left_[place], room / sizes_[place]);
    for (std::uint32_t count = most + 1; count-- > least;) {
      left_[place] -= count;
      if (add(bin, place + 1, room - count * sizes_[place], slack, 0)) return true;
      left_[place] += count;
    }
    return false;
  }

  const std::vector<std::uint32_t> bins_;  ///< the largest first
  std::vector<std::uint32_t> sizes_;       ///< different ones, the largest first
  std::vector<std::uint32_t> left_;        ///< how many of each are in no bin
  /// Bins from which on these counts do not fit. What is left says how much of the bins before it stayed empty.
  std::set<std::pair<std::size_t, std::vector<std::uint32_t>>> failed_;
};

}  // namespace

bool fits(std::vector<std::uint32_t> bins, std::vector<std::uint32_t> sizes) {
  const std::uint32_t room = std::accumulate(bins.begin(), bins.end(), 0U);
  const std::uint32_t wanted = std::accumulate(sizes.begin(), sizes.end(), 0U);
  if (wanted > room) return false;
  std::sort(bins.begin(), bins.end(), std::greater<>());
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  return fits_greedily(bins, sizes) || Packing(std::move(bins), sizes).solve(room - wanted);
}

}  // namespace topolet::bench
