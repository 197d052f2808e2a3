#include "core/engine/handlers/start_container.hpp"

#include <fmt/format.h>

#include <utility>

namespace topolet::engine {
namespace {

/// How long a start waits for others to leave the container's CPUs.
constexpr std::chrono::seconds kNeighboursTimeout{20};

}  // namespace

void StartContainer::handle(const HandlerDeps& deps, const std::shared_ptr<Call>& call) {
  const Result<std::string> target = read_target_id(call->request());
  if (!target) return call->reject(target.error());
  const auto start = std::shared_ptr<StartContainer>(new StartContainer(deps, call, *target));
  if (deps.ledger().find_by_container(*target) != nullptr) return start->wait_for_turn();
  // Made past topolet, or by a create whose answer was lost: it must have its place before it runs.
  deps.reconciler.run([start](const Status&) { start->wait_for_turn(); });
}

void StartContainer::wait_for_turn() {
  id_ = full_container_id(deps_.ledger(), id_);
  const bool is_known =
      deps_.mover.run(id_, ContainerQueues::Needs::kTold,
                      [self = shared_from_this()](const Status& turn, const ContainerQueues::OperationDone& done) {
                        self->turn_over_ = done;
                        self->wait_for_neighbours(turn);
                      });
  if (!is_known) pass_through(call_);
}

ContainerKey StartContainer::key() const {
  const Allocation* allocation = deps_.ledger().find_by_container(id_);
  return allocation != nullptr ? allocation->workload.key : ContainerKey();
}

void StartContainer::wait_for_neighbours(const Status& turn) {
  // Over by now: the runtime says so in its own words.
  if (!turn && turn.error().code == Code::kNotFound) return pass_through(call_);
  if (!turn) return reject(turn.error());
  deps_.mover.await_clear(key(), kNeighboursTimeout,
                          [self = shared_from_this()](const Status& clear) { self->commit_asked(clear); });
}

void StartContainer::commit_asked(const Status& clear) {
  if (!clear) return reject(clear.error());
  if (call_->cancelled()) {
    call_->reject({Code::kCancelled, "the caller has gone"});
    return turn_over_(false);
  }
  deps_.committer.commit(event::StartAsked{key()}, [self = shared_from_this()] { self->forward_start(); });
}

void StartContainer::forward_start() {
  forward(deps_, call_, "", [self = shared_from_this()](const Answer& answer) { self->answered(answer); });
}

void StartContainer::answered(const Answer& answer) {
  const auto then = [self = shared_from_this()] { self->finish(); };
  if (answer.code == Code::kOk) return deps_.committer.commit(event::StartConfirmed{key()}, then);
  if (leaves_doubt(answer.code)) return deps_.committer.commit(event::StartLeftInDoubt{key()}, then);
  deps_.committer.commit(event::StartRefused{key()}, then);
}

void StartContainer::finish() {
  call_->finish();
  turn_over_(false);
  // A runtime may have taken an update that came during the start and not carried it out.
  deps_.mover.verify(id_);
}

void StartContainer::reject(const Error& why) {
  call_->reject({Code::kUnavailable,
                 fmt::format("topolet: container {} does not start before its CPUs are set: {}", id_, why.message)});
  turn_over_(false);
}

}  // namespace topolet::engine
