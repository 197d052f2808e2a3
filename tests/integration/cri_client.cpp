#include "tests/integration/cri_client.hpp"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace topolet::integration {
namespace {

constexpr std::int64_t kQuotaPeriodUs = 100'000;
constexpr std::int64_t kMinShares = 2;
constexpr std::int64_t kMinQuotaUs = 1000;

std::int64_t memory_total_bytes() { return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE); }

std::int64_t oom_score_adj(const Resources& resources) {
  if (resources.is_guaranteed()) return -997;
  if (resources.is_besteffort()) return 1000;
  const std::int64_t score = 1000 - 1000 * resources.memory_request_bytes / memory_total_bytes();
  return std::clamp<std::int64_t>(score, 3, 999);
}

cri::PodSandboxConfig sandbox_config(const Pod& pod) {
  cri::PodSandboxConfig config;
  config.mutable_metadata()->set_name(pod.name);
  config.mutable_metadata()->set_uid(pod.uid);
  config.mutable_metadata()->set_namespace_(pod.name_space);
  config.mutable_labels()->insert(pod.labels.begin(), pod.labels.end());
  config.mutable_annotations()->insert(pod.annotations.begin(), pod.annotations.end());
  auto* of_linux = config.mutable_linux();
  of_linux->set_cgroup_parent(pod.cgroup_parent());
  if (pod.tells_resources) *of_linux->mutable_resources() = as_the_kubelet_sends(pod.resources);
  // The host's network, so that no CNI is needed.
  auto* namespaces = of_linux->mutable_security_context()->mutable_namespace_options();
  namespaces->set_network(cri::NODE);
  namespaces->set_pid(cri::CONTAINER);
  return config;
}

cri::ContainerConfig container_config(const Pod& pod, const ContainerSpec& spec) {
  cri::ContainerConfig config;
  config.mutable_metadata()->set_name(spec.name);
  config.mutable_metadata()->set_attempt(spec.attempt);
  config.mutable_image()->set_image(spec.image);
  for (const std::string& word : spec.command) config.add_command(word);
  for (const std::string& path : spec.devices) {
    auto* device = config.add_devices();
    device->set_host_path(path);
    device->set_container_path(path);
    device->set_permissions("rw");
  }
  config.mutable_labels()->insert(pod.labels.begin(), pod.labels.end());
  config.mutable_annotations()->insert(spec.annotations.begin(), spec.annotations.end());
  for (const auto& [key, value] : spec.env) {
    auto* variable = config.add_envs();
    variable->set_key(key);
    variable->set_value(value);
  }
  auto* of_linux = config.mutable_linux();
  *of_linux->mutable_resources() = as_the_kubelet_sends(spec.resources.value_or(pod.resources));
  of_linux->mutable_resources()->set_cpuset_cpus(spec.cpuset_cpus);
  of_linux->mutable_resources()->set_cpuset_mems(spec.cpuset_mems);
  auto* namespaces = of_linux->mutable_security_context()->mutable_namespace_options();
  namespaces->set_network(cri::NODE);
  namespaces->set_pid(cri::CONTAINER);
  return config;
}

// As systemd nests slices: /kubepods.slice/kubepods-burstable.slice/…, with no dash in a level's own name.
std::string as_slices(std::vector<std::string> levels) {
  std::string path;
  std::string name;
  for (std::string& level : levels) {
    std::replace(level.begin(), level.end(), '-', '_');
    name += (name.empty() ? "" : "-") + level;
    path += "/" + name + ".slice";
  }
  return path;
}

pid_t pid_in(const std::string& info) {
  const auto json = nlohmann::json::parse(info, nullptr, false);
  return json.is_object() ? json.value("pid", 0) : 0;
}

Status status_of(const grpc::Status& status) {
  if (status.ok()) return {};
  return Error{static_cast<Code>(status.error_code()), status.error_message()};
}

}  // namespace

bool Resources::is_guaranteed() const {
  return cpu_limit_milli > 0 && cpu_request_milli == cpu_limit_milli && memory_limit_bytes > 0 &&
         memory_request_bytes == memory_limit_bytes;
}

bool Resources::is_besteffort() const {
  return cpu_request_milli == 0 && cpu_limit_milli == 0 && memory_request_bytes == 0 && memory_limit_bytes == 0;
}

std::string Resources::qos() const {
  if (is_guaranteed()) return "guaranteed";
  return is_besteffort() ? "besteffort" : "burstable";
}

Resources guaranteed(std::int64_t cpu_milli, std::int64_t memory_bytes) {
  return {cpu_milli, cpu_milli, memory_bytes, memory_bytes};
}

