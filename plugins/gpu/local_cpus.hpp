// Devices that are local to a part of a node's CPUs only, or to CPUs that belong to no node.
#pragma once

#include <topolet/policy.hpp>

#include <string>
#include <vector>

#include "plugins/gpu/cpu_split.hpp"

namespace topolet::gpu {

/// A device and the CPUs that are local to it.
struct LocalCpus {
  std::string device;
  sdk::Set cpus;
  bool has_node = false;
};

/// Returns the devices whose local CPUs are not simply those of their nodes.
std::vector<LocalCpus> local_cpus_of(const topolet_topology& topology, const ContainerDevices& container);

/// If all devices are local to CPUs without a node: one verdict for each candidate, by the share of the CPUs that are
/// local. None otherwise.
std::vector<Verdict> local_cpu_verdicts(const topolet_request& request, const ContainerDevices& container,
                                        const Rules& rules);

/// Splits the CPUs of an exclusive container evenly among the devices, in whole cores where the rules ask for them.
std::vector<CpuMinimum> split_by_local_cpus(const topolet_pick_request& picking, const ContainerDevices& container,
                                            const Rules& rules);

/// Names the devices to which usable CPUs are local but none of the chosen ones is; empty if there are none.
std::string missed_local_cpus(const topolet_pick_request& picking, const ContainerDevices& container);

}  // namespace topolet::gpu
