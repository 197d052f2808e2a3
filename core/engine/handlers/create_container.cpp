#include "core/engine/handlers/create_container.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "core/base/log.hpp"
#include "core/engine/handlers/hidden_values.hpp"
#include "core/engine/handlers/room_moves.hpp"
#include "core/engine/planning/crash_hold.hpp"
#include "core/engine/planning/room_planner.hpp"
#include "core/engine/planning/zone_and_devices.hpp"
#include "core/placement/exclusive_claim.hpp"
#include "core/placement/reason_codes.hpp"
#include "core/placement/settings.hpp"
#include "core/placement/zone.hpp"

namespace topolet::engine {
namespace {

/// How long the answer to a create waits for an update that fell due while it was in flight. StartContainer waits on.
constexpr std::chrono::seconds kCatchUpTimeout{2};

/// How long a create waits for others that could have stayed where they are. Then it is placed without that.
constexpr std::chrono::seconds kRoomTimeout{5};

/// How often a create is decided anew, as others do not leave its CPUs. A kubelet waits for two minutes at most.
constexpr std::uint32_t kMostDetours = 3;

bool is_same_request(const placement::Workload& a, const placement::Workload& b) {
  return a.demand == b.demand && a.kubelet_cpus == b.kubelet_cpus && a.kubelet_mems == b.kubelet_mems &&
         a.settings == b.settings;
}

}  // namespace

void CreateContainer::handle(const HandlerDeps& deps, std::shared_ptr<operations::CreateOperation> operation) {
  std::shared_ptr<CreateContainer>(new CreateContainer(deps, std::move(operation)))->read();
}

void CreateContainer::read() {
  workload_ = operation_->workload();
  told_ = workload_.demand;
  identify();
  note_kubelet();
  if (!deps_.placed_handlers.obstacle(workload_.runtime_handler).empty()) return admit_foreign();
  const Status read = read_annotations();
  workload_.pod_annotations = deps_.placer.annotations_to_keep(workload_.pod_annotations);
  workload_.annotations = deps_.placer.annotations_to_keep(workload_.annotations);
  if (!read) {
    placement::Decision bad;
    bad.denied = true;
    bad.reason = read.error().message + reason_suffix_;
    bad.reason_code = placement::reason_code::kInvalidAnnotation;
    return deny(read.error().code, bad);
  }
  start_placing();
}

/// What a front tells that answers with CPUs itself may come from another one who does so; the runtime creates nothing
/// for which both have. So CPUs are the kubelet's only once the container is there.
void CreateContainer::note_kubelet() {
  const bool may_be_anothers = tells_in_answer() && !workload_.kubelet_cpus.empty();
  if (!may_be_anothers) deps_.kubelet_static.note(workload_);
  is_to_note_kubelet_ = may_be_anothers && workload_.made_by_kubelet;
  workload_.made_by_kubelet = false;
}

void CreateContainer::note_kubelet_late() {
  if (!is_to_note_kubelet_) return;
  placement::Workload made = workload_;
  made.made_by_kubelet = true;
  deps_.kubelet_static.note(made);
}

/// A request need not repeat who the pod is.
void CreateContainer::identify() {
  if (!operation_->container_id().empty())
    workload_.key.attempt = deps_.ledger().next_attempt(workload_.key.sandbox_id, workload_.key.name);
  const Pod* pod = deps_.ledger().find_pod(workload_.key.sandbox_id);
  if (pod == nullptr) return;
  const operations::Sandbox& sandbox = pod->sandbox;
  workload_.runtime_handler = sandbox.runtime_handler;
  workload_.key.sandbox_id = sandbox.id;
  if (workload_.pod_annotations.empty()) workload_.pod_annotations = sandbox.annotations;
  if (!workload_.key.pod_uid.empty()) return;
  workload_.key.pod_uid = sandbox.pod_uid;
  workload_.pod_name = sandbox.pod_name;
  workload_.pod_namespace = sandbox.pod_namespace;
}

/// Ignores what placement.annotations says of an annotation that nobody reads.
Status CreateContainer::read_annotations() {
  const std::optional<placement::KnownAnnotations> known = deps_.placer.known_annotations();
  if (known) find_misspelt_annotations(*known);
  Result<placement::Settings> settings = deps_.placer.read_settings(workload_);
  if (!settings) return settings.error();
  workload_.settings = std::move(settings->values);
  for (const std::string& name : settings->not_permitted) {
    if (known && !known->has(name)) continue;
    reason_suffix_ += fmt::format("; annotation {}{} is ignored: placement.annotations does not list it",
                                  placement::kAnnotationPrefix, name);
  }
  for (const placement::TakingAnnotation& left_out : settings->not_taken) {
    reason_suffix_ += "; " + describe_not_taken(left_out, workload_);
  }
  Result<placement::ZoneOfContainer> zone = read_zone(workload_, deps_.placer.rules());
  if (!zone) return zone.error();
  zone_ = std::move(zone->nodes);
  zone_is_of_pool_ = zone->is_of_pool;
  if (!zone->ignored.empty()) reason_suffix_ += "; " + zone->ignored;
  return {};
}

void CreateContainer::find_misspelt_annotations(const placement::KnownAnnotations& known) {
  std::set<std::string> pod_containers;
  for (const placement::ContainerKey& key : deps_.ledger().in_sandbox(workload_.key.sandbox_id)) {
    pod_containers.insert(key.name);
  }
  if (const Pod* pod = deps_.ledger().find_pod(workload_.key.sandbox_id); pod != nullptr) {
    for (const auto& [container, cpus] : pod->former) pod_containers.insert(container);
  }
  warnings_ = describe_misspelt_names(workload_, pod_containers, deps_.placer.rules().annotations, known);
  for (const std::string& warning : warnings_) reason_suffix_ += "; " + warning;
}

/// Each once a pod.
void CreateContainer::log_warnings() const {
  const Pod* pod = deps_.ledger().find_pod(workload_.key.sandbox_id);
  for (const std::string& warning : warnings_) {
    if (pod != nullptr && pod->was_warned(warning)) continue;
    deps_.log.warn("pod {}/{}: {}", workload_.pod_namespace, workload_.pod_name, warning);
  }
}

void CreateContainer::admit_foreign() {
  workload_.pod_annotations = deps_.placer.annotations_to_keep(workload_.pod_annotations);
  workload_.annotations = deps_.placer.annotations_to_keep(workload_.annotations);
  operation_->admit({}, on_loop(deps_, [self = shared_from_this()](const operations::Outcome& outcome) {
                      self->commit_foreign(outcome);
                    }));
}

void CreateContainer::commit_foreign(const operations::Outcome& outcome) {
  if (!outcome.is_done()) return operation_->answer();
  Plan plan;
  plan.decision.placement.mode = placement::Mode::kForeign;
  if (is_kubelet_cpuset_exclusive(workload_)) plan.decision.placement.cpus = workload_.kubelet_cpus;
  const std::string obstacle = deps_.placed_handlers.obstacle(workload_.runtime_handler);
  plan.decision.reason = reason_not_placed(workload_, obstacle);
  plan.decision.reason_code = placement::reason_code::kHandlerNotPlaced;
  operations::ContainerInfo container;
  container.id = outcome.id;
  container.state = operations::ContainerState::kCreated;
  warnings_ = {describe_foreign(workload_, obstacle)};
  log_warnings();
  event::Adopted noted{workload_, plan, container, AuditEvent::kForeign, {}, {}};
  noted.warnings = warnings_;
  noted.is_created = true;
  deps_.committer.commit(std::move(noted), [self = shared_from_this()] { self->operation_->answer(); });
}

void CreateContainer::start_placing() {
  if (operation_->cancelled()) return operation_->reject({Code::kCancelled, "the caller cancelled the call"});
  was_in_doubt_ = false;
  const Allocation* allocation = deps_.ledger().find(workload_.key);
  if (allocation != nullptr && !allocation->is_kept()) return retry(*allocation);
  decide();
}

void CreateContainer::decide() {
  const std::vector<placement::ContainerKey> in_sandbox = deps_.ledger().in_sandbox(workload_.key.sandbox_id);
  const std::vector<placement::ContainerKey> superseded = this->superseded(in_sandbox);
  if (has_earlier_attempt(in_sandbox, superseded) && reconcile_first()) return;
  workload_.demand = told_;
  const placement::RequestedBeside beside = requested_beside(in_sandbox);
  workload_ = with_request_of_pod(std::move(workload_), beside);
  // Those beside it may have ended.
  if (workload_.demand != told_ && reconcile_first()) return;
  workload_.pod_nodes = deps_.ledger().nodes_of_pod(workload_.key.pod_uid, workload_.key.sandbox_id);
  const Time began = now();
  std::optional<Ledger> trial;
  const Ledger& ledger = ledger_without(deps_.ledger(), making_way(superseded), trial);
  Plan plan = this->plan(ledger, began);
  // Nobody gives up what is kept, nor moves, before it is known what else is free.
  if ((plan.lacks_cpus() || !plan.yielding.empty()) && reconcile_first()) return;
  if (std::optional<Plan> with_room = plan_with_room(ledger, began, plan)) {
    if (reconcile_first()) return;
    plan = *std::move(with_room);
  }
  plan.decision.times.queued = std::chrono::duration_cast<std::chrono::microseconds>(taken_up_ - operation_->arrived());
  plan.decision.times.decide = std::chrono::duration_cast<std::chrono::microseconds>(now() - began);
  plan.decision.reason += reason_suffix_;
  if (plan.decision.denied) return deny(Code::kResourceExhausted, plan.decision);
  const bool keeps_together = keeps_pod_together(workload_, plan.decision);
  log_warnings();
  committed_ = now();
  if (tells_in_answer()) deps_.mover.begin_answer(workload_.key);
  deps_.committer.commit(event::CreateAdmitted{workload_, std::move(plan), superseded, keeps_together, warnings_,
                                               operation_->container_id()},
                         [self = shared_from_this()] { self->wait_for_neighbours(); });
}

/// A create whose key already has an allocation: a retry, after the first create ended in doubt or its answer was lost.
void CreateContainer::retry(const Allocation& allocation) {
  if (allocation.phase == Phase::kPending) {
    return operation_->reject(
        {Code::kAborted,
         fmt::format("container {} of pod {} is already being created by another call; try again when that call has "
                     "returned",
                     allocation.workload.key.name, allocation.workload.pod_name)});
  }
  was_in_doubt_ = true;
  // The pod was resized meanwhile: what was decided is for another request.
  if (allocation.phase == Phase::kInDoubt && !is_same_request(allocation.workload, workload_)) return decide();
  committed_ = now();
  if (tells_in_answer()) deps_.mover.begin_answer(workload_.key);
  deps_.committer.commit(event::CreateRetried{workload_.key},
                         [self = shared_from_this()] { self->wait_for_neighbours(); });
}

/// By the other containers of the pod. One that has ended counts beside those that were made before: it comes back, as
/// they do. Beside one that is made for the first time it may be an init container, and does not.
placement::RequestedBeside CreateContainer::requested_beside(
    const std::vector<placement::ContainerKey>& in_sandbox) const {
  placement::RequestedBeside beside;
  const std::vector<std::string> made = deps_.ledger().made_in(workload_.key.sandbox_id);
  const bool is_new = std::find(made.begin(), made.end(), workload_.key.name) == made.end();
  for (const placement::ContainerKey& key : in_sandbox) {
    const Allocation& other = *deps_.ledger().find(key);
    const bool has_ended = other.is_kept() || other.stopping;
    if (key.name == workload_.key.name || (is_new && has_ended)) continue;
    beside.cpu_milli += other.workload.demand.cpu_request_milli;
    beside.memory_bytes += other.workload.demand.memory_request_bytes;
  }
  return beside;
}

/// The allocations that this create replaces: those of earlier attempts that never ran, and one with the same key. If
/// such a container is started after all, it is placed anew.
std::vector<placement::ContainerKey> CreateContainer::superseded(
    const std::vector<placement::ContainerKey>& in_sandbox) const {
  std::vector<placement::ContainerKey> keys;
  const placement::ContainerKey& key = workload_.key;
  for (const placement::ContainerKey& other : in_sandbox) {
    const Allocation& allocation = *deps_.ledger().find(other);
    const bool never_ran = allocation.phase == Phase::kCreated || allocation.phase == Phase::kInDoubt;
    const bool is_earlier = other.name == key.name && other.attempt < key.attempt;
    if (other == key || (is_earlier && never_ran)) keys.push_back(other);
  }
  return keys;
}

bool CreateContainer::has_earlier_attempt(const std::vector<placement::ContainerKey>& in_sandbox,
                                          const std::vector<placement::ContainerKey>& superseded) const {
  const placement::ContainerKey& key = workload_.key;
  return std::any_of(in_sandbox.begin(), in_sandbox.end(), [&](const placement::ContainerKey& other) {
    const bool counts = std::find(superseded.begin(), superseded.end(), other) == superseded.end();
    return counts && other.name == key.name && other.attempt < key.attempt && !deps_.ledger().find(other)->is_kept();
  });
}

/// The kubelet may know of an exit before topolet does, and asks for the next container at once.
bool CreateContainer::reconcile_first() {
  if (std::exchange(has_reconciled_, true)) return false;
  deps_.reconciler.run([self = shared_from_this()](const Status&) { self->start_placing(); });
  return true;
}

/// The containers that end with this create.
std::vector<placement::ContainerKey> CreateContainer::making_way(
    std::vector<placement::ContainerKey> superseded) const {
  if (const Allocation* init = deps_.ledger().find_ended_init(workload_.key); init != nullptr)
    superseded.push_back(init->workload.key);
  return superseded;
}

Plan CreateContainer::plan(const Ledger& ledger, Time began) const {
  Placer::Constraints constraints;
  constraints.keep = deps_.ledger().former_placement(workload_.key);
  constraints.zone = zone_;
  constraints.zone_is_of_pool = zone_is_of_pool_;
  constraints.plan_began = began;
  return plan_by_zone_and_devices(*deps_.placer.topology(), workload_, constraints,
                                  [&](const Placer::Constraints& constrained) {
                                    return reclaim_and_plan(deps_.placer, ledger, workload_, constrained);
                                  });
}

/// Nothing if nobody has to move. Where the front tells the neighbours, only those that must move do.
std::optional<Plan> CreateContainer::plan_with_room(const Ledger& ledger, Time began, const Plan& without) const {
  if (!may_make_room_ || tells_in_answer()) return std::nullopt;
  const auto plan_in = [&](const Ledger& trial) { return plan(trial, began); };
  return RoomPlanner(ledger, deps_.placer, deps_.committer.wall_time())
      .plan({workload_, zone_, plan_in, began}, without);
}

void CreateContainer::deny(Code code, const placement::Decision& decision) {
  log_warnings();
  deps_.committer.commit(event::Denied{workload_, decision, warnings_},
                         [self = shared_from_this(), error = Error{code, "topolet: " + decision.reason}] {
                           self->operation_->reject(error);
                         });
}

/// Where the front tells the neighbours, only the container's start waits for them.
void CreateContainer::wait_for_neighbours() {
  durable_ = now();
  if (tells_in_answer()) return admit_placed();
  waits_for_room_ = is_room_being_made(deps_.ledger(), workload_.key);
  deps_.mover.await_neighbours(workload_.key, waits_for_room_ ? kRoomTimeout : kNeighboursTimeout,
                               [self = shared_from_this()](const Status& neighbours_gone) {
                                 if (neighbours_gone) return self->admit_placed();
                                 self->neighbours_timed_out(neighbours_gone.error());
                               });
}

void CreateContainer::neighbours_timed_out(const Error& error) {
  const Error kubelet_error{Code::kUnavailable,
                            "topolet: other containers could not be moved off its CPUs: " + error.message};
  const Allocation* allocation = deps_.ledger().find(workload_.key);
  const bool is_pending = allocation != nullptr && allocation->phase == Phase::kPending;
  if (is_pending && waits_for_room_) return place_without_moves(error);
  if (!was_in_doubt_ && may_go_around_neighbours()) return go_around_neighbours();
  if (!was_in_doubt_) return withdraw(kubelet_error, "neighbours-stuck");
  // An earlier try of this create may have made the container.
  if (!is_pending) return operation_->reject(kubelet_error);
  deps_.committer.commit(event::CreateLeftInDoubt{workload_.key, {kubelet_error.code, kubelet_error.message}},
                         [self = shared_from_this(), kubelet_error] { self->operation_->reject(kubelet_error); });
}

/// Who does not leave CPUs is known by now: the next plan goes around that one. What the kubelet says has no next best.
bool CreateContainer::may_go_around_neighbours() const {
  const Allocation* allocation = deps_.ledger().find(workload_.key);
  return detours_ < kMostDetours && allocation != nullptr && workload_.kubelet_cpus.empty() &&
         allocation->dedicated_cpus().intersects(deps_.ledger().barred_for(&workload_.key));
}

void CreateContainer::go_around_neighbours() {
  ++detours_;
  deps_.committer.commit(event::CreateWithdrawn{workload_.key, "neighbours-stuck"},
                         [self = shared_from_this()] { self->start_placing(); });
}

/// Some have not left in time that could have stayed where they are: they do stay there, and it is decided anew. Before
/// they have left, nothing goes to the runtime: not even a create that is in doubt has made the container, if they were
/// moved for it before a restart.
void CreateContainer::place_without_moves(const Error& error) {
  may_make_room_ = false;
  deps_.committer.commit(event::CreateWithdrawn{workload_.key, "neighbours-stuck"});
  withdraw_moves_for_room(deps_, workload_, error.message, [self = shared_from_this()] { self->start_placing(); });
}

void CreateContainer::admit_placed() {
  const Allocation* allocation = deps_.ledger().find(workload_.key);
  if (allocation == nullptr) {
    deps_.mover.end_answer(workload_.key);
    return operation_->reject({Code::kAborted, "topolet: the pod was stopped while its container was being placed"});
  }
  if (operation_->cancelled() && !was_in_doubt_)
    return withdraw({Code::kCancelled, "the caller cancelled the call"}, "cancelled");
  forwarded_ = now();
  // The set may come from a later change than this create; that change must be durable before the set is sent.
  deps_.committer.when_durable(
      allocation->generation,
      [self = shared_from_this(), durable = desired_cpuset_of(*allocation)] { self->admit(durable); });
}

/// Admits only the part of `durable` that it is to have by now: another one may be about to have the rest alone.
void CreateContainer::admit(const ContainerCpuset& durable) {
  const Allocation* allocation = deps_.ledger().find(workload_.key);
  const auto agreed = allocation == nullptr ? std::nullopt : agreed_cpuset(durable, *allocation);
  if (!agreed) return admit_placed();
  sent_ = *agreed;
  std::vector<operations::NeighbourUpdate> neighbours;
  if (tells_in_answer()) neighbours = tell_neighbours();
  allocation = deps_.ledger().find(workload_.key);
  is_sent_as_decided_ = sent_ == desired_cpuset_of(*allocation);
  changes_before_sent_ = deps_.committer.changes_of_pending();
  operation_->admit({sent_, allocation->placement.added, std::move(neighbours)},
                    deps_.awaited_outcomes.await(
                        [self = shared_from_this()](const operations::Outcome& outcome) { self->receive(outcome); }));
}

/// They leave the CPUs at once, but for those that nobody can be sure of. Beside these it is created as one that shares
/// CPUs, and gets its own as soon as it has them alone: from now on the runtime may start it without asking.
std::vector<operations::NeighbourUpdate> CreateContainer::tell_neighbours() {
  std::vector<operations::NeighbourUpdate> neighbours = deps_.mover.neighbours_in_answer(workload_.key);
  if (!deps_.mover.clear_in_kernel(workload_.key, Mover::Unstarted::kMayStart)) sent_.cpus |= deps_.ledger().pool();
  deps_.mover.note_creating(workload_.key, sent_.cpus);
  return neighbours;
}

/// Runs on the front's thread: what was done is answered at once, unless the container must be moved first.
void CreateContainer::receive(const operations::Outcome& outcome) {
  answered_ = now();
  is_answered_ = outcome.is_done() && !was_in_doubt_ && is_sent_as_decided_ &&
                 deps_.committer.changes_of_pending() == changes_before_sent_;
  if (is_answered_) operation_->answer();
  deps_.loop.post([self = shared_from_this(), outcome] { self->on_outcome(outcome); });
}

CreateTimes CreateContainer::times() const {
  const auto between = [](Time from, Time to) {
    return std::chrono::duration_cast<std::chrono::microseconds>(to - from);
  };
  return {between(committed_, durable_), between(durable_, forwarded_), between(forwarded_, answered_)};
}

void CreateContainer::answer() {
  if (!is_answered_) operation_->answer();
}

/// Nothing has gone to the runtime, so nothing is in doubt.
void CreateContainer::withdraw(const Error& error, const char* cause) {
  deps_.mover.end_answer(workload_.key);
  deps_.committer.commit(event::CreateWithdrawn{workload_.key, cause},
                         [self = shared_from_this(), error] { self->operation_->reject(error); });
}

void CreateContainer::on_outcome(const operations::Outcome& outcome) {
  deps_.mover.end_answer(workload_.key);
  if (outcome.is_done()) return on_created(outcome.id);
  on_create_failed(outcome);
}

void CreateContainer::on_created(const std::string& container_id) {
  note_kubelet_late();
  const event::CreateConfirmed confirmed{workload_.key, container_id, sent_, times()};
  const Allocation* allocation = deps_.ledger().find(workload_.key);
  const bool is_as_sent = allocation != nullptr && desired_cpuset_of(*allocation) == sent_;
  if (was_in_doubt_ || !is_as_sent) {
    return deps_.committer.commit(
        confirmed, [self = shared_from_this(), container_id] { self->answer_when_converged(container_id); });
  }
  deps_.committer.commit(confirmed, Urgency::kSoon);
  deps_.mover.open_created(container_id, sent_);
  answer();
  deps_.rebalancer.catch_up(workload_.key);
}

/// Answers once it has what changed while the create was in flight.
void CreateContainer::answer_when_converged(const std::string& container_id) {
  // An earlier try of this create may have made it, elsewhere.
  if (!deps_.mover.has_queue(container_id)) {
    deps_.mover.open_queue(container_id, was_in_doubt_ ? std::nullopt : std::optional<ContainerCpuset>(sent_));
  }
  deps_.rebalancer.catch_up(workload_.key);
  deps_.mover.when_converged(container_id, kCatchUpTimeout,
                             [self = shared_from_this()](const Status&) { self->answer(); });
}

/// A container that was found meanwhile stays bound, whatever the retry was answered. A refused retry proves nothing
/// about the first create: a runtime that still works on that one refuses the retry because the name is taken.
void CreateContainer::on_create_failed(const operations::Outcome& outcome) {
  const auto then = [self = shared_from_this()] { self->answer(); };
  const Allocation* allocation = deps_.ledger().find(workload_.key);
  if (allocation == nullptr || allocation->phase != Phase::kPending) return deps_.committer.when_durable(then);
  const CallError error{outcome.code, without_values(outcome.message, workload_.env)};
  note_refused_class(*allocation, error.message);
  if (was_in_doubt_ || outcome.kind == operations::Outcome::Kind::kUnknown) {
    return deps_.committer.commit(event::CreateLeftInDoubt{workload_.key, error, times()}, then);
  }
  deps_.committer.commit(event::CreateRefused{workload_.key, error, times()}, then);
}

void CreateContainer::note_refused_class(const Allocation& allocation, const std::string& message) {
  const std::shared_ptr<RdtClasses>& classes = deps_.placer.deps().rdt_classes;
  const std::string& name = allocation.placement.added.rdt_class;
  if (name.empty() || classes == nullptr || !classes->note_refusal(name, message)) return;
  deps_.log.warn(
      "the runtime refused a container of the RDT class '{}', which a plugin had set: no container is put into it any "
      "more until topoletd restarts",
      name);
}

}  // namespace topolet::engine
