#include "core/fronts/cri/cri_front.hpp"

#include <utility>

#include "core/cri/messages/ended_containers.hpp"
#include "core/cri/messages/intercepted_methods.hpp"
#include "core/cri/messages/shown_status.hpp"
#include "core/fronts/cri/cri_operations.hpp"

namespace topolet::cri {
namespace {

void pass(const std::shared_ptr<Call>& call) {
  call->forward("", [call](const RuntimeResponse&) { call->finish(); });
}

}  // namespace

void CriFront::on_call(const std::shared_ptr<Call>& call) {
  const Interception* interception = find_interception(call->method());
  if (interception == nullptr) return pass(call);
  using Handler = operations::OperationHandler;
  switch (interception->method) {
    case InterceptedMethod::kRunPodSandbox: {
      auto operation = read_run_sandbox(call, deps_.log);
      return operation ? deps_.engine.run_sandbox(*std::move(operation)) : pass(call);
    }
    case InterceptedMethod::kStopPodSandbox:
      return hand_over_target(call, &Handler::stop_sandbox);
    case InterceptedMethod::kRemovePodSandbox:
      return hand_over_target(call, &Handler::remove_sandbox);
    case InterceptedMethod::kCreateContainer: {
      auto operation = read_create(call, deps_.demand_rules, deps_.log);
      return operation ? deps_.engine.create(*std::move(operation)) : call->reject(operation.error());
    }
    case InterceptedMethod::kStartContainer: {
      auto operation = read_target(call);
      return operation ? deps_.engine.start(*std::move(operation)) : call->reject(operation.error());
    }
    case InterceptedMethod::kStopContainer:
      return hand_over_target(call, &Handler::stop);
    case InterceptedMethod::kRemoveContainer:
      return hand_over_target(call, &Handler::remove);
    case InterceptedMethod::kUpdateContainerResources: {
      auto operation = read_update(call);
      return operation ? deps_.engine.update(*std::move(operation)) : call->reject(operation.error());
    }
  }
}

void CriFront::hand_over_target(const std::shared_ptr<Call>& call, HandleTarget handle) {
  auto operation = read_target(call);
  if (!operation) return pass(call);
  (deps_.engine.*handle)(*std::move(operation));
}

void CriFront::on_observed(const ObservedMessage& answer) { deps_.engine.on_exits(read_ended_containers(answer)); }

std::optional<std::string> CriFront::rewrite(const ObservedMessage& answer) const {
  if (!deps_.engine.shows_quotas()) return std::nullopt;
  return with_shown_quotas(answer, [this](const std::string& id) { return deps_.engine.quota_to_show(id); });
}

}  // namespace topolet::cri
