// How much room is left, and who else of a workload is where: what strategy roomy goes by.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <vector>

#include "plugins/numa/candidate_resources.hpp"

namespace topolet::numa {

/// Returns true if, with the container placed, as many CPUs are left that nobody has requested as there would be if
/// each node, or each cache where nodes have several, had as many as the largest exclusive container of the last day
/// has, or half of its own where that is fewer, or where it is not known.
bool leaves_room(const topolet_request& request);

/// Counts the containers of other pods of its workload that are there. Pods of a workload are in one namespace, and
/// have the same labels but for those by which its pods are told apart.
void add_siblings(const topolet_request& request, std::vector<CandidateResources>& candidates);

/// Marks the candidates where shared containers use more than half of the shared CPUs, as far as that was measured
/// within the last minute.
void add_busy(const topolet_request& request, std::vector<CandidateResources>& candidates);

}  // namespace topolet::numa
