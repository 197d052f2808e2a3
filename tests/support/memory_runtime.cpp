#include "tests/support/memory_runtime.hpp"

#include <fmt/format.h>
#include <grpcpp/support/slice.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/support/byte_buffer.hpp"

namespace topolet::testing {
namespace {

namespace cri = runtime::v1;

constexpr std::int32_t kKilled = 137;
constexpr char kImageId[] = "sha256:5d0da3dc976460b72c77d94c8a1ad043720b0416bfc16c52c45d4847e53fadb6";

template <class Message>
Message parse(grpc::ByteBuffer& bytes) {
  Message message;
  grpc::Slice slice;
  if (bytes.TrySingleSlice(&slice).ok() || bytes.DumpToSingleSlice(&slice).ok()) {
    message.ParseFromArray(slice.begin(), static_cast<int>(slice.size()));
  }
  return message;
}

grpc::ByteBuffer bytes_of(const google::protobuf::MessageLite& message) {
  grpc::Slice slice(message.ByteSizeLong());
  message.SerializeWithCachedSizesToArray(const_cast<std::uint8_t*>(slice.begin()));
  return {&slice, 1};
}

grpc::Status no_such(const char* what, const std::string& id) {
  return {grpc::StatusCode::NOT_FOUND,
          fmt::format("an error occurred when try to find {} \"{}\": not found", what, id)};
}

grpc::Status refused(std::string message) { return {grpc::StatusCode::UNKNOWN, std::move(message)}; }

std::int64_t now_ns() { return std::chrono::system_clock::now().time_since_epoch().count(); }

std::string name_of(const cri::Container& container) {
  return fmt::format("{}/{}/{}", container.pod_sandbox_id(), container.metadata().name(),
                     container.metadata().attempt());
}

bool matches(const cri::ContainerFilter& filter, const cri::Container& container) {
  return (filter.id().empty() || container.id().starts_with(filter.id())) &&
         (filter.pod_sandbox_id().empty() || filter.pod_sandbox_id() == container.pod_sandbox_id()) &&
         (!filter.has_state() || filter.state().state() == container.state());
}

void merge(const cri::LinuxContainerResources& update, cri::LinuxContainerResources& resources) {
  if (update.cpu_period() != 0) resources.set_cpu_period(update.cpu_period());
  if (update.cpu_quota() != 0) resources.set_cpu_quota(update.cpu_quota());
  if (update.cpu_shares() != 0) resources.set_cpu_shares(update.cpu_shares());
  if (update.memory_limit_in_bytes() != 0) resources.set_memory_limit_in_bytes(update.memory_limit_in_bytes());
  if (!update.cpuset_cpus().empty()) resources.set_cpuset_cpus(update.cpuset_cpus());
  if (!update.cpuset_mems().empty()) resources.set_cpuset_mems(update.cpuset_mems());
  for (const auto& [file, value] : update.unified()) (*resources.mutable_unified())[file] = value;
}

nlohmann::json config_json(const cri::ContainerConfig& config) {
  const cri::LinuxContainerResources& asked = config.linux().resources();
  nlohmann::json envs = nlohmann::json::array();
  for (const cri::KeyValue& env : config.envs()) envs.push_back({{"key", env.key()}, {"value", env.value()}});
  return {{"metadata", {{"name", config.metadata().name()}, {"attempt", config.metadata().attempt()}}},
          {"image", {{"image", config.image().image()}}},
          {"envs", std::move(envs)},
          {"labels", std::map<std::string, std::string>(config.labels().begin(), config.labels().end())},
          {"annotations", std::map<std::string, std::string>(config.annotations().begin(), config.annotations().end())},
          {"linux",
           {{"resources",
             {{"cpu_period", asked.cpu_period()},
              {"cpu_quota", asked.cpu_quota()},
              {"cpu_shares", asked.cpu_shares()},
              {"memory_limit_in_bytes", asked.memory_limit_in_bytes()},
              {"oom_score_adj", asked.oom_score_adj()}}}}}};
}

/// The part of containerd's verbose answer that says how the container was made and what it may use.
std::string info_json(const MemoryRuntime::Container& container) {
  const cri::LinuxContainerResources& now = container.resources;
  nlohmann::json cpu = {{"period", now.cpu_period()}, {"shares", now.cpu_shares()}};
  if (now.cpu_quota() != 0) cpu["quota"] = now.cpu_quota();
  if (!now.cpuset_cpus().empty()) cpu["cpus"] = now.cpuset_cpus();
  if (!now.cpuset_mems().empty()) cpu["mems"] = now.cpuset_mems();
  const nlohmann::json info = {
      {"sandboxID", container.listed.pod_sandbox_id()},
      {"pid", container.is_running() ? container.pid : 0},
      {"config", config_json(container.config)},
      {"runtimeSpec",
       {{"linux",
         {{"cgroupsPath", container.cgroup_parent + "/" + container.listed.id()},
          {"resources", {{"cpu", std::move(cpu)}, {"memory", {{"limit", now.memory_limit_in_bytes()}}}}}}}}}};
  return info.dump();
}

}  // namespace

MemoryRuntime::MemoryRuntime(Options options) : options_(std::move(options)) {
  handle("Version", &MemoryRuntime::version);
  handle("Status", &MemoryRuntime::status);
  handle("RunPodSandbox", &MemoryRuntime::run_sandbox);
  handle("StopPodSandbox", &MemoryRuntime::stop_sandbox);
  handle("RemovePodSandbox", &MemoryRuntime::remove_sandbox);
  handle("PodSandboxStatus", &MemoryRuntime::sandbox_status);
  handle("CreateContainer", &MemoryRuntime::create);
  handle("StartContainer", &MemoryRuntime::start);
  handle("StopContainer", &MemoryRuntime::stop);
  handle("RemoveContainer", &MemoryRuntime::remove);
  handle("UpdateContainerResources", &MemoryRuntime::update);
  handle("ContainerStatus", &MemoryRuntime::container_status);
  handlers_["ListContainers"] = [this](grpc::ByteBuffer& message) { return list(message); };
  handlers_["ListPodSandbox"] = [this](grpc::ByteBuffer& message) { return list_sandboxes(message); };
}

template <class Request, class Response>
void MemoryRuntime::handle(std::string_view method, grpc::Status (MemoryRuntime::*handler)(Request&, Response&)) {
  handlers_[method] = [this, handler](grpc::ByteBuffer& message) {
    auto request = parse<Request>(message);
    Response response;
    grpc::Status status = (this->*handler)(request, response);
    if (status.ok()) message = bytes_of(response);
    return status;
  };
}

grpc::Status MemoryRuntime::serve(std::string_view method, grpc::ByteBuffer& message) {
  const auto handler = handlers_.find(method);
  return handler == handlers_.end() ? grpc::Status() : handler->second(message);
}

grpc::Status MemoryRuntime::serve(std::string_view method, std::string& message) {
  grpc::ByteBuffer buffer = to_buffer(message);
  grpc::Status status = serve(method, buffer);
  if (status.ok()) message = to_bytes(buffer);
  return status;
}

std::vector<std::string> MemoryRuntime::methods() const {
  std::vector<std::string> methods;
  for (const auto& [method, handler] : handlers_) methods.emplace_back(method);
  return methods;
}

void MemoryRuntime::put(Container container) {
  const std::string id = container.listed.id();
  forget(id);
  names_[name_of(container.listed)] = id;
  containers_[id] = std::move(container);
}

void MemoryRuntime::put(cri::PodSandbox sandbox) {
  const std::string id = sandbox.id();
  sandboxes_[id] = std::move(sandbox);
  forget_lists();
}

void MemoryRuntime::exit(const std::string& id, std::int32_t exit_code) {
  Container& exited = containers_.at(id);
  exited.listed.set_state(cri::CONTAINER_EXITED);
  exited.exit_code = exit_code;
  forget_lists();
}

void MemoryRuntime::forget(const std::string& id) {
  forget_lists();
  const auto found = containers_.find(id);
  if (found == containers_.end()) return;
  names_.erase(name_of(found->second.listed));
  containers_.erase(found);
}

grpc::Status MemoryRuntime::version(cri::VersionRequest&, cri::VersionResponse& response) {
  response.set_version("0.1.0");
  response.set_runtime_name("in-memory");
  response.set_runtime_version("v2.1.0");
  response.set_runtime_api_version("v1");
  return {};
}

grpc::Status MemoryRuntime::status(cri::StatusRequest&, cri::StatusResponse& response) {
  for (const char* type : {"RuntimeReady", "NetworkReady"}) {
    cri::RuntimeCondition& condition = *response.mutable_status()->add_conditions();
    condition.set_type(type);
    condition.set_status(true);
  }
  return {};
}

grpc::Status MemoryRuntime::run_sandbox(cri::RunPodSandboxRequest& request, cri::RunPodSandboxResponse& response) {
  cri::PodSandbox sandbox;
  sandbox.set_id(make_id("sandbox"));
  *sandbox.mutable_metadata() = request.config().metadata();
  sandbox.set_created_at(now_ns());
  *sandbox.mutable_labels() = request.config().labels();
  *sandbox.mutable_annotations() = request.config().annotations();
  sandbox.set_runtime_handler(request.runtime_handler());
  response.set_pod_sandbox_id(sandbox.id());
  put(std::move(sandbox));
  return {};
}

grpc::Status MemoryRuntime::stop_sandbox(cri::StopPodSandboxRequest& request, cri::StopPodSandboxResponse&) {
  for (auto& [id, container] : containers_) {
    if (container.listed.pod_sandbox_id() == request.pod_sandbox_id()) end_process(container, 0);
  }
  const auto sandbox = sandboxes_.find(request.pod_sandbox_id());
  if (sandbox != sandboxes_.end()) sandbox->second.set_state(cri::SANDBOX_NOTREADY);
  forget_lists();
  return {};
}

grpc::Status MemoryRuntime::remove_sandbox(cri::RemovePodSandboxRequest& request, cri::RemovePodSandboxResponse&) {
  std::erase_if(containers_, [&](const auto& entry) {
    if (entry.second.listed.pod_sandbox_id() != request.pod_sandbox_id()) return false;
    tell(Change::kRemoved, entry.second);
    names_.erase(name_of(entry.second.listed));
    return true;
  });
  sandboxes_.erase(request.pod_sandbox_id());
  forget_lists();
  return {};
}

grpc::Status MemoryRuntime::sandbox_status(cri::PodSandboxStatusRequest& request,
                                           cri::PodSandboxStatusResponse& response) {
  const auto found = sandboxes_.find(request.pod_sandbox_id());
  if (found == sandboxes_.end()) return no_such("sandbox", request.pod_sandbox_id());
  const cri::PodSandbox& sandbox = found->second;
  cri::PodSandboxStatus& status = *response.mutable_status();
  status.set_id(sandbox.id());
  *status.mutable_metadata() = sandbox.metadata();
  status.set_state(sandbox.state());
  status.set_created_at(sandbox.created_at());
  *status.mutable_labels() = sandbox.labels();
  *status.mutable_annotations() = sandbox.annotations();
  return {};
}

grpc::Status MemoryRuntime::list_sandboxes(grpc::ByteBuffer& message) {
  if (!sandbox_list_.Valid()) {
    cri::ListPodSandboxResponse response;
    for (const auto& [id, sandbox] : sandboxes_) *response.add_items() = sandbox;
    sandbox_list_ = bytes_of(response);
  }
  message = sandbox_list_;
  return {};
}

grpc::Status MemoryRuntime::create(cri::CreateContainerRequest& request, cri::CreateContainerResponse& response) {
  if (sandboxes_.count(request.pod_sandbox_id()) == 0) return no_such("sandbox", request.pod_sandbox_id());
  Container container;
  cri::Container& listed = container.listed;
  listed.set_pod_sandbox_id(request.pod_sandbox_id());
  *listed.mutable_metadata() = request.config().metadata();
  if (const auto taken = names_.find(name_of(listed)); taken != names_.end()) {
    return refused(fmt::format("name is reserved for \"{}\"", taken->second));
  }
  listed.set_id(make_id("container"));
  *listed.mutable_image() = request.config().image();
  listed.set_image_ref(kImageId);
  listed.set_image_id(kImageId);
  listed.set_created_at(now_ns());
  *listed.mutable_labels() = request.config().labels();
  *listed.mutable_annotations() = request.config().annotations();
  container.resources = request.config().linux().resources();
  container.cgroup_parent = request.sandbox_config().linux().cgroup_parent();
  container.config = std::move(*request.mutable_config());
  if (options_.first_pid != 0) container.pid = options_.first_pid + static_cast<std::int64_t>(last_number_);
  tell(Change::kCreated, container);
  response.set_container_id(listed.id());
  put(std::move(container));
  return {};
}

grpc::Status MemoryRuntime::start(cri::StartContainerRequest& request, cri::StartContainerResponse&) {
  const auto found = containers_.find(request.container_id());
  if (found == containers_.end()) return no_such("container", request.container_id());
  const auto sandbox = sandboxes_.find(found->second.listed.pod_sandbox_id());
  if (sandbox == sandboxes_.end() || sandbox->second.state() == cri::SANDBOX_NOTREADY) {
    return refused("sandbox container is not running");
  }
  found->second.ran_on.push_back(found->second.resources.cpuset_cpus());
  set_state(found->second, cri::CONTAINER_RUNNING, Change::kStarted);
  return {};
}

/// As containerd: stopping what never ran does nothing.
grpc::Status MemoryRuntime::stop(cri::StopContainerRequest& request, cri::StopContainerResponse&) {
  const auto found = containers_.find(request.container_id());
  if (found == containers_.end()) return no_such("container", request.container_id());
  if (found->second.is_running()) end_process(found->second, kKilled);
  return {};
}

grpc::Status MemoryRuntime::remove(cri::RemoveContainerRequest& request, cri::RemoveContainerResponse&) {
  const auto found = containers_.find(request.container_id());
  if (found != containers_.end()) tell(Change::kRemoved, found->second);
  forget(request.container_id());
  return {};
}

grpc::Status MemoryRuntime::update(cri::UpdateContainerResourcesRequest& request,
                                   cri::UpdateContainerResourcesResponse&) {
  const auto found = containers_.find(request.container_id());
  if (found == containers_.end()) return no_such("container", request.container_id());
  Container& container = found->second;
  if (container.listed.state() == cri::CONTAINER_EXITED) return refused("container is in exited state");
  merge(request.linux(), container.resources);
  if (container.is_running()) container.ran_on.push_back(container.resources.cpuset_cpus());
  ++updates_;
  tell(Change::kUpdated, container);
  return {};
}

grpc::Status MemoryRuntime::list(grpc::ByteBuffer& message) {
  const auto request = parse<cri::ListContainersRequest>(message);
  const bool is_filtered = request.filter().ByteSizeLong() > 0;
  if (!is_filtered && container_list_.Valid()) {
    message = container_list_;
    return {};
  }
  cri::ListContainersResponse response;
  for (const auto& [id, container] : containers_) {
    if (matches(request.filter(), container.listed)) *response.add_containers() = container.listed;
  }
  message = bytes_of(response);
  if (!is_filtered) container_list_ = message;
  return {};
}

grpc::Status MemoryRuntime::container_status(cri::ContainerStatusRequest& request,
                                             cri::ContainerStatusResponse& response) {
  const auto found = containers_.find(request.container_id());
  if (found == containers_.end()) return no_such("container", request.container_id());
  const Container& container = found->second;
  cri::ContainerStatus& status = *response.mutable_status();
  status.set_id(container.listed.id());
  *status.mutable_metadata() = container.listed.metadata();
  status.set_state(container.listed.state());
  status.set_exit_code(container.exit_code);
  status.set_created_at(container.listed.created_at());
  *status.mutable_image() = container.listed.image();
  status.set_image_ref(kImageId);
  status.set_image_id(kImageId);
  *status.mutable_labels() = container.listed.labels();
  *status.mutable_annotations() = container.listed.annotations();
  *status.mutable_mounts() = container.config.mounts();
  status.set_log_path(container.config.log_path());
  if (tells_only_processes_) {
    (*response.mutable_info())["info"] =
        fmt::format(R"({{"sandboxID":"{}","pid":{}}})", container.listed.pod_sandbox_id(),
                    container.is_running() ? container.pid : 0);
    return {};
  }
  *status.mutable_resources()->mutable_linux() = container.resources;
  if (request.verbose()) (*response.mutable_info())["info"] = info_json(container);
  return {};
}

std::string MemoryRuntime::make_id(const char* what) {
  const std::uint64_t number = ++last_number_;
  if (!options_.has_long_ids) return fmt::format("{}-{}", what, number);
  return fmt::format("{:016x}{:048x}", number * 0x9E3779B97F4A7C15U, number);
}

void MemoryRuntime::set_state(Container& container, cri::ContainerState state, Change change) {
  container.listed.set_state(state);
  tell(change, container);
  forget_lists();
}

void MemoryRuntime::end_process(Container& container, std::int32_t exit_code) {
  if (container.is_running()) container.exit_code = exit_code;
  set_state(container, cri::CONTAINER_EXITED, Change::kStopped);
}

void MemoryRuntime::tell(Change change, const Container& container) const {
  if (options_.on_change) options_.on_change(change, container);
}

void MemoryRuntime::forget_lists() {
  container_list_.Clear();
  sandbox_list_.Clear();
}

}  // namespace topolet::testing
