// The state of the CPUs that the running kernel reports and hwloc does not.
#pragma once

#include <filesystem>
#include <optional>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"

namespace topolet::topology {

struct KernelState {
  std::optional<CpuSet> online;  ///< absent where the kernel does not tell
  CpuSet present;                ///< offline ones too; empty where the kernel does not tell
  CpuSet isolated;               ///< isolcpus
};

/// Reads devices/system/cpu/{online,present,isolated} below `sysfs_root`. A missing file is not an error; an unreadable
/// list is.
Result<KernelState> read_kernel_state(const std::filesystem::path& sysfs_root);

/// Reads a CPU list from a kernel file; absent if there is no such file. INTERNAL names the file that holds no list.
Result<std::optional<CpuSet>> read_cpu_list(const std::filesystem::path& file);

}  // namespace topolet::topology
