// The cgroups of pods, which the kubelet makes, and on which CPUs all that is in them may run.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "core/engine/converge/process_cgroups.hpp"

namespace topolet::engine {

/// Below the hierarchy that has cpusets. One thread at a time.
class PodCgroups {
 public:
  explicit PodCgroups(std::optional<CpusetHierarchy> hierarchy) : hierarchy_(std::move(hierarchy)) {}

  /// The directory of the pod's cgroup, wherever the kubelet's pods are. NOT_FOUND if there is none.
  Result<std::filesystem::path> find(const std::string& pod_uid) const;

  /// From now on nothing in the pod runs on other CPUs than these; with cgroup v1 it runs on all of them.
  Status confine(const std::filesystem::path& pod, const CpuSet& cpus) const;

  /// It may run again wherever the cgroup above it may.
  Status release(const std::filesystem::path& pod) const;

 private:
  std::optional<CpusetHierarchy> hierarchy_;
};

}  // namespace topolet::engine
