// Verdicts on the candidates for a container with devices.
#pragma once

#include <topolet/policy.hpp>

#include <vector>

#include "plugins/gpu/container_devices.hpp"
#include "plugins/gpu/options.hpp"

namespace topolet::gpu {

/// One verdict for each candidate. 100 where all devices are local; less by the share and the distance of those that
/// are not. Among equals, less where CPUs are far from the devices or the devices from each other. With Split::kCpus
/// sets of more nodes than would hold the exclusive CPUs get less than all others.
std::vector<sdk::Verdict> locality_verdicts(const topolet_request& request, const ContainerDevices& container,
                                            const Rules& rules);

}  // namespace topolet::gpu
