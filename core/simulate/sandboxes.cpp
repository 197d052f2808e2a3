// The fates of containers that were only created, and of the sandboxes of pods, of which nobody is told.
#include <fmt/format.h>

#include <utility>

#include "core/simulate/simulation.hpp"

namespace topolet::simulate {

void Simulation::start(const Operation& operation, OperationResult& result) {
  const auto id = container_id(operation, result);
  if (!id) return;
  const cri::RuntimeResponse answer = daemon_.call("StartContainer", id_request(*id));
  if (answer.code != Code::kOk) {
    result.outcome = "error";
    result.reason = answer.message;
  }
  fill_placement(operation, result);
}

/// Changes a sandbox. Neither topoletd nor the kubelet is told. Once a pod's sandbox is gone, the kubelet knows nothing
/// of the pod.
void Simulation::set_sandbox(const Operation& operation, OperationResult& result) {
  const auto pod = pods_.find(operation.pod);
  if (pod == pods_.end()) {
    result.outcome = "error";
    result.is_invalid_line = true;
    result.reason = fmt::format("pod {} is not running; run_pod must come first", operation.pod);
    return;
  }
  runtime_.set_sandbox(pod->second.sandbox_id, operation.sandbox);
  if (operation.sandbox == SandboxState::kGone) pods_.erase(pod);
}

}  // namespace topolet::simulate
