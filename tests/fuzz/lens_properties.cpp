#include "tests/fuzz/lens_properties.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>

#include "core/cri/demand.hpp"
#include "core/cri/lens.hpp"
#include "core/cri/lens.pb.h"
#include "core/cri/requests.hpp"
#include "tests/support/cri.pb.h"

namespace topolet {
namespace {

namespace cri = ::runtime::v1;

constexpr DemandRules kRules{.memory_total_bytes = std::int64_t{123456789012}};

std::string canonical(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

template <class Set>
bool readable(const std::string& list) {
  return list.size() <= kMaxListBytes && Set::parse(list).ok();
}

bool bounds_readable(const cri::LinuxContainerResources& resources) {
  return readable<CpuSet>(resources.cpuset_cpus()) && readable<NodeSet>(resources.cpuset_mems());
}

std::map<std::string, std::string> plain(const google::protobuf::Map<std::string, std::string>& map) {
  return {map.begin(), map.end()};
}

Qos expected_qos(const cri::CreateContainerRequest& request) {
  const auto named = qos_of_cgroup(request.sandbox_config().linux().cgroup_parent());
  if (named) return *named;
  if (!request.config().linux().has_resources()) return Qos::kBestEffort;
  return qos_of_oom_score_adj(request.config().linux().resources().oom_score_adj());
}

Demand expected_demand(const cri::LinuxContainerResources& resources, Qos qos) {
  RawResources raw;
  raw.cpu_period_us = resources.cpu_period();
  raw.cpu_quota_us = resources.cpu_quota();
  raw.cpu_shares = resources.cpu_shares();
  raw.memory_limit_bytes = resources.memory_limit_in_bytes();
  raw.oom_score_adj = resources.oom_score_adj();
  for (const cri::HugepageLimit& pages : resources.hugepage_limits()) {
    const auto limit = std::min<std::uint64_t>(pages.limit(), std::numeric_limits<std::int64_t>::max());
    raw.hugepage_limit_bytes[pages.page_size()] = static_cast<std::int64_t>(limit);
  }
  return demand_of(raw, qos, kRules.memory_total_bytes);
}

bool same_lists(const cri::ContainerConfig& config, const Workload& workload) {
  if (workload.devices.size() != static_cast<std::size_t>(config.devices_size())) return false;
  if (workload.cdi_devices.size() != static_cast<std::size_t>(config.cdi_devices_size())) return false;
  if (workload.env.size() != static_cast<std::size_t>(config.envs_size())) return false;
  for (int i = 0; i < config.devices_size(); ++i) {
    if (workload.devices[static_cast<std::size_t>(i)] != config.devices(i).host_path()) return false;
  }
  for (int i = 0; i < config.cdi_devices_size(); ++i) {
    if (workload.cdi_devices[static_cast<std::size_t>(i)] != config.cdi_devices(i).name()) return false;
  }
  for (int i = 0; i < config.envs_size(); ++i) {
    const auto& [key, value] = workload.env[static_cast<std::size_t>(i)];
    if (key != config.envs(i).key() || value != config.envs(i).value()) return false;
  }
  return true;
}

/// The first field that the lens read differently, or "".
std::string difference(const cri::CreateContainerRequest& request, const Workload& workload) {
  const cri::ContainerConfig& config = request.config();
  const cri::PodSandboxConfig& pod = request.sandbox_config();
  const cri::LinuxContainerResources& resources = config.linux().resources();
  const ContainerKey key{pod.metadata().uid(), config.metadata().name(), config.metadata().attempt(),
                         request.pod_sandbox_id()};
  if (workload.key != key) return "key";
  if (workload.pod_name != pod.metadata().name()) return "pod name";
  if (workload.pod_namespace != pod.metadata().namespace_()) return "pod namespace";
  if (workload.qos != expected_qos(request)) return "qos";
  if (workload.demand != expected_demand(resources, workload.qos)) return "demand";
  if (workload.kubelet_cpus != *CpuSet::parse(resources.cpuset_cpus())) return "cpuset_cpus";
  if (workload.kubelet_mems != *NodeSet::parse(resources.cpuset_mems())) return "cpuset_mems";
  if (!same_lists(config, workload)) return "devices or env";
  if (workload.pod_labels != plain(pod.labels())) return "pod labels";
  if (workload.pod_annotations != plain(pod.annotations())) return "pod annotations";
  if (workload.annotations != plain(config.annotations())) return "annotations";
  return {};
}

/// `resources` finds the place of the cpuset in `original`.
template <class Message, class Resources>
std::string patch_violation(const std::string& bytes, Message original, const std::string& patch, const CpuSet& cpus,
                            const NodeSet& mems, const Resources& resources) {
  Message merged;
  if (!merged.ParseFromString(bytes + patch)) return "the patched message does not parse";
  resources(original).set_cpuset_cpus(cpus.to_string());
  if (!mems.empty()) resources(original).set_cpuset_mems(mems.to_string());
  if (canonical(merged) != canonical(original)) return "the patch changed more than the cpuset";
  return {};
}

const CpuSet kCpus{0, 2, 3, 64};
const NodeSet kMems{0, 1};

/// The common part: what the parsers say, and that a message one can parse is never refused as unparsable.
template <class Lens, class Full, class Value>
Judgement judge(const std::string& bytes, const Full& full, bool full_accepts, const Result<Value>& read) {
  Judgement result;
  result.full_accepts = full_accepts;
  result.lens_accepts = Lens().ParseFromString(bytes);
  result.placeable = read.ok();
  const bool called_unparsable = !read.ok() && read.error().message.find("cannot be parsed") != std::string::npos;
  if (full_accepts && !result.lens_accepts) result.violation = "the lens refused what " + full.GetTypeName() + " reads";
  if (result.lens_accepts == called_unparsable)
    result.violation = "the reader's error does not fit the parser's verdict";
  return result;
}

}  // namespace

Judgement judge_create_container(const std::string& bytes) {
  cri::CreateContainerRequest full;
  const bool full_accepts = full.ParseFromString(bytes);
  const auto read = read_create_container(bytes, kRules);
  Judgement result = judge<lens::CreateContainerRequest>(bytes, full, full_accepts, read);
  if (!result.violation.empty() || !full_accepts) return result;

  const bool identified = !full.config().metadata().name().empty();
  const bool expected = identified && bounds_readable(full.config().linux().resources());
  if (read.ok() != expected) result.violation = "refused or accepted against the rules";
  if (read.ok() && expected) result.violation = difference(full, *read);
  const auto resources = [](cri::CreateContainerRequest& request) -> cri::LinuxContainerResources& {
    return *request.mutable_config()->mutable_linux()->mutable_resources();
  };
  for (const NodeSet& mems : {NodeSet{}, kMems}) {
    if (!result.violation.empty()) break;
    result.violation = patch_violation(bytes, full, patch_create_container(kCpus, mems), kCpus, mems, resources);
  }
  return result;
}

Judgement judge_update_container_resources(const std::string& bytes) {
  cri::UpdateContainerResourcesRequest full;
  const bool full_accepts = full.ParseFromString(bytes);
  const auto read = read_update_container_resources(bytes);
  Judgement result = judge<lens::UpdateContainerResourcesRequest>(bytes, full, full_accepts, read);
  if (!result.violation.empty() || !full_accepts) return result;

  const cri::LinuxContainerResources& linux = full.linux();
  if (read.ok() != bounds_readable(linux)) result.violation = "refused or accepted against the rules";
  if (read.ok() && result.violation.empty()) {
    const bool same = read->container_id == full.container_id() && read->has_linux == full.has_linux() &&
                      read->cpus == *CpuSet::parse(linux.cpuset_cpus()) &&
                      read->mems == *NodeSet::parse(linux.cpuset_mems()) && read->cpu_period_us == linux.cpu_period() &&
                      read->cpu_quota_us == linux.cpu_quota() && read->cpu_shares == linux.cpu_shares() &&
                      read->memory_limit_bytes == linux.memory_limit_in_bytes();
    if (!same) result.violation = "the lens read other values";
  }
  const auto resources = [](cri::UpdateContainerResourcesRequest& request) -> cri::LinuxContainerResources& {
    return *request.mutable_linux();
  };
  for (const NodeSet& mems : {NodeSet{}, kMems}) {
    if (!result.violation.empty()) break;
    const std::string patch = patch_update_container_resources(kCpus, mems);
    result.violation = patch_violation(bytes, full, patch, kCpus, mems, resources);
  }
  return result;
}

Judgement judge_list_containers(const std::string& bytes) {
  cri::ListContainersResponse full;
  const bool full_accepts = full.ParseFromString(bytes);
  const auto read = read_list_containers({}, bytes);
  Judgement result = judge<lens::ListContainersResponse>(bytes, full, full_accepts, read);
  if (!result.violation.empty() || !full_accepts) return result;
  if (read->containers.size() != static_cast<std::size_t>(full.containers_size())) {
    result.violation = "another number of containers";
    return result;
  }
  for (int i = 0; i < full.containers_size(); ++i) {
    const cri::Container& container = full.containers(i);
    const ContainerInfo& info = read->containers[static_cast<std::size_t>(i)];
    const int state = container.state() >= 0 && container.state() <= 3 ? container.state() : 3;
    const bool same = info.id == container.id() && info.sandbox_id == container.pod_sandbox_id() &&
                      info.name == container.metadata().name() && info.attempt == container.metadata().attempt() &&
                      static_cast<int>(info.state) == state;
    if (!same) result.violation = "the lens read another container";
  }
  return result;
}

Judgement judge_container_status(const std::string& bytes) {
  cri::ContainerStatusResponse full;
  const bool full_accepts = full.ParseFromString(bytes);
  const auto read = read_container_status(bytes, kRules);
  Judgement result = judge<lens::ContainerStatusResponse>(bytes, full, full_accepts, read);
  if (!result.violation.empty() || !full_accepts) return result;
  const cri::ContainerStatus& status = full.status();
  const bool same = read->info.id == status.id() && read->info.name == status.metadata().name() &&
                    read->info.attempt == status.metadata().attempt() && read->info.exit_code == status.exit_code();
  if (!same) result.violation = "the lens read another status";
  return result;
}

void silence_protobuf() { google::protobuf::SetLogHandler(nullptr); }

}  // namespace topolet
