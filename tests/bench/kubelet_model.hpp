// Where the kubelet would put exclusive CPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/topology/topology.hpp"

namespace topolet::bench {

/// The CPUs that the static CPU manager takes of `available`, which has that many: takeByTopologyNUMAPacked in
/// pkg/kubelet/cm/cpumanager/cpu_assignment.go (1.36), without options. Whole nodes and packages first, then whole
/// cores, then threads; at each step those with the fewest available CPUs, then the lowest.
CpuSet take_by_topology(const topology::Topology& topology, CpuSet available, std::size_t count);

/// Topology Manager with policy best-effort and scope container, and static CPU manager, for containers without
/// devices: the lowest of the narrowest sets of NUMA nodes that have enough CPUs free, and if none has, nothing. Unlike
/// in the kubelet no CPU is reserved. At most 16 nodes.
class KubeletModel {
 public:
  explicit KubeletModel(std::shared_ptr<const topology::Topology> topology);

  /// Nothing if too few CPUs are free.
  std::optional<CpuSet> admit(std::size_t pod, std::size_t cpus);
  /// A pod that was not admitted may end, too.
  void end(std::size_t pod);

 private:
  CpuSet narrowest_with(std::size_t cpus) const;

  std::shared_ptr<const topology::Topology> topology_;
  std::vector<CpuSet> masks_;  ///< CPUs of each set of nodes, in the order in which the kubelet prefers them
  CpuSet free_;
  std::map<std::size_t, CpuSet> pods_;
};

}  // namespace topolet::bench
