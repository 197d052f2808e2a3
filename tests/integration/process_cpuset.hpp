// The cpuset of a process, read from /proc.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"

namespace topolet::integration {

struct ProcessCpuset {
  CpuSet cpus;
  NodeSet mems;

  friend bool operator==(const ProcessCpuset&, const ProcessCpuset&) = default;
};

/// `Cpus_allowed_list` and `Mems_allowed_list` of a process. NOT_FOUND when there is no such process.
Result<ProcessCpuset> allowed_of(pid_t pid);

/// The same out of the text of a /proc/PID/status.
Result<ProcessCpuset> parse_allowed(const std::string& status);

/// Where a process is in the cgroup tree, and the CPUs that the kernel gives to all that is there.
struct CgroupCpus {
  std::string path;
  CpuSet cpus;
};

/// cpuset.cpus.effective (cgroup v2) or cpuset.effective_cpus (v1) of the cgroup that /proc/PID/cgroup names. None if
/// there is no such process, it is a zombie, or it is in the root cgroup, where one shows that exits.
std::optional<CgroupCpus> cgroup_cpus_of(pid_t pid);

/// Writes cpuset.cpus of the cgroup that a process is in, as somebody may who knows nothing of topolet and the runtime.
/// False if the kernel does not take it.
bool put_cgroup_on(pid_t pid, const CpuSet& cpus);

}  // namespace topolet::integration
