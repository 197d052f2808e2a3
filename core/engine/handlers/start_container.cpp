#include "core/engine/handlers/start_container.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace topolet::engine {
namespace {

/// How long a start waits for others to leave the container's CPUs.
constexpr std::chrono::seconds kNeighboursTimeout{20};

}  // namespace

void StartContainer::handle(const HandlerDeps& deps, const std::shared_ptr<Call>& call) {
  const Result<std::string> target = read_target_id(call->request());
  if (!target) return call->reject(target.error());
  std::shared_ptr<StartContainer>(new StartContainer(deps, call, *target))->wait_for_turn();
}

const Allocation* StartContainer::allocation() const { return deps_.ledger().find_by_container(id_); }

void StartContainer::wait_for_turn() {
  id_ = full_container_id(deps_.ledger(), id_);
  const Allocation* known = allocation();
  if (known == nullptr) return ask_runtime();
  if (!known->is_managed()) return pass_through(call_);
  const bool has_queue =
      deps_.mover.run(id_, ContainerQueues::Needs::kTold,
                      [self = shared_from_this()](const Status& turn, const ContainerQueues::OperationDone& done) {
                        self->turn_over_ = done;
                        self->wait_for_neighbours(turn);
                      });
  if (!has_queue) ask_runtime();
}

/// Made past topolet, or by a create whose answer was lost, or given up for its next attempt: it must have its place
/// before it runs.
void StartContainer::ask_runtime() {
  if (std::exchange(asked_runtime_, true)) return reject_unless_gone();
  deps_.reconciler.run([self = shared_from_this()](const Status&) { self->wait_for_turn(); });
}

/// It could not be placed. Where there is nothing to start, the runtime says so in its own words.
void StartContainer::reject_unless_gone() {
  deps_.cpusets.list([self = shared_from_this()](const Result<std::vector<Sandbox>>& sandboxes,
                                                 const Result<std::vector<ContainerInfo>>& containers) {
    if (!sandboxes) return self->reject(sandboxes.error());
    if (!containers) return self->reject(containers.error());
    if (!self->can_be_started(*sandboxes, *containers)) return pass_through(self->call_);
    self->reject({Code::kUnavailable, "it has no place yet; the log of topoletd says why"});
  });
}

bool StartContainer::can_be_started(const std::vector<Sandbox>& sandboxes,
                                    const std::vector<ContainerInfo>& containers) const {
  return !id_.empty() && std::any_of(containers.begin(), containers.end(), [&](const ContainerInfo& container) {
    if (container.id.rfind(id_, 0) != 0 || container.state != ContainerState::kCreated) return false;
    return std::any_of(sandboxes.begin(), sandboxes.end(),
                       [&](const Sandbox& sandbox) { return sandbox.id == container.sandbox_id && sandbox.ready; });
  });
}

void StartContainer::wait_for_neighbours(const Status& turn) {
  if (allocation() == nullptr || (!turn && turn.error().code == Code::kNotFound)) return lose_place();
  if (!turn) return reject(turn.error());
  deps_.mover.await_clear(allocation()->workload.key, kNeighboursTimeout,
                          [self = shared_from_this()](const Status& clear) { self->commit_asked(clear); });
}

/// Its allocation ended while it waited. Where the container is gone too, the runtime says so in its own words.
void StartContainer::lose_place() {
  end_turn();
  asked_runtime_ = false;
  wait_for_turn();
}

void StartContainer::commit_asked(const Status& clear) {
  if (allocation() == nullptr) return lose_place();
  if (!clear) return reject(clear.error());
  if (call_->cancelled()) {
    call_->reject({Code::kCancelled, "the caller has gone"});
    return end_turn();
  }
  was_started_before_ = allocation()->phase != Phase::kCreated;
  deps_.committer.commit(event::StartAsked{key()}, [self = shared_from_this()] { self->forward_start(); });
}

ContainerKey StartContainer::key() const {
  return allocation() != nullptr ? allocation()->workload.key : ContainerKey();
}

void StartContainer::forward_start() {
  forward(deps_, call_, "", [self = shared_from_this()](const Answer& answer) { self->answered(answer); });
}

void StartContainer::answered(const Answer& answer) {
  const auto then = [self = shared_from_this()] { self->finish(); };
  if (answer.code == Code::kOk) return deps_.committer.commit(event::StartConfirmed{key()}, then);
  if (leaves_doubt(answer.code)) return deps_.committer.commit(event::StartLeftInDoubt{key()}, then);
  // It says nothing of an earlier start, which may be why this one was refused.
  if (was_started_before_) return deps_.committer.after_all(then);
  deps_.committer.commit(event::StartRefused{key()}, then);
}

void StartContainer::end_turn() {
  if (turn_over_) std::exchange(turn_over_, nullptr)(false);
}

void StartContainer::finish() {
  call_->finish();
  end_turn();
  // A runtime may have taken an update that came during the start and not carried it out.
  deps_.mover.verify(id_);
}

void StartContainer::reject(const Error& why) {
  call_->reject({Code::kUnavailable,
                 fmt::format("topolet: container {} does not start before its CPUs are set: {}", id_, why.message)});
  end_turn();
}

}  // namespace topolet::engine
