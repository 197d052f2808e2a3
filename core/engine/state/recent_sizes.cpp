#include "core/engine/state/recent_sizes.hpp"

#include <algorithm>
#include <utility>

namespace topolet::engine {
namespace {

std::chrono::milliseconds begin_of_hour(std::chrono::milliseconds time) {
  return std::chrono::floor<std::chrono::hours>(time);
}

bool counts(const RecentSizes::Size& size, std::chrono::milliseconds now) {
  return begin_of_hour(now) - size.counted <= kSizeCounts;
}

}  // namespace

RecentSizes::RecentSizes(std::vector<Size> sizes) : sizes_(std::move(sizes)) {
  std::sort(sizes_.begin(), sizes_.end(), [](const Size& a, const Size& b) { return a.cpus < b.cpus; });
}

void RecentSizes::note(std::uint32_t cpus, std::chrono::milliseconds now) {
  const std::chrono::milliseconds hour = begin_of_hour(now);
  // None was placed later than now: the clock was set back while no daemon ran.
  for (Size& size : sizes_) size.counted = std::min(size.counted, hour);
  std::erase_if(sizes_, [&](const Size& size) { return size.cpus <= cpus || !counts(size, now); });
  const bool is_surpassed = !sizes_.empty() && sizes_.front().counted == hour;
  if (!is_surpassed) sizes_.insert(sizes_.begin(), {cpus, hour});
}

std::uint32_t RecentSizes::largest(std::chrono::milliseconds now) const {
  std::uint32_t most = 0;
  for (const Size& size : sizes_) {
    if (counts(size, now)) most = std::max(most, size.cpus);
  }
  return most;
}

void RecentSizes::shift(std::chrono::milliseconds by) {
  for (Size& size : sizes_) size.counted += by;
}

}  // namespace topolet::engine
