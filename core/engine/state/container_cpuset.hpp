// The CPUs and memory nodes that a container is told, and which of them it may be told when. Plain values.
#pragma once

#include <optional>

#include "core/base/index_set.hpp"
#include "core/engine/state/allocation.hpp"
#include "core/engine/state/cfs_quota.hpp"
#include "core/engine/state/unified_files.hpp"
#include "core/operations/container_cpuset.hpp"

namespace topolet::engine {

using operations::ContainerCpuset;

inline ContainerCpuset desired_cpuset_of(const Allocation& allocation) {
  return {allocation.placement.cpus, allocation.placement.mems, quota_to_tell(allocation), unified_to_tell(allocation)};
}

/// Returns the cpuset that a container may be told if its newest durable set is `durable` and `now` is its newest
/// allocation; none if it can be told nothing before that is durable too.
///
/// No CPU that is not durable: a daemon that starts again would not know that the container may be there. And no CPU
/// that the container is not to have any more: another one may be about to have it alone. One that shares is told what
/// is left, since it can run there and others may be waiting for it to leave the rest; one that has CPUs of its own is
/// not told fewer than it was given.
inline std::optional<ContainerCpuset> agreed_cpuset(const ContainerCpuset& durable, const Allocation& now) {
  const ContainerCpuset newest = desired_cpuset_of(now);
  if (durable == newest) return newest;
  const CpuSet cpus = durable.cpus & newest.cpus;
  const bool is_enough = now.follows_pool() ? !cpus.empty() : cpus == durable.cpus;
  if (!is_enough) return std::nullopt;
  return ContainerCpuset{cpus, durable.mems & newest.mems, durable.quota, durable.unified};
}

}  // namespace topolet::engine
