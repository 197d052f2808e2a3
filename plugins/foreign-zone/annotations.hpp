// Annotations in which schedulers of other projects choose NUMA nodes and CPUs for a pod.
#pragma once

#include <topolet/policy.hpp>

#include <string>
#include <string_view>

namespace topolet::foreign_zone {

/// koord-scheduler's: {"cpuset":"0-3","numaNodeResources":[{"node":0,"resources":{"cpu":"4"}}]}, for the whole pod.
inline constexpr std::string_view kKoordinator = "scheduling.koordinator.sh/resource-status";
/// crane-scheduler's: [{"name":"node0","type":"Node","resources":{"capacity":{"cpu":"2"}}}], for the whole pod.
inline constexpr std::string_view kCrane = "topology.crane.io/topology-result";

struct ForeignZone {
  std::string_view annotation = {};  ///< that says it; empty: none does
  /// The nodes where CPUs are reserved, or if there are none, memory; empty if neither is. Nodes that are named for
  /// other resources, such as GPUs, do not tell where CPUs should be.
  sdk::Set nodes = {};
  sdk::Set cpus = {};      ///< the same
  std::string error = {};  ///< why it cannot be read, with annotation and value; empty: it can

  bool is_said() const { return !nodes.empty() || !cpus.empty(); }
};

/// Reads the annotations; Koordinator's counts before Crane's, if it chooses anything. One that cannot be read chooses
/// nothing.
ForeignZone read_foreign_zone(topolet_kvs pod_annotations);

}  // namespace topolet::foreign_zone
