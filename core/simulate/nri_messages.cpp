#include "core/simulate/nri_messages.hpp"

#include <map>

#include "core/cri/messages/requests.hpp"
#include "core/fronts/nri/nri.pb.h"

namespace topolet::simulate {
namespace {

template <class Entries>
void copy_entries(const Entries& from, google::protobuf::RepeatedPtrField<nri::lens::Entry>& to) {
  for (const lens::Entry& entry : from) {
    nri::lens::Entry& added = *to.Add();
    added.set_key(entry.key());
    added.set_value(entry.value());
  }
}

/// With every number there, as the runtime tells those of the kubelet's updates.
void copy_resources(const lens::Resources& from, nri::lens::Resources& to) {
  nri::lens::Cpu& cpu = *to.mutable_cpu();
  cpu.mutable_shares()->set_value(static_cast<std::uint64_t>(from.cpu_shares()));
  cpu.mutable_quota_us()->set_value(from.cpu_quota_us());
  cpu.mutable_period_us()->set_value(static_cast<std::uint64_t>(from.cpu_period_us()));
  cpu.set_cpus(from.cpuset_cpus());
  cpu.set_mems(from.cpuset_mems());
  to.mutable_memory()->mutable_limit_bytes()->set_value(from.memory_limit_bytes());
  for (const lens::Hugepages& pages : from.hugepage_limits()) {
    nri::lens::HugepageLimit& limit = *to.add_hugepage_limits();
    limit.set_page_size(pages.page_size());
    limit.set_limit_bytes(pages.limit_bytes());
  }
  copy_entries(from.unified(), *to.mutable_unified());
}

void copy_pod(const lens::PodConfig& from, const std::string& sandbox_id, const std::string& runtime_handler,
              nri::lens::Pod& to) {
  to.set_id(sandbox_id);
  to.set_name(from.metadata().name());
  to.set_uid(from.metadata().uid());
  to.set_pod_namespace(from.metadata().pod_namespace());
  to.set_runtime_handler(runtime_handler);
  copy_entries(from.labels(), *to.mutable_labels());
  copy_entries(from.annotations(), *to.mutable_annotations());
  to.mutable_linux()->set_cgroup_parent(from.linux().cgroup_parent());
  if (from.linux().has_resources())
    copy_resources(from.linux().resources(), *to.mutable_linux()->mutable_pod_resources());
}

std::map<std::string, std::string> map_of(const google::protobuf::RepeatedPtrField<nri::lens::Entry>& entries) {
  std::map<std::string, std::string> map;
  for (const nri::lens::Entry& entry : entries) map[entry.key()] = entry.value();
  return map;
}

template <class Set>
Set set_of_list(const std::string& list) {
  auto set = Set::parse(list);
  return set ? *std::move(set) : Set();
}

operations::ContainerCpuset cpuset_of(const nri::lens::Resources& resources) {
  const nri::lens::Cpu& cpu = resources.cpu();
  operations::ContainerCpuset set{set_of_list<CpuSet>(cpu.cpus()), set_of_list<NodeSet>(cpu.mems())};
  if (cpu.has_quota_us())
    set.quota = {.quota_us = cpu.quota_us().value(), .period_us = static_cast<std::int64_t>(cpu.period_us().value())};
  set.unified = map_of(resources.unified());
  return set;
}

/// What the CRI has a word for.
std::string patch_of(const nri::lens::Adjustment& adjustment) {
  placement::AddedFields added;
  for (const nri::lens::Entry& variable : adjustment.env()) added.env.emplace_back(variable.key(), variable.value());
  for (const nri::lens::Entry& annotation : adjustment.annotations())
    added.annotations.emplace_back(annotation.key(), annotation.value());
  const nri::lens::Resources& resources = adjustment.linux().resources();
  added.rdt_class = resources.rdt_class().value();
  return cri::patch_create_container(cpuset_of(resources), added);
}

}  // namespace

std::string nri_run_pod(const lens::RunPodSandboxRequest& request, const std::string& sandbox_id) {
  nri::lens::PodEvent event;
  copy_pod(request.config(), sandbox_id, request.runtime_handler(), *event.mutable_pod());
  return event.SerializeAsString();
}

std::string nri_create(const lens::CreateContainerRequest& request, const std::string& container_id,
                       const std::string& runtime_handler) {
  nri::lens::PodEvent event;
  copy_pod(request.sandbox_config(), request.sandbox_id(), runtime_handler, *event.mutable_pod());
  const lens::ContainerConfig& config = request.config();
  nri::lens::Container& container = *event.mutable_container();
  container.set_id(container_id);
  container.set_sandbox_id(request.sandbox_id());
  container.set_name(config.metadata().name());
  copy_entries(config.labels(), *container.mutable_labels());
  for (const lens::Entry& variable : config.envs()) container.add_env(variable.key() + '=' + variable.value());
  nri::lens::ContainerLinux& linux_part = *container.mutable_linux();
  for (const lens::Device& device : config.devices()) linux_part.add_devices()->set_path(device.host_path());
  for (const lens::CdiDevice& device : config.cdi_devices()) container.add_cdi_devices()->set_name(device.name());
  copy_resources(config.linux().resources(), *linux_part.mutable_resources());
  linux_part.mutable_oom_score_adj()->set_value(config.linux().resources().oom_score_adj());
  linux_part.set_cgroups_path(request.sandbox_config().linux().cgroup_parent() + '/' + container_id);
  return event.SerializeAsString();
}

std::string nri_update(const lens::UpdateContainerResourcesRequest& request) {
  nri::lens::UpdateRequest event;
  event.mutable_container()->set_id(request.container_id());
  copy_resources(request.linux(), *event.mutable_resources());
  return event.SerializeAsString();
}

NriCreateAnswer read_nri_create_answer(const std::string& answer) {
  nri::lens::CreateResponse response;
  response.ParseFromString(answer);
  NriCreateAnswer read;
  if (response.has_adjustment()) read.patch = patch_of(response.adjustment());
  for (const nri::lens::ContainerUpdate& update : response.updates())
    read.neighbours.push_back({update.container_id(), cpuset_of(update.linux().resources())});
  return read;
}

std::string patch_of_nri_update_answer(const std::string& answer) {
  nri::lens::UpdateResponse response;
  response.ParseFromString(answer);
  if (response.updates().empty()) return {};
  // The container's own update is the last one.
  return cri::patch_update_container_resources(cpuset_of(response.updates().rbegin()->linux().resources()));
}

}  // namespace topolet::simulate
