// Containers without devices, under the option keep-free.
#pragma once

#include <topolet/policy.hpp>

#include <optional>
#include <vector>

#include "plugins/gpu/cpu_split.hpp"
#include "plugins/gpu/options.hpp"

namespace topolet::gpu {

/// Keeps the container off the nodes of GPUs while there is room elsewhere; where there is room for a part only, as
/// much of it as possible. One that requests nothing is kept to all the other nodes together. No verdicts if the
/// machine has no GPUs, or has them on all nodes.
std::vector<sdk::Verdict> keep_free_verdicts(const topolet_request& request, const Rules& rules);

/// All nodes without GPUs, for a container that requests nothing; nothing for others, and if there are none or one.
std::optional<sdk::Set> nodes_kept_free_of_gpus(const topolet_request& request);

/// Prefers CPUs away from GPUs, as many as possible, and then those beside the GPUs of as few nodes as possible.
std::vector<CpuMinimum> split_keeping_free(const topolet_pick_request& picking, const Rules& rules);

}  // namespace topolet::gpu
