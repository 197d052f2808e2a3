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

namespace topolet::cri {

/// A container's resources as the CRI carries them. 0 = not set.
struct RawResources {
  std::int64_t cpu_period_us = 0;
  std::int64_t cpu_quota_us = 0;
  std::int64_t cpu_shares = 0;
  std::int64_t memory_limit_bytes = 0;
  std::int64_t oom_score_adj = 0;
  std::map<std::string, std::int64_t> hugepage_limit_bytes;  ///< by page size
};

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

/// Thousandths of a CPU; 0 for "no request" (2 shares or fewer).
/// The kubelet: shares = milli × 1024 / 1000, rounded down, at least 2, at most 262144 (256 CPUs). Rounding the inverse
/// up gives every request from 3m to 256 CPUs back exactly. At the maximum the limit says how much is meant.
std::int64_t cpu_request_milli(std::int64_t shares, std::int64_t limit_milli);

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

}  // namespace topolet::cri
