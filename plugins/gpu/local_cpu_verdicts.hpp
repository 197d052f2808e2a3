// Verdicts and minimums for containers with devices that are local to CPUs rather than to nodes (local_cpus.hpp).
#pragma once

#include <topolet/policy.hpp>

#include <string>
#include <vector>

#include "plugins/gpu/container_devices.hpp"
#include "plugins/gpu/cpu_split.hpp"
#include "plugins/gpu/options.hpp"

namespace topolet::gpu {

/// If all devices are local to CPUs without a node: one verdict for each candidate, by the share of the CPUs that are
/// local. None otherwise.
std::vector<sdk::Verdict> local_cpu_verdicts(const topolet_request& request, const ContainerDevices& container,
                                             const Rules& rules);

/// Splits the CPUs of an exclusive container evenly among the devices, in whole cores where the rules ask for them.
std::vector<CpuMinimum> split_by_local_cpus(const topolet_pick_request& picking, const ContainerDevices& container,
                                            const Rules& rules);

/// If none of the chosen CPUs is local to a device that usable ones are local to: says so. Empty otherwise.
std::string missed_local_cpus(const topolet_pick_request& picking, const ContainerDevices& container);

}  // namespace topolet::gpu
