#include "tests/fuzz/lens_properties.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>

#include "core/cri/messages/lens.hpp"
#include "core/cri/messages/lens.pb.h"
#include "core/cri/messages/requests.hpp"
#include "core/operations/demand.hpp"
#include "tests/support/cri.pb.h"

namespace topolet {
namespace {

namespace api = ::runtime::v1;

constexpr operations::DemandRules kRules{.memory_total_bytes = std::int64_t{123456789012}};

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
  return list.size() <= cri::kMaxListBytes && Set::parse(list).has_value();
}

bool bounds_readable(const api::LinuxContainerResources& resources) {
  return readable<CpuSet>(resources.cpuset_cpus()) && readable<NodeSet>(resources.cpuset_mems());
}

std::map<std::string, std::string> plain(const google::protobuf::Map<std::string, std::string>& map) {
  return {map.begin(), map.end()};
}

placement::Qos expected_qos(const api::CreateContainerRequest& request) {
  const auto named = operations::qos_of_cgroup(request.sandbox_config().linux().cgroup_parent());
  if (named) return *named;
  if (!request.config().linux().has_resources()) return placement::Qos::kBestEffort;
  return operations::qos_of_oom_score_adj(request.config().linux().resources().oom_score_adj());
}

placement::Demand expected_demand(const api::LinuxContainerResources& resources, placement::Qos qos) {
  operations::RawResources raw;
  raw.cpu_period_us = resources.cpu_period();
  raw.cpu_quota_us = resources.cpu_quota();
  raw.cpu_shares = resources.cpu_shares();
  raw.memory_limit_bytes = resources.memory_limit_in_bytes();
  raw.oom_score_adj = resources.oom_score_adj();
  for (const api::HugepageLimit& pages : resources.hugepage_limits()) {
    const auto limit = std::min<std::uint64_t>(pages.limit(), std::numeric_limits<std::int64_t>::max());
    raw.hugepage_limit_bytes[pages.page_size()] = static_cast<std::int64_t>(limit);
  }
  return operations::demand_of(raw, qos, kRules.memory_total_bytes);
}

bool same_lists(const api::ContainerConfig& config, const placement::Workload& workload) {
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
std::string difference(const api::CreateContainerRequest& request, const placement::Workload& workload) {
  const api::ContainerConfig& config = request.config();
  const api::PodSandboxConfig& pod = request.sandbox_config();
  const api::LinuxContainerResources& resources = config.linux().resources();
  const placement::ContainerKey key{pod.metadata().uid(), config.metadata().name(), config.metadata().attempt(),
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

/// The common part: what the parsers say, and that the reader fails with `unparsable` just where the lens cannot parse.
/// The whole error is compared, because the text of a request, which other errors quote, may hold the same words.
template <class Lens, class Full, class Value>
Judgement judge(const std::string& bytes, const Full& full, bool full_accepts, const Result<Value>& read,
                const Error& unparsable) {
  Judgement result;
  result.full_accepts = full_accepts;
  result.lens_accepts = Lens().ParseFromString(bytes);
  result.placeable = read.has_value();
  const bool called_unparsable = !read.has_value() && read.error() == unparsable;
  if (full_accepts && !result.lens_accepts) result.violation = "the lens refused what " + full.GetTypeName() + " reads";
  if (result.lens_accepts == called_unparsable)
    result.violation = "the reader's error does not fit the parser's verdict";
  return result;
}

}  // namespace

Judgement judge_create_container(const std::string& bytes) {
  api::CreateContainerRequest full;
  const bool full_accepts = full.ParseFromString(bytes);
  const auto read = cri::read_create_container(bytes, kRules);
  Judgement result = judge<lens::CreateContainerRequest>(
      bytes, full, full_accepts, read, cri::unparsable(Code::kInvalidArgument, "CreateContainerRequest"));
  if (!result.violation.empty() || !full_accepts) return result;

  const bool identified = !full.config().metadata().name().empty();
  const bool expected = identified && bounds_readable(full.config().linux().resources());
  if (read.has_value() != expected) result.violation = "refused or accepted against the rules";
  if (read.has_value() && expected) result.violation = difference(full, *read);
  const auto resources = [](api::CreateContainerRequest& request) -> api::LinuxContainerResources& {
    return *request.mutable_config()->mutable_linux()->mutable_resources();
  };
  for (const NodeSet& mems : {NodeSet{}, kMems}) {
    if (!result.violation.empty()) break;
    result.violation = patch_violation(bytes, full, cri::patch_create_container({kCpus, mems}), kCpus, mems, resources);
  }
  return result;
}

Judgement judge_update_container_resources(const std::string& bytes) {
  api::UpdateContainerResourcesRequest full;
  const bool full_accepts = full.ParseFromString(bytes);
  const auto read = cri::read_update_container_resources(bytes);
  Judgement result = judge<lens::UpdateContainerResourcesRequest>(
      bytes, full, full_accepts, read, cri::unparsable(Code::kInvalidArgument, "UpdateContainerResourcesRequest"));
  if (!result.violation.empty() || !full_accepts) return result;

  const api::LinuxContainerResources& linux = full.linux();
  if (read.has_value() != bounds_readable(linux)) result.violation = "refused or accepted against the rules";
  if (read.has_value() && result.violation.empty()) {
    const bool same = read->container_id == full.container_id() && read->has_linux == full.has_linux() &&
                      read->cpus == *CpuSet::parse(linux.cpuset_cpus()) &&
                      read->mems == *NodeSet::parse(linux.cpuset_mems()) && read->cpu_period_us == linux.cpu_period() &&
                      read->cpu_quota_us == linux.cpu_quota() && read->cpu_shares == linux.cpu_shares() &&
                      read->memory_limit_bytes == linux.memory_limit_in_bytes();
    if (!same) result.violation = "the lens read other values";
  }
  const auto resources = [](api::UpdateContainerResourcesRequest& request) -> api::LinuxContainerResources& {
    return *request.mutable_linux();
  };
  for (const NodeSet& mems : {NodeSet{}, kMems}) {
    if (!result.violation.empty()) break;
    const std::string patch = cri::patch_update_container_resources({kCpus, mems});
    result.violation = patch_violation(bytes, full, patch, kCpus, mems, resources);
  }
  return result;
}

Judgement judge_list_containers(const std::string& bytes) {
  api::ListContainersResponse full;
  const bool full_accepts = full.ParseFromString(bytes);
  const auto read = cri::read_list_containers({}, bytes);
  Judgement result = judge<lens::ListContainersResponse>(bytes, full, full_accepts, read,
                                                         cri::unparsable(Code::kInternal, "ListContainersResponse"));
  if (!result.violation.empty() || !full_accepts) return result;
  if (read->containers.size() != static_cast<std::size_t>(full.containers_size())) {
    result.violation = "another number of containers";
    return result;
  }
  for (int i = 0; i < full.containers_size(); ++i) {
    const api::Container& container = full.containers(i);
    const operations::ContainerInfo& info = read->containers[static_cast<std::size_t>(i)];
    const int state = container.state() >= 0 && container.state() <= 3 ? container.state() : 3;
    const bool same = info.id == container.id() && info.sandbox_id == container.pod_sandbox_id() &&
                      info.name == container.metadata().name() && info.attempt == container.metadata().attempt() &&
                      static_cast<int>(info.state) == state;
    if (!same) result.violation = "the lens read another container";
  }
  return result;
}

Judgement judge_container_status(const std::string& bytes) {
  api::ContainerStatusResponse full;
  const bool full_accepts = full.ParseFromString(bytes);
  const auto read = cri::read_container_status(bytes, kRules);
  Judgement result = judge<lens::ContainerStatusResponse>(bytes, full, full_accepts, read,
                                                          cri::unparsable(Code::kInternal, "ContainerStatusResponse"));
  if (!result.violation.empty() || !full_accepts) return result;
  const api::ContainerStatus& status = full.status();
  const bool same = read->info.id == status.id() && read->info.name == status.metadata().name() &&
                    read->info.attempt == status.metadata().attempt() && read->info.exit_code == status.exit_code();
  if (!same) result.violation = "the lens read another status";
  return result;
}

void silence_protobuf() { google::protobuf::SetLogHandler(nullptr); }

}  // namespace topolet
