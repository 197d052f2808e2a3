// The cgroup that all pods live in.
#pragma once

#include <filesystem>
#include <optional>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"

namespace topolet::machine {

/// Returns the CPUs that the kernel lets pods run on: the effective cpuset of `kubepods.slice` (systemd driver) or
/// `kubepods` (cgroupfs driver), with cgroup v2 or v1, also one level down where the kubelet has a --cgroup-root.
/// Absent means no limit: there is no such cgroup, or it has no cpuset. `cgroup_root` is where cgroups are mounted,
/// /sys/fs/cgroup.
Result<std::optional<CpuSet>> kubepods_cpus(const std::filesystem::path& cgroup_root);

/// Adds CPUs to the pods' cgroup, to those above it, and to those of QoS classes and pods below it, where cgroup v1 is
/// used: it takes a CPU that goes offline out of all of them for good. Containers' own cgroups are left alone. With
/// cgroup v2 this does nothing. The error names the file.
Status give_cpus_back_to_pods(const std::filesystem::path& cgroup_root, const CpuSet& cpus);

}  // namespace topolet::machine
