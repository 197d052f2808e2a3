// Answers of the runtime that are observed: lists and the verbose status of a container.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <utility>

#include "core/cri/messages/demand.hpp"
#include "core/cri/messages/lens.hpp"
#include "core/cri/messages/lens.pb.h"
#include "core/cri/messages/requests.hpp"

namespace topolet::cri {
namespace {

using Json = nlohmann::json;

constexpr std::int32_t kSandboxReady = 0;

ContainerState state_of(std::int32_t number) {
  switch (number) {
    case 0:
      return ContainerState::kCreated;
    case 1:
      return ContainerState::kRunning;
    case 2:
      return ContainerState::kExited;
    default:
      return ContainerState::kUnknown;
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

/// The container's resources: as created, and over them what the runtime spec says, which is what a resize left.
RawResources raw_of(const Json& info) {
  const Json& config = at(info, {"config", "linux", "resources"});
  const Json& spec = at(info, {"runtimeSpec", "linux", "resources"});
  const auto latest = [](const Json& now, const Json& created) {
    return now.is_number() ? number(now) : number(created);
  };
  RawResources raw;
  raw.cpu_period_us = latest(at(spec, {"cpu", "period"}), at(config, {"cpu_period"}));
  raw.cpu_quota_us = latest(at(spec, {"cpu", "quota"}), at(config, {"cpu_quota"}));
  raw.cpu_shares = latest(at(spec, {"cpu", "shares"}), at(config, {"cpu_shares"}));
  raw.memory_limit_bytes = latest(at(spec, {"memory", "limit"}), at(config, {"memory_limit_in_bytes"}));
  raw.oom_score_adj = number(at(config, {"oom_score_adj"}));
  for (const Json& pages : array(at(config, {"hugepage_limits"}))) {
    raw.hugepage_limit_bytes[text(at(pages, {"page_size"}))] = number(at(pages, {"limit"}));
  }
  return raw;
}

placement::Qos qos_of(const Json& info, const RawResources& raw) {
  if (const auto named = qos_of_cgroup(text(at(info, {"runtimeSpec", "linux", "cgroupsPath"})))) return *named;
  if (!at(info, {"config", "linux", "resources"}).is_object()) return placement::Qos::kBestEffort;
  return qos_of_oom_score_adj(raw.oom_score_adj);
}

/// The kubelet's bound is left out: the config holds the cpuset that topolet appended, not the one it was asked for.
std::optional<placement::Workload> workload_of(const Json& info, const DemandRules& rules) {
  const Json& config = at(info, {"config"});
  if (!at(config, {"metadata"}).is_object()) return std::nullopt;
  placement::Workload workload;
  workload.key.name = text(at(config, {"metadata", "name"}));
  workload.key.attempt = static_cast<std::uint32_t>(number(at(config, {"metadata", "attempt"})));
  const RawResources raw = raw_of(info);
  workload.qos = qos_of(info, raw);
  workload.demand = demand_of(raw, workload.qos, rules.memory_total_bytes);
  for (const Json& device : array(at(config, {"devices"}))) workload.devices.push_back(text(at(device, {"host_path"})));
  for (const Json& device : array(at(config, {"CDI_devices"})))
    workload.cdi_devices.push_back(text(at(device, {"name"})));
  for (const Json& env : array(at(config, {"envs"}))) {
    workload.env.emplace_back(text(at(env, {"key"})), text(at(env, {"value"})));
  }
  workload.annotations = text_map(at(config, {"annotations"}));
  return workload;
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
  // What is left is not known here, and may be a filter that is yet to be invented.
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
    result.containers.push_back({.id = container.id(),
                                 .sandbox_id = container.sandbox_id(),
                                 .name = container.metadata().name(),
                                 .attempt = container.metadata().attempt(),
                                 .state = state_of(container.state()),
                                 .exit_code = 0});
  }
  return result;
}

Result<std::vector<Sandbox>> read_list_pod_sandbox(const std::string& response) {
  auto parsed = parse_response<lens::ListPodSandboxResponse>(response, "ListPodSandboxResponse");
  if (!parsed) return parsed.error();
  std::vector<Sandbox> sandboxes;
  for (const lens::PodSandbox& item : parsed->items()) {
    sandboxes.push_back({.id = item.id(),
                         .pod_uid = item.metadata().uid(),
                         .pod_namespace = item.metadata().pod_namespace(),
                         .pod_name = item.metadata().name(),
                         .runtime_handler = item.runtime_handler(),
                         .ready = item.state() == kSandboxReady});
  }
  return sandboxes;
}

Result<ContainerDetail> read_container_status(const std::string& response, const DemandRules& rules) {
  auto parsed = parse_response<lens::ContainerStatusResponse>(response, "ContainerStatusResponse");
  if (!parsed) return parsed.error();
  const Json info = info_of(*parsed);
  const lens::ContainerStatus& status = parsed->status();
  ContainerDetail detail;
  detail.info = {.id = status.id(),
                 .sandbox_id = text(at(info, {"sandboxID"})),
                 .name = status.metadata().name(),
                 .attempt = status.metadata().attempt(),
                 .state = state_of(status.state()),
                 .exit_code = status.exit_code()};
  if (detail.info.state == ContainerState::kRunning) detail.pid = number(at(info, {"pid"}));
  const Json& cpu = at(info, {"runtimeSpec", "linux", "resources", "cpu"});
  const lens::Resources& resources = status.resources().linux();
  detail.spec_cpus = list<CpuSet>(text(at(cpu, {"cpus"})));
  detail.spec_mems = list<NodeSet>(text(at(cpu, {"mems"})));
  if (detail.spec_cpus.empty()) detail.spec_cpus = list<CpuSet>(resources.cpuset_cpus());
  if (detail.spec_mems.empty()) detail.spec_mems = list<NodeSet>(resources.cpuset_mems());
  detail.workload = workload_of(info, rules);
  if (detail.workload) detail.workload->key.sandbox_id = detail.info.sandbox_id;
  return detail;
}

}  // namespace topolet::cri
