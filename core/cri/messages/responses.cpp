// Answers of the runtime that are observed: lists and the verbose status of a container.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <utility>

#include "core/cri/messages/lens.hpp"
#include "core/cri/messages/lens.pb.h"
#include "core/cri/messages/requests.hpp"
#include "core/operations/container.hpp"

namespace topolet::cri {
namespace {

using Json = nlohmann::json;

constexpr std::int32_t kSandboxReady = 0;

operations::ContainerState state_of(std::int32_t number) {
  switch (number) {
    case 0:
      return operations::ContainerState::kCreated;
    case 1:
      return operations::ContainerState::kRunning;
    case 2:
      return operations::ContainerState::kExited;
    default:
      return operations::ContainerState::kUnknown;
  }
}

// Reading JSON that may lack anything: what is absent or of another type is null, 0 or "".

const Json& at(const Json& json, std::initializer_list<const char*> path) {
  static const Json kNull;
  const Json* found = &json;
  for (const char* name : path) {
    if (!found->is_object()) return kNull;
    const auto member = found->find(name);
    if (member == found->end()) return kNull;
    found = &*member;
  }
  return *found;
}

std::int64_t number(const Json& json) {
  if (json.is_number_unsigned()) {
    constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
    return static_cast<std::int64_t>(std::min(json.get<std::uint64_t>(), kMax));
  }
  return json.is_number_integer() ? json.get<std::int64_t>() : 0;
}

std::string text(const Json& json) { return json.is_string() ? json.get<std::string>() : std::string(); }

const Json& array(const Json& json) {
  static const Json kEmpty = Json::array();
  return json.is_array() ? json : kEmpty;
}

std::map<std::string, std::string> text_map(const Json& json) {
  std::map<std::string, std::string> map;
  if (!json.is_object()) return map;
  for (const auto& member : json.items()) map[member.key()] = text(member.value());
  return map;
}

template <class Set>
Set list(const std::string& text) {
  auto set = parse_list<Set>(text, "ContainerStatusResponse", "cpuset");
  return set ? *std::move(set) : Set();
}

/// The numbers that an object of the runtime spec tells; one that is not set there is 0.
std::optional<std::int64_t> told_number(const Json& object, std::initializer_list<const char*> path) {
  if (!object.is_object()) return std::nullopt;
  return number(at(object, path));
}

std::optional<std::map<std::string, std::int64_t>> huge_pages_in(const Json& limits, const char* size) {
  if (!limits.is_array()) return std::nullopt;
  std::map<std::string, std::int64_t> pages;
  for (const Json& limit : limits) pages[text(at(limit, {size}))] = number(at(limit, {"limit"}));
  return pages;
}

/// The runtime spec, which is what a resize left.
operations::ToldResources told_by_spec(const Json& spec) {
  operations::ToldResources told;
  if (!at(spec, {"linux"}).is_object()) return told;
  const Json& resources = at(spec, {"linux", "resources"});
  told.qos = operations::qos_of_cgroup(text(at(spec, {"linux", "cgroupsPath"})));
  told.cpu_period_us = number(at(resources, {"cpu", "period"}));
  told.cpu_quota_us = number(at(resources, {"cpu", "quota"}));
  told.cpu_shares = number(at(resources, {"cpu", "shares"}));
  told.memory_limit_bytes = number(at(resources, {"memory", "limit"}));
  told.oom_score_adj = told_number(at(spec, {"process"}), {"oomScoreAdj"});
  told.hugepage_limit_bytes = huge_pages_in(at(resources, {"hugepageLimits"}), "pageSize");
  return told;
}

/// The request of the create; only containerd tells it.
operations::ToldResources told_by_config(const Json& config) {
  operations::ToldResources told;
  if (!at(config, {"metadata"}).is_object()) return told;
  const Json& resources = at(config, {"linux", "resources"});
  told.cpu_period_us = number(at(resources, {"cpu_period"}));
  told.cpu_quota_us = number(at(resources, {"cpu_quota"}));
  told.cpu_shares = number(at(resources, {"cpu_shares"}));
  told.memory_limit_bytes = number(at(resources, {"memory_limit_in_bytes"}));
  told.oom_score_adj = number(at(resources, {"oom_score_adj"}));
  told.hugepage_limit_bytes = huge_pages_in(array(at(resources, {"hugepage_limits"})), "page_size");
  // One that asks for nothing is besteffort, as at a create.
  if (!resources.is_object()) told.qos = placement::Qos::kBestEffort;
  return told;
}

operations::ToldResources told_by_status(const lens::ContainerStatus& status) {
  operations::ToldResources told;
  if (!status.resources().has_linux()) return told;
  const lens::Resources& resources = status.resources().linux();
  told.cpu_period_us = resources.cpu_period_us();
  told.cpu_quota_us = resources.cpu_quota_us();
  told.cpu_shares = resources.cpu_shares();
  told.memory_limit_bytes = resources.memory_limit_bytes();
  // The kubelet asks for none that is 0.
  if (resources.oom_score_adj() != 0) told.oom_score_adj = resources.oom_score_adj();
  told.hugepage_limit_bytes = raw_of(resources).hugepage_limit_bytes;
  return told;
}

/// Reads values that were changed since the create from the runtime spec; those that the spec does not set, from the
/// config.
operations::ToldResources told_by(const Json& info, const lens::ContainerStatus& status) {
  const Json& spec = at(info, {"runtimeSpec"});
  const operations::ToldResources created = told_by_config(at(info, {"config"}));
  operations::ToldResources told = told_by_spec(spec);
  const Json& cpu = at(spec, {"linux", "resources", "cpu"});
  const bool has_config = created.cpu_shares.has_value();
  if (has_config && !at(cpu, {"period"}).is_number()) told.cpu_period_us = created.cpu_period_us;
  if (has_config && !at(cpu, {"quota"}).is_number()) told.cpu_quota_us = created.cpu_quota_us;
  if (has_config && !at(cpu, {"shares"}).is_number()) told.cpu_shares = created.cpu_shares;
  if (has_config && !at(spec, {"linux", "resources", "memory", "limit"}).is_number())
    told.memory_limit_bytes = created.memory_limit_bytes;
  // The config has the value that was asked for, where the runtime was told not to lower it.
  if (has_config) told.oom_score_adj = created.oom_score_adj;
  if (has_config) told.hugepage_limit_bytes = created.hugepage_limit_bytes;
  told.fill_in(created);
  told.fill_in(told_by_status(status));
  return told;
}

/// "NAME=VALUE" each.
std::vector<std::pair<std::string, std::string>> env_of_spec(const Json& process) {
  std::vector<std::pair<std::string, std::string>> env;
  for (const Json& entry : array(at(process, {"env"}))) {
    const std::string pair = text(entry);
    const auto end = pair.find('=');
    if (end != std::string::npos) env.emplace_back(pair.substr(0, end), pair.substr(end + 1));
  }
  return env;
}

/// Reads the config beside its resources, or in place of it the runtime spec. The kubelet's bound is left out: both
/// hold the cpuset that topolet appended, not the one it was asked for.
void read_identity(const Json& info, const lens::ContainerStatus& status, placement::Workload& workload) {
  workload.key.name = status.metadata().name();
  workload.key.attempt = status.metadata().attempt();
  const Json& config = at(info, {"config"});
  if (!at(config, {"metadata"}).is_object()) {
    workload.annotations = map_of(status.annotations());
    workload.env = env_of_spec(at(info, {"runtimeSpec", "process"}));
    // A privileged container has all of the machine's.
    if (at(info, {"privileged"}) == true) return;
    for (const Json& device : array(at(info, {"runtimeSpec", "linux", "devices"})))
      workload.devices.push_back(text(at(device, {"path"})));
    return;
  }
  workload.key.name = text(at(config, {"metadata", "name"}));
  workload.key.attempt = static_cast<std::uint32_t>(number(at(config, {"metadata", "attempt"})));
  for (const Json& device : array(at(config, {"devices"}))) workload.devices.push_back(text(at(device, {"host_path"})));
  for (const Json& device : array(at(config, {"CDI_devices"})))
    workload.cdi_devices.push_back(text(at(device, {"name"})));
  for (const Json& env : array(at(config, {"envs"}))) {
    workload.env.emplace_back(text(at(env, {"key"})), text(at(env, {"value"})));
  }
  workload.annotations = text_map(at(config, {"annotations"}));
}

/// containerd and CRI-O put one JSON object under "info"; null or discarded, which at() treats alike, if it cannot be
/// read.
Json info_of(const lens::ContainerStatusResponse& response) {
  const std::string* value = nullptr;
  for (const lens::Entry& entry : response.info()) {
    if (entry.key() == "info") value = &entry.value();
  }
  if (value == nullptr) return {};
  return Json::parse(*value, nullptr, /*allow_exceptions=*/false);
}

bool is_unfiltered(lens::ListContainersRequest request) {
  for (const std::string& filter : request.filter()) {
    if (!filter.empty()) return false;
  }
  // The rest is not known here, and may be a filter that is yet to be invented.
  request.clear_filter();
  return request.ByteSizeLong() == 0;
}

}  // namespace

Result<ContainerList> read_list_containers(const std::string& request, const std::string& response) {
  auto asked = parse_request<lens::ListContainersRequest>(request, "ListContainersRequest");
  if (!asked) return asked.error();
  auto answered = parse_response<lens::ListContainersResponse>(response, "ListContainersResponse");
  if (!answered) return answered.error();
  ContainerList result;
  result.unfiltered = is_unfiltered(*std::move(asked));
  for (const lens::Container& container : answered->containers()) {
    auto labels = map_of(container.labels());
    result.containers.push_back({.id = container.id(),
                                 .sandbox_id = container.sandbox_id(),
                                 .name = container.metadata().name(),
                                 .attempt = container.metadata().attempt(),
                                 .state = state_of(container.state()),
                                 .exit_code = 0,
                                 .pod_uid = std::move(labels["io.kubernetes.pod.uid"]),
                                 .pod_namespace = std::move(labels["io.kubernetes.pod.namespace"]),
                                 .pod_name = std::move(labels["io.kubernetes.pod.name"])});
  }
  return result;
}

Result<std::vector<operations::Sandbox>> read_list_pod_sandbox(const std::string& response) {
  auto parsed = parse_response<lens::ListPodSandboxResponse>(response, "ListPodSandboxResponse");
  if (!parsed) return parsed.error();
  std::vector<operations::Sandbox> sandboxes;
  for (const lens::PodSandbox& item : parsed->items()) {
    sandboxes.push_back({.id = item.id(),
                         .pod_uid = item.metadata().uid(),
                         .pod_namespace = item.metadata().pod_namespace(),
                         .pod_name = item.metadata().name(),
                         .runtime_handler = item.runtime_handler(),
                         .ready = item.state() == kSandboxReady,
                         .annotations = map_of(item.annotations())});
  }
  return sandboxes;
}

Result<operations::ContainerDetail> read_container_status(const std::string& response,
                                                          const operations::DemandRules& rules) {
  auto parsed = parse_response<lens::ContainerStatusResponse>(response, "ContainerStatusResponse");
  if (!parsed) return parsed.error();
  const Json info = info_of(*parsed);
  const lens::ContainerStatus& status = parsed->status();
  operations::ContainerDetail detail;
  detail.info = {.id = status.id(),
                 .sandbox_id = text(at(info, {"sandboxID"})),
                 .name = status.metadata().name(),
                 .attempt = status.metadata().attempt(),
                 .state = state_of(status.state()),
                 .exit_code = status.exit_code()};
  if (detail.info.state == operations::ContainerState::kRunning) detail.pid = number(at(info, {"pid"}));
  const Json& cpu = at(info, {"runtimeSpec", "linux", "resources", "cpu"});
  const lens::Resources& resources = status.resources().linux();
  detail.tells_cpuset = at(info, {"runtimeSpec", "linux"}).is_object() || status.resources().has_linux();
  detail.spec_cpus = list<CpuSet>(text(at(cpu, {"cpus"})));
  detail.spec_mems = list<NodeSet>(text(at(cpu, {"mems"})));
  if (detail.spec_cpus.empty()) detail.spec_cpus = list<CpuSet>(resources.cpuset_cpus());
  if (detail.spec_mems.empty()) detail.spec_mems = list<NodeSet>(resources.cpuset_mems());
  detail.told = told_by(info, status);
  // containerd does. CRI-O has forgotten them after a restart of its own.
  detail.keeps_updates = at(info, {"config", "metadata"}).is_object();
  read_identity(info, status, detail.workload);
  detail.workload.key.sandbox_id = detail.info.sandbox_id;
  complete(detail, {}, 0, rules);
  return detail;
}

}  // namespace topolet::cri
