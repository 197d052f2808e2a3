// The files of a container's cgroup that tell what it uses.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/unique_fd.hpp"

namespace topolet::load {

/// The directories of one container's cgroup, by what they account for: with cgroup v2 all the same one. Empty: not
/// known. With v1 `unified` has a cgroup of the container only where the runtime makes one there.
struct CgroupDirectories {
  std::filesystem::path cpu = {};
  std::filesystem::path cpuacct = {};
  std::filesystem::path memory = {};
  std::filesystem::path unified = {};
};

/// Counters, as the kernel has them; each may begin anew.
struct CpuCounters {
  std::optional<std::uint64_t> usage_us = {};     ///< CPU time
  std::optional<std::uint64_t> throttled = {};    ///< how many periods ended with the CFS quota used up
  std::optional<std::uint64_t> pressure_us = {};  ///< time in which a task waited for a CPU (PSI, `some`)
};
struct MemoryCounters {
  std::optional<std::int64_t> bytes = {};
  std::optional<std::uint64_t> memory_pressure_us = {};
  std::optional<std::uint64_t> io_pressure_us = {};
  std::optional<std::uint64_t> high_events = {};  ///< how often memory.high held a process of it back
};

/// Reads what one container uses. The files that are read every second stay open, as opening one costs more than
/// reading it; a file that is missing is looked for again now and then. Not synchronised.
class CgroupFiles {
 public:
  explicit CgroupFiles(CgroupDirectories directories) : directories_(std::move(directories)) {}

  /// Returns nothing once the cgroup is gone.
  std::optional<CpuCounters> read_cpu();
  /// Opens files anew: it is called less often.
  MemoryCounters read_memory() const;

 private:
  void open_cpu_files();

  CgroupDirectories directories_;
  UniqueFd cpu_stat_;
  UniqueFd cpuacct_usage_;
  UniqueFd cpu_pressure_;
  int reads_until_open_ = 0;  ///< files that were missing are looked for again
};

/// Returns the number behind `key` and a space, at the start of a line: "usage_usec 12".
std::optional<std::uint64_t> number_after(std::string_view text, std::string_view key);
/// Returns the microseconds of the line "some avg10=… total=N" of a pressure file.
std::optional<std::uint64_t> pressure_in(std::string_view text);

}  // namespace topolet::load
