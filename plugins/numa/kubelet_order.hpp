// The CPUs that the kubelet's static CPU manager would give a container.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugins/numa/layout.hpp"

namespace topolet::numa {

/// The kubelet's options of the same names, as far as they shape which CPUs are taken.
struct KubeletOrder {
  bool full_pcpus_only = false;
  bool distribute_cpus_across_numa = false;
  bool distribute_cpus_across_cores = false;
  bool prefer_align_cpus_by_uncorecache = false;
};

/// Up to this many nodes with free CPUs every combination is tried to distribute over, as the kubelet does; above, only
/// the one with most free CPUs of each width.
inline constexpr std::size_t kExactNodes = 8;

/// `wanted` of the usable CPUs by OS index, in the order they are taken; nothing if there are fewer. What the kubelet
/// does (1.36, pkg/kubelet/cm/cpumanager/cpu_assignment.go), with two exceptions where it has CPUs of unequal cores or
/// packages in mind that all are alike: here a core, cache, node or package is free if all of its own CPUs are, and
/// only CPUs that are usable are ever taken.
std::vector<std::uint32_t> kubelet_order(const Layout& layout, topolet_set usable, std::size_t wanted,
                                         const KubeletOrder& options);

/// Only the first step of it: whole free packages and nodes, as many as fit into `wanted`, by OS index.
std::vector<std::uint32_t> whole_nodes(const Layout& layout, topolet_set usable, std::size_t wanted);

}  // namespace topolet::numa
