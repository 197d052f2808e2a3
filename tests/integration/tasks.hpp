// The containers that a containerd has started, out of the files of its task directory.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/base/index_set.hpp"

namespace topolet::integration {

struct Task {
  std::string id;
  std::string name;  ///< POD/CONTAINER
  pid_t pid = 0;
  std::size_t whole_cpus = 0;  ///< how many a Guaranteed container asked for when it was started; 0 = shares CPUs
};

/// The CPUs of the task by its cgroup; none while its program does not run: before it is started, after it exits.
std::optional<CpuSet> cpus_of_running(const Task& task);

/// Not synchronised.
class Tasks {
 public:
  /// `directory`: STATE/io.containerd.runtime.v2.task/NAMESPACE, with a bundle for each task.
  explicit Tasks(std::filesystem::path directory) : directory_(std::move(directory)) {}

  /// Reads what is new and forgets what is gone.
  void refresh();

  /// Those that are containers, by id; no sandboxes.
  const std::map<std::string, Task>& containers() const { return containers_; }

 private:
  std::filesystem::path directory_;
  std::set<std::string> known_;  ///< sandboxes too
  std::map<std::string, Task> containers_;
};

}  // namespace topolet::integration
