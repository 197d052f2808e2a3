// Node sets to consider on machines where not every node set is a candidate.
#pragma once

#include <topolet/policy.hpp>

#include <vector>

#include "plugins/gpu/container_devices.hpp"

namespace topolet::gpu {

/// For devices on several nodes: a small set of nodes that each device is local to one of and, if the container needs
/// more CPUs than are free there, that set with the nearest other nodes. None otherwise.
std::vector<sdk::Set> node_sets_near_devices(const topolet_request& request, const ContainerDevices& container);

}  // namespace topolet::gpu
