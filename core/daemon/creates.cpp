#include "core/daemon/creates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/daemon/holds.hpp"
#include "core/placement/settings.hpp"

namespace topolet {
namespace {

/// How long a create waits for its neighbours to leave the CPUs it was given.
constexpr std::chrono::seconds kNeighboursTimeout{20};
/// How long the answer to a create waits for an update that fell due while it was in flight. StartContainer waits on.
constexpr std::chrono::seconds kCatchUpTimeout{2};

std::string_view event_of(const Decision& decision) {
  if (decision.conflict) return "conflict";
  return decision.unpinned ? "unpinned" : "placed";
}

}  // namespace

bool leaves_doubt(Code code) {
  return code == Code::kCancelled || code == Code::kDeadlineExceeded || code == Code::kUnavailable;
}

void Creates::handle(const std::shared_ptr<Call>& call) {
  Result<Workload> workload = read_create_container(call->request(), room_.demand_rules);
  if (!workload) return call->reject(workload.error());
  auto creation = std::make_shared<Creation>();
  creation->call = call;
  creation->workload = *std::move(workload);
  identify(*creation);
  if (!room_.sandboxes.places(creation->workload.runtime_handler)) return pass_foreign(creation);
  if (const Status taken = take_settings(*creation); !taken) {
    Decision bad;
    bad.reason = taken.error().message;
    return deny(creation, taken.error().code, bad);
  }
  consider(creation);
}

/// A request need not repeat who the pod is.
void Creates::identify(Creation& creation) const {
  Workload& workload = creation.workload;
  const Sandbox* sandbox = room_.sandboxes.find(workload.key.sandbox_id);
  if (sandbox == nullptr) return;
  workload.runtime_handler = sandbox->runtime_handler;
  workload.key.sandbox_id = sandbox->id;
  if (workload.pod_annotations.empty()) workload.pod_annotations = sandbox->annotations;
  if (!workload.key.pod_uid.empty()) return;
  workload.key.pod_uid = sandbox->pod_uid;
  workload.pod_name = sandbox->pod_name;
  workload.pod_namespace = sandbox->pod_namespace;
}

Status Creates::take_settings(Creation& creation) const {
  Result<Settings> settings = read_settings(creation.workload, room_.placer.rules().annotations);
  if (!settings) return settings.error();
  creation.workload.settings = std::move(settings->values);
  for (const std::string& name : settings->not_permitted) {
    creation.note += fmt::format("; annotation {}{} does not count: placement.annotations does not permit it",
                                 kAnnotationPrefix, name);
  }
  return {};
}

void Creates::consider(const CreationPtr& creation) {
  if (creation->call->cancelled()) return creation->call->reject({Code::kCancelled, "the caller has gone"});
  const ContainerKey& key = creation->workload.key;
  if (const Holding* holding = room_.bookings.ledger().find(key); holding != nullptr) {
    if (holding->state != HoldingState::kCrashed) return resume(creation, *holding);
    // Made by hand a second time under the same name, without a new attempt.
    room_.bookings.release(key, "superseded");
  }
  decide(creation);
}

void Creates::pass_foreign(const CreationPtr& creation) {
  creation->call->forward("", [this, creation](const Answer& answer) {
    room_.loop.post([this, creation, answer] {
      const auto id = read_create_container_answer(answer.body);
      if (answer.code == Code::kOk && id) {
        Decision decision;
        decision.placement.mode = Mode::kForeign;
        const CpuSet& kubelets = creation->workload.kubelet_cpus;
        if (whole_cpus(creation->workload) == kubelets.size()) decision.placement.cpus = kubelets;
        decision.reason = "runtime handler '" + creation->workload.runtime_handler + "' is not placed";
        ContainerInfo container;
        container.id = *id;
        room_.bookings.place_bound(creation->workload, decision, "foreign", container);
      }
      creation->call->finish();
    });
  });
}

/// A create of a key that is held already: the retry of one that ended in doubt, or of one whose answer was lost.
void Creates::resume(const CreationPtr& creation, const Holding& holding) {
  if (holding.state == HoldingState::kInFlight) {
    return creation->call->reject(
        {Code::kAborted, fmt::format("container {} of pod {} is being created by another call; try again when that has "
                                     "ended",
                                     holding.workload.key.name, holding.workload.pod_name)});
  }
  creation->was_in_doubt = true;
  if (holding.state == HoldingState::kInDoubt) room_.bookings.take_over(holding.workload.key);
  forward(creation);
}

/// An attempt that never ran holds nothing against the next one. Should it be started after all, it is placed anew.
void Creates::release_earlier_attempts(const ContainerKey& key) {
  for (const ContainerKey& other : room_.bookings.ledger().in_sandbox(key.sandbox_id)) {
    const Holding* holding = room_.bookings.ledger().find(other);
    const bool earlier = other.name == key.name && other.attempt < key.attempt;
    if (!earlier || holding == nullptr || holding->started || holding->state == HoldingState::kInFlight ||
        holding->state == HoldingState::kCrashed) {
      continue;
    }
    room_.bookings.release(other, "superseded");
  }
}

bool Creates::has_earlier_attempt(const ContainerKey& key) const {
  const Ledger& ledger = room_.bookings.ledger();
  const auto keys = ledger.in_sandbox(key.sandbox_id);
  return std::any_of(keys.begin(), keys.end(), [&](const ContainerKey& other) {
    return other.name == key.name && other.attempt < key.attempt && ledger.find(other)->state != HoldingState::kCrashed;
  });
}

/// The kubelet may know of an exit before topolet does, and asks for the next container at once.
bool Creates::ask_runtime_first(const CreationPtr& creation) {
  if (std::exchange(creation->asked_runtime, true)) return false;
  reconcile([this, creation] { consider(creation); });
  return true;
}

void Creates::decide(const CreationPtr& creation) {
  Workload& workload = creation->workload;
  release_earlier_attempts(workload.key);
  if (has_earlier_attempt(workload.key) && ask_runtime_first(creation)) return;
  workload.pod_nodes = room_.sandboxes.nodes_of_pod(workload.key.pod_uid, workload.key.sandbox_id);
  Placer::Terms terms;
  terms.keep = room_.bookings.last_of(workload.key);
  Plan plan;
  if (creation->asked_runtime) {
    plan = plan_over_holds(room_, workload, terms);
  } else {
    plan = room_.placer.plan(room_.bookings.ledger(), workload, terms);
    if (plan.lacks_cpus() && ask_runtime_first(creation)) return;
  }
  plan.decision.reason += creation->note;
  if (plan.decision.denied) return deny(creation, Code::kResourceExhausted, plan.decision);
  book_moves(room_, plan);
  const Decision& decision = plan.decision;
  const std::vector<std::string> in_the_way = room_.bookings.place(workload, decision, event_of(decision));
  if (!decision.unpinned) keep_pod_together(workload, decision.nodes);
  room_.log.info("{}/{}/{}: {} on CPUs {}: {}", workload.pod_namespace, workload.pod_name, workload.key.name,
                 to_string(decision.placement.mode), decision.placement.cpus.to_string(), decision.reason);
  room_.lanes.when_all_settled(in_the_way, kNeighboursTimeout, [this, creation](const Status& status) {
    if (status) return forward(creation);
    withdraw(creation,
             {Code::kUnavailable, "topolet: the neighbours could not be moved off its CPUs: " + status.error().message},
             "neighbours-stuck");
  });
}

void Creates::deny(const CreationPtr& creation, Code code, const Decision& decision) {
  const Workload& workload = creation->workload;
  room_.bookings.deny(workload, decision);
  room_.log.warn("{}/{}/{}: denied: {}", workload.pod_namespace, workload.pod_name, workload.key.name, decision.reason);
  creation->call->reject({code, "topolet: " + decision.reason});
}

/// What the policies gave the pod's first container counts for the others, if the pod's resources are known: only then
/// was it chosen for the whole pod.
void Creates::keep_pod_together(const Workload& workload, const NodeSet& nodes) {
  if (!workload.pod_demand || !workload.pod_nodes.empty() || nodes.empty()) return;
  room_.sandboxes.set_nodes_of_pod(workload.key.pod_uid, workload.key.sandbox_id, nodes);
}

/// Nothing has gone to the runtime, so nothing is in doubt.
void Creates::withdraw(const CreationPtr& creation, const Error& error, const char* cause) {
  room_.bookings.release(creation->workload.key, cause);
  creation->call->reject(error);
}

void Creates::forward(const CreationPtr& creation) {
  const Holding* holding = room_.bookings.ledger().find(creation->workload.key);
  if (holding == nullptr) {
    return creation->call->reject(
        {Code::kAborted, "topolet: the pod was stopped while its container was being placed"});
  }
  if (creation->call->cancelled() && !creation->was_in_doubt) {
    return withdraw(creation, {Code::kCancelled, "the caller has gone"}, "cancelled");
  }
  creation->sent = Bookings::target_of(*holding);
  creation->call->forward(patch_create_container(creation->sent.cpus, creation->sent.mems, holding->placement.added),
                          [this, creation](const Answer& answer) {
                            room_.loop.post([this, creation, answer] { answered(creation, answer); });
                          });
}

void Creates::answered(const CreationPtr& creation, const Answer& answer) {
  const ContainerKey& key = creation->workload.key;
  const Holding* holding = room_.bookings.ledger().find(key);
  if (answer.code == Code::kOk) return finish_bound(creation, answer);
  // A container found meanwhile is bound whatever a retry was told, and a refused retry proves nothing about the
  // create before it: a runtime that is still at work on that one answers that the name is taken.
  if (holding != nullptr && holding->state == HoldingState::kInFlight) {
    if (creation->was_in_doubt || leaves_doubt(answer.code)) {
      room_.bookings.in_doubt(key, answer);
    } else {
      room_.bookings.no(key, answer);
    }
  }
  creation->call->finish();
}

void Creates::finish_bound(const CreationPtr& creation, const Answer& answer) {
  const auto id = read_create_container_answer(answer.body);
  if (!id) {
    room_.log.error("CreateContainer: {}", id.error().message);
    room_.bookings.in_doubt(creation->workload.key, answer);
    return creation->call->finish();
  }
  room_.bookings.yes(creation->workload.key, *id, creation->sent);
  bound(creation->workload.key);
  room_.lanes.when_settled(*id, kCatchUpTimeout, [creation](const Status&) { creation->call->finish(); });
}

}  // namespace topolet
