#include "core/engine/handlers/stop_container.hpp"

#include <utility>

namespace topolet::engine {

void StopContainer::handle(const HandlerDeps& deps, std::shared_ptr<operations::TargetOperation> operation) {
  const Allocation* stopped = deps.ledger().find_by_container(operation->target());
  if (stopped == nullptr) return operation->pass();
  std::shared_ptr<StopContainer>(new StopContainer(deps, std::move(operation), *stopped))->commit_requested();
}

/// From here on its exit is no failure.
void StopContainer::commit_requested() {
  deps_.committer.commit(event::StopRequested{key_}, [self = shared_from_this()] {
    self->operation_->admit(
        on_loop(self->deps_, [self](const operations::Outcome& outcome) { self->on_outcome(outcome); }));
  });
}

void StopContainer::on_outcome(const operations::Outcome& outcome) {
  if (outcome.is_done()) {
    return deps_.cpusets.inspect(
        container_id_,
        [self = shared_from_this()](const Result<operations::ContainerDetail>& detail) { self->inspected(detail); });
  }
  // One that is perhaps still being stopped has not failed when it exits.
  if (outcome.kind == operations::Outcome::Kind::kUnknown) return operation_->answer();
  commit_stop_refused();
}

/// Stopping a container that never ran leaves it as it is, and it may yet be started: only one that has exited gives
/// its CPUs back.
void StopContainer::inspected(const Result<operations::ContainerDetail>& detail) {
  const bool is_gone = !detail && detail.error().code == Code::kNotFound;
  const bool has_exited = detail && detail->info.state == operations::ContainerState::kExited;
  if (!is_gone && !has_exited) return commit_stop_refused();
  deps_.exits.report(container_id_, {Exit::Kind::kStopped},
                     [self = shared_from_this()] { self->operation_->answer(); });
}

void StopContainer::commit_stop_refused() {
  deps_.committer.commit(event::StopRefused{key_}, [self = shared_from_this()] { self->operation_->answer(); });
}

void handle_remove_container(const HandlerDeps& deps, const std::shared_ptr<operations::TargetOperation>& operation) {
  operation->admit([&deps, operation](const operations::Outcome& outcome) {
    if (outcome.is_done()) {
      deps.loop.post([&deps, id = operation->target()] { deps.exits.report(id, {Exit::Kind::kRemoved}); });
    }
    operation->answer();
  });
}

}  // namespace topolet::engine
