#include "core/engine/handlers/update_container_resources.hpp"

#include <utility>
#include <variant>

#include "core/engine/handlers/room_moves.hpp"
#include "core/engine/planning/memory_growth.hpp"
#include "core/engine/planning/resize.hpp"
#include "core/placement/exclusive_claim.hpp"
#include "core/placement/reason_codes.hpp"

namespace topolet::engine {

void UpdateContainerResources::handle(const HandlerDeps& deps,
                                      const std::shared_ptr<operations::UpdateOperation>& operation) {
  const operations::ResourceUpdate& update = operation->update();
  const std::string id = full_container_id(deps.ledger(), update.container_id);
  if (!deps.mover.has_queue(id) || !update.has_linux) return operation->pass();
  const auto handler = std::shared_ptr<UpdateContainerResources>(new UpdateContainerResources(deps, operation, id));
  deps.mover.run_in_turn(id, ContainerQueues::Needs::kTurn,
                         [handler](const Status& turn_status, const ContainerQueues::OperationDone& done) {
                           handler->operation_done_ = done;
                           handler->begin_turn(turn_status);
                         });
}

void UpdateContainerResources::begin_turn(const Status& turn_status) {
  const Allocation* allocation = deps_.ledger().find_by_container(container_id_);
  if (operation_->cancelled()) {
    operation_->reject({Code::kCancelled, "the caller cancelled the call"});
    return operation_done_(false);
  }
  if (!turn_status || allocation == nullptr || !allocation->is_managed()) {
    // Over by now: the runtime says so in its own words.
    operation_->pass();
    return operation_done_(false);
  }
  before_ = *allocation;
  // Others could not move before it is answered.
  if (operation_->patience()) may_make_room_ = false;
  if (!needs_environment(before_)) return decide(before_);
  deps_.mover.recover_workload(before_.workload.key,
                               [self = shared_from_this()](const std::optional<Allocation>& known) {
                                 if (known) return self->decide(*known);
                                 self->operation_->pass();
                                 self->operation_done_(false);
                               });
}

/// Policies may read the environment, so it is needed only if they are asked.
bool UpdateContainerResources::needs_environment(const Allocation& before) const {
  placement::Workload requested = before.workload;
  requested.demand = apply_update(requested.demand, update_, deps_.demand_rules);
  return changes_cpu_count(before, requested, exclusive_cpus_for(requested, deps_.placer.rules())) ||
         needs_memory_decision(before, requested.demand);
}

void UpdateContainerResources::decide(const Allocation& with_environment) {
  std::optional<Event> event = choose_event(with_environment);
  if (!event) return;
  if (joins_pool_in_place(*event)) {
    deferred_event_ = *std::move(event);
    return admit();
  }
  deps_.committer.commit(*event, [self = shared_from_this()] { self->wait_for_neighbours(); });
}

/// Nothing if it was denied; the call is answered then.
std::optional<Event> UpdateContainerResources::choose_event(const Allocation& before) {
  placement::Workload requested = before.workload;
  requested.demand = apply_update(requested.demand, update_, deps_.demand_rules);
  if (!update_.unified.empty()) requested.kubelet_unified = update_.unified;
  requested.pod_nodes = deps_.ledger().nodes_of_pod(requested.key.pod_uid, requested.key.sandbox_id);
  placement::Workload with_kubelet_cpuset = requested;
  if (!update_.cpus.empty()) with_kubelet_cpuset.kubelet_cpus = update_.cpus;
  if (!update_.mems.empty()) with_kubelet_cpuset.kubelet_mems = update_.mems;
  const bool stays_inside_kubelet_cpuset =
      before.is_exclusive() && !update_.cpus.empty() && before.placement.cpus.is_subset_of(update_.cpus);
  const bool is_new_kubelet_cpuset = with_kubelet_cpuset.kubelet_cpus != before.workload.kubelet_cpus ||
                                     with_kubelet_cpuset.kubelet_mems != before.workload.kubelet_mems ||
                                     before.conflict;
  if (is_new_kubelet_cpuset && !stays_inside_kubelet_cpuset && !with_kubelet_cpuset.kubelet_cpus.empty())
    return follow_kubelet(with_kubelet_cpuset);
  std::variant<Event, placement::Decision> planned =
      plan_resize(deps_.placer, deps_.ledger(), before, requested,
                  may_make_room_ ? std::optional(deps_.committer.wall_time()) : std::nullopt);
  if (auto* denial = std::get_if<placement::Decision>(&planned)) {
    deny(requested, std::move(*denial));
    return std::nullopt;
  }
  return std::get<Event>(std::move(planned));
}

/// It is to share the CPUs that it now has exclusively, because there are no others for it. They stay exclusive until
/// the runtime has taken the update, which it may refuse.
bool UpdateContainerResources::joins_pool_in_place(const Event& event) const {
  const auto* moved = std::get_if<event::Moved>(&event);
  if (moved == nullptr || !before_.is_exclusive()) return false;
  const placement::Decision& decision = moved->plan.decision;
  return decision.placement.mode != placement::Mode::kExclusive && !decision.conflict &&
         !decision.within.intersects(deps_.ledger().pool());
}

Event UpdateContainerResources::follow_kubelet(const placement::Workload& requested) const {
  Placer::Constraints constraints;
  constraints.occasion = placement::Occasion::kResize;
  Plan plan = deps_.placer.plan(deps_.ledger(), requested, constraints);
  if (const std::string& why = deps_.placed_handlers.why_none(); !why.empty()) share(why, requested, plan.decision);
  const AuditEvent audit_event = plan.decision.conflict ? AuditEvent::kConflict : AuditEvent::kReplaced;
  if (requested.kubelet_mems.empty()) retain_memory_nodes(before_, deps_.placer.rules(), plan.decision.placement);
  return event::Moved{requested, std::move(plan), audit_event};
}

/// While nobody is placed, nobody has CPUs alone that others would have to leave. It runs where the kubelet says.
void UpdateContainerResources::share(const std::string& why, const placement::Workload& requested,
                                     placement::Decision& decision) const {
  if (decision.placement.mode != placement::Mode::kExclusive) return;
  decision.placement.mode = placement::shared_mode(requested, deps_.placer.rules());
  decision.within = decision.placement.cpus;
  decision.reason += "; it shares them: " + why;
  decision.reason_code = placement::reason_code::kKubeletBound;
}

void UpdateContainerResources::deny(const placement::Workload& requested, placement::Decision decision) {
  decision.reason = "it cannot be resized: " + decision.reason;
  const Error error{Code::kResourceExhausted, "topolet: " + decision.reason};
  event::Denied denied{requested, std::move(decision)};
  denied.container_id = container_id_;
  deps_.committer.commit(std::move(denied), [self = shared_from_this(), error] {
    self->operation_->reject(error);
    self->operation_done_(false);
  });
}

/// It has been told all CPUs that it is to have: whoever else is on them is there with or without this update. What
/// the ledger of an earlier run of the daemon gave it, it need not have been told.
bool UpdateContainerResources::gains_nothing() const {
  const Allocation* now = deps_.ledger().find_by_container(container_id_);
  return now != nullptr && now->dedicated_cpus().is_subset_of(before_.dedicated_cpus()) &&
         now->placement.cpus.is_subset_of(deps_.mover.told(container_id_));
}

void UpdateContainerResources::wait_for_neighbours() {
  if (gains_nothing()) return admit();
  if (operation_->patience()) return clear_for_runtime();
  waits_for_room_ = is_room_being_made(deps_.ledger(), before_.workload.key);
  deps_.mover.await_neighbours(before_.workload.key, kNeighboursTimeoutInTurn,
                               [self = shared_from_this()](const Status& neighbours_gone) {
                                 if (neighbours_gone) return self->admit();
                                 const std::string& why = neighbours_gone.error().message;
                                 if (self->waits_for_room_) return self->place_without_moves(why);
                                 self->revert("other containers could not be moved off its CPUs: " + why, [self, why] {
                                   self->operation_->reject({Code::kUnavailable, "topolet: " + why});
                                   self->operation_done_(true);
                                 });
                               });
}

/// The runtime waits for the answer, and moves nobody meanwhile. Where somebody may still come to the CPUs that the
/// container gains, such as one that is created and may be about to start there, it keeps those that it has, and gets
/// the others in its next turn, when they are clear.
void UpdateContainerResources::clear_for_runtime() {
  const Status clear = deps_.mover.clear_in_kernel(before_.workload.key, Mover::Unstarted::kMayStart);
  keeps_its_cpus_ = !clear;
  if (clear || !kept_cpus().empty()) return admit();
  const Error error{Code::kUnavailable,
                    "topolet: it cannot be resized now, as it is not known where it runs: " + clear.error().message};
  revert(error.message, [self = shared_from_this(), error] {
    self->operation_->reject(error);
    self->operation_done_(true);
  });
}

/// The CPUs that it has been told, and that nobody else can be given before it is seen elsewhere.
CpuSet UpdateContainerResources::kept_cpus() const {
  const Allocation* now = deps_.ledger().find_by_container(container_id_);
  return now == nullptr ? CpuSet() : deps_.mover.told(container_id_) & (now->placement.cpus | now->vacating);
}

/// Some have not left in time that could have stayed where they are: they do stay there, and it is decided anew.
void UpdateContainerResources::place_without_moves(const std::string& why) {
  if (const auto left = deps_.mover.late_update_time(container_id_); left.count() > 0)
    return deps_.loop.after(left, [self = shared_from_this(), why] { self->place_without_moves(why); });
  may_make_room_ = false;
  deps_.committer.commit(
      event::MoveWithdrawn{before_.workload.key, "other containers did not make room in time: " + why});
  // It has not been told what it was to have. Who goes back there would wait for it, and it waits for them in its turn.
  deps_.mover.confirm_whereabouts(container_id_);
  withdraw_moves_for_room(deps_, before_.workload, why, [self = shared_from_this()] { self->begin_turn({}); });
}

void UpdateContainerResources::revert(const std::string& why, std::function<void()> then) {
  deps_.committer.commit(event::ChangeReverted{before_, why}, std::move(then));
}

/// The kubelet's update goes out with the ledger's CPUs appended, so that it never widens what was narrowed.
void UpdateContainerResources::admit() {
  const Allocation* now = deps_.ledger().find_by_container(container_id_);
  if (now == nullptr || !now->is_managed()) {
    // It has ended meanwhile: the runtime says so in its own words.
    operation_->pass();
    return operation_done_(false);
  }
  const std::optional<ContainerCpuset> sendable = deps_.mover.sendable(container_id_);
  if (!sendable) return deps_.committer.when_durable([self = shared_from_this()] { self->admit(); });
  sent_ = *sendable;
  if (keeps_its_cpus_) {
    sent_.cpus = kept_cpus();
    sent_.mems = {};
  }
  deps_.mover.note_sent(container_id_, sent_);
  // The runtime goes on to others before it carries this out.
  if (operation_->patience()) deps_.mover.note_coming(container_id_, sent_.cpus);
  operation_->admit(sent_, on_loop(deps_, [self = shared_from_this()](const operations::Outcome& outcome) {
                      self->on_outcome(outcome);
                    }));
}

/// An outcome that leaves in doubt whether the runtime took the update takes nothing back: what is next done in the
/// container's turn sends its CPUs again.
void UpdateContainerResources::on_outcome(const operations::Outcome& outcome) {
  deps_.mover.note_arrived(container_id_);
  if (deferred_event_) {
    if (!outcome.is_done()) return answer(true);
    return deps_.committer.commit(*deferred_event_, [self = shared_from_this()] { self->answer(true); });
  }
  if (outcome.kind == operations::Outcome::Kind::kRefused) {
    return revert("the runtime refused the update: " + outcome.message,
                  [self = shared_from_this()] { self->answer(true); });
  }
  const Allocation* allocation = deps_.ledger().find_by_container(container_id_);
  const bool can_be_seen = allocation != nullptr && !deps_.mover.may_still_be_starting(*allocation);
  if (!outcome.is_done() || !can_be_seen || !deps_.cpusets.check_kernel(container_id_, sent_)) return answer(true);
  deps_.mover.report_applied(container_id_, sent_, [self = shared_from_this()] { self->answer(false); });
}

void UpdateContainerResources::answer(bool invalidates) {
  operation_->answer();
  operation_done_(invalidates);
  // So that whoever does not leave is known.
  if (keeps_its_cpus_) deps_.mover.await_neighbours(before_.workload.key, kNeighboursTimeout, [](const Status&) {});
}

}  // namespace topolet::engine
