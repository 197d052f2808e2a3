// Containers without devices, under the option headroom: room for CPUs beside GPUs that nobody uses yet.
#pragma once

#include <topolet/policy.hpp>

#include <vector>

#include "plugins/gpu/options.hpp"
#include "plugins/gpu/pod.hpp"

namespace topolet::gpu {

/// For a container with exclusive CPUs and without devices: candidates are ranked among those of as many nodes by how
/// many of the CPUs they cost that unused GPUs will want; then, at nodes with GPUs, the emptier first. The best get 0
/// points, the others -2 to -7, which with the plugin's default weight is less than numa subtracts for one more node.
/// None if they cost all the same, and where no GPU is unused.
///
/// A pod stays together: where its other containers are, a container costs nothing; and the first one counts with all
/// that the pod requests, on the candidates that have room for it.
std::vector<sdk::Verdict> headroom_verdicts(const topolet_request& request, const Headroom& headroom, const Pod& pod);

}  // namespace topolet::gpu