Resources burstable(std::int64_t cpu_request_milli, std::int64_t memory_request_bytes) {
  return {cpu_request_milli, 0, memory_request_bytes, 0};
}

Resources besteffort() { return {}; }

cri::LinuxContainerResources as_the_kubelet_sends(const Resources& resources) {
  cri::LinuxContainerResources sent;
  sent.set_cpu_period(kQuotaPeriodUs);
  sent.set_cpu_shares(std::max(kMinShares, resources.cpu_request_milli * 1024 / 1000));
  if (resources.cpu_limit_milli > 0) {
    sent.set_cpu_quota(std::max(kMinQuotaUs, resources.cpu_limit_milli * kQuotaPeriodUs / 1000));
  }
  sent.set_memory_limit_in_bytes(resources.memory_limit_bytes);
  sent.set_oom_score_adj(oom_score_adj(resources));
  return sent;
}

std::string Pod::cgroup_parent() const {
  std::vector<std::string> levels = {"kubepods"};
  if (cgroups.root != "/") levels.insert(levels.begin(), cgroups.root.substr(1));
  if (!resources.is_guaranteed()) levels.push_back(resources.qos());
  levels.push_back("pod" + uid);
  return cgroups.systemd ? as_slices(levels) : "/" + fmt::format("{}", fmt::join(levels, "/"));
}

cri::CreateContainerRequest create_request(const Pod& pod, const ContainerSpec& spec) {
  cri::CreateContainerRequest request;
  request.set_pod_sandbox_id(pod.sandbox_id);
  *request.mutable_config() = container_config(pod, spec);
  *request.mutable_sandbox_config() = sandbox_config(pod);
  return request;
}

CriClient::CriClient(const std::string& endpoint, std::chrono::seconds deadline) : deadline_(deadline) {
  grpc::ChannelArguments arguments;
  // A restarted server is found again at once, and no channel is shared with another client of this process.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  channel_ = grpc::CreateCustomChannel(endpoint, grpc::InsecureChannelCredentials(), arguments);
  runtime_ = cri::RuntimeService::NewStub(channel_);
  images_ = cri::ImageService::NewStub(channel_);
}

template <class Stub, class Request, class Response>
Status CriClient::call(Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                       const Request& request, Response& response, std::optional<std::chrono::milliseconds> deadline) {
  grpc::ClientContext context;
  set_deadline(context, deadline);
  return status_of((stub.*method)(&context, request, &response));
}

void CriClient::set_deadline(grpc::ClientContext& context, std::optional<std::chrono::milliseconds> deadline) const {
  context.set_deadline(std::chrono::system_clock::now() + deadline.value_or(deadline_));
}

Result<cri::VersionResponse> CriClient::version() {
  cri::VersionResponse response;
  if (auto done = call(*runtime_, &cri::RuntimeService::Stub::Version, {}, response); !done) return done.error();
  return response;
}

Result<bool> CriClient::has_image(const std::string& reference) {
  cri::ImageStatusRequest request;
  request.mutable_image()->set_image(reference);
  cri::ImageStatusResponse response;
  if (auto done = call(*images_, &cri::ImageService::Stub::ImageStatus, request, response); !done) return done.error();
  return response.has_image();
}

Result<bool> CriClient::uses_systemd_cgroups() {
  cri::StatusRequest request;
  request.set_verbose(true);
  cri::StatusResponse response;
  if (auto done = call(*runtime_, &cri::RuntimeService::Stub::Status, request, response); !done) return done.error();
  const auto config = response.info().find("config");
  return config != response.info().end() && config->second.find("\"SystemdCgroup\":true") != std::string::npos;
}

Status CriClient::run(Pod& pod) {
  cri::RunPodSandboxRequest request;
  *request.mutable_config() = sandbox_config(pod);
  request.set_runtime_handler(pod.runtime_handler);
  cri::RunPodSandboxResponse response;
  auto done = call(*runtime_, &cri::RuntimeService::Stub::RunPodSandbox, request, response);
  if (done) pod.sandbox_id = response.pod_sandbox_id();
  return done;
}

Status CriClient::stop(const Pod& pod) { return stop_sandbox(pod.sandbox_id); }

Status CriClient::remove(const Pod& pod) { return remove_sandbox(pod.sandbox_id); }

Status CriClient::stop_sandbox(const std::string& sandbox_id) {
  cri::StopPodSandboxRequest request;
  request.set_pod_sandbox_id(sandbox_id);
  cri::StopPodSandboxResponse response;
  return call(*runtime_, &cri::RuntimeService::Stub::StopPodSandbox, request, response);
}

