#include "tests/support/served_runtime.hpp"

#include <optional>
#include <utility>

namespace topolet::testing {

namespace api = ::runtime::v1;

ServedRuntime::ServedRuntime(const std::string& socket_path) : recorder_(socket_path) {
  const MutexLock lock(mutex_);
  for (const std::string& method : memory_.methods()) {
    recorder_.handle(method, [this, method](ServerCall& call) -> grpc::Status {
      std::optional<std::string> message = call.read();
      if (!message) return {grpc::StatusCode::INTERNAL, "there is no request"};
      // Other services have methods of the same names.
      const bool is_cri = call.path().find(".RuntimeService/") != std::string::npos;
      if (!is_cri) message->clear();
      grpc::Status status = is_cri ? answer(method, *message) : grpc::Status();
      if (status.ok()) call.write(*message);
      return status;
    });
  }
}

/// `message` holds the request, and then the answer.
grpc::Status ServedRuntime::answer(const std::string& method, std::string& message) {
  const grpc::Status lost(grpc::StatusCode::UNAVAILABLE, "transport is closing");
  const MutexLock lock(mutex_);
  while (held_ == method) released_.wait(mutex_);
  if (fail_updates_ && method == "UpdateContainerResources") return {grpc::StatusCode::UNKNOWN, "cgroup is busy"};
  if (fail_lists_ && method.starts_with("List"))
    return {grpc::StatusCode::UNAVAILABLE, "server is not initialized yet"};
  const Fate fate = method == "CreateContainer" ? std::exchange(next_, Fate::kMade) : Fate::kMade;
  if (fate == Fate::kRefused) return {grpc::StatusCode::UNKNOWN, "failed to resolve image"};
  if (fate == Fate::kNotCreatedAnswerLost) return lost;
  grpc::Status status = memory_.serve(method, message);
  return fate == Fate::kCreatedAnswerLost ? lost : status;
}

void ServedRuntime::next_create(Fate fate) {
  const MutexLock lock(mutex_);
  next_ = fate;
}

void ServedRuntime::hold(const std::string& method) {
  const MutexLock lock(mutex_);
  held_ = method;
}

void ServedRuntime::release() {
  const MutexLock lock(mutex_);
  held_.clear();
  released_.notify_all();
}

void ServedRuntime::fail_updates(bool fail) {
  const MutexLock lock(mutex_);
  fail_updates_ = fail;
}

void ServedRuntime::fail_lists(bool fail) {
  const MutexLock lock(mutex_);
  fail_lists_ = fail;
}

ServedRuntime::Row ServedRuntime::row(const std::string& container_id) const {
  const MutexLock lock(mutex_);
  const auto found = memory_.containers().find(container_id);
  if (found == memory_.containers().end()) return {};
  const MemoryRuntime::Container& container = found->second;
  return {container.resources.cpuset_cpus(), container.resources.cpuset_mems(), container.ran_on};
}

std::vector<std::string> ServedRuntime::ids() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> ids;
  for (const auto& [id, container] : memory_.containers()) ids.push_back(id);
  return ids;
}

void ServedRuntime::exit(const std::string& container_id, std::int32_t code) {
  const MutexLock lock(mutex_);
  memory_.exit(container_id, code);
}

void ServedRuntime::forget(const std::string& container_id) {
  const MutexLock lock(mutex_);
  memory_.forget(container_id);
}

std::string ServedRuntime::make(const std::string& pod, const std::string& cpus) {
  api::PodSandbox sandbox;
  sandbox.set_id("sandbox-" + pod);
  sandbox.mutable_metadata()->set_name(pod);
  sandbox.mutable_metadata()->set_uid("uid-" + pod);
  MemoryRuntime::Container container;
  container.listed.set_id("container-" + pod);
  container.listed.set_pod_sandbox_id(sandbox.id());
  container.listed.mutable_metadata()->set_name("main");
  *container.config.mutable_metadata() = container.listed.metadata();
  container.resources.set_cpuset_cpus(cpus);
  const MutexLock lock(mutex_);
  memory_.put(std::move(sandbox));
  memory_.put(std::move(container));
  return "container-" + pod;
}

void ServedRuntime::set_cpus(const std::string& container_id, const std::string& cpus) {
  const MutexLock lock(mutex_);
  memory_.container(container_id).resources.set_cpuset_cpus(cpus);
}

}  // namespace topolet::testing
