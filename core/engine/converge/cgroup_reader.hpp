// What the kernel says a process may run on: the last word on whether a placement took effect.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"

namespace topolet::engine {

/// Reads cgroup cpusets below injectable roots.
class CgroupReader {
 public:
  explicit CgroupReader(std::filesystem::path proc = "/proc", std::filesystem::path host_root = "/");

  /// The effective cpuset of the cgroup of a process: cpuset.cpus.effective (v2) or cpuset.effective_cpus (v1).
  /// None where there is no such process, it has ended (the kernel shows a process that exits in the root cgroup), it
  /// is in no cgroup but the root, or its cgroup cannot be seen from here.
  std::optional<CpuSet> effective_cpus(std::int64_t pid) const;

 private:
  struct Mount {
    std::string root;  ///< the part of the cgroup tree that is mounted
    std::filesystem::path mount_point;
  };

  std::filesystem::path proc_;
  std::filesystem::path host_root_;
  std::optional<Mount> cpuset_v1_;
  std::optional<Mount> unified_;
};

}  // namespace topolet::engine