Status CriClient::remove_sandbox(const std::string& sandbox_id) {
  cri::RemovePodSandboxRequest request;
  request.set_pod_sandbox_id(sandbox_id);
  cri::RemovePodSandboxResponse response;
  return call(*runtime_, &cri::RuntimeService::Stub::RemovePodSandbox, request, response);
}

Result<std::vector<cri::PodSandbox>> CriClient::pods(const std::map<std::string, std::string>& labels) {
  cri::ListPodSandboxRequest request;
  request.mutable_filter()->mutable_label_selector()->insert(labels.begin(), labels.end());
  cri::ListPodSandboxResponse response;
  auto done = call(*runtime_, &cri::RuntimeService::Stub::ListPodSandbox, request, response);
  if (!done) return done.error();
  return std::vector<cri::PodSandbox>(response.items().begin(), response.items().end());
}

Result<std::string> CriClient::create(const Pod& pod, const ContainerSpec& spec) {
  return create(create_request(pod, spec));
}

Result<std::string> CriClient::create(const cri::CreateContainerRequest& request) {
  grpc::ClientContext context;
  set_deadline(context, std::nullopt);
  return create(request, context);
}

Result<std::string> CriClient::create(const cri::CreateContainerRequest& request, grpc::ClientContext& context) {
  cri::CreateContainerResponse response;
  if (auto done = status_of(runtime_->CreateContainer(&context, request, &response)); !done) return done.error();
  return response.container_id();
}

Status CriClient::start(const std::string& container_id, std::optional<std::chrono::milliseconds> deadline) {
  grpc::ClientContext context;
  set_deadline(context, deadline);
  return start(container_id, context);
}

Status CriClient::start(const std::string& container_id, grpc::ClientContext& context) {
  cri::StartContainerRequest request;
  request.set_container_id(container_id);
  cri::StartContainerResponse response;
  return status_of(runtime_->StartContainer(&context, request, &response));
}

Status CriClient::stop(const std::string& container_id, std::chrono::seconds grace) {
  cri::StopContainerRequest request;
  request.set_container_id(container_id);
  request.set_timeout(grace.count());
  cri::StopContainerResponse response;
  return call(*runtime_, &cri::RuntimeService::Stub::StopContainer, request, response);
}

Status CriClient::remove(const std::string& container_id) {
  cri::RemoveContainerRequest request;
  request.set_container_id(container_id);
  cri::RemoveContainerResponse response;
  return call(*runtime_, &cri::RuntimeService::Stub::RemoveContainer, request, response);
}

Status CriClient::update(const std::string& container_id, const cri::LinuxContainerResources& resources) {
  cri::UpdateContainerResourcesRequest request;
  request.set_container_id(container_id);
  *request.mutable_linux() = resources;
  cri::UpdateContainerResourcesResponse response;
  return call(*runtime_, &cri::RuntimeService::Stub::UpdateContainerResources, request, response);
}

Result<Container> CriClient::inspect(const std::string& container_id) {
  cri::ContainerStatusRequest request;
  request.set_container_id(container_id);
  request.set_verbose(true);
  cri::ContainerStatusResponse response;
  auto done = call(*runtime_, &cri::RuntimeService::Stub::ContainerStatus, request, response);
  if (!done) return done.error();
  Container container{response.status().id(), response.status().state(), response.status().exit_code(), 0, {}};
  if (const auto info = response.info().find("info"); info != response.info().end()) container.info = info->second;
  if (container.state == cri::CONTAINER_RUNNING) container.pid = pid_in(container.info);
  return container;
}

Result<ExecOutput> CriClient::exec(const std::string& container_id, const std::vector<std::string>& command) {
  cri::ExecSyncRequest request;
  request.set_container_id(container_id);
  for (const std::string& word : command) request.add_cmd(word);
  request.set_timeout(deadline_.count());
  cri::ExecSyncResponse response;
  auto done = call(*runtime_, &cri::RuntimeService::Stub::ExecSync, request, response);
  if (!done) return done.error();
  return ExecOutput{response.exit_code(), response.stdout(), response.stderr()};
}

Result<std::vector<cri::Container>> CriClient::containers(const std::string& sandbox_id) {
  cri::ListContainersRequest request;
  if (!sandbox_id.empty()) request.mutable_filter()->set_pod_sandbox_id(sandbox_id);
  cri::ListContainersResponse response;
  auto done = call(*runtime_, &cri::RuntimeService::Stub::ListContainers, request, response);
  if (!done) return done.error();
  return std::vector<cri::Container>(response.containers().begin(), response.containers().end());
}

}  // namespace topolet::integration
