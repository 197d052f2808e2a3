#include "core/engine/handlers/pod_sandboxes.hpp"

#include <utility>

namespace topolet::engine {
namespace {

/// Admits an operation on one sandbox; once it is done, `then` is told the full id.
void admit_for_sandbox(const HandlerDeps& deps, const std::shared_ptr<operations::TargetOperation>& operation,
                       std::function<void(const std::string& sandbox_id)> then) {
  operation->admit(
      on_loop(deps, [operation, then = std::move(then),
                     id = full_sandbox_id(deps.ledger(), operation->target())](const operations::Outcome& outcome) {
        if (!outcome.is_done()) return operation->answer();
        then(id);
      }));
}

}  // namespace

void handle_run_sandbox(const HandlerDeps& deps, const std::shared_ptr<operations::RunSandboxOperation>& operation) {
  operation->admit(on_loop(deps, [&deps, operation](const operations::Outcome& outcome) {
    if (!outcome.is_done()) return operation->answer();
    operations::Sandbox made = operation->sandbox();
    made.id = outcome.id;
    made.annotations = deps.placer.annotations_to_keep(made.annotations);
    deps.committer.commit(event::PodSeen{std::move(made)}, [operation] { operation->answer(); });
  }));
}

void handle_stop_sandbox(const HandlerDeps& deps, const std::shared_ptr<operations::TargetOperation>& operation) {
  admit_for_sandbox(deps, operation, [&deps, operation](const std::string& sandbox_id) {
    deps.exits.pod_stopped(sandbox_id, [operation] { operation->answer(); });
  });
}

void handle_remove_sandbox(const HandlerDeps& deps, const std::shared_ptr<operations::TargetOperation>& operation) {
  admit_for_sandbox(deps, operation, [&deps, operation](const std::string& sandbox_id) {
    deps.exits.pod_removed(sandbox_id, [operation] { operation->answer(); });
  });
}

}  // namespace topolet::engine
