// What the core knows of one container to be placed. Plain values.
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

enum class Qos : std::uint8_t { kGuaranteed, kBurstable, kBestEffort };

std::string_view to_string(Qos qos);  // "guaranteed", "burstable", "besteffort"

/// What stays the same between a create and its retry. A restarted container comes with the next attempt.
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

  friend bool operator==(const Demand&, const Demand&) = default;
};

/// The most that a CPU request is told as where only shares tell it: it may be that, or anything above. A limit says
/// how much is meant.
inline constexpr std::int64_t kMostMilliInShares = 256000;
bool is_cpu_request_unknown(const Demand& demand);

/// Whether a container that asked for `before` needs more memory, or more huge pages of some size, if it asks for
/// `after`. What it needs is its request, or its limit where the request is not known.
bool needs_more_memory(const Demand& before, const Demand& after);

struct Workload {
  ContainerKey key;
  std::string pod_name;
  std::string pod_namespace;
  std::string runtime_handler;  ///< empty for the runtime's default
  Qos qos = Qos::kBestEffort;
  Demand demand;
  CpuSet kubelet_cpus;                   ///< the request's own cpuset, a bound; empty = none
  NodeSet kubelet_mems;                  ///< the request's own memory nodes; empty = none
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

  friend bool operator==(const Workload&, const Workload&) = default;
};

/// How people name a container: NAMESPACE/POD/CONTAINER.
std::string display_name(std::string_view pod_namespace, std::string_view pod, std::string_view container);
std::string display_name(const Workload& workload);

}  // namespace topolet::placement
