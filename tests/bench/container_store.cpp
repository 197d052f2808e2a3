#include "tests/bench/container_store.hpp"

#include <fmt/format.h>
#include <grpcpp/support/slice.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

namespace topolet::bench {
namespace {

namespace cri = runtime::v1;

/// Above every PID that a kernel gives: nobody finds a process there.
constexpr std::int64_t kFirstPid = 1 << 23;
/// That the kubelet gives the containers of Guaranteed pods, and no others.
constexpr std::int64_t kGuaranteedOomScoreAdj = -997;
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

grpc::Status answer(grpc::ByteBuffer& message, const google::protobuf::MessageLite& response) {
  message = bytes_of(response);
  return {};
}

grpc::Status no_such(const char* what, const std::string& id) {
  return {grpc::StatusCode::NOT_FOUND,
          fmt::format("an error occurred when try to find {} \"{}\": not found", what, id)};
}

std::int64_t now_ns() { return std::chrono::system_clock::now().time_since_epoch().count(); }

/// As long as containerd's: 64 hexadecimal digits.
std::string make_id(std::uint64_t number) {
  return fmt::format("{:016x}{:048x}", number * 0x9E3779B97F4A7C15U, number);
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
}

/// How many whole CPUs a Guaranteed container asks for; 0 for any other.
std::size_t whole_cpus(const cri::LinuxContainerResources& resources) {
  const std::int64_t period = resources.cpu_period();
  const std::int64_t quota = resources.cpu_quota();
  const bool is_guaranteed = resources.oom_score_adj() == kGuaranteedOomScoreAdj;
  if (!is_guaranteed || period <= 0 || quota <= 0 || quota % period != 0) return 0;
  return static_cast<std::size_t>(quota / period);
}

ObservedContainer::State observed_state(cri::ContainerState state) {
  if (state == cri::CONTAINER_RUNNING) return ObservedContainer::State::kRunning;
  return state == cri::CONTAINER_CREATED ? ObservedContainer::State::kCreated : ObservedContainer::State::kExited;
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
std::string info_json(const cri::Container& container, const cri::ContainerConfig& config,
                      const cri::LinuxContainerResources& now, const std::string& cgroup, std::int64_t pid) {
  nlohmann::json cpu = {{"period", now.cpu_period()}, {"shares", now.cpu_shares()}};
  if (now.cpu_quota() != 0) cpu["quota"] = now.cpu_quota();
  if (!now.cpuset_cpus().empty()) cpu["cpus"] = now.cpuset_cpus();
  if (!now.cpuset_mems().empty()) cpu["mems"] = now.cpuset_mems();
  const nlohmann::json info = {
      {"sandboxID", container.pod_sandbox_id()},
      {"pid", container.state() == cri::CONTAINER_RUNNING ? pid : 0},
      {"config", config_json(config)},
      {"runtimeSpec",
       {{"linux",
         {{"cgroupsPath", cgroup + "/" + container.id()},
          {"resources", {{"cpu", std::move(cpu)}, {"memory", {{"limit", now.memory_limit_in_bytes()}}}}}}}}}};
  return info.dump();
}

}  // namespace

ContainerStore::ContainerStore(Judge* judge)
    : judge_(judge),
      handlers_({{"Version", &ContainerStore::version},
                 {"Status", &ContainerStore::status},
                 {"RunPodSandbox", &ContainerStore::run_sandbox},
                 {"StopPodSandbox", &ContainerStore::stop_sandbox},
                 {"RemovePodSandbox", &ContainerStore::remove_sandbox},
                 {"PodSandboxStatus", &ContainerStore::sandbox_status},
                 {"ListPodSandbox", &ContainerStore::list_sandboxes},
                 {"CreateContainer", &ContainerStore::create},
                 {"StartContainer", &ContainerStore::start},
                 {"StopContainer", &ContainerStore::stop},
                 {"RemoveContainer", &ContainerStore::remove},
                 {"UpdateContainerResources", &ContainerStore::update},
                 {"ListContainers", &ContainerStore::list},
                 {"ContainerStatus", &ContainerStore::container_status},
                 {kCountUpdates, &ContainerStore::count_updates}}) {}

grpc::Status ContainerStore::serve(std::string_view method, grpc::ByteBuffer& message) {
  const auto handler = handlers_.find(method);
  return handler == handlers_.end() ? grpc::Status() : (this->*handler->second)(message);
}

grpc::Status ContainerStore::version(grpc::ByteBuffer& message) {
  cri::VersionResponse response;
  response.set_version("0.1.0");
  response.set_runtime_name("in-memory");
  response.set_runtime_version("v2.1.0");
  response.set_runtime_api_version("v1");
  return answer(message, response);
}

grpc::Status ContainerStore::status(grpc::ByteBuffer& message) {
  cri::StatusResponse response;
  for (const char* type : {"RuntimeReady", "NetworkReady"}) {
    cri::RuntimeCondition& condition = *response.mutable_status()->add_conditions();
    condition.set_type(type);
    condition.set_status(true);
  }
  return answer(message, response);
}

grpc::Status ContainerStore::run_sandbox(grpc::ByteBuffer& message) {
  const auto request = parse<cri::RunPodSandboxRequest>(message);
  cri::PodSandbox sandbox;
  sandbox.set_id(make_id(++last_number_));
  *sandbox.mutable_metadata() = request.config().metadata();
  sandbox.set_created_at(now_ns());
  *sandbox.mutable_labels() = request.config().labels();
  *sandbox.mutable_annotations() = request.config().annotations();
  sandbox.set_runtime_handler(request.runtime_handler());
  cri::RunPodSandboxResponse response;
  response.set_pod_sandbox_id(sandbox.id());
  sandboxes_[sandbox.id()] = std::move(sandbox);
  forget_lists();
  return answer(message, response);
}

grpc::Status ContainerStore::stop_sandbox(grpc::ByteBuffer& message) {
  const auto request = parse<cri::StopPodSandboxRequest>(message);
  for (auto& [id, container] : containers_) {
    if (container.listed.pod_sandbox_id() == request.pod_sandbox_id()) set_state(container, cri::CONTAINER_EXITED);
  }
  const auto sandbox = sandboxes_.find(request.pod_sandbox_id());
  if (sandbox != sandboxes_.end()) sandbox->second.set_state(cri::SANDBOX_NOTREADY);
  forget_lists();
  return answer(message, cri::StopPodSandboxResponse());
}

grpc::Status ContainerStore::remove_sandbox(grpc::ByteBuffer& message) {
  const auto request = parse<cri::RemovePodSandboxRequest>(message);
  remove_all_in(request.pod_sandbox_id());
  sandboxes_.erase(request.pod_sandbox_id());
  forget_lists();
  return answer(message, cri::RemovePodSandboxResponse());
}

grpc::Status ContainerStore::sandbox_status(grpc::ByteBuffer& message) {
  const auto request = parse<cri::PodSandboxStatusRequest>(message);
  const auto found = sandboxes_.find(request.pod_sandbox_id());
  if (found == sandboxes_.end()) return no_such("sandbox", request.pod_sandbox_id());
  const cri::PodSandbox& sandbox = found->second;
  cri::PodSandboxStatusResponse response;
  cri::PodSandboxStatus& status = *response.mutable_status();
  status.set_id(sandbox.id());
  *status.mutable_metadata() = sandbox.metadata();
  status.set_state(sandbox.state());
  status.set_created_at(sandbox.created_at());
  *status.mutable_labels() = sandbox.labels();
  *status.mutable_annotations() = sandbox.annotations();
  return answer(message, response);
}

grpc::Status ContainerStore::list_sandboxes(grpc::ByteBuffer& message) {
  if (!sandbox_list_.Valid()) {
    cri::ListPodSandboxResponse response;
    for (const auto& [id, sandbox] : sandboxes_) *response.add_items() = sandbox;
    sandbox_list_ = bytes_of(response);
  }
  message = sandbox_list_;
  return {};
}

grpc::Status ContainerStore::create(grpc::ByteBuffer& message) {
  auto request = parse<cri::CreateContainerRequest>(message);
  if (sandboxes_.count(request.pod_sandbox_id()) == 0) return no_such("sandbox", request.pod_sandbox_id());
  Container container;
  const std::string id = make_id(++last_number_);
  cri::Container& listed = container.listed;
  listed.set_id(id);
  listed.set_pod_sandbox_id(request.pod_sandbox_id());
  *listed.mutable_metadata() = request.config().metadata();
  *listed.mutable_image() = request.config().image();
  listed.set_image_ref(kImageId);
  listed.set_image_id(kImageId);
  listed.set_created_at(now_ns());
  *listed.mutable_labels() = request.config().labels();
  *listed.mutable_annotations() = request.config().annotations();
  container.resources = request.config().linux().resources();
  container.cgroup_parent = request.sandbox_config().linux().cgroup_parent();
  container.config = std::move(*request.mutable_config());
  container.pid = kFirstPid + static_cast<std::int64_t>(last_number_);
  tell_judge("created", container);
  containers_.emplace(id, std::move(container));
  forget_lists();
  cri::CreateContainerResponse response;
  response.set_container_id(id);
  return answer(message, response);
}

grpc::Status ContainerStore::start(grpc::ByteBuffer& message) {
  const auto request = parse<cri::StartContainerRequest>(message);
  const auto found = containers_.find(request.container_id());
  if (found == containers_.end()) return no_such("container", request.container_id());
  set_state(found->second, cri::CONTAINER_RUNNING);
  return answer(message, cri::StartContainerResponse());
}

grpc::Status ContainerStore::stop(grpc::ByteBuffer& message) {
  const auto request = parse<cri::StopContainerRequest>(message);
  const auto found = containers_.find(request.container_id());
  if (found != containers_.end()) set_state(found->second, cri::CONTAINER_EXITED);
  return answer(message, cri::StopContainerResponse());
}

grpc::Status ContainerStore::remove(grpc::ByteBuffer& message) {
  const auto request = parse<cri::RemoveContainerRequest>(message);
  const auto found = containers_.find(request.container_id());
  if (found != containers_.end()) {
    tell_judge("removed", found->second, ObservedContainer::State::kRemoved);
    containers_.erase(found);
  }
  forget_lists();
  return answer(message, cri::RemoveContainerResponse());
}

grpc::Status ContainerStore::update(grpc::ByteBuffer& message) {
  const auto request = parse<cri::UpdateContainerResourcesRequest>(message);
  const auto found = containers_.find(request.container_id());
  if (found == containers_.end()) return no_such("container", request.container_id());
  merge(request.linux(), found->second.resources);
  tell_judge("updated", found->second);
  ++updates_;
  return answer(message, cri::UpdateContainerResourcesResponse());
}

grpc::Status ContainerStore::list(grpc::ByteBuffer& message) {
  const bool filtered = message.Length() > 0 && parse<cri::ListContainersRequest>(message).filter().ByteSizeLong() > 0;
  if (!filtered && container_list_.Valid()) {
    message = container_list_;
    return {};
  }
  const auto request = parse<cri::ListContainersRequest>(message);
  cri::ListContainersResponse response;
  for (const auto& [id, container] : containers_) {
    if (!filtered || matches(request.filter(), container.listed)) *response.add_containers() = container.listed;
  }
  message = bytes_of(response);
  if (!filtered) container_list_ = message;
  return {};
}

grpc::Status ContainerStore::container_status(grpc::ByteBuffer& message) {
  const auto request = parse<cri::ContainerStatusRequest>(message);
  const auto found = containers_.find(request.container_id());
  if (found == containers_.end()) return no_such("container", request.container_id());
  const Container& container = found->second;
  cri::ContainerStatusResponse response;
  cri::ContainerStatus& status = *response.mutable_status();
  status.set_id(container.listed.id());
  *status.mutable_metadata() = container.listed.metadata();
  status.set_state(container.listed.state());
  status.set_created_at(container.listed.created_at());
  *status.mutable_image() = container.listed.image();
  status.set_image_ref(kImageId);
  status.set_image_id(kImageId);
  *status.mutable_labels() = container.listed.labels();
  *status.mutable_annotations() = container.listed.annotations();
  *status.mutable_mounts() = container.config.mounts();
  status.set_log_path(container.config.log_path());
  *status.mutable_resources()->mutable_linux() = container.resources;
  if (request.verbose()) {
    (*response.mutable_info())["info"] =
        info_json(container.listed, container.config, container.resources, container.cgroup_parent, container.pid);
  }
  return answer(message, response);
}

grpc::Status ContainerStore::count_updates(grpc::ByteBuffer& message) {
  const grpc::Slice text(std::to_string(updates_));
  message = grpc::ByteBuffer(&text, 1);
  return {};
}

void ContainerStore::set_state(Container& container, cri::ContainerState state) {
  container.listed.set_state(state);
  tell_judge(state == cri::CONTAINER_RUNNING ? "started" : "stopped", container);
  forget_lists();
}

void ContainerStore::remove_all_in(const std::string& sandbox_id) {
  std::erase_if(containers_, [&](const auto& entry) {
    if (entry.second.listed.pod_sandbox_id() != sandbox_id) return false;
    tell_judge("removed with its sandbox", entry.second, ObservedContainer::State::kRemoved);
    return true;
  });
}

void ContainerStore::forget_lists() {
  container_list_.Clear();
  sandbox_list_.Clear();
}

void ContainerStore::tell_judge(std::string_view event, const Container& container) {
  tell_judge(event, container, observed_state(container.listed.state()));
}

void ContainerStore::tell_judge(std::string_view event, const Container& container, ObservedContainer::State state) {
  if (judge_ == nullptr) return;
  const cri::PodSandbox& sandbox = sandboxes_.at(container.listed.pod_sandbox_id());
  judge_->observe(event, {.id = container.listed.id(),
                          .name = sandbox.metadata().name() + "/" + container.listed.metadata().name(),
                          .state = state,
                          .cpus = CpuSet::parse(container.resources.cpuset_cpus()).value_or({}),
                          .whole_cpus = whole_cpus(container.resources)});
}

}  // namespace topolet::bench
