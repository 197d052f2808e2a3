// From the numbers of the CRI back to what the pod asked for. Pure functions; any input is fine, nonsense included.
//
// The kubelet turns requests and limits into cgroup numbers before it calls the runtime. These functions invert its
// formulas (MilliCPUToShares and MilliCPUToQuota in pkg/kubelet/cm, GetContainerOOMScoreAdjust in pkg/kubelet/qos).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/placement/workload.hpp"

namespace topolet::operations {

/// A container's resources as the CRI carries them. 0 = not set.
struct RawResources {
  std::int64_t cpu_period_us = 0;
  std::int64_t cpu_quota_us = 0;
  std::int64_t cpu_shares = 0;
  std::int64_t memory_limit_bytes = 0;
  std::int64_t oom_score_adj = 0;
  std::map<std::string, std::int64_t> hugepage_limit_bytes;  ///< by page size
};

/// How much CPU time a cgroup may use in each period.
struct CfsQuota {
  std::int64_t quota_us = 0;  ///< -1 = as much as it likes
  std::int64_t period_us = 0;

  friend bool operator==(const CfsQuota&, const CfsQuota&) = default;
};

/// The quota that enforces the CPU limit of `demand`, as the kubelet computes it; none without a limit.
std::optional<CfsQuota> quota_of(const placement::Demand& demand);

/// The resources of a container that was found, by whoever tells them. A value that is absent was not told; 0 and
/// below mean that none is set, as in the CRI.
struct ToldResources {
  std::optional<placement::Qos> qos = {};
  std::optional<std::int64_t> cpu_period_us = {};
  std::optional<std::int64_t> cpu_quota_us = {};
  std::optional<std::int64_t> cpu_shares = {};
  std::optional<std::int64_t> cpu_weight = {};  ///< cgroup v2, which has no shares
  std::optional<std::int64_t> memory_limit_bytes = {};
  std::optional<std::int64_t> oom_score_adj = {};
  std::optional<std::map<std::string, std::int64_t>> hugepage_limit_bytes = {};
  std::optional<NodeSet> mems = {};  ///< the kernel only: what its cpuset was set to

  /// Takes from `other` the values that are not told here.
  void fill_in(const ToldResources& other);
  /// Takes what `kernel` shows of a container that runs where the values here may be older.
  void correct(const ToldResources& kernel);

  friend bool operator==(const ToldResources&, const ToldResources&) = default;
};

/// Returns true if nobody else need be asked.
bool tells_all(const ToldResources& told);

/// The QoS class that a pod's cgroup names, cgroupfs ("/kubepods/burstable/podUID") or systemd
/// ("kubepods-burstable-podUID.slice", alone or at the end of its path), below any cgroup root; also what the runtime
/// spec makes of it ("SLICE:PREFIX:ID"). Nothing unless a pod's place below kubepods is named.
std::optional<placement::Qos> qos_of_cgroup(std::string_view cgroup);

/// The class that an oom_score_adj of the kubelet belongs to: −997 and below guaranteed, 1000 and above besteffort.
/// Everything else, 0 included, is burstable: nobody is guaranteed by default.
placement::Qos qos_of_oom_score_adj(std::int64_t oom_score_adj);

/// Thousandths of a CPU; 0 for "no limit" (quota 0 or negative). A period of 0 is the kernel's 100 ms.
/// The kubelet: quota = milli × period / 1000, rounded down; so the inverse rounds up.
std::int64_t cpu_limit_milli(std::int64_t quota_us, std::int64_t period_us);
/// The period that this limit is meant with; 0 for "no limit".
std::int64_t cpu_period_us(std::int64_t quota_us, std::int64_t period_us);

/// Thousandths of a CPU; 0 for "no request" (2 shares or fewer).
/// The kubelet: shares = milli × 1024 / 1000, rounded down, at least 2, at most 262144 (256 CPUs). Rounding the inverse
/// up gives every request from 3m to 256 CPUs back exactly. At the maximum the limit says how much is meant.
std::int64_t cpu_request_milli(std::int64_t shares, std::int64_t limit_milli);

/// The request that a cpu.weight of cgroup v2 tells, in thousandths of a CPU: runtimes make it of the shares by one
/// of two formulas, and several shares have the same weight.
struct WeightReading {
  std::int64_t most_milli = 0;   ///< the most with that weight by the older formula, of which one CPU has 39
  std::int64_t least_milli = 0;  ///< the same by the newer one, of which one CPU has 100
};
WeightReading read_cpu_weight(std::int64_t weight);

struct MemoryRequest {
  std::int64_t bytes = 0;  ///< 0 = none or unknown
  bool estimated = false;

  friend bool operator==(const MemoryRequest&, const MemoryRequest&) = default;
};

/// The CRI does not carry memory requests. Guaranteed: the limit. Burstable: read from
/// oom_score_adj = 1000 − 1000 × request / MemTotal, in steps of 0.1 % of the machine; unknown at −997 (a critical pod)
/// and at the ends 3 and 999, where the kubelet clamps. Never more than the limit.
MemoryRequest memory_request(placement::Qos qos, std::int64_t oom_score_adj, std::int64_t limit_bytes,
                             std::int64_t memory_total_bytes);

/// `memory_total_bytes`: the machine's MemTotal, 0 = unknown.
placement::Demand demand_of(const RawResources& raw, placement::Qos qos, std::int64_t memory_total_bytes);

struct KnownDemand {
  placement::Qos qos = placement::Qos::kUnknown;
  placement::Demand demand;
};
/// Returns the demand of a container that was found. A request that nobody tells is unknown: it counts as its limit, or
/// as one CPU. `seen_cpus`: on how many CPUs the kernel has it; 0 = not told. Of a Guaranteed container they tell a
/// whole request that its weight alone does not.
KnownDemand demand_of(const ToldResources& told, std::size_t seen_cpus, std::int64_t memory_total_bytes);

}  // namespace topolet::operations
