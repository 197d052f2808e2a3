// What the core reads in CRI requests and answers, and the patches it appends to them. Everything goes through the
// lens; the meaning of the fields is CRI v1's, which v1alpha2 shares.
//
// The room core/cri/messages, namespace topolet::cri: turns bytes into workloads, and placements into patches. It may
// include core/base, core/cri, and workload.hpp and placement.hpp of core/placement; neither gRPC nor the rooms wire
// and socket, so it does not know who carries the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "core/cri/messages/demand.hpp"
#include "core/placement/placement.hpp"
#include "core/placement/workload.hpp"

namespace topolet::cri {

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
  bool tells_cpuset = false;  ///< whether the runtime tells the cpuset that it has recorded
  CpuSet spec_cpus;           ///< that one; empty = none or not told
  NodeSet spec_mems;
  /// Where its memory is bound, as far as the runtime or else the kernel tells; empty: nowhere, or nobody tells.
  NodeSet mems;
  ToldResources told;            ///< its resources, as far as the runtime tells them
  bool keeps_updates = false;    ///< whether what the runtime tells is never older than its last update
  placement::Workload workload;  ///< what follows, without sandbox identity; unknown is what nobody tells
};

/// UpdateContainerResources: zero means "unchanged".
struct UpdateRequest {
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
};

/// What turns raw CRI numbers into demand.
struct DemandRules {
  std::int64_t memory_total_bytes = 0;  ///< the machine's MemTotal; 0 = unknown
};

// Requests. INVALID_ARGUMENT names the message and what is wrong; the caller answers the client with it.
Result<Sandbox> read_run_pod_sandbox(const std::string& request);                // id empty
Result<std::string> read_run_pod_sandbox_response(const std::string& response);  // the sandbox id
Result<placement::Workload> read_create_container(const std::string& request, const DemandRules& rules);
Result<std::string> read_create_container_response(const std::string& response);  // the container id
Result<UpdateRequest> read_update_container_resources(const std::string& request);
/// StartContainer, StopContainer, RemoveContainer: the container id. StopPodSandbox, RemovePodSandbox: the sandbox id.
Result<std::string> read_target_id(const std::string& request);

// Answers that are observed.
/// `unfiltered` is read from the request: only an unfiltered list says that something is not there.
struct ContainerList {
  bool unfiltered = false;
  std::vector<ContainerInfo> containers;
};
Result<ContainerList> read_list_containers(const std::string& request, const std::string& response);
Result<std::vector<Sandbox>> read_list_pod_sandbox(const std::string& response);
Result<ContainerDetail> read_container_status(const std::string& response, const DemandRules& rules);
/// Takes from `kernel` what the runtime does not tell, or may tell as it was. `seen_cpus`: on how many CPUs the kernel
/// has the container; 0 = not told.
void complete(ContainerDetail& detail, const ToldResources& kernel, std::size_t seen_cpus, const DemandRules& rules);

// Patches: serialized messages to be appended to the original bytes.
/// Sets linux.resources.cpuset_cpus, and cpuset_mems unless `mems` is empty, of a CreateContainerRequest, and cpu_quota
/// and cpu_period if there is a `quota`; adds `added` behind what it has.
std::string patch_create_container(const CpuSet& cpus, const NodeSet& mems, const placement::AddedFields& added = {},
                                   const std::optional<CfsQuota>& quota = std::nullopt);
/// The same of an UpdateContainerResourcesRequest.
std::string patch_update_container_resources(const CpuSet& cpus, const NodeSet& mems,
                                             const std::optional<CfsQuota>& quota = std::nullopt);

// Requests of our own.
std::string make_update_container_resources(const std::string& container_id, const CpuSet& cpus, const NodeSet& mems,
                                            const std::optional<CfsQuota>& quota = std::nullopt);
std::string make_container_status(const std::string& container_id);  // verbose

/// Folds a resize into a demand: zero fields stay as they were.
placement::Demand apply_update(const placement::Demand& before, const UpdateRequest& update,
                               const DemandRules& rules = {});

}  // namespace topolet::cri
