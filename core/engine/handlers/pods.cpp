#include "core/engine/handlers/pods.hpp"

#include <utility>

namespace topolet::engine {
namespace {

/// Forwards a call about one sandbox; once that has worked, `then` is told its id.
void forward_for_sandbox(const HandlerDeps& deps, const std::shared_ptr<Call>& call,
                         std::function<void(const std::string& sandbox_id)> then) {
  const Result<std::string> target = read_target_id(call->request());
  if (!target) return pass_through(call);
  forward(deps, call, "",
          [call, then = std::move(then), id = full_sandbox_id(deps.ledger(), *target)](const Answer& answer) {
            if (answer.code != Code::kOk) return call->finish();
            then(id);
          });
}

}  // namespace

void handle_run_pod_sandbox(const HandlerDeps& deps, const std::shared_ptr<Call>& call) {
  const Result<Sandbox> asked = read_run_pod_sandbox(call->request());
  if (!asked) return pass_through(call);
  forward(deps, call, "", [&deps, call, sandbox = *asked](const Answer& answer) {
    if (answer.code != Code::kOk) return call->finish();
    const auto id = read_run_pod_sandbox_answer(answer.body);
    if (!id) {
      deps.log.error("RunPodSandbox: {}", id.error().message);
      return call->finish();
    }
    Sandbox made = sandbox;
    made.id = *id;
    deps.committer.commit(event::PodSeen{std::move(made)}, [call] { call->finish(); });
  });
}

void handle_stop_pod_sandbox(const HandlerDeps& deps, const std::shared_ptr<Call>& call) {
  forward_for_sandbox(deps, call, [&deps, call](const std::string& sandbox_id) {
    deps.exits.pod_stopped(sandbox_id, [call] { call->finish(); });
  });
}

void handle_remove_pod_sandbox(const HandlerDeps& deps, const std::shared_ptr<Call>& call) {
  forward_for_sandbox(deps, call, [&deps, call](const std::string& sandbox_id) {
    deps.exits.pod_removed(sandbox_id, [call] { call->finish(); });
  });
}

}  // namespace topolet::engine
