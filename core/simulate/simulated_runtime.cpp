#include "core/simulate/simulated_runtime.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace topolet::simulate {
namespace {

constexpr std::int32_t kCreated = 0;
constexpr std::int32_t kRunning = 1;
constexpr std::int32_t kExited = 2;
constexpr std::int32_t kSandboxNotReady = 1;

std::string_view method_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

template <class Message>
Message read(const std::string& bytes) {
  Message message;
  message.ParseFromString(bytes);
  return message;
}

template <class Message>
Answer yes(const Message& message) {
  return {Code::kOk, {}, message.SerializeAsString()};
}

Answer yes_with_id(const std::string& id) {
  lens::Target target;
  target.set_id(id);
  return yes(target);
}

Answer no_such(std::string_view what, const std::string& id) {
  return {Code::kNotFound, fmt::format("the simulated runtime has no {} {}", what, id), {}};
}

/// The verbose part of a status, as far as topolet reads it.
std::string as_runtimes_tell(const lens::ContainerConfig& config) {
  nlohmann::json told = {{"metadata", {{"name", config.metadata().name()}, {"attempt", config.metadata().attempt()}}},
                         {"devices", nlohmann::json::array()},
                         {"CDI_devices", nlohmann::json::array()},
                         {"envs", nlohmann::json::array()},
                         {"annotations", nlohmann::json::object()}};
  for (const auto& device : config.devices()) told["devices"].push_back({{"host_path", device.host_path()}});
  for (const auto& device : config.cdi_devices()) told["CDI_devices"].push_back({{"name", device.name()}});
  for (const auto& env : config.envs()) told["envs"].push_back({{"key", env.key()}, {"value", env.value()}});
  for (const auto& annotation : config.annotations()) told["annotations"][annotation.key()] = annotation.value();
  return nlohmann::json{{"config", std::move(told)}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

void SimulatedRuntime::call(std::string path, std::string request, std::chrono::milliseconds,
                            std::function<void(const Answer&)> done) {
  done(answer(method_of(path), request));
}

void SimulatedRuntime::exit(const std::string& container_id, std::int32_t exit_code) {
  const auto found = containers_.find(container_id);
  if (found == containers_.end()) return;
  found->second.state = kExited;
  found->second.exit_code = exit_code;
}

Answer SimulatedRuntime::answer(std::string_view method, const std::string& request) {
  if (method == "RunPodSandbox") return run_pod(request);
  if (method == "StopPodSandbox") return stop_pod(request);
  if (method == "RemovePodSandbox") return remove_pod(request);
  if (method == "ListPodSandbox") return list_sandboxes();
  if (method == "CreateContainer") return create(request);
  if (method == "StartContainer") return set_state(request, kRunning);
  if (method == "StopContainer") return set_state(request, kExited);
  if (method == "RemoveContainer") return remove(request);
  if (method == "UpdateContainerResources") return update(request);
  if (method == "ContainerStatus") return status(request);
  if (method == "ListContainers") return list_containers();
  return {Code::kUnimplemented, fmt::format("the simulated runtime knows no {}", method), {}};
}

Answer SimulatedRuntime::run_pod(const std::string& bytes) {
  const auto request = read<lens::RunPodSandboxRequest>(bytes);
  lens::PodSandbox sandbox;
  sandbox.set_id(fmt::format("sandbox-{:08}", ++last_number_));
  *sandbox.mutable_metadata() = request.config().metadata();
  sandbox.set_runtime_handler(request.runtime_handler());
  sandboxes_[sandbox.id()] = sandbox;
  return yes_with_id(sandbox.id());
}

Answer SimulatedRuntime::create(const std::string& bytes) {
  const auto request = read<lens::CreateContainerRequest>(bytes);
  const NextAnswer next = std::exchange(next_, NextAnswer::kYes);
  if (next == NextAnswer::kRefuse) return {Code::kUnknown, "the simulated runtime was told to refuse", {}};
  const std::string known = never_started(request);
  const std::string id = known.empty() ? fmt::format("container-{:08}", ++last_number_) : known;
  containers_[id] = {request.sandbox_id(), request.config()};
  if (next == NextAnswer::kLost) return {Code::kUnavailable, "the simulated runtime's answer was lost", {}};
  return yes_with_id(id);
}

/// A create whose answer was lost has made its container: the same create again is about that one, as with CRI-O.
std::string SimulatedRuntime::never_started(const lens::CreateContainerRequest& request) const {
  const lens::ContainerMetadata& wanted = request.config().metadata();
  for (const auto& [id, container] : containers_) {
    const lens::ContainerMetadata& metadata = container.config.metadata();
    if (container.sandbox_id == request.sandbox_id() && container.state == kCreated &&
        metadata.name() == wanted.name() && metadata.attempt() == wanted.attempt()) {
      return id;
    }
  }
  return {};
}

Answer SimulatedRuntime::set_state(const std::string& bytes, std::int32_t state) {
  const std::string id = read<lens::Target>(bytes).id();
  const auto found = containers_.find(id);
  if (found == containers_.end()) return no_such("container", id);
  found->second.state = state;
  return yes(lens::Target());
}

Answer SimulatedRuntime::remove(const std::string& bytes) {
  containers_.erase(read<lens::Target>(bytes).id());
  return yes(lens::Target());
}

Answer SimulatedRuntime::stop_pod(const std::string& bytes) {
  const std::string id = read<lens::Target>(bytes).id();
  for (auto& [container_id, container] : containers_) {
    if (container.sandbox_id == id) container.state = kExited;
  }
  if (const auto sandbox = sandboxes_.find(id); sandbox != sandboxes_.end())
    sandbox->second.set_state(kSandboxNotReady);
  return yes(lens::Target());
}

Answer SimulatedRuntime::remove_pod(const std::string& bytes) {
  const std::string id = read<lens::Target>(bytes).id();
  std::erase_if(containers_, [&id](const auto& entry) { return entry.second.sandbox_id == id; });
  sandboxes_.erase(id);
  return yes(lens::Target());
}

Answer SimulatedRuntime::update(const std::string& bytes) {
  const std::string id = read<lens::UpdateContainerResourcesRequest>(bytes).container_id();
  if (containers_.count(id) == 0) return no_such("container", id);
  return yes(lens::Target());
}

Answer SimulatedRuntime::status(const std::string& bytes) const {
  const std::string id = read<lens::ContainerStatusRequest>(bytes).container_id();
  const auto found = containers_.find(id);
  if (found == containers_.end()) return no_such("container", id);
  lens::ContainerStatusResponse response;
  lens::ContainerStatus& status = *response.mutable_status();
  status.set_id(id);
  *status.mutable_metadata() = found->second.config.metadata();
  status.set_state(found->second.state);
  status.set_exit_code(found->second.exit_code);
  lens::Entry& info = *response.add_info();
  info.set_key("info");
  info.set_value(as_runtimes_tell(found->second.config));
  return yes(response);
}

Answer SimulatedRuntime::list_containers() const {
  lens::ListContainersResponse response;
  for (const auto& [id, container] : containers_) {
    lens::Container& listed = *response.add_containers();
    listed.set_id(id);
    listed.set_sandbox_id(container.sandbox_id);
    *listed.mutable_metadata() = container.config.metadata();
    listed.set_state(container.state);
  }
  return yes(response);
}

Answer SimulatedRuntime::list_sandboxes() const {
  lens::ListPodSandboxResponse response;
  for (const auto& [id, sandbox] : sandboxes_) *response.add_items() = sandbox;
  return yes(response);
}

SimulatedCall::SimulatedCall(std::string method, std::string request, SimulatedRuntime& runtime)
    : path_("/runtime.v1.RuntimeService/" + std::move(method)), request_(std::move(request)), runtime_(runtime) {}

std::string_view SimulatedCall::method() const { return method_of(path_); }

void SimulatedCall::forward(std::string patch, std::function<void(const Answer&)> on_answer) {
  runtime_.call(path_, request_ + patch, {}, [this, &on_answer](const Answer& answer) {
    from_runtime_ = answer;
    on_answer(answer);
  });
}

}  // namespace topolet::simulate
