#include "core/simulate/kubelet.hpp"

#include <algorithm>

#include "core/cri/messages/lens.pb.h"

namespace topolet::simulate {
namespace {

constexpr std::int64_t kPeriodUs = 100'000;
constexpr std::int64_t kMinShares = 2;
constexpr std::int64_t kMaxShares = 262'144;
constexpr std::int64_t kMinQuotaUs = 1000;

std::int64_t shares_of(std::int64_t milli) {
  // Far above the largest share; keeps the product from overflowing.
  return std::clamp(std::min<std::int64_t>(milli, 1'000'000'000) * 1024 / 1000, kMinShares, kMaxShares);
}

std::int64_t quota_of(std::int64_t milli) {
  return std::max(kMinQuotaUs, std::min<std::int64_t>(milli, 1'000'000'000'000) * kPeriodUs / 1000);
}

std::int64_t oom_score_adj_of(placement::Qos qos, std::int64_t memory_request, std::int64_t memory_total) {
  if (qos == placement::Qos::kGuaranteed) return -997;
  if (qos == placement::Qos::kBestEffort) return 1000;
  if (memory_total <= 0) return 999;
  const auto part = static_cast<std::int64_t>(static_cast<long double>(memory_request) * 1000 /
                                              static_cast<long double>(memory_total));
  return std::clamp<std::int64_t>(1000 - part, 3, 999);
}

/// A request that is not named is as large as the limit.
std::int64_t cpu_request_of(const Resources& resources) {
  return resources.cpu_request_milli.value_or(resources.cpu_limit_milli.value_or(0));
}

std::int64_t memory_request_of(const Resources& resources) {
  return resources.memory_request.value_or(resources.memory_limit.value_or(0));
}

void add_huge_pages(const Resources& resources, lens::Resources& filled) {
  for (const auto& [size, bytes] : resources.hugepages) {
    lens::Hugepages& limit = *filled.add_hugepage_limits();
    limit.set_page_size(size);
    limit.set_limit_bytes(static_cast<std::uint64_t>(bytes));
  }
}

/// As the kubelet sends them for a container of this class; what the line says in the CRI's own terms stands.
void fill(lens::Resources& filled, const Resources& resources, placement::Qos qos, std::int64_t memory_total) {
  std::int64_t memory_limit = resources.memory_limit.value_or(0);
  if (qos == placement::Qos::kGuaranteed && memory_limit == 0) memory_limit = memory_request_of(resources);
  const std::int64_t cpu_limit = resources.cpu_limit_milli.value_or(0);
  filled.set_cpu_period_us(resources.cpu_period.value_or(kPeriodUs));
  filled.set_cpu_quota_us(resources.cpu_quota.value_or(cpu_limit > 0 ? quota_of(cpu_limit) : 0));
  filled.set_cpu_shares(resources.cpu_shares.value_or(shares_of(cpu_request_of(resources))));
  filled.set_memory_limit_bytes(resources.memory_limit_in_bytes.value_or(memory_limit));
  filled.set_oom_score_adj(
      resources.oom_score_adj.value_or(oom_score_adj_of(qos, memory_request_of(resources), memory_total)));
  add_huge_pages(resources, filled);
}

bool has_cri_fields(const Resources& resources) {
  return resources.cpu_shares || resources.cpu_quota || resources.oom_score_adj || resources.memory_limit_in_bytes;
}

std::string cgroup_of(const SimulatedPod& pod, const Resources& resources) {
  // Without a class the runtime's user made the pod by hand, outside of the kubelet's tree.
  if (pod.spec.qos.empty() && has_cri_fields(resources)) return {};
  const placement::Qos qos = qos_of(pod, resources);
  const std::string level = qos == placement::Qos::kGuaranteed ? "" : std::string(placement::to_string(qos)) + "/";
  return "/kubepods/" + level + "pod" + pod.spec.pod;
}

void fill(lens::PodConfig& config, const SimulatedPod& pod, const std::string& cgroup_parent,
          std::int64_t memory_total) {
  const Operation& spec = pod.spec;
  config.mutable_metadata()->set_name(spec.name);
  config.mutable_metadata()->set_uid(spec.pod);
  config.mutable_metadata()->set_pod_namespace(spec.pod_namespace);
  const auto add = [](const auto& pairs, auto* entries) {
    for (const auto& [key, value] : pairs) {
      lens::Entry& entry = *entries->Add();
      entry.set_key(key);
      entry.set_value(value);
    }
  };
  add(spec.labels, config.mutable_labels());
  add(spec.annotations, config.mutable_annotations());
  config.mutable_linux()->set_cgroup_parent(cgroup_parent);
  if (spec.has_resources) {
    fill(*config.mutable_linux()->mutable_resources(), spec.resources, qos_of(pod, spec.resources), memory_total);
  }
}

}  // namespace

placement::Qos qos_of(const SimulatedPod& pod, const Resources& resources) {
  if (pod.spec.qos == "guaranteed") return placement::Qos::kGuaranteed;
  if (pod.spec.qos == "besteffort") return placement::Qos::kBestEffort;
  if (pod.spec.qos == "burstable") return placement::Qos::kBurstable;
  const std::int64_t cpu = resources.cpu_limit_milli.value_or(0);
  const std::int64_t memory = resources.memory_limit.value_or(0);
  if (cpu > 0 && memory > 0 && cpu_request_of(resources) == cpu && memory_request_of(resources) == memory) {
    return placement::Qos::kGuaranteed;
  }
  const bool asks = cpu_request_of(resources) > 0 || memory_request_of(resources) > 0 || cpu > 0 || memory > 0;
  return asks ? placement::Qos::kBurstable : placement::Qos::kBestEffort;
}

std::string run_pod_request(const Operation& run_pod, std::int64_t memory_total_bytes) {
  lens::RunPodSandboxRequest request;
  const SimulatedPod pod{run_pod, {}};
  fill(*request.mutable_config(), pod, cgroup_of(pod, run_pod.resources), memory_total_bytes);
  request.set_runtime_handler(run_pod.runtime_handler);
  return request.SerializeAsString();
}

std::string create_request(const Operation& create, const SimulatedPod& pod, std::uint32_t attempt,
                           std::int64_t memory_total_bytes) {
  lens::CreateContainerRequest request;
  request.set_sandbox_id(pod.sandbox_id);
  lens::ContainerConfig& config = *request.mutable_config();
  config.mutable_metadata()->set_name(create.container);
  config.mutable_metadata()->set_attempt(attempt);
  for (const auto& [name, value] : create.env) {
    lens::Entry& entry = *config.add_envs();
    entry.set_key(name);
    entry.set_value(value);
  }
  for (const std::string& device : create.devices) config.add_devices()->set_host_path(device);
  for (const std::string& device : create.cdi_devices) config.add_cdi_devices()->set_name(device);
  for (const auto& [key, value] : create.labels) {
    lens::Entry& entry = *config.add_labels();
    entry.set_key(key);
    entry.set_value(value);
  }
  for (const auto& [key, value] : create.annotations) {
    lens::Entry& entry = *config.add_annotations();
    entry.set_key(key);
    entry.set_value(value);
  }
  lens::Resources& resources = *config.mutable_linux()->mutable_resources();
  fill(resources, create.resources, qos_of(pod, create.resources), memory_total_bytes);
  if (!create.cpuset_cpus.empty()) resources.set_cpuset_cpus(create.cpuset_cpus);
  if (!create.cpuset_mems.empty()) resources.set_cpuset_mems(create.cpuset_mems);
  fill(*request.mutable_sandbox_config(), pod, create.cgroup_parent.value_or(cgroup_of(pod, create.resources)),
       memory_total_bytes);
  return request.SerializeAsString();
}

std::string update_request(const Operation& update, const std::string& container_id, placement::Qos qos,
                           std::int64_t memory_total_bytes) {
  const Resources& spec = update.resources;
  lens::UpdateContainerResourcesRequest request;
  request.set_container_id(container_id);
  lens::Resources& resources = *request.mutable_linux();
  if (spec.cpu_period || spec.cpu_quota || spec.cpu_limit_milli) {
    resources.set_cpu_period_us(spec.cpu_period.value_or(kPeriodUs));
  }
  const std::int64_t limit = spec.cpu_limit_milli.value_or(0);
  const std::int64_t quota = limit > 0 ? quota_of(limit) : spec.cpu_limit_milli ? -1 : 0;
  resources.set_cpu_quota_us(spec.cpu_quota.value_or(quota));
  if (spec.cpu_request_milli) resources.set_cpu_shares(shares_of(*spec.cpu_request_milli));
  if (spec.cpu_shares) resources.set_cpu_shares(*spec.cpu_shares);
  resources.set_memory_limit_bytes(spec.memory_limit_in_bytes.value_or(spec.memory_limit.value_or(0)));
  if (spec.memory_request) {
    resources.set_oom_score_adj(oom_score_adj_of(qos, *spec.memory_request, memory_total_bytes));
  }
  if (spec.oom_score_adj) resources.set_oom_score_adj(*spec.oom_score_adj);
  add_huge_pages(spec, resources);
  if (!update.cpuset_cpus.empty()) resources.set_cpuset_cpus(update.cpuset_cpus);
  if (!update.cpuset_mems.empty()) resources.set_cpuset_mems(update.cpuset_mems);
  return request.SerializeAsString();
}

std::string id_request(const std::string& id) {
  lens::Target target;
  target.set_id(id);
  return target.SerializeAsString();
}

}  // namespace topolet::simulate
