#include "core/fronts/nri/messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "core/base/text.hpp"
#include "core/fronts/nri/nri.pb.h"

namespace topolet::nri {
namespace {

/// Lists of CPUs or nodes; far longer than any that Linux accepts (8192 CPUs) is refused unread.
constexpr std::size_t kMostListBytes = 65536;

/// Of the states that NRI tells of a container, by its number: it has ended.
constexpr std::int32_t kStopped = 4;

template <class Message>
Result<Message> parse(const std::string& method, const std::string& payload) {
  Message message;
  if (message.ParseFromString(payload)) return message;
  return Error{Code::kInvalidArgument,
               fmt::format("the runtime's {} cannot be read: it is no such NRI message", method)};
}

/// The last of repeated keys counts, as in every protobuf map.
template <class Entries>
std::map<std::string, std::string> entries_of(const Entries& entries) {
  std::map<std::string, std::string> map;
  for (const lens::Entry& entry : entries) map[entry.key()] = entry.value();
  return map;
}

template <class Set>
Result<Set> parse_set(const std::string& list, const std::string& method, const char* field) {
  if (list.size() > kMostListBytes)
    return Error{Code::kInvalidArgument, fmt::format("{}: {}: the list is longer than 64 KiB", method, field)};
  Result<Set> set = Set::parse(list);
  if (set) return set;
  return Error{Code::kInvalidArgument, fmt::format("{}: {}: {}", method, field, printable(set.error().message, 200))};
}

std::int64_t bounded(std::uint64_t number) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(number, std::numeric_limits<std::int64_t>::max()));
}

operations::RawResources raw_of(const lens::Resources& resources, std::int64_t oom_score_adj) {
  operations::RawResources raw{.cpu_period_us = bounded(resources.cpu().period_us().value()),
                               .cpu_quota_us = resources.cpu().quota_us().value(),
                               .cpu_shares = bounded(resources.cpu().shares().value()),
                               .memory_limit_bytes = resources.memory().limit_bytes().value(),
                               .oom_score_adj = oom_score_adj,
                               .hugepage_limit_bytes = {}};
  for (const lens::HugepageLimit& pages : resources.hugepage_limits())
    raw.hugepage_limit_bytes[pages.page_size()] = bounded(pages.limit_bytes());
  return raw;
}

operations::Sandbox sandbox_of(const lens::Pod& pod) {
  operations::Sandbox sandbox;
  sandbox.id = pod.id();
  sandbox.pod_uid = pod.uid();
  sandbox.pod_namespace = pod.pod_namespace();
  sandbox.pod_name = pod.name();
  sandbox.runtime_handler = pod.runtime_handler();
  sandbox.annotations = entries_of(pod.annotations());
  return sandbox;
}

LifecycleEvent event_of(const lens::Pod& pod, const lens::Container& container) {
  LifecycleEvent event{sandbox_of(pod), container.id(), container.pid(), std::nullopt};
  if (container.state() == kStopped) event.exit_code = container.exit_code();
  return event;
}

/// Named by the pod's cgroup or the container's own; else what its oom_score_adj belongs to.
placement::Qos qos_of(const lens::Pod& pod, const lens::Container& container) {
  for (const std::string& cgroup : {pod.linux().cgroup_parent(), container.linux().cgroups_path()}) {
    if (const auto named = operations::qos_of_cgroup(cgroup)) return *named;
  }
  if (!container.linux().has_oom_score_adj()) return placement::Qos::kBestEffort;
  return operations::qos_of_oom_score_adj(container.linux().oom_score_adj().value());
}

/// "NAME=VALUE" in two.
std::pair<std::string, std::string> variable_of(const std::string& text) {
  const std::size_t end = std::min(text.find('='), text.size());
  return {text.substr(0, end), end == text.size() ? std::string() : text.substr(end + 1)};
}

