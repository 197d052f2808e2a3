#include "core/engine/handlers/start_container.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/log.hpp"

namespace topolet::engine {

void StartContainer::handle(const HandlerDeps& deps, std::shared_ptr<operations::TargetOperation> operation) {
  std::shared_ptr<StartContainer>(new StartContainer(deps, std::move(operation)))->wait_for_turn();
}

const Allocation* StartContainer::allocation() const { return deps_.ledger().find_by_container(container_id_); }

void StartContainer::wait_for_turn() {
  container_id_ = full_container_id(deps_.ledger(), container_id_);
  const Allocation* known = allocation();
  if (known == nullptr) return ask_runtime();
  if (known->placement.mode == placement::Mode::kForeign) return operation_->pass();
  if (!known->is_managed()) return ask_runtime();
  if (has_process_in_sight()) return clear_for_process();
  const bool has_queue = deps_.mover.run_in_turn(
      container_id_, ContainerQueues::Needs::kSent,
      [self = shared_from_this()](const Status& turn_status, const ContainerQueues::OperationDone& done) {
        self->operation_done_ = done;
        self->wait_for_neighbours(turn_status);
      });
  if (!has_queue) ask_runtime();
}

bool StartContainer::has_process_in_sight() const {
  if (operation_->waiting_process() == 0) return false;
  deps_.cpusets.note_process(container_id_, operation_->waiting_process());
  return deps_.cpusets.cgroup_of(container_id_).has_value();
}

/// Waits only for what the kernel cannot be told.
void StartContainer::clear_for_process() {
  const auto patience = operation_->patience().value_or(kNeighboursTimeout);
  deps_.mover.await_clear_in_kernel(key(), patience, [self = shared_from_this()](const Status& clear) {
    if (self->allocation() == nullptr) return self->retry_without_allocation();
    if (clear) return self->place_process();
    // A runtime may start it all the same.
    self->deps_.mover.keep_apart_in_kernel(self->container_id_);
    self->reject(clear.error());
  });
}

/// It may have been given others since it was created.
void StartContainer::place_process() {
  const Allocation* own = allocation();
  if (own == nullptr || !has_process_in_sight()) return retry_without_allocation();
  if (own->squeeze == Squeeze::kLeftToKernel) return commit_requested({});
  const auto set = deps_.mover.sendable(container_id_);
  if (!set) return deps_.committer.when_durable([self = shared_from_this()] { self->place_process(); });
  if (const Status placed = deps_.mover.set_in_kernel(container_id_, *set); !placed) return reject(placed.error());
  commit_requested({});
}

/// For a container that was created without topolet, or by a create whose answer was lost, or that its next attempt
/// superseded: it must be placed before it runs.
void StartContainer::ask_runtime() {
  if (std::exchange(has_reconciled_, true)) return reject_unless_gone();
  deps_.reconciler.run([self = shared_from_this()](const Status&) { self->wait_for_turn(); });
}

/// It could not be placed. Where there is nothing to start, the runtime says so in its own words.
void StartContainer::reject_unless_gone() {
  deps_.cpusets.list([self = shared_from_this()](const Result<std::vector<operations::Sandbox>>& sandboxes,
                                                 const Result<std::vector<operations::ContainerInfo>>& containers) {
    if (!sandboxes) return self->reject(sandboxes.error());
    if (!containers) return self->reject(containers.error());
    const std::optional<Error> why = self->why_not_placed(*sandboxes, *containers);
    if (!why) return self->operation_->pass();
    self->reject(*why);
  });
}

/// None where there is nothing to start: no such container, or one that runs. A runtime may start what has exited, or
/// what is in a pod that is not ready.
std::optional<Error> StartContainer::why_not_placed(const std::vector<operations::Sandbox>& sandboxes,
                                                    const std::vector<operations::ContainerInfo>& containers) const {
  const auto container =
      std::find_if(containers.begin(), containers.end(), [this](const operations::ContainerInfo& listed) {
        return !container_id_.empty() && listed.id.rfind(container_id_, 0) == 0;
      });
  if (container == containers.end() || container->state == operations::ContainerState::kRunning) return std::nullopt;
  if (container->state == operations::ContainerState::kExited)
    return Error{Code::kFailedPrecondition, "it has exited; only a container that is created anew gets CPUs"};
  const bool has_ready_pod = std::any_of(sandboxes.begin(), sandboxes.end(), [&](const operations::Sandbox& sandbox) {
    return sandbox.id == container->sandbox_id && sandbox.ready;
  });
  if (has_ready_pod) return Error{Code::kUnavailable, "topolet has not placed it yet; the log of topoletd says why"};
  return Error{Code::kFailedPrecondition,
               fmt::format("its pod {} is not ready or gone, so it has no CPUs", container->sandbox_id)};
}

void StartContainer::wait_for_neighbours(const Status& turn_status) {
  if (allocation() == nullptr || (!turn_status && turn_status.error().code == Code::kNotFound))
    return retry_without_allocation();
  if (!turn_status) return reject(turn_status.error());
  deps_.mover.await_neighbours(
      allocation()->workload.key, kNeighboursTimeout,
      [self = shared_from_this()](const Status& neighbours_gone) { self->commit_requested(neighbours_gone); });
}

/// Its allocation ended while it waited. Where the container is gone too, the runtime says so in its own words.
void StartContainer::retry_without_allocation() {
  end_turn();
  has_reconciled_ = false;
  wait_for_turn();
}

void StartContainer::commit_requested(const Status& neighbours_gone) {
  if (allocation() == nullptr) return retry_without_allocation();
  if (!neighbours_gone) return reject(neighbours_gone.error());
  if (operation_->cancelled()) {
    operation_->reject({Code::kCancelled, "the caller cancelled the call"});
    return end_turn();
  }
  was_started_before_ = allocation()->phase != Phase::kCreated;
  deps_.committer.commit(event::StartRequested{key()}, [self = shared_from_this()] { self->admit(); });
}

placement::ContainerKey StartContainer::key() const {
  return allocation() != nullptr ? allocation()->workload.key : placement::ContainerKey();
}

void StartContainer::admit() {
  operation_->admit(
      on_loop(deps_, [self = shared_from_this()](const operations::Outcome& outcome) { self->on_outcome(outcome); }));
}

void StartContainer::on_outcome(const operations::Outcome& outcome) {
  const auto then = [self = shared_from_this()] { self->answer(); };
  if (outcome.is_done()) {
    operation_->answer();
    return deps_.committer.commit(event::StartConfirmed{key()}, Urgency::kSoon,
                                  [self = shared_from_this()] { self->settle(); });
  }
  if (outcome.kind == operations::Outcome::Kind::kUnknown)
    return deps_.committer.commit(event::StartLeftInDoubt{key()}, then);
  // It says nothing of an earlier start, which may be why this one was refused.
  if (was_started_before_) return deps_.committer.when_durable(then);
  deps_.committer.commit(event::StartRefused{key()}, then);
}

void StartContainer::end_turn() {
  if (operation_done_) std::exchange(operation_done_, nullptr)(false);
}

void StartContainer::answer() {
  operation_->answer();
  settle();
}

void StartContainer::settle() {
  end_turn();
  // A runtime may have taken an update that came during the start and not carried it out.
  deps_.mover.verify_start(container_id_, [self = shared_from_this()] { self->look_for_its_cgroup(); });
}

/// A virtual machine or a sandbox process of the whole pod may run what is in it. Its CPUs cannot be set then.
void StartContainer::look_for_its_cgroup() {
  const Allocation* own = allocation();
  if (own == nullptr || !own->is_managed()) return;
  const placement::Workload workload = own->workload;
  if (!runs_in_cgroup_of_pod(deps_.cpusets.cgroups_of(container_id_), container_id_, workload.key)) return;
  deps_.placed_handlers.note_without_cgroup(workload.runtime_handler, container_id_);
  const std::string obstacle = deps_.placed_handlers.obstacle(workload.runtime_handler);
  if (obstacle.empty()) return;
  const std::string warning = describe_foreign(workload, obstacle);
  deps_.log.warn(
      "pod {}/{}: {}; its containers get no CPUs any more, and what {} had is free again. Add the handler to "
      "placement.foreign-handlers",
      workload.pod_namespace, workload.pod_name, warning, workload.key.name);
  deps_.committer.commit(event::FoundForeign{workload.key, reason_not_placed(workload, obstacle), {warning}});
}

void StartContainer::reject(const Error& why) {
  operation_->reject(
      {why.code == Code::kFailedPrecondition ? why.code : Code::kUnavailable,
       fmt::format("topolet: container {} cannot start before its CPUs are set: {}", container_id_, why.message)});
  end_turn();
}

}  // namespace topolet::engine
