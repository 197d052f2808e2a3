// The part of /proc and /sys that tells on which CPUs a process may run, below a directory of a test.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "core/base/index_set.hpp"
#include "core/engine/converge/process_cgroups.hpp"

namespace topolet::testing {

/// One unified cgroup hierarchy; every process that runs has a cgroup of its own.
class KernelTree {
 public:
  KernelTree(std::filesystem::path root, const CpuSet& all_cpus);

  /// Returns a reader of the tree. Valid as long as the directory is there.
  engine::ProcessCgroups kernel() const { return engine::ProcessCgroups(root_ / "proc", root_); }

  /// In a cgroup of its own; that which it has, if run_in() gave it one.
  void run_on(std::int64_t pid, const CpuSet& cpus);
  /// In a cgroup that is not its own. Its CPUs are not known then.
  void run_in(std::int64_t pid, const std::string& cgroup) { put_process(pid, cgroup, 'S'); }
  /// In a cgroup of its own with this path, which has these files.
  void run_in(std::int64_t pid, const std::string& cgroup, const std::map<std::string, std::string>& files);
  /// In a cgroup of its own with this path, whose CPUs are those that its cpuset.cpus says.
  void run_settable(std::int64_t pid, const std::string& cgroup, const CpuSet& cpus);
  /// Returns the directory of its cgroup.
  std::filesystem::path directory_of(std::int64_t pid) const { return cgroup_of(pid); }
  /// It has died and nobody has reaped it: the kernel moves such processes to the root cgroup.
  void leave_zombie(std::int64_t pid);
  void reap(std::int64_t pid);

 private:
  std::string path_of(std::int64_t pid) const;
  std::filesystem::path cgroup_of(std::int64_t pid) const;
  void put_process(std::int64_t pid, const std::string& cgroup, char state);

  std::filesystem::path root_;
  std::map<std::int64_t, std::string> own_paths_;
};

}  // namespace topolet::testing
