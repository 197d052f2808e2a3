// The cgroups that a container has made below its own, as docker in a container and virt-launcher do, in cgroup v1:
// there a cgroup has all CPUs that those below it have, so that a container cannot be told to leave CPUs which one of
// them has.
#pragma once

#include <filesystem>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"

namespace topolet::engine {

/// The CPUs that cgroups below this one have. None: there are none, or they have none.
CpuSet nested_cpus(const std::filesystem::path& container);

/// Makes all of them leave what is not among `to`, so that the container's own cgroup can be told to do so: each keeps
/// what it has of `to`; one that has none of it gets what the cgroup above it has of it. Writes nothing but files of
/// cgroups below `container`. An error names the first that could not be written.
Status narrow_nested(const std::filesystem::path& container, const CpuSet& to);

/// The container's own cgroup has `now`: so has each below it from now on that had all of `part`, which is what is left
/// of the CPUs that the container had before.
Status widen_nested(const std::filesystem::path& container, const CpuSet& part, const CpuSet& now);

}  // namespace topolet::engine
