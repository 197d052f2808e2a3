#include "core/engine/handlers/stop_container.hpp"

#include <utility>

namespace topolet::engine {

void StopContainer::handle(const HandlerDeps& deps, const std::shared_ptr<cri::Call>& call) {
  const Result<std::string> target = cri::read_target_id(call->request());
  const Allocation* stopped = target ? deps.ledger().find_by_container(*target) : nullptr;
  if (stopped == nullptr) return pass_through(call);
  std::shared_ptr<StopContainer>(new StopContainer(deps, call, *stopped))->commit_requested();
}

/// From here on its exit is no failure.
void StopContainer::commit_requested() {
  deps_.committer.commit(event::StopRequested{key_}, [self = shared_from_this()] {
    forward(self->deps_, self->call_, "", [self](const cri::RuntimeResponse& answer) { self->on_response(answer); });
  });
}

void StopContainer::on_response(const cri::RuntimeResponse& answer) {
  if (answer.code == Code::kOk) {
    return deps_.cpusets.inspect(
        container_id_,
        [self = shared_from_this()](const Result<cri::ContainerDetail>& detail) { self->inspected(detail); });
  }
  // One that is perhaps still being stopped has not failed when it exits.
  if (leaves_doubt(answer.code)) return call_->finish();
  commit_stop_refused();
}

/// Stopping a container that never ran leaves it as it is, and it may yet be started: only one that has exited gives
/// its CPUs back.
void StopContainer::inspected(const Result<cri::ContainerDetail>& detail) {
  const bool is_gone = !detail && detail.error().code == Code::kNotFound;
  const bool has_exited = detail && detail->info.state == cri::ContainerState::kExited;
  if (!is_gone && !has_exited) return commit_stop_refused();
  deps_.exits.report(container_id_, {Exit::Kind::kStopped}, [self = shared_from_this()] { self->call_->finish(); });
}

void StopContainer::commit_stop_refused() {
  deps_.committer.commit(event::StopRefused{key_}, [self = shared_from_this()] { self->call_->finish(); });
}

void handle_remove_container(const HandlerDeps& deps, const std::shared_ptr<cri::Call>& call) {
  call->forward("", [&deps, call](const cri::RuntimeResponse& answer) {
    const Result<std::string> target = cri::read_target_id(call->request());
    if (answer.code == Code::kOk && target) {
      deps.loop.post([&deps, id = *target] { deps.exits.report(id, {Exit::Kind::kRemoved}); });
    }
    call->finish();
  });
}

}  // namespace topolet::engine
