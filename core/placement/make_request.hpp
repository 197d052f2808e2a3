// Makes the request that a decision is about.
#pragma once

#include <memory>
#include <vector>

#include "core/placement/placement_rules.hpp"
#include "core/placement/policy.hpp"
#include "core/placement/workload.hpp"
#include "core/topology/topology.hpp"

namespace topolet::placement {

/// Classifies the workload against the rules and the ledger, as one that is created. `ledger` must not hold the
/// workload's own key. `candidates` as make_candidates() gives them.
PolicyRequest make_request(std::shared_ptr<const topology::Topology> topology, LedgerSnapshot ledger, Workload workload,
                           std::vector<Candidate> candidates, const PlacementRules& rules,
                           bool kubelet_hands_out_cpusets);

}  // namespace topolet::placement
