// What the candidates are worth to a container with devices, or without.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/gpu/search.hpp"

namespace topolet::gpu {

enum class Affinity : std::uint8_t { kPrefer, kRequire };

/// What the options ask for.
struct Rules {
  Affinity affinity = Affinity::kPrefer;
  bool whole_cores = false;  ///< numa.full-pcpus-only
};

using sdk::Verdict;

/// For a container with devices: one verdict for each candidate. 100 where all devices are local, less by the share and
/// the distance of those that are not; among equals less where CPUs are far from the devices, or these from each other.
std::vector<Verdict> judge(const topolet_request& request, const Sought& sought, const Rules& rules);

/// For a container without devices: keeps it off the nodes of GPUs while there is room elsewhere, and as much of it as
/// can be where there is room for a part only. No verdicts where there is nothing to say.
std::vector<Verdict> judge_keeping_free(const topolet_request& request, const Rules& rules);

}  // namespace topolet::gpu
