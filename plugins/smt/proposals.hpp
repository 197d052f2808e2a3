// Node sets to consider on machines where not every node set is a candidate.
#pragma once

#include <topolet/policy.hpp>

#include <vector>

#include "plugins/smt/demand.hpp"

namespace topolet::smt {

/// For a container that needs whole cores of several nodes, at most TOPOLET_PROPOSE_MAX_SETS sets on which it can be
/// isolated, or its request be rounded up: the fewest nodes, those with the most free whole cores; and nodes with their
/// nearest neighbours, the smallest and closest sets of these. None if one node is enough, or no set is.
std::vector<sdk::Set> node_sets_of_whole_cores(const topolet_request& request, const sdk::CoreMap& cores,
                                               const Demand& demand);

}  // namespace topolet::smt
