#include "core/daemon/lifecycle.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/daemon/creates.hpp"

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
    if (detail->info.state == ContainerState::kExited) return ended(container_id, "exited");
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
  const Result<std::string> id = read_target_id(call->request());
  if (!id) return pass_unread(call);
  call->forward("", [this, call, id = full_id(*id)](const Answer& answer) {
    room_.loop.post([this, call, id, answer] {
      const bool held = room_.bookings.ledger().find_by_container(id) != nullptr;
      if (answer.code != Code::kOk || !held) return call->finish();
      stopped(call, id);
    });
  });
}

/// Stopping a container that never ran leaves it as it is, and it may yet be started: only one that has exited gives
/// its CPUs back.
void Lifecycle::stopped(const std::shared_ptr<Call>& call, const std::string& container_id) {
  room_.effect.inspect(container_id, [this, call, container_id](const Result<ContainerDetail>& detail) {
    const bool gone = !detail && detail.error().code == Code::kNotFound;
    if (gone || (detail && detail->info.state == ContainerState::kExited)) ended(container_id, "stopped");
    call->finish();
  });
}

void Lifecycle::remove_container(const std::shared_ptr<Call>& call) {
  const Result<std::string> id = read_target_id(call->request());
  if (!id) return pass_unread(call);
  pass(call, [this, id = full_id(*id)](const Answer& answer) {
    if (answer.code == Code::kOk) ended(id, "removed");
  });
}

void Lifecycle::ended(const std::string& container_id, const std::string& cause) {
  room_.effect.forget(container_id);
  const Holding* holding = room_.bookings.ledger().find_by_container(container_id);
  if (holding != nullptr) room_.bookings.release(ContainerKey(holding->workload.key), cause);
}

/// Books what an update asks for. Returns the containers that must leave CPUs before it may go to the runtime.
std::vector<std::string> Lifecycle::book_update(const Holding& before, const UpdateRequest& update) {
  Workload workload = before.workload;
  workload.demand = apply_update(workload.demand, update);
  if (!update.cpus.empty()) workload.kubelet_cpus = update.cpus;
  if (!update.mems.empty()) workload.kubelet_mems = update.mems;
  const bool keeps_its_own = before.placement.mode == Mode::kExclusive && !update.cpus.empty() &&
                             before.placement.cpus.is_subset_of(update.cpus);
  const bool new_bound = workload.kubelet_cpus != before.workload.kubelet_cpus ||
                         workload.kubelet_mems != before.workload.kubelet_mems || before.conflict;
  if (!new_bound || keeps_its_own || workload.kubelet_cpus.empty()) {
    room_.bookings.resize(before.workload.key, workload.demand);
    return {};
  }
  Decision decision = room_.placer.place(room_.bookings.ledger(), workload);
  // Until the runtime has answered it runs where it was, and may have to stay there.
  if (before.placement.mode == Mode::kExclusive) {
    decision.placement.withheld |= before.placement.cpus - decision.placement.cpus;
  }
  return room_.bookings.place(workload, decision, decision.conflict ? "conflict" : "re-placed");
}

void Lifecycle::update_container_resources(const std::shared_ptr<Call>& call) {
  Result<UpdateRequest> update = read_update_container_resources(call->request());
  if (!update) return call->reject(update.error());
  const std::string id = full_id(update->container_id);
  const Holding* holding = room_.bookings.ledger().find_by_container(id);
  if (holding == nullptr || !room_.lanes.has(id) || !update->has_linux) return pass(call, [](const Answer&) {});
  room_.lanes.run(
      id, Lanes::Needs::kTurn, [this, call, id, update = *update](const Status&, Lanes::OperationDone done) {
        const Holding* held = room_.bookings.ledger().find_by_container(id);
        if (held == nullptr) {
          pass(call, [](const Answer&) {});
          return done(false);
        }
        const Holding before = *held;
        const std::vector<std::string> in_the_way = book_update(before, update);
        room_.lanes.when_all_settled(in_the_way, kNeighboursTimeout, [this, call, before, done](const Status& status) {
          if (status) return send_update(call, before, done);
          room_.bookings.restore(before, "the neighbours could not be moved: " + status.error().message);
          call->reject({Code::kUnavailable, "topolet: " + status.error().message});
          done(true);
        });
      });
}

/// The kubelet's update goes out with the ledger's CPUs appended, so that it never widens what was narrowed.
void Lifecycle::send_update(const std::shared_ptr<Call>& call, const Holding& before, Lanes::OperationDone done) {
  const Holding* holding = room_.bookings.ledger().find(before.workload.key);
  const CpusetTarget target = Bookings::target_of(holding != nullptr ? *holding : before);
  call->forward(patch_update_container_resources(target.cpus, target.mems),
                [this, call, before, target, done = std::move(done)](const Answer& answer) {
                  room_.loop.post([this, call, before, target, done, answer] {
                    const bool ok = answer.code == Code::kOk && room_.effect.check(before.container_id, target).ok();
                    const bool refused = answer.code != Code::kOk && !leaves_doubt(answer.code);
                    if (ok) room_.lanes.confirm(before.container_id, target);
                    if (refused) take_back(before, answer);
                    call->finish();
                    done(!ok);
                    if (!refused) let_go_once_settled(before);
                  });
                });
}

