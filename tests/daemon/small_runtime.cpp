#include "tests/daemon/small_runtime.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace topolet::testing {

namespace api = ::runtime::v1;

namespace {

grpc::Status not_found(const std::string& id) {
  return {grpc::StatusCode::NOT_FOUND, "an error occurred when try to find container \"" + id + "\": not found"};
}

}  // namespace

template <class Request, class Response>
void SmallRuntime::serve(const std::string& method, grpc::Status (SmallRuntime::*handle)(const Request&, Response&)) {
  recorder_.handle(method, [this, method, handle](ServerCall& exchange) -> grpc::Status {
    Request request;
    const auto message = exchange.read();
    if (!message || !request.ParseFromString(*message)) return {grpc::StatusCode::INTERNAL, "cannot parse"};
    wait_while_held(method);
    Response response;
    grpc::Status status;
    {
      const MutexLock lock(mutex_);
      status = (this->*handle)(request, response);
    }
    if (status.ok()) exchange.write(response.SerializeAsString());
    return status;
  });
}

SmallRuntime::SmallRuntime(const std::string& socket_path) : recorder_(socket_path) {
  serve("RunPodSandbox", &SmallRuntime::run_pod);
  serve("StopPodSandbox", &SmallRuntime::stop_pod);
  serve("RemovePodSandbox", &SmallRuntime::remove_pod);
  serve("ListPodSandbox", &SmallRuntime::list_pods);
  serve("CreateContainer", &SmallRuntime::create);
  serve("StartContainer", &SmallRuntime::start);
  serve("StopContainer", &SmallRuntime::stop);
  serve("RemoveContainer", &SmallRuntime::remove);
  serve("UpdateContainerResources", &SmallRuntime::update);
  serve("ListContainers", &SmallRuntime::list);
  serve("ContainerStatus", &SmallRuntime::status);
}

void SmallRuntime::next_create(Fate fate) {
  const MutexLock lock(mutex_);
  next_ = fate;
}

void SmallRuntime::hold(const std::string& method) {
  const MutexLock lock(mutex_);
  held_ = method;
}

void SmallRuntime::release() {
  const MutexLock lock(mutex_);
  held_.clear();
  released_.notify_all();
}

void SmallRuntime::wait_while_held(const std::string& method) {
  const MutexLock lock(mutex_);
  while (held_ == method) released_.wait(mutex_);
}

void SmallRuntime::fail_updates(bool fail) {
  const MutexLock lock(mutex_);
  fail_updates_ = fail;
}

SmallRuntime::Row SmallRuntime::row(const std::string& container_id) const {
  const MutexLock lock(mutex_);
  const auto found = rows_.find(container_id);
  return found == rows_.end() ? Row() : found->second;
}

std::vector<std::string> SmallRuntime::ids() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> ids;
  for (const auto& [id, row] : rows_) ids.push_back(id);
  return ids;
}

void SmallRuntime::exit(const std::string& container_id, std::int32_t code) {
  const MutexLock lock(mutex_);
  rows_.at(container_id).state = api::CONTAINER_EXITED;
  rows_.at(container_id).exit_code = code;
}

void SmallRuntime::forget(const std::string& container_id) {
  const MutexLock lock(mutex_);
  rows_.erase(container_id);
}

std::string SmallRuntime::make(const std::string& pod, const std::string& cpus) {
  const MutexLock lock(mutex_);
  api::PodSandbox sandbox;
  sandbox.set_id("sandbox-" + pod);
  sandbox.mutable_metadata()->set_name(pod);
  sandbox.mutable_metadata()->set_uid("uid-" + pod);
  pods_[sandbox.id()] = sandbox;
  Row& row = rows_["container-" + pod];
  row.sandbox_id = sandbox.id();
  row.config.mutable_metadata()->set_name("main");
  row.cpus = cpus;
  return "container-" + pod;
}

void SmallRuntime::set_cpus(const std::string& container_id, const std::string& cpus) {
  const MutexLock lock(mutex_);
  rows_.at(container_id).cpus = cpus;
}

grpc::Status SmallRuntime::run_pod(const api::RunPodSandboxRequest& request, api::RunPodSandboxResponse& response) {
  api::PodSandbox pod;
  pod.set_id("sandbox-" + std::to_string(++last_number_));
  *pod.mutable_metadata() = request.config().metadata();
  pod.set_runtime_handler(request.runtime_handler());
  response.set_pod_sandbox_id(pod.id());
  pods_[pod.id()] = pod;
  return grpc::Status::OK;
}

grpc::Status SmallRuntime::stop_pod(const api::StopPodSandboxRequest& request, api::StopPodSandboxResponse&) {
  for (auto& [id, row] : rows_) {
    if (row.sandbox_id == request.pod_sandbox_id()) row.state = api::CONTAINER_EXITED;
  }
  if (const auto pod = pods_.find(request.pod_sandbox_id()); pod != pods_.end()) {
    pod->second.set_state(api::SANDBOX_NOTREADY);
  }
  return grpc::Status::OK;
}

grpc::Status SmallRuntime::remove_pod(const api::RemovePodSandboxRequest& request, api::RemovePodSandboxResponse&) {
  pods_.erase(request.pod_sandbox_id());
  std::erase_if(rows_, [&](const auto& entry) { return entry.second.sandbox_id == request.pod_sandbox_id(); });
  return grpc::Status::OK;
}

grpc::Status SmallRuntime::list_pods(const api::ListPodSandboxRequest&, api::ListPodSandboxResponse& response) {
  for (const auto& [id, pod] : pods_) *response.add_items() = pod;
  return grpc::Status::OK;
}

