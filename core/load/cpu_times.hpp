// The times of /proc/stat.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>

namespace topolet::load {

/// What one CPU has done since it was booted, in the kernel's ticks. Counters of the kernel: each may begin anew, as
/// when the CPU was offline.
struct CpuTimes {
  std::uint64_t busy = 0;                   ///< user, nice, system, irq and softirq
  std::optional<std::uint64_t> steal = {};  ///< that a hypervisor has taken; none: this kernel does not tell
};

/// Reads the lines "cpuN …" of /proc/stat, by OS index: the CPUs that are online. What cannot be read is left out.
std::map<std::uint32_t, CpuTimes> read_cpu_times(std::string_view proc_stat);

/// Returns false if the processors say that they are no virtual ones, as x86 does by a flag in /proc/cpuinfo.
bool may_have_hypervisor(const std::filesystem::path& proc);

}  // namespace topolet::load
