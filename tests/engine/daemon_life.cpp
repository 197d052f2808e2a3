#include "tests/engine/daemon_life.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/cri/messages/lens.pb.h"
#include "core/cri/methods.hpp"
#include "core/simulate/runtime_messages.hpp"

namespace topolet::testing {
namespace {

constexpr std::size_t kCutPermille = 1;
/// For what moves a container or gives it CPUs.
constexpr std::size_t kCutWhenItMattersPermille = 8;

/// Describes the request for people.
std::string description_of(std::string_view method, const std::string& bytes) {
  if (method == "CreateContainer") {
    const auto request = simulate::read_request<lens::CreateContainerRequest>(bytes);
    const lens::ContainerMetadata& metadata = request.config().metadata();
    const lens::Resources& resources = request.config().linux().resources();
    return fmt::format("{} {}/{}/{} shares {} CPUs {}", method, request.sandbox_id(), metadata.name(),
                       metadata.attempt(), resources.cpu_shares(), resources.cpuset_cpus());
  }
  if (method == "UpdateContainerResources") {
    const auto request = simulate::read_request<lens::UpdateContainerResourcesRequest>(bytes);
    const lens::Resources& resources = request.linux();
    return fmt::format("{} {} shares {} CPUs {}", method, request.container_id(), resources.cpu_shares(),
                       resources.cpuset_cpus());
  }
  if (method.rfind("List", 0) == 0 || method == "RunPodSandbox") return std::string(method);
  return fmt::format("{} {}", method, simulate::read_request<lens::Target>(bytes).id());
}

}  // namespace

bool Wire::delivers(std::string_view method) {
  const bool matters =
      method == "CreateContainer" || method == "StartContainer" || method == "UpdateContainerResources";
  if (!cut_ && !reliable_) cut_ = dice_.permille(matters ? kCutWhenItMattersPermille : kCutPermille);
  return !cut_;
}

void DaemonRuntime::call(std::string path, std::string request, std::chrono::milliseconds timeout,
                         std::function<void(const cri::RuntimeResponse&)> done) {
  const std::string what = description_of(cri::parse_method(path).name, request);
  const bool is_sent = life_.wire->delivers(cri::parse_method(path).name);
  const bool is_question = what.rfind("List", 0) == 0 || what.rfind("ContainerStatus", 0) == 0;
  if (!is_sent || !is_question) life_.trace.add(fmt::format("daemon: {}{}", what, is_sent ? "" : ", not sent"));
  if (is_sent) life_.runtime.call(std::move(path), std::move(request), timeout, std::move(done));
}

KubeletCall::KubeletCall(std::string method, std::string request, std::chrono::milliseconds deadline, DaemonLife life,
                         Answered answered)
    : path_("/runtime.v1.RuntimeService/" + std::move(method)),
      request_(std::move(request)),
      deadline_(deadline),
      life_(std::move(life)),
      answered_(std::move(answered)) {}

std::shared_ptr<KubeletCall> KubeletCall::make(std::string method, std::string request,
                                               std::chrono::milliseconds timeout, DaemonLife life, Answered answered) {
  life.trace.add("kubelet: " + description_of(method, request));
  VirtualTime& time = life.time;
  auto call = std::make_shared<KubeletCall>(std::move(method), std::move(request), time.now() + timeout,
                                            std::move(life), std::move(answered));
  time.after(timeout, [weak = std::weak_ptr<KubeletCall>(call)] {
    if (const auto late = weak.lock()) late->send_answer({Code::kDeadlineExceeded, "the kubelet waits no longer", {}});
  });
  return call;
}

KubeletCall::~KubeletCall() { send_answer({Code::kUnavailable, "the call was dropped", {}}); }

std::string_view KubeletCall::method() const { return cri::parse_method(path_).name; }

void KubeletCall::forward(std::string patch, std::function<void(const cri::RuntimeResponse&)> on_response) {
  const std::string message = request_ + patch;
  const bool is_sent = life_.wire->delivers(method());
  life_.trace.add(fmt::format("forwarded: {}{}", description_of(method(), message), is_sent ? "" : ", not sent"));
  if (!is_sent) return;
  const auto left = std::max(deadline_ - life_.time.now(), std::chrono::milliseconds(0));
  life_.runtime.call(
      path_, message, left,
      [weak = weak_from_this(), on_response = std::move(on_response)](const cri::RuntimeResponse& answer) {
        if (const auto call = weak.lock()) call->from_runtime_ = answer;
        on_response(answer);
      });
}

void KubeletCall::finish() {
  if (life_.wire->delivers("")) send_answer(from_runtime_);
}

void KubeletCall::reject(const Error& error) {
  if (life_.wire->delivers("")) send_answer({error.code, error.message, {}});
}

void KubeletCall::send_answer(const cri::RuntimeResponse& answer) {
  if (!answered_) return;
  if (answer.code != Code::kOk) life_.trace.add(fmt::format("answered: {} {}", method(), answer.message));
  life_.time.after({}, [answered = std::exchange(answered_, nullptr), answer] { answered(answer); });
}

}  // namespace topolet::testing
