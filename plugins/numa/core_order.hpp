// The order in which a container gets CPUs, unless an option asks for the kubelet's order.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>

#include "plugins/numa/answers.hpp"
#include "plugins/numa/options.hpp"

namespace topolet::numa {

/// All usable CPUs, in the order in which to take `wanted` of them. First free whole cores, those of one last-level
/// cache together: of the caches that can serve the whole request, the fullest or the emptiest, as the strategy says.
/// Threads that do not fill a core come from partly used cores if these have enough of them, else from one more free
/// core.
CpuOrder core_order(const topolet_topology& topology, topolet_set usable, std::size_t wanted, Strategy strategy);

/// The same, but if some whole cores add up to exactly `wanted`, these come first even where others are nearer.
CpuOrder whole_core_order(const topolet_topology& topology, topolet_set usable, std::size_t wanted, Strategy strategy);

}  // namespace topolet::numa
