// For a container that may have CPUs which the kernel isolates, or else those of the pool: which of the two.
#pragma once

#include <functional>

#include "core/placement/decision.hpp"
#include "core/placement/policy.hpp"

namespace topolet::placement {

/// Isolated CPUs, or those of the pool if these are short; but in the zone that a scheduler has chosen rather than
/// outside it. `decide` is asked about one of the two at a time; what it is given need not outlive the call.
Decision decide_by_preference(const PolicyRequest& request, const std::function<Decision(PolicyRequest)>& decide);

}  // namespace topolet::placement
