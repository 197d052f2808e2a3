// Pods and containers as a container runtime knows them, whatever language they are told in. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "core/base/index_set.hpp"
#include "core/base/shared_string_map.hpp"
#include "core/operations/demand.hpp"
#include "core/placement/workload.hpp"

namespace topolet::operations {

/// Who a pod sandbox is.
struct Sandbox {
  std::string id;
  std::string pod_uid;
  std::string pod_namespace;
  std::string pod_name;
  std::string runtime_handler;
  bool ready = true;  ///< false once stopped
  SharedStringMap annotations = {};

  friend bool operator==(const Sandbox&, const Sandbox&) = default;
};

enum class ContainerState : std::uint8_t { kCreated, kRunning, kExited, kUnknown };

/// One container as ListContainers or ContainerStatus shows it.
struct ContainerInfo {
  std::string id;
  std::string sandbox_id;  ///< empty in a ContainerStatus answer
  std::string name;
  std::uint32_t attempt = 0;
  ContainerState state = ContainerState::kUnknown;
  std::int32_t exit_code = 0;  ///< ContainerStatus only
  // ListContainers only: the kubelet's labels.
  std::string pod_uid = {};
  std::string pod_namespace = {};
  std::string pod_name = {};
};

/// ContainerStatus with verbose = true. Runtimes put different things into `info`: containerd the request of the create
/// and the runtime spec, CRI-O the latter, cri-dockerd only the process.
struct ContainerDetail {
  ContainerInfo info;
  std::int64_t pid = 0;       ///< 0 = not running or not told
  bool tells_cpuset = false;  ///< true if the runtime tells the cpuset that it has recorded
  CpuSet spec_cpus;           ///< that one; empty = none or not told
  NodeSet spec_mems;
  /// Where its memory is bound, as far as the runtime or else the kernel tells; empty: nowhere, or nobody tells.
  NodeSet mems;
  ToldResources told;            ///< its resources, as far as the runtime tells them
  bool keeps_updates = false;    ///< true if what the runtime tells is never older than its last update
  placement::Workload workload;  ///< what follows, without sandbox identity; unknown is what nobody tells
};

/// New resources of a container that exists. Zero means "unchanged".
struct ResourceUpdate {
  std::string container_id;
  CpuSet cpus;
  NodeSet mems;
  std::int64_t cpu_period_us = 0;
  std::int64_t cpu_quota_us = 0;
  std::int64_t cpu_shares = 0;
  std::int64_t memory_limit_bytes = 0;
  std::int64_t oom_score_adj = 0;  ///< tells the memory request of a Burstable container, as in a create
  std::map<std::string, std::int64_t> hugepage_limit_bytes;  ///< empty = unchanged
  bool has_linux = false;
  SharedStringMap unified = {};  ///< files of its cgroup v2
};

/// The facts about the machine by which raw CRI numbers become demand.
struct DemandRules {
  std::int64_t memory_total_bytes = 0;  ///< the machine's MemTotal; 0 = unknown
};

/// Takes from `kernel` what the runtime does not tell, or may tell as it was. `seen_cpus`: on how many CPUs the kernel
/// has the container; 0 = not told.
void complete(ContainerDetail& detail, const ToldResources& kernel, std::size_t seen_cpus, const DemandRules& rules);

/// Folds a resize into a demand: zero fields stay as they were.
placement::Demand apply_update(const placement::Demand& before, const ResourceUpdate& update,
                               const DemandRules& rules = {});

}  // namespace topolet::operations
