// Reads CRI requests and answers, and makes the patches that are appended to them. Everything goes through the
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
#include "core/operations/container.hpp"
#include "core/operations/container_cpuset.hpp"
#include "core/placement/placement.hpp"
#include "core/placement/workload.hpp"

namespace topolet::cri {

// Requests. INVALID_ARGUMENT names the message and what is wrong; the caller answers the client with it.
Result<operations::Sandbox> read_run_pod_sandbox(const std::string& request);    // id empty
Result<std::string> read_run_pod_sandbox_response(const std::string& response);  // the sandbox id
Result<placement::Workload> read_create_container(const std::string& request, const operations::DemandRules& rules);
Result<std::string> read_create_container_response(const std::string& response);  // the container id
Result<operations::ResourceUpdate> read_update_container_resources(const std::string& request);
/// StartContainer, StopContainer, RemoveContainer: the container id. StopPodSandbox, RemovePodSandbox: the sandbox id.
Result<std::string> read_target_id(const std::string& request);

// Answers that are observed.
/// `unfiltered` is read from the request: only an unfiltered list says that something is not there.
struct ContainerList {
  bool unfiltered = false;
  std::vector<operations::ContainerInfo> containers;
};
Result<ContainerList> read_list_containers(const std::string& request, const std::string& response);
Result<std::vector<operations::Sandbox>> read_list_pod_sandbox(const std::string& response);
Result<operations::ContainerDetail> read_container_status(const std::string& response,
                                                          const operations::DemandRules& rules);

// Patches: serialized messages to be appended to the original bytes.
/// Sets linux.resources.cpuset_cpus of a CreateContainerRequest, cpuset_mems unless there are none, cpu_quota and
/// cpu_period if there is a quota, and the entries of unified; adds `added` behind what it has.
std::string patch_create_container(const operations::ContainerCpuset& set, const placement::AddedFields& added = {});
/// The same of an UpdateContainerResourcesRequest.
std::string patch_update_container_resources(const operations::ContainerCpuset& set);

// Requests of our own.
std::string make_update_container_resources(const std::string& container_id, const operations::ContainerCpuset& set);
std::string make_container_status(const std::string& container_id);  // verbose

}  // namespace topolet::cri