void add_entry(const std::string& key, const std::string& value, lens::Entry& entry) {
  entry.set_key(key);
  entry.set_value(value);
}

void set_cpuset(const operations::ContainerCpuset& set, lens::Resources& resources) {
  lens::Cpu& cpu = *resources.mutable_cpu();
  cpu.set_cpus(set.cpus.to_string());
  if (!set.mems.empty()) cpu.set_mems(set.mems.to_string());
  for (const auto& [file, value] : set.unified) add_entry(file, value, *resources.add_unified());
  if (!set.quota) return;
  cpu.mutable_quota_us()->set_value(set.quota->quota_us);
  cpu.mutable_period_us()->set_value(static_cast<std::uint64_t>(set.quota->period_us));
}

/// NRI's numbers of modes and classes are the kernel's. Its flags are counted from 0, and its policies from 1, as 0 is
/// none.
void set_settings(const placement::AddedFields& added, lens::Adjustment::Linux& container) {
  if (added.memory_policy) {
    const placement::MemoryPolicy& policy = *added.memory_policy;
    lens::MemoryPolicy& told = *container.mutable_memory_policy();
    told.set_mode(static_cast<std::int32_t>(policy.mode));
    told.set_nodes(policy.nodes.to_string());
    if (policy.static_nodes) told.add_flags(0);
    if (policy.relative_nodes) told.add_flags(1);
    if (policy.numa_balancing) told.add_flags(2);
  }
  if (added.scheduler) {
    container.mutable_scheduler()->set_policy(static_cast<std::int32_t>(added.scheduler->scheduler_class) + 1);
    container.mutable_scheduler()->set_nice(added.scheduler->nice);
  }
  if (added.io_priority) {
    container.mutable_io_priority()->set_io_class(static_cast<std::int32_t>(added.io_priority->io_class));
    container.mutable_io_priority()->set_priority(added.io_priority->priority);
  }
}

}  // namespace

Result<LifecycleEvent> read_event(const std::string& method, const std::string& payload) {
  const auto message = parse<lens::PodEvent>(method, payload);
  if (!message) return message.error();
  return event_of(message->pod(), message->container());
}

Result<StateChange> read_state_change(const std::string& payload) {
  const auto message = parse<lens::StateChange>("StateChange", payload);
  if (!message) return message.error();
  return StateChange{static_cast<Event>(message->event()), event_of(message->pod(), message->container())};
}

Result<CreateRequest> read_create(const std::string& payload, const operations::DemandRules& rules) {
  constexpr const char* kMethod = "CreateContainer";
  const auto message = parse<lens::PodEvent>(kMethod, payload);
  if (!message) return message.error();
  const lens::Pod& pod = message->pod();
  const lens::Container& container = message->container();
  if (container.id().empty() || container.name().empty() || pod.id().empty())
    return Error{Code::kInvalidArgument, "CreateContainer: the pod's id, or the container's id or name, is empty"};
  const lens::Resources& resources = container.linux().resources();
  auto cpus = parse_set<CpuSet>(resources.cpu().cpus(), kMethod, "container.linux.resources.cpu.cpus");
  if (!cpus) return cpus.error();
  auto mems = parse_set<NodeSet>(resources.cpu().mems(), kMethod, "container.linux.resources.cpu.mems");
  if (!mems) return mems.error();

  placement::Workload workload;
  workload.key = {pod.uid(), container.name(), 0, pod.id()};
  workload.pod_name = pod.name();
  workload.pod_namespace = pod.pod_namespace();
  workload.runtime_handler = pod.runtime_handler();
  workload.qos = qos_of(pod, container);
  workload.demand = operations::demand_of(raw_of(resources, container.linux().oom_score_adj().value()), workload.qos,
                                          rules.memory_total_bytes);
  if (pod.linux().has_pod_resources())
    workload.pod_demand =
        operations::demand_of(raw_of(pod.linux().pod_resources(), 0), workload.qos, rules.memory_total_bytes);
  workload.kubelet_cpus = *std::move(cpus);
  workload.kubelet_mems = *std::move(mems);
  workload.kubelet_unified = entries_of(resources.unified());
  for (const lens::Device& device : container.linux().devices()) workload.devices.push_back(device.path());
  for (const lens::CdiDevice& device : container.cdi_devices()) workload.cdi_devices.push_back(device.name());
  for (const std::string& variable : container.env()) workload.env.push_back(variable_of(variable));
  workload.pod_labels = entries_of(pod.labels());
  workload.pod_annotations = entries_of(pod.annotations());
  workload.annotations = entries_of(container.annotations());
  workload.made_by_kubelet =
      std::any_of(container.labels().begin(), container.labels().end(),
                  [](const lens::Entry& label) { return label.key() == "io.kubernetes.container.name"; });
  return CreateRequest{container.id(), std::move(workload)};
}

