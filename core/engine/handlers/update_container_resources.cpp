#include "core/engine/handlers/update_container_resources.hpp"

#include <utility>

#include "core/engine/planning/crash_retention.hpp"

namespace topolet::engine {
namespace {

/// Short, as the container's own queue is taken meanwhile: two that wait for each other must not wait long.
constexpr std::chrono::seconds kNeighboursTimeout{3};

/// Its CPUs are its own by topolet's choice.
bool has_its_own(const Allocation& allocation) {
  return allocation.is_exclusive() && allocation.workload.kubelet_cpus.empty();
}

bool gets_new_size(const Allocation& before, const Workload& wanted, std::uint32_t cpus) {
  const bool same = wanted.demand.cpu_request_milli == before.workload.demand.cpu_request_milli;
  return has_its_own(before) && !same && cpus != before.placement.cpus.size();
}

}  // namespace

void UpdateContainerResources::handle(const HandlerDeps& deps, const std::shared_ptr<Call>& call) {
  Result<UpdateRequest> update = read_update_container_resources(call->request());
  if (!update) return call->reject(update.error());
  const std::string id = full_container_id(deps.ledger(), update->container_id);
  if (!deps.mover.has(id) || !update->has_linux) return pass_through(call);
  const auto handler =
      std::shared_ptr<UpdateContainerResources>(new UpdateContainerResources(deps, call, *std::move(update), id));
  deps.mover.run(id, ContainerQueues::Needs::kTurn,
                 [handler](const Status& turn, const ContainerQueues::OperationDone& done) {
                   handler->turn_over_ = done;
                   handler->begin_turn(turn);
                 });
}

void UpdateContainerResources::begin_turn(const Status& turn) {
  const Allocation* held = deps_.ledger().find_by_container(id_);
  if (!turn || held == nullptr || !held->is_managed()) {
    // Over by now: the runtime says so in its own words.
    pass_through(call_);
    return turn_over_(false);
  }
  before_ = *held;
  if (!needs_environment(before_)) return decide(before_);
  deps_.mover.recall(before_.workload.key, [self = shared_from_this()](const std::optional<Allocation>& known) {
    if (known) return self->decide(*known);
    pass_through(self->call_);
    self->turn_over_(false);
  });
}

/// Where the policies are asked.
bool UpdateContainerResources::needs_environment(const Allocation& before) const {
  Workload wanted = before.workload;
  wanted.demand = apply_update(wanted.demand, update_);
  return gets_new_size(before, wanted, cpus_of_its_own(wanted, deps_.placer.rules()));
}

/// A resize keeps the mode, but for a container that asks for whole CPUs no more.
void UpdateContainerResources::decide(const Allocation& before) {
  Workload wanted = before.workload;
  wanted.demand = apply_update(wanted.demand, update_);
  wanted.pod_nodes = deps_.ledger().nodes_of_pod(wanted.key.pod_uid, wanted.key.sandbox_id);
  Workload bound = wanted;
  if (!update_.cpus.empty()) bound.kubelet_cpus = update_.cpus;
  if (!update_.mems.empty()) bound.kubelet_mems = update_.mems;
  const bool keeps_its_own =
      before.is_exclusive() && !update_.cpus.empty() && before.placement.cpus.is_subset_of(update_.cpus);
  const bool is_new_bound = bound.kubelet_cpus != before.workload.kubelet_cpus ||
                            bound.kubelet_mems != before.workload.kubelet_mems || before.conflict;
  std::optional<Event> event;
  if (is_new_bound && !keeps_its_own && !bound.kubelet_cpus.empty()) {
    event = follow_kubelet(bound);
  } else if (gets_new_size(before, wanted, cpus_of_its_own(wanted, deps_.placer.rules()))) {
    event = change_size(before, wanted);
  } else {
    event = keep_cpus(wanted);
  }
  if (!event) return;
  if (joins_pool_where_it_is(*event)) {
    once_done_ = *std::move(event);
    return forward_update();
  }
  deps_.committer.commit(*event, [self = shared_from_this()] { self->wait_for_neighbours(); });
}

/// It is to share CPUs that it has alone now, and can have no others: until the runtime has taken the update they stay
/// its own, as it may be refused.
bool UpdateContainerResources::joins_pool_where_it_is(const Event& event) const {
  const auto* moved = std::get_if<event::Moved>(&event);
  if (moved == nullptr || !before_.is_exclusive()) return false;
  const Decision& decision = moved->plan.decision;
  return decision.placement.mode != Mode::kExclusive && !decision.conflict &&
         !decision.within.intersects(deps_.ledger().pool());
}

Event UpdateContainerResources::keep_cpus(const Workload& wanted) const {
  const std::uint32_t cpus = cpus_of_its_own(wanted, deps_.placer.rules());
  const bool later = !has_its_own(before_) && cpus > 0 && before_.workload.kubelet_cpus.empty();
  return event::DemandChanged{
      wanted.key, wanted.demand,
      later ? "new resources; it gets CPUs of its own when it is next made" : "new resources; the CPUs stay"};
}

Event UpdateContainerResources::follow_kubelet(const Workload& wanted) const {
  Plan plan = deps_.placer.plan(deps_.ledger(), wanted);
  const char* word = plan.decision.conflict ? "conflict" : "re-placed";
  if (wanted.kubelet_mems.empty()) keep_memory(before_, deps_.placer.rules(), plan.decision.placement);
  return event::Moved{wanted, std::move(plan), word};
}

std::optional<Event> UpdateContainerResources::change_size(const Allocation& before, const Workload& wanted) {
  Placer::Terms terms;
  terms.only_shared = cpus_of_its_own(wanted, deps_.placer.rules()) == 0;
  terms.keep = before.placement;
  terms.must_keep = true;
  Plan plan = plan_with_reclaim(deps_.placer, deps_.ledger(), wanted, terms);
  if (plan.decision.denied) {
    deny(wanted, std::move(plan.decision));
    return std::nullopt;
  }
  keep_memory(before, deps_.placer.rules(), plan.decision.placement);
  return event::Moved{wanted, std::move(plan), "resized"};
}

void UpdateContainerResources::deny(const Workload& wanted, Decision decision) {
  decision.reason = "it cannot be resized: " + decision.reason;
  const Error error{Code::kResourceExhausted, "topolet: " + decision.reason};
  deps_.committer.commit(event::CreateDenied{wanted, std::move(decision)}, [self = shared_from_this(), error] {
    self->call_->reject(error);
    self->turn_over_(false);
  });
}

void UpdateContainerResources::wait_for_neighbours() {
  deps_.mover.await_clear(before_.workload.key, kNeighboursTimeout, [self = shared_from_this()](const Status& clear) {
    if (clear) return self->forward_update();
    const std::string& why = clear.error().message;
    self->undo("the neighbours could not be moved: " + why, [self, why] {
      self->call_->reject({Code::kUnavailable, "topolet: " + why});
      self->turn_over_(true);
    });
  });
}

void UpdateContainerResources::undo(const std::string& why, std::function<void()> then) {
  deps_.committer.commit(event::MoveUndone{before_, why}, std::move(then));
}

/// The kubelet's update goes out with the ledger's CPUs appended, so that it never widens what was narrowed.
void UpdateContainerResources::forward_update() {
  sent_ = deps_.mover.desired(id_).value_or(target_of(before_));
  forward(deps_, call_, patch_update_container_resources(sent_.cpus, sent_.mems),
          [self = shared_from_this()](const Answer& answer) { self->answered(answer); });
}

void UpdateContainerResources::answered(const Answer& answer) {
  if (once_done_) {
    if (answer.code != Code::kOk) return finish(true);
    return deps_.committer.commit(*once_done_, [self = shared_from_this()] { self->finish(true); });
  }
  if (answer.code != Code::kOk && !leaves_doubt(answer.code)) {
    return undo("the runtime refused the update: " + answer.message,
                [self = shared_from_this()] { self->finish(true); });
  }
  const Allocation* held = deps_.ledger().find_by_container(id_);
  const bool can_be_seen = held != nullptr && !deps_.mover.may_be_mid_start(*held);
  if (answer.code != Code::kOk || !can_be_seen || !deps_.cpusets.check(id_, sent_)) return finish(true);
  deps_.mover.report_applied(id_, sent_, [self = shared_from_this()] { self->finish(false); });
}

void UpdateContainerResources::finish(bool invalidates) {
  call_->finish();
  turn_over_(invalidates);
}

}  // namespace topolet::engine
