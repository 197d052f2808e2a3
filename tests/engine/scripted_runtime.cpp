#include "tests/engine/scripted_runtime.hpp"

#include "core/cri/messages/lens.pb.h"
#include "core/simulate/runtime_messages.hpp"

namespace topolet::engine {
namespace {

/// Describes the call in a few words.
std::string description_of(const std::string& method, const std::string& request) {
  if (method != "UpdateContainerResources") return method;
  const auto update = simulate::read_request<lens::UpdateContainerResourcesRequest>(request);
  return method + ' ' + update.container_id() + ' ' + update.linux().cpuset_cpus();
}

bool has_files(const std::string& method, const std::string& request) {
  return method == "UpdateContainerResources" &&
         !simulate::read_request<lens::UpdateContainerResourcesRequest>(request).linux().unified().empty();
}

}  // namespace

void ScriptedRuntime::put(const std::string& id, const Container& container) {
  testing::MemoryRuntime::Container made;
  made.listed.set_id(id);
  made.listed.set_pod_sandbox_id(container.sandbox_id);
  made.listed.mutable_metadata()->set_name(container.name);
  made.listed.mutable_metadata()->set_attempt(container.attempt);
  made.listed.set_state(static_cast<runtime::v1::ContainerState>(container.state));
  *made.config.mutable_metadata() = made.listed.metadata();
  runtime::v1::KeyValue& env = *made.config.add_envs();
  env.set_key("A");
  env.set_value("1");
  made.resources.set_cpuset_cpus(container.cpus.to_string());
  made.cgroup_parent = container.whole_cpus > 0 ? "/kubepods/pod1" : "/kubepods/besteffort/pod1";
  if (container.whole_cpus > 0) {
    made.resources.set_cpu_shares(container.whole_cpus * 1024);
    made.resources.set_cpu_quota(container.whole_cpus * 100000);
    made.resources.set_cpu_period(100000);
  }
  made.pid = container.pid;
  if (made.is_running() && made.pid != 0) kernel_.run_on(made.pid, container.cpus);
  memory_.put(std::move(made));
}

void ScriptedRuntime::put(const operations::Sandbox& sandbox) {
  runtime::v1::PodSandbox made;
  made.set_id(sandbox.id);
  made.mutable_metadata()->set_uid(sandbox.pod_uid);
  made.mutable_metadata()->set_name(sandbox.pod_name);
  made.mutable_metadata()->set_namespace_(sandbox.pod_namespace);
  made.set_runtime_handler(sandbox.runtime_handler);
  made.set_state(sandbox.ready ? runtime::v1::SANDBOX_READY : runtime::v1::SANDBOX_NOTREADY);
  memory_.put(std::move(made));
}

void ScriptedRuntime::exit(const std::string& id, std::int32_t exit_code) {
  memory_.exit(id, exit_code);
  if (container(id).pid != 0) kernel_.reap(container(id).pid);
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

cri::RuntimeResponse ScriptedRuntime::answer(const std::string& method, std::string message) {
  if (const auto failure = failures_.find(method); failure != failures_.end() && failure->second) {
    calls_.push_back(method + " failed");
    return *failure->second;
  }
  if (auto once = failures_once_.extract(method)) {
    calls_.push_back(method + " failed");
    return once.mapped();
  }
  if (!files_refused_.empty() && has_files(method, message)) {
    calls_.push_back(method + " refused");
    return {Code::kUnknown, files_refused_, {}};
  }
  calls_.push_back(description_of(method, message));
  const grpc::Status status = memory_.serve(method, message);
  if (!status.ok()) return {static_cast<Code>(status.error_code()), status.error_message(), {}};
  return {Code::kOk, {}, std::move(message)};
}

void ScriptedRuntime::move_process(const testing::MemoryRuntime::Container& container) {
  if (!container.is_running() || container.pid == 0 || ignores_updates_[container.listed.id()]) return;
  const CpuSet there = container.cpus() - offline_;
  kernel_.run_on(container.pid, there.empty() ? CpuSet::range(0, 7) - offline_ : there);
}

}  // namespace topolet::engine
