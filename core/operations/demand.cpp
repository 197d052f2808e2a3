#include "core/operations/demand.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/index_set.hpp"

namespace topolet::operations {
namespace {

constexpr std::int64_t kMinShares = 2;
constexpr std::int64_t kMaxShares = 262144;
constexpr std::int64_t kSharesPerCpu = 1024;
constexpr std::int64_t kDefaultPeriodUs = 100000;
constexpr std::int64_t kMinQuotaUs = 1000;  // the kubelet's, and the kernel's
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

template <class T>
void take_if_absent(std::optional<T>& into, const std::optional<T>& from) {
  if (!into) into = from;
}

constexpr std::int64_t kMaxWeight = 10000;

std::int64_t shares_of(std::int64_t milli) { return std::max(kMinShares, milli * kSharesPerCpu / 1000); }

/// https://github.com/kubernetes/enhancements/tree/master/keps/sig-node/2254-cgroup-v2
std::int64_t linear_weight(std::int64_t shares) {
  const std::int64_t told = std::clamp(shares, kMinShares, kMaxShares);  // as the kernel does with cgroup v1
  return 1 + (told - kMinShares) * (kMaxWeight - 1) / (kMaxShares - kMinShares);
}

/// Shares of 1024, one CPU, are the kernel's default of 100: opencontainers/cgroups, ConvertCPUSharesToCgroupV2Value().
std::int64_t quadratic_weight(std::int64_t shares) {
  if (shares <= kMinShares) return 1;
  if (shares >= kMaxShares) return kMaxWeight;
  const double l = std::log2(static_cast<double>(shares));
  return static_cast<std::int64_t>(std::ceil(std::pow(10, (l * l + 125 * l) / 612.0 - 7.0 / 34.0)));
}

/// The most thousandths of a CPU whose weight is no more than this.
template <class Formula>
std::int64_t most_milli_with(std::int64_t weight, Formula formula) {
  std::int64_t low = 0;
  std::int64_t high = placement::kMostMilliInShares;
  while (low < high) {
    const std::int64_t middle = low + (high - low + 1) / 2;
    if (formula(shares_of(middle)) <= weight) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return shares_of(low) <= kMinShares ? 0 : low;
}

using HugePages = std::map<std::string, std::int64_t>;

struct CpuRequest {
  std::int64_t milli = 0;
  placement::Certainty certainty = placement::Certainty::kTold;
};

/// Returns the request of a container whose runtime tells no shares.
CpuRequest request_of_weight(std::int64_t weight, placement::Qos qos, std::int64_t limit_milli, std::size_t seen_cpus) {
  const std::int64_t seen_shares = shares_of(static_cast<std::int64_t>(std::min<std::size_t>(seen_cpus, 256)) * 1000);
  const bool is_of_seen = linear_weight(seen_shares) == weight || quadratic_weight(seen_shares) == weight;
  if (qos == placement::Qos::kGuaranteed && seen_cpus > 0 && is_of_seen)
    return {static_cast<std::int64_t>(seen_cpus) * 1000, placement::Certainty::kTold};
  const WeightReading reading = read_cpu_weight(weight);
  if (reading.most_milli == 0) return {};
  // Nobody requests more than the limit: what does not fit was made by the other formula.
  const bool fits = limit_milli <= 0 || reading.most_milli <= limit_milli;
  const std::int64_t milli = fits ? reading.most_milli : std::min(reading.least_milli, limit_milli);
  return {milli, placement::Certainty::kEstimated};
}

CpuRequest cpu_request_of(const ToldResources& told, placement::Qos qos, std::int64_t limit_milli,
                          std::size_t seen_cpus) {
  if (qos == placement::Qos::kBestEffort) return {};
  if (told.cpu_shares) return {cpu_request_milli(*told.cpu_shares, limit_milli)};
  if (qos == placement::Qos::kGuaranteed && limit_milli > 0) return {limit_milli};
  if (told.cpu_weight) return request_of_weight(*told.cpu_weight, qos, limit_milli, seen_cpus);
  return {limit_milli > 0 ? limit_milli : placement::kCountedForUnknownMilli, placement::Certainty::kUnknown};
}

placement::Qos qos_of(const ToldResources& told) {
  if (told.qos) return *told.qos;
  return told.oom_score_adj ? qos_of_oom_score_adj(*told.oom_score_adj) : placement::Qos::kUnknown;
}

}  // namespace

void ToldResources::fill_in(const ToldResources& other) {
  take_if_absent(qos, other.qos);
  // A quota is meant with its own period.
  if (!cpu_quota_us) cpu_period_us = other.cpu_period_us;
  take_if_absent(cpu_quota_us, other.cpu_quota_us);
  if (!cpu_shares) take_if_absent(cpu_weight, other.cpu_weight);
  take_if_absent(cpu_shares, other.cpu_shares);
  take_if_absent(memory_limit_bytes, other.memory_limit_bytes);
  take_if_absent(oom_score_adj, other.oom_score_adj);
  take_if_absent(hugepage_limit_bytes, other.hugepage_limit_bytes);
}

void ToldResources::correct(const ToldResources& kernel) {
  // The kernel shows some shares of a container too that nobody has given any.
  if (cpu_shares.value_or(0) > 0) {
    if (kernel.cpu_shares) cpu_shares = kernel.cpu_shares;
    const std::int64_t weight = kernel.cpu_weight.value_or(0);
    const bool is_same = weight == linear_weight(*cpu_shares) || weight == quadratic_weight(*cpu_shares);
    if (weight > 0 && !is_same) cpu_shares.reset();
  }
  if (kernel.cpu_quota_us) {
    cpu_quota_us = kernel.cpu_quota_us;
    cpu_period_us = kernel.cpu_period_us;
  }
  if (kernel.memory_limit_bytes) memory_limit_bytes = kernel.memory_limit_bytes;
}

bool tells_all(const ToldResources& told) {
  return (told.qos || told.oom_score_adj) && told.cpu_quota_us && told.cpu_shares && told.memory_limit_bytes &&
         told.hugepage_limit_bytes;
}

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

std::int64_t cpu_period_us(std::int64_t quota_us, std::int64_t period_us) {
  if (quota_us <= 0) return 0;
  return period_us > 0 ? period_us : kDefaultPeriodUs;
}

std::optional<CfsQuota> quota_of(const placement::Demand& demand) {
  if (demand.cpu_limit_milli <= 0) return std::nullopt;
  const std::int64_t period = demand.cpu_period_us > 0 ? demand.cpu_period_us : kDefaultPeriodUs;
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() / period;
  return CfsQuota{std::max(kMinQuotaUs, std::min(demand.cpu_limit_milli, most) * period / 1000), period};
}

std::int64_t cpu_request_milli(std::int64_t shares, std::int64_t limit_milli) {
  if (shares <= kMinShares) return 0;
  if (shares >= kMaxShares) return std::max(placement::kMostMilliInShares, limit_milli);
  return milli_rounded_up(shares, kSharesPerCpu);
}

WeightReading read_cpu_weight(std::int64_t weight) {
  const std::int64_t linear = most_milli_with(weight, linear_weight);
  const std::int64_t quadratic = most_milli_with(weight, quadratic_weight);
  return {std::max(linear, quadratic), std::min(linear, quadratic)};
}

MemoryRequest memory_request(placement::Qos qos, std::int64_t oom_score_adj, std::int64_t limit_bytes,
                             std::int64_t memory_total_bytes) {
  if (qos == placement::Qos::kGuaranteed) return {std::max<std::int64_t>(limit_bytes, 0), false};
  if (qos != placement::Qos::kBurstable || memory_total_bytes <= 0) return {};
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
          .hugepage_limit_bytes = raw.hugepage_limit_bytes,
          .oom_score_adj = memory.estimated ? raw.oom_score_adj : 0,
          .cpu_period_us = cpu_period_us(raw.cpu_quota_us, raw.cpu_period_us)};
}

KnownDemand demand_of(const ToldResources& told, std::size_t seen_cpus, std::int64_t memory_total_bytes) {
  const placement::Qos qos = qos_of(told);
  const RawResources raw{.cpu_period_us = told.cpu_period_us.value_or(0),
                         .cpu_quota_us = told.cpu_quota_us.value_or(0),
                         .cpu_shares = told.cpu_shares.value_or(0),
                         .memory_limit_bytes = told.memory_limit_bytes.value_or(0),
                         .oom_score_adj = told.oom_score_adj.value_or(0),
                         .hugepage_limit_bytes = told.hugepage_limit_bytes.value_or(HugePages())};
  KnownDemand known{qos, demand_of(raw, qos, memory_total_bytes)};
  const CpuRequest request = cpu_request_of(told, qos, known.demand.cpu_limit_milli, seen_cpus);
  known.demand.cpu_request_milli = request.milli;
  known.demand.cpu_request_certainty = request.certainty;
  return known;
}

}  // namespace topolet::operations
