// One placement decision, as a pure function: same request, rules and answers of the policies, same decision.
#pragma once

#include "core/placement/decision.hpp"
#include "core/placement/placement_rules.hpp"
#include "core/placement/policy.hpp"
#include "core/placement/votes.hpp"

namespace topolet::placement {

/// Decides. Calls the policies one after the other on this thread. If it cannot satisfy all of a request that is
/// flexible (PolicyRequest::keep, ::from), decides again without that part.
Decision decide(const PolicyRequest& request, const PlacementRules& rules, const Votes& votes);

}  // namespace topolet::placement
