#include "tests/engine/scripted_runtime.hpp"

#include <nlohmann/json.hpp>

#include "core/cri/messages/lens.pb.h"
#include "core/simulate/runtime_messages.hpp"

namespace topolet::engine {
namespace {

cri::RuntimeResponse no_such(const std::string& id) { return {Code::kNotFound, "container " + id + " not found", {}}; }

}  // namespace

void ScriptedRuntime::put(const std::string& id, Container container) {
  if (container.state == cri::ContainerState::kRunning && container.pid != 0) {
    kernel_.run_on(container.pid, container.cpus);
  }
  containers_[id] = std::move(container);
}

void ScriptedRuntime::exit(const std::string& id, std::int32_t exit_code) {
  Container& exited = container(id);
  exited.state = cri::ContainerState::kExited;
  exited.exit_code = exit_code;
  if (exited.pid != 0) kernel_.reap(exited.pid);
}

void ScriptedRuntime::call(std::string path, std::string request, std::chrono::milliseconds /*timeout*/,
                           std::function<void(const cri::RuntimeResponse&)> done) {
  const std::string method = path.substr(path.rfind('/') + 1);
  auto work = [this, method, request = std::move(request), done = std::move(done)] { done(answer(method, request)); };
  if (!held_) return work();
  waiting_.emplace_back(std::move(work));
}

void ScriptedRuntime::release() {
  held_ = false;
  while (!waiting_.empty()) {
    const auto work = std::move(waiting_.front());
    waiting_.pop_front();
    work();
  }
}

cri::RuntimeResponse ScriptedRuntime::answer(const std::string& method, const std::string& request) {
  if (const auto failure = failures_.find(method); failure != failures_.end() && failure->second) {
    calls_.push_back(method + " failed");
    return *failure->second;
  }
  if (method == "UpdateContainerResources") return update(request);
  calls_.push_back(method);
  if (method == "ContainerStatus") return status(request);
  if (method == "ListContainers") return list_containers();
  if (method == "ListPodSandbox") return list_sandboxes();
  return {Code::kUnimplemented, method, {}};
}

cri::RuntimeResponse ScriptedRuntime::update(const std::string& bytes) {
  const auto request = simulate::read_request<lens::UpdateContainerResourcesRequest>(bytes);
  const std::string& cpus = request.linux().cpuset_cpus();
  calls_.push_back("UpdateContainerResources " + request.container_id() + " " + cpus);
  const auto found = containers_.find(request.container_id());
  if (found == containers_.end()) return no_such(request.container_id());
  Container& updated = found->second;
  if (updated.state == cri::ContainerState::kExited) return {Code::kUnknown, "it has exited", {}};
  updated.cpus = *CpuSet::parse(cpus);
  const bool runs = updated.state == cri::ContainerState::kRunning && updated.pid != 0;
  const CpuSet there = updated.cpus - offline_;
  if (runs && !updated.ignores_updates) {
    kernel_.run_on(updated.pid, there.empty() ? CpuSet::range(0, 7) - offline_ : there);
  }
  return {};
}

cri::RuntimeResponse ScriptedRuntime::status(const std::string& bytes) const {
  const auto request = simulate::read_request<lens::ContainerStatusRequest>(bytes);
  const auto found = containers_.find(request.container_id());
  if (found == containers_.end()) return no_such(request.container_id());
  const Container& asked = found->second;
  lens::ContainerStatusResponse response;
  lens::ContainerStatus& status = *response.mutable_status();
  status.set_id(found->first);
  status.mutable_metadata()->set_name(asked.name);
  status.mutable_metadata()->set_attempt(asked.attempt);
  status.set_state(static_cast<std::int32_t>(asked.state));
  status.set_exit_code(asked.exit_code);
  lens::Entry& info = *response.add_info();
  info.set_key("info");
  info.set_value(info_of(asked));
  return simulate::ok_answer(response);
}

/// As containerd tells it, as far as topolet reads it.
std::string ScriptedRuntime::info_of(const Container& container) {
  nlohmann::json cpu = nlohmann::json::object();
  if (!container.cpus.empty()) cpu["cpus"] = container.cpus.to_string();
  std::string cgroup = "/kubepods/besteffort/pod1/c";
  if (container.whole_cpus > 0) {
    cgroup = "/kubepods/pod1/c";
    cpu["shares"] = container.whole_cpus * 1024;
    cpu["quota"] = container.whole_cpus * 100000;
    cpu["period"] = 100000;
  }
  const nlohmann::json metadata = {{"name", container.name}, {"attempt", container.attempt}};
  const nlohmann::json linux_spec = {{"cgroupsPath", cgroup}, {"resources", {{"cpu", cpu}}}};
  return nlohmann::json{{"sandboxID", container.sandbox_id},
                        {"pid", container.pid},
                        {"config", {{"metadata", metadata}, {"envs", {{{"key", "A"}, {"value", "1"}}}}}},
                        {"runtimeSpec", {{"linux", linux_spec}}}}
      .dump();
}

cri::RuntimeResponse ScriptedRuntime::list_containers() const {
  lens::ListContainersResponse response;
  for (const auto& [id, container] : containers_) {
    lens::Container& listed = *response.add_containers();
    listed.set_id(id);
    listed.set_sandbox_id(container.sandbox_id);
    listed.mutable_metadata()->set_name(container.name);
    listed.mutable_metadata()->set_attempt(container.attempt);
    listed.set_state(static_cast<std::int32_t>(container.state));
  }
  return simulate::ok_answer(response);
}

cri::RuntimeResponse ScriptedRuntime::list_sandboxes() const {
  lens::ListPodSandboxResponse response;
  for (const auto& [id, sandbox] : sandboxes_) {
    lens::PodSandbox& listed = *response.add_items();
    listed.set_id(id);
    listed.mutable_metadata()->set_uid(sandbox.pod_uid);
    listed.mutable_metadata()->set_name(sandbox.pod_name);
    listed.mutable_metadata()->set_pod_namespace(sandbox.pod_namespace);
    listed.set_runtime_handler(sandbox.runtime_handler);
    listed.set_state(sandbox.ready ? 0 : 1);
  }
  return simulate::ok_answer(response);
}

}  // namespace topolet::engine
