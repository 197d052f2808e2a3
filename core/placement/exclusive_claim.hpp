// Decides from a workload alone, and the rules, whether it gets CPUs of its own.
#pragma once

#include <cstdint>
#include <optional>

#include "core/placement/placement.hpp"
#include "core/placement/placement_rules.hpp"
#include "core/placement/policy.hpp"
#include "core/placement/workload.hpp"

namespace topolet::placement {

/// Its CPU request if it is Guaranteed and asks for whole CPUs, else 0.
std::uint32_t whole_cpus(const Workload& workload);
/// Returns true if the kubelet gave the CPUs that it named to this container alone: as many as it asks for, whole.
bool is_kubelet_cpuset_exclusive(const Workload& workload);

/// The CPUs that a workload is to get by the rules and its annotations.
struct ExclusiveClaim {
  std::uint32_t cpus = 0;               ///< of its own; 0 = none
  std::optional<NotExclusive> why_not;  ///< set if there are none
};
ExclusiveClaim exclusive_claim(const Workload& workload, const PlacementRules& rules);
std::uint32_t exclusive_cpus_for(const Workload& workload, const PlacementRules& rules);  ///< that claim's

/// How a workload shares CPUs: in the pool, or on the reserved CPUs too if its namespace is a reserved one.
Mode shared_mode(const Workload& workload, const PlacementRules& rules);

}  // namespace topolet::placement
