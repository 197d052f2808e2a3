// Choice of CPUs of a node set for a container with devices.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include "plugins/gpu/container_devices.hpp"
#include "plugins/gpu/options.hpp"

namespace topolet::gpu {

/// At least `count` of these CPUs.
struct CpuMinimum {
  sdk::Set cpus;
  std::size_t count = 0;
};

/// Splits the CPUs of an exclusive container among nodes, the most important minimum first: some on a node of every
/// device, in proportion to the devices there; then as many as possible beside devices; then the nearest. Nothing where
/// there is no choice. With whole cores: only CPUs of cores that are free as a whole, in multiples of a core's threads.
std::vector<CpuMinimum> split_among_nodes(const topolet_pick_request& picking, const ContainerDevices& container,
                                          const Rules& rules);

/// Names the devices to which free CPUs are local but the chosen ones are not; empty if there are none.
std::string missed_devices(const topolet_pick_request& picking, const ContainerDevices& container, const Rules& rules);

/// Returns true if the CPUs have been chosen already, and are only to be judged.
bool has_chosen_cpus(const topolet_pick_request& picking);

/// False if every choice of CPUs is equally near to any device, as among those of one node.
bool has_choice(const topolet_pick_request& picking);

}  // namespace topolet::gpu
