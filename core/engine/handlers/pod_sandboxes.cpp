#include "core/engine/handlers/pod_sandboxes.hpp"

#include <utility>

#include "core/base/log.hpp"

namespace topolet::engine {
namespace {

/// Forwards a call about one sandbox; once that has worked, `then` is told its id.
void forward_for_sandbox(const HandlerDeps& deps, const std::shared_ptr<cri::Call>& call,
                         std::function<void(const std::string& sandbox_id)> then) {
  const Result<std::string> target = cri::read_target_id(call->request());
  if (!target) return pass_through(call);
  forward(
      deps, call, "",
      [call, then = std::move(then), id = full_sandbox_id(deps.ledger(), *target)](const cri::RuntimeResponse& answer) {
        if (answer.code != Code::kOk) return call->finish();
        then(id);
      });
}

}  // namespace

void handle_run_pod_sandbox(const HandlerDeps& deps, const std::shared_ptr<cri::Call>& call) {
  const Result<cri::Sandbox> asked = cri::read_run_pod_sandbox(call->request());
  if (!asked) return pass_through(call);
  forward(deps, call, "", [&deps, call, sandbox = *asked](const cri::RuntimeResponse& answer) {
    if (answer.code != Code::kOk) return call->finish();
    const auto id = cri::read_run_pod_sandbox_response(answer.body);
    if (!id) {
      deps.log.error("RunPodSandbox: {}", id.error().message);
      return call->finish();
    }
    cri::Sandbox made = sandbox;
    made.id = *id;
    made.annotations = deps.placer.annotations_to_keep(made.annotations);
    deps.committer.commit(event::PodSeen{std::move(made)}, [call] { call->finish(); });
  });
}

void handle_stop_pod_sandbox(const HandlerDeps& deps, const std::shared_ptr<cri::Call>& call) {
  forward_for_sandbox(deps, call, [&deps, call](const std::string& sandbox_id) {
    deps.exits.pod_stopped(sandbox_id, [call] { call->finish(); });
  });
}

void handle_remove_pod_sandbox(const HandlerDeps& deps, const std::shared_ptr<cri::Call>& call) {
  forward_for_sandbox(deps, call, [&deps, call](const std::string& sandbox_id) {
    deps.exits.pod_removed(sandbox_id, [call] { call->finish(); });
  });
}

}  // namespace topolet::engine
