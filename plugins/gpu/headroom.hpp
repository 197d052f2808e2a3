// Containers without devices, under the option headroom: room for CPUs beside GPUs that nobody uses yet.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "plugins/gpu/pod.hpp"
#include "plugins/gpu/verdicts.hpp"

namespace topolet::gpu {

/// How many CPUs beside each unused GPU are not to be taken by containers without devices, while there are others.
struct Headroom {
  /// Absent: the allowed CPUs of the GPU's node, divided by its GPUs. 0: none.
  std::optional<std::size_t> cpus_per_gpu;

  bool is_off() const { return cpus_per_gpu == 0U; }
};

/// "auto", or a number of CPUs. Throws std::invalid_argument for anything else.
Headroom parse_headroom(std::string_view text);

/// Ranks candidates of as many nodes for a container with exclusive CPUs and without devices: by the CPUs they take
/// that unused GPUs will want, the fewest first; then, at nodes with GPUs, the emptier first. The best get 0 points,
/// the others -2 to -7, which with the plugin's default weight is less than numa subtracts for one more node. Returns
/// none if they cost all the same, or if no GPU is unused.
///
/// A pod stays together: where its other containers are, a container costs nothing; and the first one counts with all
/// that the pod requests, on the candidates that have room for it.
std::vector<Verdict> headroom_verdicts(const topolet_request& request, const Headroom& headroom, const Pod& pod);

}  // namespace topolet::gpu
