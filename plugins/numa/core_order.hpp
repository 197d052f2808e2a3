// The order in which a container is given CPUs unless the kubelet's is asked for.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>

#include "plugins/numa/policy.hpp"

namespace topolet::numa {

/// All usable CPUs, those to take first for a request of `wanted`: whole free cores, those of one last-level cache
/// together, of the caches that hold the whole request the fullest or emptiest as the strategy says; what is left of
/// the request comes from cores that are already in use, if they have it.
CpuOrder core_order(const topolet_topology& topology, topolet_set usable, std::size_t wanted, Strategy strategy);

/// The same, but whole cores that add up to `wanted` come first if there are such, though others would be nearer.
CpuOrder whole_core_order(const topolet_topology& topology, topolet_set usable, std::size_t wanted, Strategy strategy);

}  // namespace topolet::numa
