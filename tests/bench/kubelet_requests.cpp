#include "tests/bench/kubelet_requests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "tests/support/cri.pb.h"

namespace topolet::bench {
namespace {

namespace cri = runtime::v1;

constexpr std::int64_t kPeriodUs = 100000;
constexpr std::int64_t kMinShares = 2;
constexpr std::int64_t kMemoryBytes = 256 << 20;
constexpr char kNamespace[] = "shop";

constexpr std::array<std::pair<const char*, const char*>, 8> kEnvironment = {{
    {"KUBERNETES_SERVICE_HOST", "10.96.0.1"},
    {"KUBERNETES_SERVICE_PORT", "443"},
    {"KUBERNETES_PORT", "tcp://10.96.0.1:443"},
    {"KUBERNETES_PORT_443_TCP", "tcp://10.96.0.1:443"},
    {"KUBERNETES_PORT_443_TCP_ADDR", "10.96.0.1"},
    {"KUBERNETES_PORT_443_TCP_PROTO", "tcp"},
    {"CART_SERVICE_ADDR", "cart.shop.svc.cluster.local:7070"},
    {"LOG_LEVEL", "info"},
}};

std::string uid_of(const PodSpec& pod) {
  return fmt::format("{:08x}-bench-{}", std::hash<std::string>()(pod.name) & 0xffffffff, pod.name);
}

std::string cgroup_parent_of(const PodSpec& pod) {
  const char* level = pod.kind == Kind::kExclusive ? "" : pod.kind == Kind::kShared ? "burstable/" : "besteffort/";
  return fmt::format("{}/kubepods/{}pod{}", pod.cgroup_root, level, uid_of(pod));
}

void fill_resources(const PodSpec& pod, cri::LinuxContainerResources& resources) {
  resources.set_cpu_period(kPeriodUs);
  resources.set_cpu_shares(std::max(kMinShares, pod.cpu_milli * 1024 / 1000));
  if (pod.kind != Kind::kBestEffort) resources.set_memory_limit_in_bytes(kMemoryBytes);
  if (pod.kind == Kind::kExclusive) resources.set_cpu_quota(pod.cpu_milli * kPeriodUs / 1000);
  resources.set_oom_score_adj(pod.kind == Kind::kExclusive ? -997 : pod.kind == Kind::kShared ? 985 : 1000);
}

void fill_labels(const PodSpec& pod, google::protobuf::Map<std::string, std::string>& labels) {
  labels["io.kubernetes.pod.name"] = pod.name;
  labels["io.kubernetes.pod.namespace"] = kNamespace;
  labels["io.kubernetes.pod.uid"] = uid_of(pod);
}

void fill_sandbox(const PodSpec& pod, cri::PodSandboxConfig& config) {
  config.mutable_metadata()->set_name(pod.name);
  config.mutable_metadata()->set_uid(uid_of(pod));
  config.mutable_metadata()->set_namespace_(kNamespace);
  if (!pod.host_network) {
    config.set_hostname(pod.name);
    config.set_log_directory(fmt::format("/var/log/pods/{}_{}_{}", kNamespace, pod.name, uid_of(pod)));
  }
  fill_labels(pod, *config.mutable_labels());
  (*config.mutable_labels())["app"] = "frontend";
  (*config.mutable_labels())["pod-template-hash"] = "6d5d9cbb7c";
  (*config.mutable_annotations())["kubernetes.io/config.seen"] = "2026-03-01T12:00:00.000000000Z";
  (*config.mutable_annotations())["kubernetes.io/config.source"] = "api";
  config.mutable_linux()->set_cgroup_parent(cgroup_parent_of(pod));
  fill_resources(pod, *config.mutable_linux()->mutable_resources());
  if (pod.host_network) {
    config.mutable_linux()->mutable_security_context()->mutable_namespace_options()->set_network(cri::NODE);
  }
}

void fill_mounts(const PodSpec& pod, cri::ContainerConfig& config) {
  const std::string volumes = fmt::format("/var/lib/kubelet/pods/{}/volumes", uid_of(pod));
  const auto mount = [&config](const std::string& inside, const std::string& host) {
    cri::Mount& added = *config.add_mounts();
    added.set_container_path(inside);
    added.set_host_path(host);
    added.set_readonly(true);
  };
  mount("/var/run/secrets/kubernetes.io/serviceaccount", volumes + "/kubernetes.io~projected/kube-api-access-x7k2p");
  mount("/etc/frontend", volumes + "/kubernetes.io~configmap/frontend-settings");
}

void fill_container(const PodSpec& pod, const ContainerSpec& container, cri::ContainerConfig& config) {
  config.mutable_metadata()->set_name(container.name);
  config.mutable_image()->set_image(container.image);
  config.mutable_image()->set_user_specified_image(container.image);
  for (const auto& [key, value] : kEnvironment) {
    cri::KeyValue& env = *config.add_envs();
    env.set_key(key);
    env.set_value(value);
  }
  fill_labels(pod, *config.mutable_labels());
  (*config.mutable_labels())["io.kubernetes.container.name"] = container.name;
  auto& annotations = *config.mutable_annotations();
  annotations["io.kubernetes.container.hash"] = "5c8c2a36";
  annotations["io.kubernetes.container.restartCount"] = "0";
  annotations["io.kubernetes.container.terminationMessagePath"] = "/dev/termination-log";
  annotations["io.kubernetes.container.terminationMessagePolicy"] = "File";
  annotations["io.kubernetes.pod.terminationGracePeriod"] = "30";
  fill_resources(pod, *config.mutable_linux()->mutable_resources());
  if (pod.host_network) {
    config.mutable_linux()->mutable_security_context()->mutable_namespace_options()->set_network(cri::NODE);
  }
  if (container.sleeps) {
    config.add_command("sleep");
    config.add_args("1000000");
    return;
  }
  fill_mounts(pod, config);
  config.set_log_path(container.name + "/0.log");
}

}  // namespace

std::string run_sandbox_request(const PodSpec& pod) {
  cri::RunPodSandboxRequest request;
  fill_sandbox(pod, *request.mutable_config());
  return request.SerializeAsString();
}

std::string create_request(const PodSpec& pod, const std::string& sandbox_id, const ContainerSpec& container) {
  cri::CreateContainerRequest request;
  request.set_pod_sandbox_id(sandbox_id);
  fill_container(pod, container, *request.mutable_config());
  fill_sandbox(pod, *request.mutable_sandbox_config());
  return request.SerializeAsString();
}

std::string id_request(const std::string& id) {
  cri::StartContainerRequest request;
  request.set_container_id(id);
  return request.SerializeAsString();
}

std::string id_in(const std::string& response) {
  cri::CreateContainerResponse parsed;
  parsed.ParseFromString(response);
  return parsed.container_id();
}

}  // namespace topolet::bench
