#include "core/cri/messages/demand.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/base/index_set.hpp"

namespace topolet::cri {
namespace {

constexpr std::int64_t kMinShares = 2;
constexpr std::int64_t kMaxShares = 262144;
constexpr std::int64_t kSharesPerCpu = 1024;
constexpr std::int64_t kDefaultPeriodUs = 100000;
constexpr std::int64_t kGuaranteedOomScoreAdj = -997;
constexpr std::int64_t kBestEffortOomScoreAdj = 1000;
constexpr std::int64_t kLowestBurstableOomScoreAdj = 3;
constexpr std::int64_t kHighestBurstableOomScoreAdj = 999;
/// More CPUs than a list can name; keeps sums of nonsense from overflowing.
constexpr std::int64_t kMaxMilli = (std::int64_t{kMaxOsIndex} + 1) * 1000;

/// ceil(value × 1000 / divisor), at most kMaxMilli. Both are positive.
std::int64_t milli_rounded_up(std::int64_t value, std::int64_t divisor) {
  if (value / divisor >= kMaxMilli / 1000) return kMaxMilli;
  std::int64_t scaled = 0;
  if (__builtin_mul_overflow(value, std::int64_t{1000}, &scaled)) return value / divisor * 1000;
  return scaled / divisor + (scaled % divisor != 0 ? 1 : 0);
}

std::string_view without_slice_suffix(std::string_view level) {
  constexpr std::string_view kSuffix = ".slice";
  return level.size() > kSuffix.size() && level.substr(level.size() - kSuffix.size()) == kSuffix
             ? level.substr(0, level.size() - kSuffix.size())
             : level;
}

void append_split(std::string_view text, char separator, std::vector<std::string_view>& parts) {
  while (true) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

/// The names along a cgroup path. A slice carries those of its parents, joined by "-", which the kubelet keeps out of
/// the names themselves.
std::vector<std::string_view> names_along(std::string_view cgroup) {
  std::vector<std::string_view> levels;
  append_split(cgroup.substr(0, cgroup.find(':')), '/', levels);
  std::vector<std::string_view> names;
  for (std::string_view level : levels) {
    const std::string_view name = without_slice_suffix(level);
    if (name.size() == level.size()) {
      names.push_back(level);
    } else {
      append_split(name, '-', names);
    }
  }
  return names;
}

}  // namespace

std::optional<placement::Qos> qos_of_cgroup(std::string_view cgroup) {
  const std::vector<std::string_view> names = names_along(cgroup);
  // The last one, because a kubelet may itself run in a pod.
  const auto kubepods = std::find(names.rbegin(), names.rend(), std::string_view("kubepods"));
  if (kubepods == names.rend() || kubepods == names.rbegin()) return std::nullopt;
  const std::string_view below = *std::prev(kubepods);
  if (below == "burstable") return placement::Qos::kBurstable;
  if (below == "besteffort") return placement::Qos::kBestEffort;
  if (below.size() > 3 && below.substr(0, 3) == "pod") return placement::Qos::kGuaranteed;
  return std::nullopt;
}

placement::Qos qos_of_oom_score_adj(std::int64_t oom_score_adj) {
  if (oom_score_adj <= kGuaranteedOomScoreAdj) return placement::Qos::kGuaranteed;
  if (oom_score_adj >= kBestEffortOomScoreAdj) return placement::Qos::kBestEffort;
  return placement::Qos::kBurstable;
}

std::int64_t cpu_limit_milli(std::int64_t quota_us, std::int64_t period_us) {
  if (quota_us <= 0) return 0;
  return milli_rounded_up(quota_us, period_us > 0 ? period_us : kDefaultPeriodUs);
}

std::int64_t cpu_request_milli(std::int64_t shares, std::int64_t limit_milli) {
  if (shares <= kMinShares) return 0;
  if (shares >= kMaxShares) return std::max(placement::kMostMilliInShares, limit_milli);
  return milli_rounded_up(shares, kSharesPerCpu);
}

MemoryRequest memory_request(placement::Qos qos, std::int64_t oom_score_adj, std::int64_t limit_bytes,
                             std::int64_t memory_total_bytes) {
  if (qos == placement::Qos::kGuaranteed) return {std::max<std::int64_t>(limit_bytes, 0), false};
  if (qos == placement::Qos::kBestEffort || memory_total_bytes <= 0) return {};
  if (oom_score_adj <= kLowestBurstableOomScoreAdj || oom_score_adj >= kHighestBurstableOomScoreAdj) return {};
  const std::int64_t steps = 1000 - oom_score_adj;
  const std::int64_t bytes = memory_total_bytes / 1000 * steps + memory_total_bytes % 1000 * steps / 1000;
  return {limit_bytes > 0 ? std::min(bytes, limit_bytes) : bytes, true};
}

placement::Demand demand_of(const RawResources& raw, placement::Qos qos, std::int64_t memory_total_bytes) {
  const MemoryRequest memory = memory_request(qos, raw.oom_score_adj, raw.memory_limit_bytes, memory_total_bytes);
  const std::int64_t limit_milli = cpu_limit_milli(raw.cpu_quota_us, raw.cpu_period_us);
  return {.cpu_request_milli = cpu_request_milli(raw.cpu_shares, limit_milli),
          .cpu_limit_milli = limit_milli,
          .memory_request_bytes = memory.bytes,
          .memory_request_estimated = memory.estimated,
          .memory_limit_bytes = std::max<std::int64_t>(raw.memory_limit_bytes, 0),
          .hugepage_limit_bytes = raw.hugepage_limit_bytes};
}

}  // namespace topolet::cri
