#include "core/engine/handlers/create_container.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/engine/planning/crash_retention.hpp"
#include "core/placement/settings.hpp"

namespace topolet::engine {
namespace {

/// How long a create waits for its neighbours to leave the CPUs it was given.
constexpr std::chrono::seconds kNeighboursTimeout{20};
/// How long the answer to a create waits for an update that fell due while it was in flight. StartContainer waits on.
constexpr std::chrono::seconds kCatchUpTimeout{2};

bool asks_for_the_same(const Workload& a, const Workload& b) {
  return a.demand == b.demand && a.kubelet_cpus == b.kubelet_cpus && a.kubelet_mems == b.kubelet_mems &&
         a.settings == b.settings;
}

}  // namespace

void CreateContainer::handle(const HandlerDeps& deps, const std::shared_ptr<Call>& call) {
  std::shared_ptr<CreateContainer>(new CreateContainer(deps, call))->read();
}

void CreateContainer::read() {
  Result<Workload> workload = read_create_container(call_->request(), deps_.demand_rules);
  if (!workload) return call_->reject(workload.error());
  workload_ = *std::move(workload);
  identify();
  const auto& placed = deps_.placed_handlers;
  if (std::find(placed.begin(), placed.end(), workload_.runtime_handler) == placed.end()) return pass_foreign();
  if (const Status read = read_annotations(); !read) {
    Decision bad;
    bad.reason = read.error().message;
    return deny(read.error().code, bad);
  }
  consider();
}

/// A request need not repeat who the pod is.
void CreateContainer::identify() {
  const Pod* pod = deps_.ledger().find_pod(workload_.key.sandbox_id);
  if (pod == nullptr) return;
  const Sandbox& sandbox = pod->sandbox;
  workload_.runtime_handler = sandbox.runtime_handler;
  workload_.key.sandbox_id = sandbox.id;
  if (workload_.pod_annotations.empty()) workload_.pod_annotations = sandbox.annotations;
  if (!workload_.key.pod_uid.empty()) return;
  workload_.key.pod_uid = sandbox.pod_uid;
  workload_.pod_name = sandbox.pod_name;
  workload_.pod_namespace = sandbox.pod_namespace;
}

Status CreateContainer::read_annotations() {
  Result<Settings> settings = read_settings(workload_, deps_.placer.rules().annotations);
  if (!settings) return settings.error();
  workload_.settings = std::move(settings->values);
  for (const std::string& name : settings->not_permitted) {
    note_ += fmt::format("; annotation {}{} does not count: placement.annotations does not permit it",
                         kAnnotationPrefix, name);
  }
  return {};
}

void CreateContainer::pass_foreign() {
  forward(deps_, call_, "", [self = shared_from_this()](const Answer& answer) { self->commit_foreign(answer); });
}

void CreateContainer::commit_foreign(const Answer& answer) {
  const auto id = read_create_container_answer(answer.body);
  if (answer.code != Code::kOk || !id) return call_->finish();
  Plan plan;
  plan.decision.placement.mode = Mode::kForeign;
  const CpuSet& kubelets = workload_.kubelet_cpus;
  if (whole_cpus(workload_) == kubelets.size()) plan.decision.placement.cpus = kubelets;
  plan.decision.reason = "runtime handler '" + workload_.runtime_handler + "' is not placed";
  ContainerInfo container;
  container.id = *id;
  container.state = ContainerState::kCreated;
  deps_.committer.commit(event::Adopted{workload_, plan, container, "foreign", {}, {}},
                         [self = shared_from_this()] { self->call_->finish(); });
}

void CreateContainer::consider() {
  if (call_->cancelled()) return call_->reject({Code::kCancelled, "the caller has gone"});
  was_in_doubt_ = false;
  const Allocation* held = deps_.ledger().find(workload_.key);
  if (held != nullptr && held->phase != Phase::kCrashed) return repeat(*held);
  decide();
}

/// A create of a key that is held already: the retry of one that ended in doubt, or of one whose answer was lost.
void CreateContainer::repeat(const Allocation& held) {
  if (held.phase == Phase::kPending) {
    return call_->reject(
        {Code::kAborted, fmt::format("container {} of pod {} is being created by another call; try again when that has "
                                     "ended",
                                     held.workload.key.name, held.workload.pod_name)});
  }
  was_in_doubt_ = true;
  // The pod was resized meanwhile: what was decided is for another request.
  if (held.phase == Phase::kInDoubt && !asks_for_the_same(held.workload, workload_)) return decide();
  deps_.committer.commit(event::CreateRetried{workload_.key},
                         [self = shared_from_this()] { self->wait_for_neighbours(); });
}

/// Attempts that never ran hold nothing against the next one, nor does one that is made a second time under its own
/// name. Should such a container be started after all, it is placed anew.
std::vector<ContainerKey> CreateContainer::superseded(const std::vector<ContainerKey>& in_sandbox) const {
  std::vector<ContainerKey> keys;
  const ContainerKey& key = workload_.key;
  for (const ContainerKey& other : in_sandbox) {
    const Allocation& held = *deps_.ledger().find(other);
    const bool never_ran = held.phase == Phase::kCreated || held.phase == Phase::kInDoubt;
    const bool is_earlier = other.name == key.name && other.attempt < key.attempt;
    if (other == key || (is_earlier && never_ran)) keys.push_back(other);
  }
  return keys;
}

bool CreateContainer::has_earlier_attempt(const std::vector<ContainerKey>& in_sandbox,
                                          const std::vector<ContainerKey>& superseded) const {
  const ContainerKey& key = workload_.key;
  return std::any_of(in_sandbox.begin(), in_sandbox.end(), [&](const ContainerKey& other) {
    const bool counts = std::find(superseded.begin(), superseded.end(), other) == superseded.end();
    return counts && other.name == key.name && other.attempt < key.attempt &&
           deps_.ledger().find(other)->phase != Phase::kCrashed;
  });
}

/// The kubelet may know of an exit before topolet does, and asks for the next container at once.
bool CreateContainer::ask_runtime_first() {
  if (std::exchange(asked_runtime_, true)) return false;
  deps_.reconciler.run([self = shared_from_this()](const Status&) { self->consider(); });
  return true;
}

Plan CreateContainer::plan(const std::vector<ContainerKey>& superseded) const {
  Placer::Terms terms;
  terms.keep = deps_.ledger().former_placement(workload_.key);
  std::optional<Ledger> trial;
  const Ledger& ledger = without(deps_.ledger(), superseded, trial);
  return asked_runtime_ ? plan_with_reclaim(deps_.placer, ledger, workload_, terms)
                        : deps_.placer.plan(ledger, workload_, terms);
}

void CreateContainer::decide() {
  const std::vector<ContainerKey> in_sandbox = deps_.ledger().in_sandbox(workload_.key.sandbox_id);
  const std::vector<ContainerKey> superseded = this->superseded(in_sandbox);
  if (has_earlier_attempt(in_sandbox, superseded) && ask_runtime_first()) return;
  workload_.pod_nodes = deps_.ledger().nodes_of_pod(workload_.key.pod_uid, workload_.key.sandbox_id);
  Plan plan = this->plan(superseded);
  if (plan.lacks_cpus() && ask_runtime_first()) return;
  plan.decision.reason += note_;
  if (plan.decision.denied) return deny(Code::kResourceExhausted, plan.decision);
  // What the policies gave the pod's first container counts for the others, if the pod's resources are known: only then
  // was it chosen for the whole pod.
  const bool is_first_of_pod = workload_.pod_demand && workload_.pod_nodes.empty() && !plan.decision.nodes.empty();
  const bool keeps_pod_together = is_first_of_pod && !plan.decision.unpinned;
  deps_.committer.commit(event::CreateAsked{workload_, std::move(plan), superseded, keeps_pod_together},
                         [self = shared_from_this()] { self->wait_for_neighbours(); });
}

void CreateContainer::deny(Code code, const Decision& decision) {
  deps_.committer.commit(
      event::CreateDenied{workload_, decision},
      [self = shared_from_this(), error = Error{code, "topolet: " + decision.reason}] { self->call_->reject(error); });
}

void CreateContainer::wait_for_neighbours() {
  deps_.mover.await_clear(workload_.key, kNeighboursTimeout, [self = shared_from_this()](const Status& clear) {
    if (clear) return self->forward_placed();
    self->neighbours_are_stuck(clear.error());
  });
}

void CreateContainer::neighbours_are_stuck(const Error& error) {
  const Error told{Code::kUnavailable, "topolet: the neighbours could not be moved off its CPUs: " + error.message};
  if (!was_in_doubt_) return withdraw(told, "neighbours-stuck");
  // An earlier try of this create may have made the container.
  const Allocation* held = deps_.ledger().find(workload_.key);
  if (held == nullptr || held->phase != Phase::kPending) return call_->reject(told);
  deps_.committer.commit(event::CreateLeftInDoubt{workload_.key, {told.code, told.message}},
                         [self = shared_from_this(), told] { self->call_->reject(told); });
}

void CreateContainer::forward_placed() {
  const Allocation* held = deps_.ledger().find(workload_.key);
  if (held == nullptr) {
    return call_->reject({Code::kAborted, "topolet: the pod was stopped while its container was being placed"});
  }
  if (call_->cancelled() && !was_in_doubt_) return withdraw({Code::kCancelled, "the caller has gone"}, "cancelled");
  // It may come from a later change than its own, which must be durable before it leaves.
  sent_ = target_of(*held);
  deps_.committer.after_all([self = shared_from_this(), added = held->placement.added] {
    forward(self->deps_, self->call_, patch_create_container(self->sent_.cpus, self->sent_.mems, added),
            [self](const Answer& answer) { self->answered(answer); });
  });
}

/// Nothing has gone to the runtime, so nothing is in doubt.
void CreateContainer::withdraw(const Error& error, const char* cause) {
  deps_.committer.commit(event::CreateWithdrawn{workload_.key, cause},
                         [self = shared_from_this(), error] { self->call_->reject(error); });
}

void CreateContainer::answered(const Answer& answer) {
  if (answer.code == Code::kOk) return confirmed(answer);
  refused(answer);
}

void CreateContainer::confirmed(const Answer& answer) {
  const auto id = read_create_container_answer(answer.body);
  if (!id) {
    deps_.log.error("CreateContainer: {}", id.error().message);
    return deps_.committer.commit(event::CreateLeftInDoubt{workload_.key, {answer.code, id.error().message}},
                                  [self = shared_from_this()] { self->call_->finish(); });
  }
  deps_.committer.commit(event::CreateConfirmed{workload_.key, *id, sent_},
                         [self = shared_from_this(), id = *id] { self->follow_up(id); });
}

/// What changed while the create was in flight.
void CreateContainer::follow_up(const std::string& container_id) {
  // An earlier try of this create may have made it, elsewhere.
  if (!deps_.mover.has(container_id)) {
    deps_.mover.open(container_id, was_in_doubt_ ? std::nullopt : std::optional<CpusetTarget>(sent_));
  }
  deps_.rebalancer.catch_up(workload_.key);
  deps_.mover.when_converged(container_id, kCatchUpTimeout,
                             [self = shared_from_this()](const Status&) { self->call_->finish(); });
}

/// A container found meanwhile is bound whatever a retry was told, and a refused retry proves nothing about the create
/// before it: a runtime that is still at work on that one answers that the name is taken.
void CreateContainer::refused(const Answer& answer) {
  const auto finish = [self = shared_from_this()] { self->call_->finish(); };
  const Allocation* held = deps_.ledger().find(workload_.key);
  if (held == nullptr || held->phase != Phase::kPending) return deps_.committer.after_all(finish);
  const Refusal refusal{answer.code, answer.message};
  if (was_in_doubt_ || leaves_doubt(answer.code)) {
    return deps_.committer.commit(event::CreateLeftInDoubt{workload_.key, refusal}, finish);
  }
  deps_.committer.commit(event::CreateRefused{workload_.key, refusal}, finish);
}

}  // namespace topolet::engine
