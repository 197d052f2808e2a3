// What schedulers of other projects write to a pod about NUMA nodes and CPUs.
#pragma once

#include <topolet/policy.hpp>

#include <string>
#include <string_view>

namespace topolet::foreign_zone {

/// Of koord-scheduler: {"cpuset":"0-3","numaNodeResources":[{"node":0,"resources":{"cpu":"4"}}]}, of the whole pod.
inline constexpr std::string_view kKoordinator = "scheduling.koordinator.sh/resource-status";
/// Of crane-scheduler: [{"name":"node0","type":"Node","resources":{"capacity":{"cpu":"2"}}}], of the whole pod.
inline constexpr std::string_view kCrane = "topology.crane.io/topology-result";

struct ForeignZone {
  std::string_view annotation = {};  ///< that says it; empty: none does
  /// By OS index; none: not said. Those where CPUs are reserved, or without any of these memory: what is said of other
  /// resources, such as GPUs, is no place for CPUs.
  sdk::Set nodes = {};
  sdk::Set cpus = {};      ///< the same
  std::string error = {};  ///< why it cannot be read, with annotation and value; empty: it can

  bool is_said() const { return !nodes.empty() || !cpus.empty(); }
};

/// Of two annotations that of Koordinator counts, if it says anything. One that cannot be read says nothing.
ForeignZone read_foreign_zone(topolet_kvs pod_annotations);

}  // namespace topolet::foreign_zone