Decision Lifecycle::decide_anew(const Holding& before, const ReplacementWish& wish) const {
  if (wish.move_nodes) return room_.placer.place(room_.bookings.ledger(), before.workload);
  NodeSet nodes;
  for (const Node& node : room_.placer.topology()->nodes) {
    if (node.cpus.intersects(before.placement.cpus)) nodes.insert(node.os_index);
  }
  return room_.placer.place_within(room_.bookings.ledger(), before.workload, nodes);
}

namespace {

/// Whether where it runs is topolet's to say, now.
bool may_be_moved(const Holding& holding) {
  return holding.state == HoldingState::kBound && !holding.conflict && holding.placement.mode != Mode::kForeign &&
         holding.workload.kubelet_cpus.empty();
}

}  // namespace

void Lifecycle::re_place(const ReplacementWish& wish) {
  const Holding* wished = room_.bookings.ledger().find(wish.key);
  if (wished == nullptr || !may_be_moved(*wished)) {
    return room_.log.debug("{}: container {} cannot be placed anew now", wish.plugin, wish.key.name);
  }
  move(*wished, [this, wish](const Holding& before) -> std::optional<Decision> {
    Decision decision = decide_anew(before, wish);
    if (decision.denied || decision.placement.mode != before.placement.mode) return std::nullopt;
    decision.reason = wish.plugin + " wished it: " + wish.reason + "; " + decision.reason;
    return decision;
  });
}

void Lifecycle::leave_all_but(const CpuSet& allowed) {
  std::vector<ContainerKey> keys;
  for (const auto& [key, holding] : room_.bookings.ledger().holdings()) {
    const CpuSet own = holding.placement.cpus | holding.placement.withheld;
    if (holding.placement.mode == Mode::kExclusive && may_be_moved(holding) && !own.is_subset_of(allowed)) {
      keys.push_back(key);
    }
  }
  for (const ContainerKey& key : keys) {
    move(*room_.bookings.ledger().find(key),
         [this, allowed](const Holding& before) -> std::optional<Decision> { return decide_without(before, allowed); });
  }
}

/// For a container that holds CPUs which are gone: other ones, else those that are left, else the pool.
Decision Lifecycle::decide_without(const Holding& before, const CpuSet& allowed) const {
  const Ledger& ledger = room_.bookings.ledger();
  const std::string gone = "CPUs " + (before.placement.cpus - allowed).to_string() + " are gone; ";
  Decision decision = room_.placer.place(ledger, before.workload);
  if (decision.denied || decision.placement.mode != Mode::kExclusive) {
    const std::string why = decision.reason;
    decision = {};
    decision.placement = before.placement;
    decision.placement.cpus &= allowed;
    decision.placement.withheld &= allowed;
    decision.nodes = room_.placer.topology()->nodes_of(decision.placement.cpus);
    decision.reason = "it keeps what is left: " + why;
    if (decision.placement.cpus.empty()) decision = room_.placer.adopt(ledger, before.workload);
  }
  decision.reason = gone + decision.reason;
  return decision;
}

void Lifecycle::move(const Holding& moved, std::function<std::optional<Decision>(const Holding&)> decide) {
  room_.lanes.run(
      moved.container_id, Lanes::Needs::kSettled,
      [this, key = moved.workload.key, decide = std::move(decide)](const Status& status,
                                                                   const Lanes::OperationDone& done) {
        const Holding* held = room_.bookings.ledger().find(key);
        if (!status || held == nullptr) return done(false);
        const Holding before = *held;
        std::optional<Decision> decision = decide(before);
        // With nowhere to go, where the kernel runs it is the kernel's choice.
        if (!decision || decision->placement.cpus.empty()) return done(false);
        // Memory moves while the write blocks, so the nodes of a running container only grow.
        if (!before.placement.mems.empty()) decision->placement.mems |= before.placement.mems;
        decision->placement.added = before.placement.added;
        if (decision->placement == before.placement && decision->within == before.within) return done(false);
        if (before.placement.mode == Mode::kExclusive) {
          decision->placement.withheld |=
              (before.placement.cpus - decision->placement.cpus) & room_.bookings.ledger().rules().allowed;
        }
        const auto in_the_way = room_.bookings.place(before.workload, *decision, "re-placed");
        room_.lanes.when_all_settled(in_the_way, kNeighboursTimeout, [this, before, done](const Status& settled) {
          if (!settled) {
            room_.bookings.restore(before, "the neighbours could not be moved: " + settled.error().message);
          }
          done(false);
          if (settled) let_go_once_settled(before);
        });
      });
}

void Lifecycle::let_go_once_settled(const Holding& before) {
  const ContainerKey key = before.workload.key;
  room_.lanes.when_settled(before.container_id, kMoveTimeout,
                           [this, key, withheld = before.placement.withheld](const Status& status) {
                             if (status) room_.bookings.let_go_of_old_cpus(key, withheld);
                           });
}

void Lifecycle::take_back(const Holding& before, const Answer& answer) {
  const Holding* now = room_.bookings.ledger().find(before.workload.key);
  if (now == nullptr || now->generation == before.generation) return;
  room_.bookings.restore(before, "the runtime refused the update: " + answer.message);
}

}  // namespace topolet
