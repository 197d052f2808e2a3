#include "core/daemon/lifecycle.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/daemon/creates.hpp"
#include "core/daemon/holds.hpp"

namespace topolet {
namespace {

/// Short, as the container's own lane is taken meanwhile: two that wait for each other must not wait long.
constexpr std::chrono::seconds kNeighboursTimeout{3};
/// How long the CPUs that an update left are kept for it, should the update have failed on the way.
constexpr std::chrono::minutes kMoveTimeout{10};

}  // namespace

/// The full id of a container that is held; the id as it came for any other.
std::string Lifecycle::full_id(const std::string& container_id) const {
  const Holding* holding = room_.bookings.ledger().find_by_container(container_id);
  return holding != nullptr ? holding->container_id : container_id;
}

std::string Lifecycle::full_sandbox_id(const std::string& sandbox_id) const {
  const Sandbox* sandbox = room_.sandboxes.find(sandbox_id);
  return sandbox != nullptr ? sandbox->id : sandbox_id;
}

void Lifecycle::pass(const std::shared_ptr<Call>& call, std::function<void(const Answer&)> then) {
  call->forward("", [this, call, then = std::move(then)](const Answer& answer) {
    room_.loop.post([call, then, answer] {
      then(answer);
      call->finish();
    });
  });
}

/// What makes, starts or changes no container is refused by the runtime, in its own words.
void Lifecycle::pass_unread(const std::shared_ptr<Call>& call) {
  pass(call, [](const Answer&) {});
}

void Lifecycle::run_pod_sandbox(const std::shared_ptr<Call>& call) {
  Result<Sandbox> sandbox = read_run_pod_sandbox(call->request());
  if (!sandbox) return pass_unread(call);
  pass(call, [this, sandbox = *std::move(sandbox)](const Answer& answer) {
    if (answer.code != Code::kOk) return;
    const auto id = read_run_pod_sandbox_answer(answer.body);
    if (!id) return room_.log.error("RunPodSandbox: {}", id.error().message);
    Sandbox known = sandbox;
    known.id = *id;
    room_.sandboxes.put(known);
  });
}

void Lifecycle::release_sandbox(const std::string& sandbox_id, const std::string& cause) {
  for (const ContainerKey& key : room_.bookings.ledger().in_sandbox(sandbox_id)) {
    const Holding* holding = room_.bookings.ledger().find(key);
    if (holding != nullptr && holding->state == HoldingState::kBound) room_.effect.forget(holding->container_id);
    room_.bookings.release(key, cause);
  }
}

void Lifecycle::stop_pod_sandbox(const std::shared_ptr<Call>& call) {
  const Result<std::string> id = read_target_id(call->request());
  if (!id) return pass_unread(call);
  pass(call, [this, id = full_sandbox_id(*id)](const Answer& answer) {
    if (answer.code == Code::kOk) release_sandbox(id, "pod-stopped");
  });
}

void Lifecycle::remove_pod_sandbox(const std::shared_ptr<Call>& call) {
  const Result<std::string> id = read_target_id(call->request());
  if (!id) return pass_unread(call);
  pass(call, [this, id = full_sandbox_id(*id)](const Answer& answer) {
    if (answer.code != Code::kOk) return;
    release_sandbox(id, "removed");
    room_.sandboxes.remove(id);
  });
}

void Lifecycle::start_container(const std::shared_ptr<Call>& call) {
  const Result<std::string> target = read_target_id(call->request());
  if (!target) return call->reject(target.error());
  if (room_.bookings.ledger().find_by_container(*target) != nullptr) return start_known(call, full_id(*target));
  // Made past topolet, or by a create whose answer was lost: it must have its place before it runs.
  reconcile([this, call, id = *target] { start_known(call, full_id(id)); });
}

void Lifecycle::start_known(const std::shared_ptr<Call>& call, const std::string& id) {
  const auto start = [this, call, id](const Status& status, const Lanes::OperationDone& done) {
    if (!status) {
      call->reject({Code::kUnavailable, fmt::format("topolet: container {} does not start before its CPUs are set: {}",
                                                    id, status.error().message)});
      return done(false);
    }
    if (call->cancelled()) {
      call->reject({Code::kCancelled, "the caller has gone"});
      return done(false);
    }
    call->forward("", [this, call, id, done](const Answer& answer) {
      room_.loop.post([this, call, id, done, answer] {
        started(call, id, answer);
        done(false);
        verify(id);
      });
    });
  };
  if (!room_.lanes.run(id, Lanes::Needs::kSettled, start)) pass(call, [](const Answer&) {});
}

void Lifecycle::started(const std::shared_ptr<Call>& call, const std::string& id, const Answer& answer) {
  const Holding* holding = room_.bookings.ledger().find_by_container(id);
  const bool may_run = answer.code == Code::kOk || leaves_doubt(answer.code);
  if (holding != nullptr && may_run) room_.bookings.started(holding->workload.key);
  call->finish();
}

void Lifecycle::verify(const std::string& container_id) {
  room_.effect.inspect(container_id, [this, container_id](const Result<ContainerDetail>& detail) {
    if (!detail) return;
    if (detail->info.state == ContainerState::kExited) return exited_with(container_id, detail->info.exit_code);
    const auto confirmed = room_.lanes.confirmed(container_id);
    const Holding* holding = room_.bookings.ledger().find_by_container(container_id);
    if (!confirmed || holding == nullptr) return;
    if (detail->info.state == ContainerState::kRunning) room_.bookings.started(holding->workload.key);
    Status right = room_.effect.check(container_id, *confirmed);
    if (right && !detail->spec_cpus.empty() && detail->spec_cpus != confirmed->cpus) {
      right = Error{Code::kInternal, fmt::format("the runtime has it on CPUs {} instead of {}",
                                                 detail->spec_cpus.to_string(), confirmed->cpus.to_string())};
    }
    if (right) return;
    room_.log.warn("container {}: {}; setting it again", container_id, right.error().message);
    room_.bookings.remark(*holding, "drift", right.error().message);
    room_.lanes.disturb(container_id);
  });
}

void Lifecycle::glance(const std::string& container_id) {
  const auto confirmed = room_.lanes.confirmed(container_id);
  if (confirmed && !room_.effect.check(container_id, *confirmed)) verify(container_id);
}

void Lifecycle::stop_container(const std::shared_ptr<Call>& call) {
  const Result<std::string> target = read_target_id(call->request());
  if (!target) return pass_unread(call);
  const std::string id = full_id(*target);
  if (room_.bookings.ledger().find_by_container(id) != nullptr) stopping_.insert(id);
  call->forward("", [this, call, id](const Answer& answer) {
    room_.loop.post([this, call, id, answer] {
      const bool held = room_.bookings.ledger().find_by_container(id) != nullptr;
      if (answer.code == Code::kOk && held) return stopped(call, id);
      // One that is perhaps still being stopped has not failed when it exits.
      if (!held || !leaves_doubt(answer.code)) stopping_.erase(id);
      call->finish();
    });
  });
}

/// Stopping a container that never ran leaves it as it is, and it may yet be started: only one that has exited gives
/// its CPUs back.
void Lifecycle::stopped(const std::shared_ptr<Call>& call, const std::string& container_id) {
  room_.effect.inspect(container_id, [this, call, container_id](const Result<ContainerDetail>& detail) {
    const bool gone = !detail && detail.error().code == Code::kNotFound;
    if (gone || (detail && detail->info.state == ContainerState::kExited)) ended(container_id, "stopped");
    stopping_.erase(container_id);
    call->finish();
  });
}

void Lifecycle::remove_container(const std::shared_ptr<Call>& call) {
  const Result<std::string> id = read_target_id(call->request());
  if (!id) return pass_unread(call);
  pass(call, [this, id = full_id(*id)](const Answer& answer) {
    if (answer.code != Code::kOk) return;
    // What is kept for the next attempt of a container that failed stays without the container.
    const Holding* holding = room_.bookings.ledger().find_by_container(id);
    if (holding == nullptr || holding->state != HoldingState::kCrashed) ended(id, "removed");
  });
}

bool Lifecycle::keeps_cpus_after_crash(const Holding& holding) const {
  return room_.placer.rules().crash_hold.count() > 0 && holding.placement.mode == Mode::kExclusive &&
         holding.workload.kubelet_cpus.empty();
}

void Lifecycle::exited(const std::string& container_id, std::function<void()> done) {
  const Holding* holding = room_.bookings.ledger().find_by_container(container_id);
  if (holding == nullptr || holding->state != HoldingState::kBound) return done();
  const bool stopping = stopping_.count(container_id) != 0;
  if (stopping || !keeps_cpus_after_crash(*holding)) {
    ended(container_id, stopping ? "stopped" : "exited");
    return done();
  }
  room_.effect.inspect(container_id,
                       [this, container_id, done = std::move(done)](const Result<ContainerDetail>& detail) {
                         if (!detail && detail.error().code == Code::kNotFound) ended(container_id, "gone");
                         // Where the runtime does not answer, the next reconciliation asks again.
                         if (detail && detail->info.state == ContainerState::kExited)
                           exited_with(container_id, detail->info.exit_code);
                         done();
                       });
}

void Lifecycle::exited_with(const std::string& container_id, std::int32_t exit_code) {
  const Holding* holding = room_.bookings.ledger().find_by_container(container_id);
  if (holding == nullptr || holding->state != HoldingState::kBound) return;
  if (stopping_.count(container_id) != 0) return ended(container_id, "stopped");
  if (exit_code == 0 || !keeps_cpus_after_crash(*holding)) return ended(container_id, "exited");
  room_.effect.forget(container_id);
  room_.bookings.crash(ContainerKey(holding->workload.key), exit_code);
}

void Lifecycle::ended(const std::string& container_id, const std::string& cause) {
  room_.effect.forget(container_id);
  stopping_.erase(container_id);
  const Holding* holding = room_.bookings.ledger().find_by_container(container_id);
  if (holding != nullptr) room_.bookings.release(ContainerKey(holding->workload.key), cause);
}

Result<Lifecycle::Booked> Lifecycle::book_update(const Holding& before, const UpdateRequest& update) {
  Workload workload = before.workload;
  workload.demand = apply_update(workload.demand, update);
  workload.pod_nodes = room_.sandboxes.nodes_of_pod(workload.key.pod_uid, workload.key.sandbox_id);
  Workload bound = workload;
  if (!update.cpus.empty()) bound.kubelet_cpus = update.cpus;
  if (!update.mems.empty()) bound.kubelet_mems = update.mems;
  const bool keeps_its_own = before.placement.mode == Mode::kExclusive && !update.cpus.empty() &&
                             before.placement.cpus.is_subset_of(update.cpus);
  const bool new_bound = bound.kubelet_cpus != before.workload.kubelet_cpus ||
                         bound.kubelet_mems != before.workload.kubelet_mems || before.conflict;
  if (!new_bound || keeps_its_own || bound.kubelet_cpus.empty()) return book_resize(before, workload);
  Plan plan = room_.placer.plan(room_.bookings.ledger(), bound);
  const char* event = plan.decision.conflict ? "conflict" : "re-placed";
  return book_move(before, bound, std::move(plan), event);
}

/// A resize keeps the mode, but for a container that asks for whole CPUs no more.
Result<Lifecycle::Booked> Lifecycle::book_resize(const Holding& before, const Workload& workload) {
  const std::uint32_t cpus = cpus_of_its_own(workload, room_.placer.rules());
  if (gets_new_size(before, workload, cpus)) return book_new_size(before, workload, cpus);
  const bool own = before.placement.mode == Mode::kExclusive && before.workload.kubelet_cpus.empty();
  const bool later = !own && cpus > 0 && before.workload.kubelet_cpus.empty();
  room_.bookings.resize(
      before.workload.key, workload.demand,
      later ? "new resources; it gets CPUs of its own when it is next made" : "new resources; the CPUs stay");
  return Booked{};
}

bool Lifecycle::gets_new_size(const Holding& before, const Workload& workload, std::uint32_t cpus) {
  const bool own = before.placement.mode == Mode::kExclusive && before.workload.kubelet_cpus.empty();
  const bool same = workload.demand.cpu_request_milli == before.workload.demand.cpu_request_milli;
  return own && !same && cpus != before.placement.cpus.size();
}

void Lifecycle::recall(const ContainerKey& key, Recalled recalled) {
  const Holding* held = room_.bookings.ledger().find(key);
  if (held == nullptr) return recalled(std::nullopt);
  room_.effect.inspect(held->container_id, [this, key, recalled](const Result<ContainerDetail>& detail) {
    const Holding* now = room_.bookings.ledger().find(key);
    const bool has_exited = detail && detail->info.state == ContainerState::kExited;
    // Meanwhile it may have ended, or failed and left its CPUs to its next attempt.
    if (now == nullptr || now->state != HoldingState::kBound || has_exited) return recalled(std::nullopt);
    Holding holding = *now;
    if (detail && detail->workload) {
      holding.workload.env = detail->workload->env;
      holding.workload.devices = detail->workload->devices;
      holding.workload.cdi_devices = detail->workload->cdi_devices;
      holding.workload.annotations = detail->workload->annotations;
    }
    recalled(std::move(holding));
  });
}

Result<Lifecycle::Booked> Lifecycle::book_new_size(const Holding& before, const Workload& workload,
                                                   std::uint32_t cpus) {
  Placer::Terms terms;
  terms.only_shared = cpus == 0;
  terms.keep = before.placement;
  terms.must_keep = true;
  Plan plan = plan_over_holds(room_, workload, terms);
  if (plan.decision.denied) {
    plan.decision.reason = "it cannot be resized: " + plan.decision.reason;
    room_.bookings.deny(workload, plan.decision);
    return Error{Code::kResourceExhausted, "topolet: " + plan.decision.reason};
  }
  return book_move(before, workload, std::move(plan), "resized");
}

/// Until the runtime has answered it runs where it was, and may have to stay there: CPUs that it had for itself are
/// withheld until it has left them.
Lifecycle::Booked Lifecycle::book_move(const Holding& before, const Workload& workload, Plan plan,
                                       std::string_view event) {
  Placement& placement = plan.decision.placement;
  if (workload.kubelet_mems.empty()) keep_memory(before, room_.placer.rules(), placement);
  placement.added = before.placement.added;
  const bool stays_alone = placement.mode == Mode::kExclusive;
  const bool can_leave = stays_alone || plan.decision.within.intersects(room_.bookings.ledger().pool());
  CpuSet leaving = before.leaving;
  if (before.placement.mode == Mode::kExclusive && can_leave) {
    const CpuSet left = stays_alone ? before.placement.cpus - placement.cpus : before.placement.cpus;
    leaving |= left & room_.bookings.ledger().rules().allowed;
  }
  leaving -= placement.withheld;
  if (stays_alone) leaving -= placement.cpus;
  placement.withheld |= leaving;
  book_moves(room_, plan);
  Kept kept{std::move(leaving), std::move(plan.home), std::move(plan.came)};
  return {room_.bookings.place(workload, plan.decision, event, std::move(kept)), plan.decision.reason};
}

void Lifecycle::update_container_resources(const std::shared_ptr<Call>& call) {
  Result<UpdateRequest> update = read_update_container_resources(call->request());
  if (!update) return call->reject(update.error());
  const std::string id = full_id(update->container_id);
  const Holding* holding = room_.bookings.ledger().find_by_container(id);
  if (holding == nullptr || !room_.lanes.has(id) || !update->has_linux) return pass(call, [](const Answer&) {});
  room_.lanes.run(id, Lanes::Needs::kTurn,
                  [this, call, id, update = *update](const Status&, const Lanes::OperationDone& done) {
                    updating(call, id, update, done);
                  });
}

void Lifecycle::updating(const std::shared_ptr<Call>& call, const std::string& id, const UpdateRequest& update,
                         const Lanes::OperationDone& done) {
  const Holding* held = room_.bookings.ledger().find_by_container(id);
  if (held == nullptr) {
    pass(call, [](const Answer&) {});
    return done(false);
  }
  Workload wanted = held->workload;
  wanted.demand = apply_update(wanted.demand, update);
  if (!gets_new_size(*held, wanted, cpus_of_its_own(wanted, room_.placer.rules()))) {
    return update_as_booked(call, Holding(*held), update, done);
  }
  recall(held->workload.key, [this, call, update, done](const std::optional<Holding>& known) {
    if (known) return update_as_booked(call, *known, update, done);
    pass(call, [](const Answer&) {});
    done(false);
  });
}

void Lifecycle::update_as_booked(const std::shared_ptr<Call>& call, const Holding& before, const UpdateRequest& update,
                                 const Lanes::OperationDone& done) {
  const Result<Booked> booked = book_update(before, update);
  if (!booked) {
    call->reject(booked.error());
    return done(false);
  }
  room_.lanes.when_all_settled(
      booked->in_the_way, kNeighboursTimeout, [this, call, before, booked = *booked, done](const Status& status) {
        if (status) return send_update(call, before, booked, done);
        room_.bookings.restore(before, "the neighbours could not be moved: " + status.error().message);
        call->reject({Code::kUnavailable, "topolet: " + status.error().message});
        done(true);
      });
}

/// The kubelet's update goes out with the ledger's CPUs appended, so that it never widens what was narrowed.
void Lifecycle::send_update(const std::shared_ptr<Call>& call, const Holding& before, const Booked& booked,
                            Lanes::OperationDone done) {
  const Holding* holding = room_.bookings.ledger().find(before.workload.key);
  const CpusetTarget target = Bookings::target_of(holding != nullptr ? *holding : before);
  call->forward(patch_update_container_resources(target.cpus, target.mems),
                [this, call, before, booked, target, done = std::move(done)](const Answer& answer) {
                  room_.loop.post([this, call, before, booked, target, done, answer] {
                    const bool ok = answer.code == Code::kOk && room_.effect.check(before.container_id, target).ok();
                    const bool refused = answer.code != Code::kOk && !leaves_doubt(answer.code);
                    if (ok) room_.lanes.confirm(before.container_id, target);
                    if (refused) take_back(before, answer);
                    call->finish();
                    done(!ok);
                    if (!refused) let_go_once_settled(before, booked);
                  });
                });
}

/// Whether where it runs is topolet's to say, now.
bool Lifecycle::may_be_moved(const Holding& holding) {
  return holding.state == HoldingState::kBound && !holding.conflict && holding.placement.mode != Mode::kForeign &&
         holding.workload.kubelet_cpus.empty();
}

Plan Lifecycle::plan_anew(const Holding& before, const ReplacementWish& wish) const {
  Workload workload = before.workload;
  workload.pod_nodes = room_.sandboxes.nodes_of_pod(workload.key.pod_uid, workload.key.sandbox_id);
  Placer::Terms terms;
  terms.only_shared = before.placement.mode != Mode::kExclusive;
  if (!wish.move_nodes) {
    terms.within.emplace();
    for (const Node& node : room_.placer.topology()->nodes) {
      if (node.cpus.intersects(before.placement.cpus)) terms.within->insert(node.os_index);
    }
  }
  return room_.placer.plan(room_.bookings.ledger(), workload, terms);
}

void Lifecycle::re_place(const ReplacementWish& wish) {
  const Holding* wished = room_.bookings.ledger().find(wish.key);
  if (wished == nullptr || !may_be_moved(*wished)) {
    return room_.log.debug("{}: container {} cannot be placed anew now", wish.plugin, wish.key.name);
  }
  move(*wished, [this, wish](const Holding& before) -> std::optional<Plan> {
    Plan plan = plan_anew(before, wish);
    if (plan.decision.denied || plan.decision.placement.mode != before.placement.mode) return std::nullopt;
    plan.decision.reason = wish.plugin + " wished it: " + wish.reason + "; " + plan.decision.reason;
    return plan;
  });
}

void Lifecycle::move(const Holding& moved, PlanAnew plan) {
  room_.lanes.run(
      moved.container_id, Lanes::Needs::kSettled,
      [this, key = moved.workload.key, plan = std::move(plan)](const Status& status, const Lanes::OperationDone& done) {
        if (!status) return done(false);
        moving(key, plan, done);
      });
}

void Lifecycle::moving(const ContainerKey& key, const PlanAnew& plan_anew, const Lanes::OperationDone& done) {
  // It is settled: what an earlier move left is free, though who waits for that may not have heard yet.
  room_.bookings.let_go_of_old_cpus(key, "moved before");
  recall(key, [this, plan_anew, done](const std::optional<Holding>& known) {
    if (known) return move_as_planned(*known, plan_anew, done);
    done(false);
  });
}

void Lifecycle::move_as_planned(const Holding& before, const PlanAnew& plan_anew, const Lanes::OperationDone& done) {
  std::optional<Plan> plan = plan_anew(before);
  // With nowhere to go, where the kernel runs it is the kernel's choice.
  if (!plan || plan->decision.placement.cpus.empty()) return done(false);
  Placement& placement = plan->decision.placement;
  keep_memory(before, room_.placer.rules(), placement);
  placement.added = before.placement.added;
  if (placement == before.placement && plan->decision.within == before.within) return done(false);
  const Booked booked = book_move(before, before.workload, *std::move(plan), "re-placed");
  room_.lanes.when_all_settled(
      booked.in_the_way, kNeighboursTimeout, [this, before, booked, done](const Status& settled) {
        if (!settled) {
          room_.bookings.restore(before, "the neighbours could not be moved: " + settled.error().message);
        }
        done(false);
        if (settled) let_go_once_settled(before, booked);
      });
}

void Lifecycle::let_go_once_settled(const Holding& before, const Booked& booked) {
  const ContainerKey key = before.workload.key;
  room_.lanes.when_settled(before.container_id, kMoveTimeout, [this, key, why = booked.reason](const Status& status) {
    if (status) room_.bookings.let_go_of_old_cpus(key, why);
  });
}

void Lifecycle::take_back(const Holding& before, const Answer& answer) {
  const Holding* now = room_.bookings.ledger().find(before.workload.key);
  if (now == nullptr || now->generation == before.generation) return;
  room_.bookings.restore(before, "the runtime refused the update: " + answer.message);
}

}  // namespace topolet