grpc::Status SmallRuntime::create(const api::CreateContainerRequest& request, api::CreateContainerResponse& response) {
  const Fate fate = std::exchange(next_, Fate::kMade);
  if (fate == Fate::kRefused) return {grpc::StatusCode::UNKNOWN, "failed to resolve image"};
  if (fate == Fate::kNotCreatedAnswerLost) return {grpc::StatusCode::UNAVAILABLE, "transport is closing"};
  for (const auto& [id, row] : rows_) {
    const api::ContainerMetadata& taken = row.config.metadata();
    const api::ContainerMetadata& asked = request.config().metadata();
    if (row.sandbox_id == request.pod_sandbox_id() && taken.name() == asked.name() &&
        taken.attempt() == asked.attempt()) {
      return {grpc::StatusCode::UNKNOWN, "name is reserved for \"" + id + "\""};
    }
  }
  const std::string id = "container-" + std::to_string(++last_number_);
  Row& row = rows_[id];
  row.sandbox_id = request.pod_sandbox_id();
  row.config = request.config();
  row.cpus = request.config().linux().resources().cpuset_cpus();
  row.mems = request.config().linux().resources().cpuset_mems();
  if (fate == Fate::kCreatedAnswerLost) return {grpc::StatusCode::UNAVAILABLE, "transport is closing"};
  response.set_container_id(id);
  return grpc::Status::OK;
}

grpc::Status SmallRuntime::start(const api::StartContainerRequest& request, api::StartContainerResponse&) {
  const auto found = rows_.find(request.container_id());
  if (found == rows_.end()) return not_found(request.container_id());
  const auto pod = pods_.find(found->second.sandbox_id);
  if (pod == pods_.end() || pod->second.state() == api::SANDBOX_NOTREADY) {
    return {grpc::StatusCode::UNKNOWN, "sandbox container is not running"};
  }
  found->second.state = api::CONTAINER_RUNNING;
  found->second.ran_on.push_back(found->second.cpus);
  return grpc::Status::OK;
}

/// As containerd: stopping what never ran does nothing.
grpc::Status SmallRuntime::stop(const api::StopContainerRequest& request, api::StopContainerResponse&) {
  const auto found = rows_.find(request.container_id());
  if (found == rows_.end()) return not_found(request.container_id());
  if (found->second.state != api::CONTAINER_RUNNING) return grpc::Status::OK;
  found->second.state = api::CONTAINER_EXITED;
  found->second.exit_code = 137;
  return grpc::Status::OK;
}

grpc::Status SmallRuntime::remove(const api::RemoveContainerRequest& request, api::RemoveContainerResponse&) {
  rows_.erase(request.container_id());
  return grpc::Status::OK;
}

grpc::Status SmallRuntime::update(const api::UpdateContainerResourcesRequest& request,
                                  api::UpdateContainerResourcesResponse&) {
  const auto found = rows_.find(request.container_id());
  if (found == rows_.end()) return not_found(request.container_id());
  if (fail_updates_) return {grpc::StatusCode::UNKNOWN, "cgroup is busy"};
  if (!request.linux().cpuset_cpus().empty()) found->second.cpus = request.linux().cpuset_cpus();
  if (!request.linux().cpuset_mems().empty()) found->second.mems = request.linux().cpuset_mems();
  if (found->second.state == api::CONTAINER_RUNNING) found->second.ran_on.push_back(found->second.cpus);
  return grpc::Status::OK;
}

grpc::Status SmallRuntime::list(const api::ListContainersRequest& request, api::ListContainersResponse& response) {
  for (const auto& [id, row] : rows_) {
    if (!request.filter().id().empty() && request.filter().id() != id) continue;
    api::Container& container = *response.add_containers();
    container.set_id(id);
    container.set_pod_sandbox_id(row.sandbox_id);
    *container.mutable_metadata() = row.config.metadata();
    container.set_state(row.state);
  }
  return grpc::Status::OK;
}

grpc::Status SmallRuntime::status(const api::ContainerStatusRequest& request, api::ContainerStatusResponse& response) {
  const auto found = rows_.find(request.container_id());
  if (found == rows_.end()) return not_found(request.container_id());
  const Row& row = found->second;
  api::ContainerStatus& status = *response.mutable_status();
  status.set_id(request.container_id());
  *status.mutable_metadata() = row.config.metadata();
  status.set_state(row.state);
  status.set_exit_code(row.exit_code);
  if (!request.verbose()) return grpc::Status::OK;
  const api::LinuxContainerResources& resources = row.config.linux().resources();
  nlohmann::json info;
  info["sandboxID"] = row.sandbox_id;
  info["runtimeSpec"]["linux"]["resources"]["cpu"]["cpus"] = row.cpus;
  info["config"]["metadata"]["name"] = row.config.metadata().name();
  info["config"]["linux"]["resources"] = {{"cpu_period", resources.cpu_period()},
                                          {"cpu_quota", resources.cpu_quota()},
                                          {"cpu_shares", resources.cpu_shares()},
                                          {"oom_score_adj", resources.oom_score_adj()},
                                          {"memory_limit_in_bytes", resources.memory_limit_in_bytes()}};
  for (const auto& env : row.config.envs()) {
    info["config"]["envs"].push_back({{"key", env.key()}, {"value", env.value()}});
  }
  (*response.mutable_info())["info"] = info.dump();
  return grpc::Status::OK;
}

}  // namespace topolet::testing
