// The CPUs that the kubelet's static CPU manager would give a container.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugins/numa/layout.hpp"

namespace topolet::numa {

/// Those options of the kubelet's CPU manager, by their names, that decide which CPUs are taken.
struct KubeletOrder {
  bool full_pcpus_only = false;
  bool distribute_cpus_across_numa = false;
  bool distribute_cpus_across_cores = false;
  bool prefer_align_cpus_by_uncorecache = false;
  /// Not the kubelet's: with distribute_cpus_across_cores, of the cores those come first that nobody else is on.
  bool idle_cores_first = false;
};

/// Up to this many nodes with free CPUs, every set of them is tried for distribute-cpus-across-numa, as the kubelet
/// does; with more nodes, of each size only the set with the most free CPUs.
inline constexpr std::size_t kExactNodes = 8;

/// `wanted` of the usable CPUs by OS index, in the order in which they are taken; empty if there are fewer. It follows
/// the kubelet (1.36, pkg/kubelet/cm/cpumanager/cpu_assignment.go) except where the kubelet assumes that all cores,
/// caches, nodes or packages are of equal size: here each is free if all of its own CPUs are, and only usable CPUs are
/// taken.
std::vector<std::uint32_t> kubelet_order(const Layout& layout, topolet_set usable, std::size_t wanted,
                                         const KubeletOrder& options);

/// The first step of that alone: free whole packages and nodes, as many as fit into `wanted`, by OS index.
std::vector<std::uint32_t> whole_nodes(const Layout& layout, topolet_set usable, std::size_t wanted);

}  // namespace topolet::numa
