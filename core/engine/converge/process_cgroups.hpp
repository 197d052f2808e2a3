// Reads from the kernel which CPUs a process may run on: the last word on whether a placement took effect.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "core/load/cgroup_files.hpp"
#include "core/operations/demand.hpp"

namespace topolet::engine {

/// Where cgroups have cpusets.
struct CpusetHierarchy {
  std::filesystem::path directory;  ///< of the cgroup above all others that are seen from here
  bool is_v1 = false;
};

/// The cpusets of processes' cgroups, below injectable roots.
class ProcessCgroups {
 public:
  using ReadCpus = std::function<std::optional<CpuSet>(std::int64_t pid)>;
  using ReadResources = std::function<operations::ToldResources(std::int64_t pid)>;
  using MemoryByNode = std::map<std::uint32_t, std::int64_t>;  ///< bytes, by OS index of the node

  explicit ProcessCgroups(std::filesystem::path proc = "/proc", std::filesystem::path host_root = "/");
  /// Stands for a kernel that need not exist: it gives these answers.
  explicit ProcessCgroups(ReadCpus effective_cpus, ReadCpus configured_cpus = {}, ReadResources resources = nullptr)
      : made_up_(std::move(effective_cpus)),
        made_up_configured_(std::move(configured_cpus)),
        made_up_resources_(std::move(resources)) {}

  /// Returns the effective cpuset of the cgroup of a process: cpuset.cpus.effective (v2) or cpuset.effective_cpus (v1).
  /// None if there is no such process, it has ended (the kernel shows a process that exits in the root cgroup), it is
  /// in no cgroup but the root, or its cgroup cannot be seen from here.
  std::optional<CpuSet> effective_cpus(std::int64_t pid) const;

  /// Returns the cgroup directory of the container of `container_id`, in the hierarchy that has cpusets. The process
  /// may be in one below it, which the container has made. None if no cgroup of the process has that name.
  std::optional<std::filesystem::path> container_directory(std::int64_t pid, const std::string& container_id) const;

  /// Returns the value written in the cpuset of that cgroup (cpuset.cpus), which somebody has set: the kernel adds
  /// nothing to it, and takes nothing from it but, in v1, CPUs that go offline. None if that cannot be told, or nothing
  /// was set.
  std::optional<CpuSet> configured_cpus(std::int64_t pid, const std::string& container_id) const;

  /// The paths of the cgroups that the process is in, one for each hierarchy but those where it is in the root. None
  /// for a process that has ended.
  std::vector<std::string> cgroups_of(std::int64_t pid) const;

  /// Returns a container's resources as the kernel tells them, by its process: the QoS class that a cgroup above it
  /// names, what the files of the container's own cgroup say, and the process's oom_score_adj. Those of a cgroup that
  /// does not bear the container's id say nothing of it.
  operations::ToldResources resources_of(std::int64_t pid, const std::string& container_id) const;

  /// Returns the memory that the container of the process has on each node, as its cgroup counts it, with those below
  /// it (memory.numa_stat): what its processes have mapped, and the files that they have read. None if the kernel does
  /// not tell.
  std::optional<MemoryByNode> memory_of(std::int64_t pid, const std::string& container_id) const;

  /// Returns the container's own cgroup in the hierarchies that account for what it uses; none if there is no such
  /// process, or no cgroup of it bears the container's id.
  std::optional<load::CgroupDirectories> load_directories(std::int64_t pid, const std::string& container_id) const;

  /// None if it is not mounted, or cannot be seen from here.
  std::optional<CpusetHierarchy> hierarchy() const;
  /// The directory of the cgroup above all others in the hierarchy that has CFS quotas.
  std::optional<std::filesystem::path> quota_hierarchy() const;

  /// cgroup v1: when the last CPU of a cgroup goes offline, the kernel moves its processes to the cpuset of a cgroup
  /// above it, and leaves them there. Puts the process and those of the same container back, where its own cgroup has
  /// CPUs again. Returns how many were moved; 0 where none was away.
  Result<std::size_t> bring_back(std::int64_t pid) const;

 private:
  struct Mount {
    std::string root;  ///< the part of the cgroup tree that is mounted
    std::filesystem::path mount_point;
    std::string controllers;  ///< v1: separated by commas
  };
  /// The cgroup of a process in the cpuset hierarchy of v1, and those in the other hierarchies, which stay as the
  /// runtime made them.
  struct Membership {
    std::string cpuset;
    std::string other;
  };

  std::optional<Membership> membership(std::int64_t pid) const;
  std::optional<std::filesystem::path> cpuset_directory(const std::string& cgroup) const;
  Result<std::size_t> move_processes(const std::filesystem::path& from, const std::string& container) const;

  std::optional<std::filesystem::path> directory_of(std::int64_t pid, const std::string& controller,
                                                    const std::string& container_id) const;
  static std::optional<std::filesystem::path> own_directory(const std::string& cgroup, const Mount& mount,
                                                            const std::string& container_id);

  ReadCpus made_up_;
  ReadCpus made_up_configured_;
  ReadResources made_up_resources_;
  std::filesystem::path proc_;
  std::filesystem::path host_root_;
  std::vector<Mount> legacy_;
  std::optional<Mount> cpuset_v1_;
  std::optional<Mount> unified_;
};

}  // namespace topolet::engine
