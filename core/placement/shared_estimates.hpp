// Bookings of memory requests that are only estimated. Pure functions.
#pragma once

#include <vector>

#include "core/placement/workload.hpp"

namespace topolet::placement {

/// Returns the demand that is booked for each of the containers of a pod, given in the order of their first creation.
///
/// The CRI carries no memory request of a Burstable container, but an oom_score_adj that follows from one. The kubelet
/// gives a sidecar the value of a main container, so that containers with the same value cannot be told apart: their
/// estimate is booked once, for the one with the largest limit, else for the latest, and nothing for the others. All
/// estimates of the pod together are at most its sandbox's memory limit. That limit is not used if it is the sum of the
/// limits that some containers have, and others have none.
std::vector<Demand> booked_demands(const std::vector<const Workload*>& containers);

}  // namespace topolet::placement
