// Everything that the core knows of one container to be placed. Plain values.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/shared_string_map.hpp"

namespace topolet::placement {

enum class Qos : std::uint8_t {
  kGuaranteed,
  kBurstable,
  kBestEffort,
  kUnknown,  ///< of a container that was found: neither the runtime nor the kernel tells
};

std::string_view to_string(Qos qos);  // "guaranteed", "burstable", "besteffort", "unknown"

/// The source from which the requested amount is known.
enum class Certainty : std::uint8_t {
  kTold,       ///< as it was asked for
  kEstimated,  ///< at most so much: what the kernel shows is rounded
  kUnknown,    ///< nobody tells: the amount is what is counted for it
  kOfPod,      ///< it requests none of its own: the amount is what its pod requests beyond its other containers
};

std::string_view to_string(Certainty certainty);  // "told", "estimated", "unknown", "pod"

/// The identity that a create and its retry share. A restarted container comes with the next attempt.
struct ContainerKey {
  std::string pod_uid;
  std::string name;
  std::uint32_t attempt = 0;
  std::string sandbox_id;  ///< pods made by hand may share a uid

  friend auto operator<=>(const ContainerKey&, const ContainerKey&) = default;  // NOLINT(modernize-use-nullptr)
};

struct Demand {
  std::int64_t cpu_request_milli = 0;     ///< thousandths of a CPU; 0 = none
  std::int64_t cpu_limit_milli = 0;       ///< 0 = unlimited
  std::int64_t memory_request_bytes = 0;  ///< 0 = none or unknown
  bool memory_request_estimated = false;  ///< read from oom_score_adj, in steps of 0.1 % of the machine
  std::int64_t memory_limit_bytes = 0;    ///< 0 = unlimited
  std::map<std::string, std::int64_t> hugepage_limit_bytes;  ///< by page size as the CRI writes it, such as "2MB"
  Certainty cpu_request_certainty = Certainty::kTold;
  std::int64_t oom_score_adj = 0;  ///< that the memory request was read from; 0: none
  /// The period of the CFS quota that enforces the CPU limit, µs; 0 = there is no limit, or it is unknown.
  std::int64_t cpu_period_us = 0;

  friend bool operator==(const Demand&, const Demand&) = default;
};

/// The most that a CPU request is told as where only shares tell it: it may be that, or anything above. A limit says
/// how much is meant.
inline constexpr std::int64_t kMostMilliInShares = 256000;
bool is_cpu_request_unknown(const Demand& demand);

/// Returns true if a container that asked for `before` needs more memory, or more huge pages of some size, if it asks
/// for `after`. Its need is its request, or its limit if the request is not known.
bool needs_more_memory(const Demand& before, const Demand& after);

/// The CPU request that is counted for a container whose request and limit are unknown.
constexpr std::int64_t kCountedForUnknownMilli = 1000;

struct Workload {
  ContainerKey key;
  std::string pod_name;
  std::string pod_namespace;
  std::string runtime_handler;  ///< empty for the runtime's default
  Qos qos = Qos::kBestEffort;
  Demand demand;
  CpuSet kubelet_cpus;                   ///< the request's own cpuset, a bound; empty = none
  NodeSet kubelet_mems;                  ///< the request's own memory nodes; empty = none
  SharedStringMap kubelet_unified;       ///< the files of its cgroup v2 that the request itself sets
  std::vector<std::string> devices;      ///< host paths
  std::vector<std::string> cdi_devices;  ///< fully qualified names
  std::vector<std::pair<std::string, std::string>>
      env;  ///< values are secrets: never stored, logged or put into a reason
  SharedStringMap pod_labels;
  SharedStringMap pod_annotations;
  SharedStringMap annotations;  ///< the container's own
  /// The topolet.io/ annotations that count for the container, without that prefix; its own word before the pod's.
  SharedStringMap settings;
  std::optional<Demand> pod_demand;  ///< of the whole pod; absent where the request does not tell
  NodeSet pod_nodes;                 ///< of the candidate that the pod's first container was given
  /// Devices of the topology that policies said it uses when it was placed for the first time, by PCI address or,
  /// without one, by the name of the OS device.
  std::vector<std::string> used_devices;
  /// The tags that policies have set for it, by "POLICY/KEY".
  SharedStringMap tags;
  bool made_by_kubelet = false;  ///< of a create, by its labels; never stored

  friend bool operator==(const Workload&, const Workload&) = default;
};

/// Returns true if its QoS class or its CPU request is unknown: it is then not given a class that may be wrong, and
/// stays where it is seen.
bool is_unknown(const Workload& workload);

/// Returns a container's name for people: NAMESPACE/POD/CONTAINER.
std::string display_name(std::string_view pod_namespace, std::string_view pod, std::string_view container);
std::string display_name(const Workload& workload);

}  // namespace topolet::placement
