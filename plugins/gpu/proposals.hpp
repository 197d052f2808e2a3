// Node sets to consider on machines where not every one is.
#pragma once

#include <topolet/policy.hpp>

#include <vector>

#include "plugins/gpu/search.hpp"

namespace topolet::gpu {

/// For devices of several nodes: few nodes that each device has one of, and these with the nearest others if the
/// container needs more CPUs than are free there. Else none.
std::vector<sdk::Set> nodes_beside(const topolet_request& request, const Sought& sought);

}  // namespace topolet::gpu
