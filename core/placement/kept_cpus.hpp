// Tells whether a container that starts again gets the CPUs that it had.
#pragma once

#include "core/base/index_set.hpp"
#include "core/placement/decision.hpp"
#include "core/topology/topology.hpp"

namespace topolet::placement {

/// Returns true if `had` are CPUs of no more nodes, no farther apart, of no more last-level caches and cores, and no
/// slower than `instead`.
bool are_as_near(const topology::Topology& topology, const CpuSet& had, const CpuSet& instead);

/// Returns true if `again`, in which the container has its former CPUs, is as good as `anew`, which was decided as if
/// it had had none. Former CPUs break ties, and outweigh a mild preference of the policies, but not more.
bool is_as_good(const topology::Topology& topology, const Decision& again, const Decision& anew);

}  // namespace topolet::placement
