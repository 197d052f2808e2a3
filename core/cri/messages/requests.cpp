#include "core/cri/messages/requests.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/cri/messages/lens.hpp"
#include "core/cri/messages/lens.pb.h"
#include "core/operations/container.hpp"

namespace topolet::cri {
namespace {

/// A container that asks for nothing is besteffort, unless its pod's cgroup says otherwise.
placement::Qos qos_of(const lens::CreateContainerRequest& request) {
  if (const auto named = operations::qos_of_cgroup(request.sandbox_config().linux().cgroup_parent())) return *named;
  if (!request.config().linux().has_resources()) return placement::Qos::kBestEffort;
  return operations::qos_of_oom_score_adj(request.config().linux().resources().oom_score_adj());
}

/// The ledger knows a container by (pod uid, name, attempt); the kubelet and crictl always send all three.
Status check_identity(const lens::CreateContainerRequest& request) {
  if (!request.config().metadata().name().empty()) return {};
  return Error{Code::kInvalidArgument,
               "CreateContainerRequest: config.metadata.name is empty: topolet places containers by name; set it"};
}

struct Bounds {
  CpuSet cpus;
  NodeSet mems;
};

Result<Bounds> read_bounds(const lens::Resources& resources, std::string_view message_name, const std::string& prefix) {
  auto cpus = parse_list<CpuSet>(resources.cpuset_cpus(), message_name, prefix + ".cpuset_cpus");
  if (!cpus) return cpus.error();
  auto mems = parse_list<NodeSet>(resources.cpuset_mems(), message_name, prefix + ".cpuset_mems");
  if (!mems) return mems.error();
  return Bounds{*std::move(cpus), *std::move(mems)};
}

void add_entry(const std::string& key, const std::string& value, lens::Entry& entry) {
  entry.set_key(key);
  entry.set_value(value);
}

void set_told(const operations::ContainerCpuset& set, lens::Resources& resources) {
  resources.set_cpuset_cpus(set.cpus.to_string());
  if (!set.mems.empty()) resources.set_cpuset_mems(set.mems.to_string());
  for (const auto& [file, value] : set.unified) add_entry(file, value, *resources.add_unified());
  if (!set.quota) return;
  resources.set_cpu_quota_us(set.quota->quota_us);
  resources.set_cpu_period_us(set.quota->period_us);
}

Result<std::string> read_new_id(const std::string& response, std::string_view message_name) {
  auto target = parse_response<lens::Target>(response, message_name);
  if (!target) return target.error();
  if (target->id().empty()) return Error{Code::kInternal, std::string(message_name) + " has no id"};
  return target->id();
}

}  // namespace

operations::RawResources raw_of(const lens::Resources& resources) {
  operations::RawResources raw{.cpu_period_us = resources.cpu_period_us(),
                               .cpu_quota_us = resources.cpu_quota_us(),
                               .cpu_shares = resources.cpu_shares(),
                               .memory_limit_bytes = resources.memory_limit_bytes(),
                               .oom_score_adj = resources.oom_score_adj(),
                               .hugepage_limit_bytes = {}};
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  for (const lens::Hugepages& pages : resources.hugepage_limits()) {
    raw.hugepage_limit_bytes[pages.page_size()] = static_cast<std::int64_t>(std::min(pages.limit_bytes(), kMax));
  }
  return raw;
}

Result<operations::Sandbox> read_run_pod_sandbox(const std::string& request) {
  auto parsed = parse_request<lens::RunPodSandboxRequest>(request, "RunPodSandboxRequest");
  if (!parsed) return parsed.error();
  const lens::PodMetadata& metadata = parsed->config().metadata();
  operations::Sandbox sandbox;
  sandbox.pod_uid = metadata.uid();
  sandbox.pod_namespace = metadata.pod_namespace();
  sandbox.pod_name = metadata.name();
  sandbox.runtime_handler = parsed->runtime_handler();
  sandbox.annotations = map_of(parsed->config().annotations());
  return sandbox;
}

Result<std::string> read_run_pod_sandbox_response(const std::string& response) {
  return read_new_id(response, "RunPodSandboxResponse");
}

Result<placement::Workload> read_create_container(const std::string& request, const operations::DemandRules& rules) {
  auto parsed = parse_request<lens::CreateContainerRequest>(request, "CreateContainerRequest");
  if (!parsed) return parsed.error();
  if (Status identity = check_identity(*parsed); !identity) return identity.error();
  const lens::ContainerConfig& config = parsed->config();
  const lens::PodConfig& pod = parsed->sandbox_config();
  const lens::Resources& resources = config.linux().resources();
  auto bounds = read_bounds(resources, "CreateContainerRequest", "config.linux.resources");
  if (!bounds) return bounds.error();

  placement::Workload workload;
  workload.key = {pod.metadata().uid(), config.metadata().name(), config.metadata().attempt(), parsed->sandbox_id()};
  workload.pod_name = pod.metadata().name();
  workload.pod_namespace = pod.metadata().pod_namespace();
  workload.qos = qos_of(*parsed);
  workload.demand = operations::demand_of(raw_of(resources), workload.qos, rules.memory_total_bytes);
  if (pod.linux().has_resources()) {
    workload.pod_demand =
        operations::demand_of(raw_of(pod.linux().resources()), workload.qos, rules.memory_total_bytes);
  }
  workload.kubelet_cpus = std::move(bounds->cpus);
  workload.kubelet_mems = std::move(bounds->mems);
  workload.kubelet_unified = map_of(resources.unified());
  for (const lens::Device& device : config.devices()) workload.devices.push_back(device.host_path());
  for (const lens::CdiDevice& device : config.cdi_devices()) workload.cdi_devices.push_back(device.name());
  for (const lens::Entry& env : config.envs()) workload.env.emplace_back(env.key(), env.value());
  workload.pod_labels = map_of(pod.labels());
  workload.pod_annotations = map_of(pod.annotations());
  workload.annotations = map_of(config.annotations());
  workload.made_by_kubelet = std::any_of(config.labels().begin(), config.labels().end(), [](const lens::Entry& label) {
    return label.key() == "io.kubernetes.container.name";
  });
  return workload;
}

Result<std::string> read_create_container_response(const std::string& response) {
  return read_new_id(response, "CreateContainerResponse");
}

Result<operations::ResourceUpdate> read_update_container_resources(const std::string& request) {
  constexpr std::string_view kName = "UpdateContainerResourcesRequest";
  auto parsed = parse_request<lens::UpdateContainerResourcesRequest>(request, kName);
  if (!parsed) return parsed.error();
  const lens::Resources& resources = parsed->linux();
  auto bounds = read_bounds(resources, kName, "linux");
  if (!bounds) return bounds.error();
  operations::ResourceUpdate update;
  update.cpus = std::move(bounds->cpus);
  update.mems = std::move(bounds->mems);
  update.container_id = parsed->container_id();
  update.cpu_period_us = resources.cpu_period_us();
  update.cpu_quota_us = resources.cpu_quota_us();
  update.cpu_shares = resources.cpu_shares();
  update.memory_limit_bytes = resources.memory_limit_bytes();
  update.oom_score_adj = resources.oom_score_adj();
  update.hugepage_limit_bytes = raw_of(resources).hugepage_limit_bytes;
  update.has_linux = parsed->has_linux();
  update.unified = map_of(resources.unified());
  return update;
}

Result<std::string> read_target_id(const std::string& request) {
  auto parsed = parse_request<lens::Target>(request, "the request that names a container or sandbox");
  if (!parsed) return parsed.error();
  return parsed->id();
}

std::string patch_create_container(const operations::ContainerCpuset& set, const placement::AddedFields& added) {
  lens::CreateContainerRequest patch;
  for (const auto& [name, value] : added.env) add_entry(name, value, *patch.mutable_config()->add_envs());
  for (const auto& [key, value] : added.annotations) add_entry(key, value, *patch.mutable_config()->add_annotations());
  if (!added.rdt_class.empty())
    add_entry(placement::kRdtClassAnnotation, added.rdt_class, *patch.mutable_config()->add_annotations());
  set_told(set, *patch.mutable_config()->mutable_linux()->mutable_resources());
  return patch.SerializeAsString();
}

std::string patch_update_container_resources(const operations::ContainerCpuset& set) {
  return make_update_container_resources({}, set);
}

std::string make_update_container_resources(const std::string& container_id, const operations::ContainerCpuset& set) {
  lens::UpdateContainerResourcesRequest request;
  request.set_container_id(container_id);
  set_told(set, *request.mutable_linux());
  return request.SerializeAsString();
}

std::string make_container_status(const std::string& container_id) {
  lens::ContainerStatusRequest request;
  request.set_container_id(container_id);
  request.set_verbose(true);
  return request.SerializeAsString();
}

}  // namespace topolet::cri