std::string make_create_answer(const operations::Admission& admission) {
  lens::CreateResponse response;
  if (admission.set) {
    lens::Adjustment& adjustment = *response.mutable_adjustment();
    for (const auto& [name, value] : admission.added.env) add_entry(name, value, *adjustment.add_env());
    for (const auto& [key, value] : admission.added.annotations) add_entry(key, value, *adjustment.add_annotations());
    lens::Resources& resources = *adjustment.mutable_linux()->mutable_resources();
    set_cpuset(*admission.set, resources);
    if (!admission.added.rdt_class.empty()) resources.mutable_rdt_class()->set_value(admission.added.rdt_class);
    set_settings(admission.added, *adjustment.mutable_linux());
  }
  for (const operations::NeighbourUpdate& neighbour : admission.neighbours) {
    lens::ContainerUpdate& update = *response.add_updates();
    update.set_container_id(neighbour.container_id);
    set_cpuset(neighbour.set, *update.mutable_linux()->mutable_resources());
  }
  return response.SerializeAsString();
}

Result<UpdateRequest> read_update(const std::string& payload) {
  constexpr const char* kMethod = "UpdateContainer";
  const auto message = parse<lens::UpdateRequest>(kMethod, payload);
  if (!message) return message.error();
  const lens::Resources& resources = message->resources();
  auto cpus = parse_set<CpuSet>(resources.cpu().cpus(), kMethod, "linux_resources.cpu.cpus");
  if (!cpus) return cpus.error();
  auto mems = parse_set<NodeSet>(resources.cpu().mems(), kMethod, "linux_resources.cpu.mems");
  if (!mems) return mems.error();
  operations::RawResources raw = raw_of(resources, 0);
  operations::ResourceUpdate update;
  update.container_id = message->container().id();
  update.cpus = *std::move(cpus);
  update.mems = *std::move(mems);
  update.cpu_period_us = raw.cpu_period_us;
  update.cpu_quota_us = raw.cpu_quota_us;
  update.cpu_shares = raw.cpu_shares;
  update.memory_limit_bytes = raw.memory_limit_bytes;
  update.hugepage_limit_bytes = std::move(raw.hugepage_limit_bytes);
  update.has_linux = message->has_resources();
  update.unified = entries_of(resources.unified());
  return UpdateRequest{std::move(update), resources.SerializeAsString()};
}

std::string make_update_answer(const UpdateRequest& asked, const operations::ContainerCpuset& set) {
  operations::ContainerCpuset told = set;
  // The ledger may know of these files only once the update is done.
  for (const auto& [file, value] : asked.update.unified) told.unified.erase(file);
  lens::UpdateResponse response;
  lens::ContainerUpdate& update = *response.add_updates();
  update.set_container_id(asked.update.container_id);
  lens::Resources& resources = *update.mutable_linux()->mutable_resources();
  // It was made of such a message.
  (void)resources.ParseFromString(asked.resources);
  set_cpuset(told, resources);
  return response.SerializeAsString();
}

}  // namespace topolet::nri
