// The nodes that a scheduler has chosen for a container: its zone.
#pragma once

#include <topolet/policy.hpp>

#include <string>
#include <vector>

#include "plugins/numa/answers.hpp"
#include "plugins/numa/demand.hpp"

namespace topolet::numa {

/// Returns true if the candidate has nodes, and none outside `zone`.
bool is_in_zone(const topolet_candidate& candidate, const sdk::Set& zone);

/// Texts that are added to the reasons of candidates in the zone, and outside it.
inline constexpr const char* kInZone = "; it is in the zone that the scheduler has chosen";
inline constexpr const char* kNotInZone = "; it is not in the zone that the scheduler has chosen";
/// Why a candidate outside the zone is rejected (zone = require).
std::string rejection_outside(const sdk::Set& zone);

/// For containers whose nodes do not matter otherwise: `verdicts`, which score nothing, with those of the zone, if
/// there is one. The whole zone is best: the nodes are the scheduler's choice.
std::vector<Verdict> with_verdicts_on_zone(const topolet_request& request, const Demand& demand, bool is_required,
                                           std::vector<Verdict> verdicts);

}  // namespace topolet::numa
