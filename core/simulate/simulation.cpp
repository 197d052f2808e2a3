#include "core/simulate/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/cri/messages/lens.pb.h"
#include "core/engine/state/ledger.hpp"
#include "core/engine/state/verdicts_json.hpp"
#include "core/placement/reason_codes.hpp"
#include "store/store.hpp"

namespace topolet::simulate {
namespace {

constexpr std::int32_t kContainerStopped = 2;  // CRI: CONTAINER_STOPPED_EVENT
constexpr const char* kRetained = "its CPUs are retained for its next attempt";

std::string without_topolet_prefix(const std::string& message) {
  constexpr std::string_view kName = "topolet: ";
  return message.rfind(kName, 0) == 0 ? message.substr(kName.size()) : message;
}

/// The line makes sense, and the call that came of it failed.
void set_failed(OperationResult& result, const std::string& message) {
  result.outcome = "error";
  result.reason = without_topolet_prefix(message);
}

/// Returns the row with the decision about the operation's container, of one attempt if that is given. The rows after
/// it only carry the decision out.
const store::DecidedRow* decision_of(const std::vector<store::DecidedRow>& rows, const Operation& operation,
                                     std::optional<std::uint32_t> attempt = std::nullopt) {
  const auto about = std::find_if(rows.begin(), rows.end(), [&](const store::DecidedRow& row) {
    return row.pod_uid == operation.pod && row.container == operation.container &&
           row.attempt == attempt.value_or(row.attempt);
  });
  return about == rows.end() ? nullptr : &*about;
}

/// Returns the decision that counts for a create, the last one: it is decided anew if others do not leave its CPUs.
const store::DecidedRow* decision_of_create(const std::vector<store::DecidedRow>& rows, const Operation& operation,
                                            std::optional<std::uint32_t> attempt) {
  const store::DecidedRow* decision = decision_of(rows, operation, attempt);
  for (const store::DecidedRow& row : rows) {
    const bool is_its = row.pod_uid == operation.pod && row.container == operation.container &&
                        row.attempt == attempt.value_or(row.attempt);
    const auto event = engine::audit_event_from(row.event);
    const bool is_decision = event == engine::AuditEvent::kPlaced || event == engine::AuditEvent::kUnpinned ||
                             event == engine::AuditEvent::kDenied;
    if (is_its && is_decision) decision = &row;
  }
  return decision;
}

std::optional<placement::Verdicts> verdicts_of(const store::DecidedRow& row) {
  if (!row.verdicts) return std::nullopt;
  auto verdicts = engine::decode_verdicts(*row.verdicts);
  return verdicts ? std::optional(*std::move(verdicts)) : std::nullopt;
}

/// Each once, in the order of the decisions.
std::vector<std::string> lost_votes_in(const std::vector<store::DecidedRow>& rows) {
  std::vector<std::string> lost_votes;
  for (const store::DecidedRow& row : rows) {
    const auto verdicts = verdicts_of(row);
    if (!verdicts) continue;
    for (const std::string& lost : verdicts->lost_votes) {
      if (std::find(lost_votes.begin(), lost_votes.end(), lost) == lost_votes.end()) lost_votes.push_back(lost);
    }
  }
  return lost_votes;
}

bool is(const store::DecidedRow* decision, engine::AuditEvent event) {
  return decision != nullptr && engine::audit_event_from(decision->event) == event;
}

/// The last word on a container that was moved; null if no decision moved it.
const store::DecidedRow* why_changed(const std::vector<store::DecidedRow>& rows, const placement::ContainerKey& key) {
  const auto last = std::find_if(rows.rbegin(), rows.rend(), [&](const store::DecidedRow& row) {
    const bool is_word = row.holds || row.event == to_string(engine::AuditEvent::kOverruled);
    return row.pod_uid == key.pod_uid && row.container == key.name && row.attempt == key.attempt && is_word;
  });
  return last == rows.rend() ? nullptr : &*last;
}

/// The code of the last decision that moved it: what comes of a move later, that it has left its CPUs or that its
/// memory has followed, moves nothing. `last`: of why_changed().
std::string code_of_move(const std::vector<store::DecidedRow>& rows, const placement::ContainerKey& key,
                         const store::DecidedRow& last) {
  const auto move = std::find_if(rows.rbegin(), rows.rend(), [&](const store::DecidedRow& row) {
    const bool is_its =
        row.holds && row.pod_uid == key.pod_uid && row.container == key.name && row.attempt == key.attempt;
    return is_its && row.reason_code != placement::reason_code::kLeftCpus &&
           row.reason_code != placement::reason_code::kMemoryMoved;
  });
  return move == rows.rend() ? last.reason_code : move->reason_code;
}

}  // namespace

void set_error(OperationResult& result, std::string reason) {
  result.outcome = "error";
  result.is_invalid_line = true;
  result.reason = std::move(reason);
}

Simulation::Simulation(topology::DiscoverOptions machine, plugin::LoadedConfig setup)
    : machine_options_(std::move(machine)), setup_(std::move(setup)), daemon_(setup_, runtime_, busy_) {
  daemon_.set_load_source([this] { return measure(); });
}

Simulation::~Simulation() = default;

Result<std::unique_ptr<Simulation>> Simulation::make(topology::DiscoverOptions machine, plugin::LoadedConfig setup,
                                                     const SimulationOptions& options) {
  std::unique_ptr<Simulation> simulation(new Simulation(std::move(machine), std::move(setup)));
  if (Status started = simulation->start(options); !started) return started.error();
  return simulation;
}

Status Simulation::start(const SimulationOptions& options) {
  const std::lock_guard lock(busy_);
  Result<engine::Engine::Machine> machine = make_machine_now();
  if (!machine) return machine.error();
  topology_ = machine->topology;
  return daemon_.start(*std::move(machine), options);
}

OperationResult Simulation::apply(const Operation& operation) {
  const std::lock_guard lock(busy_);
  const HeldCpusByContainer before = held_cpus();
  daemon_.clear_recorded();
  OperationResult result;
  dispatch(operation, result);
  for (const auto& [key, now] : held_cpus()) {
    const auto was = before.find(key);
    const bool is_about = key.pod_uid == operation.pod && key.name == operation.container;
    if (was == before.end() || is_about) continue;
    if (was->second == now) continue;
    MovedContainer moved{key.pod_uid, key.name, now.mode, now.cpus, now.withheld, now.mems, {}, {}};
    if (const store::DecidedRow* why = why_changed(daemon_.decisions(), key)) {
      moved.reason = why->reason;
      moved.reason_code = code_of_move(daemon_.decisions(), key, *why);
    }
    result.changed.push_back(std::move(moved));
  }
  result.lost_votes = lost_votes_in(daemon_.decisions());
  result.plugins = daemon_.take_activity();
  for (const std::string& method : daemon_.killed_during()) {
    result.reason +=
        fmt::format("{}topoletd was killed at {} and restarted", result.reason.empty() ? "" : "; ", method);
  }
  return result;
}

void Simulation::dispatch(const Operation& operation, OperationResult& result) {
  switch (operation.kind) {
    case OperationKind::kOccupy:
    case OperationKind::kVacate:
      return occupy(operation, result);
    case OperationKind::kRunPod:
      return run_pod(operation, result);
    case OperationKind::kCreate:
      return create(operation, result);
    case OperationKind::kUpdate:
      return update(operation, result);
    case OperationKind::kExit:
      return exit(operation, result);
    case OperationKind::kStop:
      return stop(operation, result);
    case OperationKind::kRemovePod:
      return remove_pod(operation, result);
    case OperationKind::kOffline:
    case OperationKind::kOnline:
      return change_online(operation, result);
    case OperationKind::kDevice:
      return add_device(operation, result);
    case OperationKind::kClock:
      daemon_.set_wall_clock(operation.wall_jump);
      return daemon_.advance(operation.advance);
    case OperationKind::kRuntime:
      return set_next_answer(operation);
    case OperationKind::kRestart:
      return restart(operation, result);
    case OperationKind::kCapacity:
      return set_capacity(operation, result);
    case OperationKind::kCpuset:
      return set_cpuset(operation, result);
    case OperationKind::kStart:
      return start(operation, result);
    case OperationKind::kSandbox:
      return set_sandbox(operation, result);
    case OperationKind::kStuck:
      return set_stuck(operation, result);
    case OperationKind::kHeal:
      return heal(operation, result);
    case OperationKind::kRelease:
      return release(operation, result);
    case OperationKind::kLoad:
      return set_load(operation, result);
  }
}

void Simulation::run_pod(const Operation& operation, OperationResult& result) {
  if (pods_.count(operation.pod) != 0) {
    return set_error(result, fmt::format("pod {} is already running", operation.pod));
  }
  const cri::RuntimeResponse answer =
      daemon_.call("RunPodSandbox", run_pod_request(operation, daemon_.memory_total_bytes()));
  lens::Target target;
  if (answer.code != Code::kOk || !target.ParseFromString(answer.body)) return set_failed(result, answer.message);
  pods_[operation.pod] = {operation, target.id()};
}

void Simulation::create(const Operation& operation, OperationResult& result) {
  const auto pod = pods_.find(operation.pod);
  if (pod == pods_.end()) {
    return set_error(result, fmt::format("pod {} is not running; run_pod must come first", operation.pod));
  }
  end_init_containers(operation);
  const ContainerName name{operation.pod, operation.container};
  if (operation.is_init) init_containers_.insert(name);
  const std::uint32_t attempt = operation.attempt.value_or(next_attempts_[name]);
  const cri::RuntimeResponse answer =
      daemon_.call("CreateContainer", create_request(operation, pod->second, attempt, daemon_.memory_total_bytes()));
  const std::vector<store::DecidedRow> rows = daemon_.decisions();
  const store::DecidedRow* decision =
      decision_of_create(rows, operation, daemon_.is_told_attempts() ? std::optional(attempt) : std::nullopt);
  if (decision != nullptr) {
    result.reason = decision->reason;
    result.reason_code = decision->reason_code;
    result.verdicts = verdicts_of(*decision);
  }
  lens::Target target;
  if (answer.code == Code::kOk && target.ParseFromString(answer.body)) {
    next_attempts_[name] = attempt + 1;
    container_ids_[name] = target.id();
    classes_[name] = qos_of(pod->second, operation.resources);
    result.outcome = is(decision, engine::AuditEvent::kUnpinned) ? "unpinned" : "placed";
    if (decision == nullptr) result.reason = "repeated create: the container stays where it was placed before";
    if (operation.starts) {
      const cri::RuntimeResponse started = daemon_.call("StartContainer", id_request(target.id()));
      if (started.code != Code::kOk) set_failed(result, "it could not be started: " + started.message);
    }
  } else if (decision == nullptr || is(decision, engine::AuditEvent::kDenied)) {
    const bool own = answer.message.rfind("topolet: ", 0) == 0;
    result.outcome = decision != nullptr || own ? "denied" : "error";
    result.reason = without_topolet_prefix(answer.message);
    if (result.outcome == "denied") return;  // what an earlier attempt holds is not this one's
  } else {
    result.outcome = "error";
    result.reason = answer.message;
  }
  fill_placement(operation, result);
}

/// Ends the init containers of the pod that run, except the one that is created again.
void Simulation::end_init_containers(const Operation& create) {
  std::vector<ContainerName> ended;
  for (const ContainerName& name : init_containers_) {
    if (name.first == create.pod && name.second != create.container) ended.push_back(name);
  }
  for (const ContainerName& name : ended) {
    Operation succeeds;
    succeeds.pod = name.first;
    succeeds.container = name.second;
    OperationResult ignored;
    exit(succeeds, ignored);
  }
}

void Simulation::update(const Operation& operation, OperationResult& result) {
  const auto id = container_id(operation, result);
  if (!id) return;
  const cri::RuntimeResponse answer = daemon_.call(
      "UpdateContainerResources",
      update_request(operation, *id, classes_[{operation.pod, operation.container}], daemon_.memory_total_bytes()));
  const std::vector<store::DecidedRow> rows = daemon_.decisions();
  if (const store::DecidedRow* decision = decision_of(rows, operation); decision != nullptr) {
    result.reason = decision->reason;
    result.reason_code = decision->reason_code;
    result.verdicts = verdicts_of(*decision);
  }
  if (answer.code != Code::kOk) {
    result.outcome = "denied";
    result.reason = without_topolet_prefix(answer.message);
  }
  fill_placement(operation, result);
}

void Simulation::exit(const Operation& operation, OperationResult& result) {
  init_containers_.erase({operation.pod, operation.container});
  const auto id = container_id(operation, result);
  if (!id) return;
  fill_placement(operation, result);
  runtime_.exit(*id, operation.exit_code);
  lens::ContainerEvent event;
  event.set_container_id(*id);
  event.set_type(kContainerStopped);
  const std::string message = event.SerializeAsString();
  daemon_.observe({"/runtime.v1.RuntimeService/GetContainerEvents", {message}});
  if (const auto allocation = allocation_of(operation); allocation && allocation->is_kept()) {
    result.reason = kRetained;
  } else {
    result.outcome = "released";
  }
}

void Simulation::stop(const Operation& operation, OperationResult& result) {
  init_containers_.erase({operation.pod, operation.container});
  const auto id = container_id(operation, result);
  if (!id) return;
  fill_placement(operation, result);
  const cri::RuntimeResponse answer = daemon_.call("StopContainer", id_request(*id));
  if (answer.code != Code::kOk) return set_failed(result, answer.message);
  if (const auto allocation = allocation_of(operation); allocation && allocation->is_kept()) {
    result.reason = kRetained;
  } else {
    result.outcome = "released";
  }
}

void Simulation::remove_pod(const Operation& operation, OperationResult& result) {
  const auto pod = pods_.find(operation.pod);
  if (pod == pods_.end()) return set_error(result, fmt::format("pod {} is not running", operation.pod));
  const std::string request = id_request(pod->second.sandbox_id);
  const cri::RuntimeResponse stopped = daemon_.call("StopPodSandbox", request);
  const cri::RuntimeResponse removed = daemon_.call("RemovePodSandbox", request);
  if (stopped.code != Code::kOk || removed.code != Code::kOk) {
    return set_failed(result, stopped.code != Code::kOk ? stopped.message : removed.message);
  }
  result.outcome = "released";
  const auto is_its = [&](const auto& entry) { return entry.first.first == operation.pod; };
  std::erase_if(next_attempts_, is_its);
  std::erase_if(container_ids_, is_its);
  std::erase_if(classes_, is_its);
  std::erase_if(loads_, is_its);
  std::erase_if(init_containers_, [&](const ContainerName& name) { return name.first == operation.pod; });
  pods_.erase(pod);
}

void Simulation::set_next_answer(const Operation& operation) {
  if (operation.tells) runtime_.set_tells(*operation.tells);
  if (!operation.next) return;
  if (operation.answer_to == FaultedCall::kCreate) {
    runtime_.set_next_create(*operation.next);
  } else {
    runtime_.set_next_own_update(*operation.next);
  }
}

void Simulation::restart(const Operation& operation, OperationResult& result) {
  if (operation.kill_at) return daemon_.kill_at({*operation.kill_at, operation.calls, operation.repeat});
  if (operation.gone_cpus.empty() && operation.arrived_cpus.empty()) return daemon_.restart(operation.loses_database);
  const CpuSet before = offline_;
  const bool changed = (operation.arrived_cpus.empty() || bring_online(operation.arrived_cpus, result)) &&
                       (operation.gone_cpus.empty() || take_offline(operation.gone_cpus, result));
  Result<engine::Engine::Machine> machine = changed ? make_machine_now() : Error{Code::kInvalidArgument, result.reason};
  if (!machine) {
    offline_ = before;
    return set_error(result, machine.error().message);
  }
  ++topology_generation_;
  topology_ = machine->topology;
  daemon_.restart(operation.loses_database, *std::move(machine));
}

void Simulation::set_capacity(const Operation& operation, OperationResult& result) {
  engine::Engine::CapacityRequest request{.node = operation.node, .milli = operation.milli, .source = operation.source};
  if (operation.milli) request.until = daemon_.now() + operation.lasts;
  const Result<engine::Engine::CapacityAnswer> set = daemon_.set_capacity(std::move(request));
  if (!set) return set_error(result, set.error().message);
  result.reason = fmt::format("{} of {} milli-CPUs", set->milli, set->nominal_milli);
}

void Simulation::heal(const Operation& operation, OperationResult& result) {
  const Result<engine::Engine::HealReport> healed = daemon_.heal(operation.is_dry);
  if (!healed) return set_failed(result, healed.error().message);
  const auto add = [&result](const std::string& text) { result.reason += (result.reason.empty() ? "" : "; ") + text; };
  for (const engine::HealReport::Moved& moved : healed->moved) {
    add(fmt::format("{} {} from {} to {}: {}", moved.container, operation.is_dry ? "would move" : "moved",
                    moved.from.to_string(), moved.to.to_string(), moved.reason));
  }
  for (const engine::HealReport::Left& left : healed->left) add(fmt::format("{} stays: {}", left.container, left.why));
}

void Simulation::release(const Operation& operation, OperationResult& result) {
  const Result<engine::ReleaseReport> released = daemon_.release(operation.cpusets);
  if (!released) return set_failed(result, released.error().message);
  result.reason = fmt::format("{} released", counted(released->released, "container"));
  for (const engine::ReleaseReport::Untold& untold : released->untold)
    result.reason += fmt::format("; {} does not have it yet: {}", untold.container, untold.why);
}

/// The kernel tells nobody: topoletd sees it when it looks next.
void Simulation::set_cpuset(const Operation& operation, OperationResult& result) {
  if (pods_.count(operation.pod) == 0) {
    return set_error(result, fmt::format("pod {} is not running; run_pod must come first", operation.pod));
  }
  if (const CpuSet unknown = operation.cpus - topology_->online; !unknown.empty()) {
    return set_error(result, fmt::format("CPUs {} are not online; online are {}", unknown.to_string(),
                                         topology_->online.to_string()));
  }
  runtime_.set_cpuset(operation.pod, operation.container, operation.cpus, operation.again);
  fill_placement(operation, result);
}

/// Nobody hears of it: topoletd sees it when it next tells the container to leave CPUs.
void Simulation::set_stuck(const Operation& operation, OperationResult& result) {
  if (!container_id(operation, result)) return;
  runtime_.set_stuck(operation.pod, operation.container, !operation.ends);
  fill_placement(operation, result);
}

std::optional<engine::Allocation> Simulation::allocation_of(const Operation& operation) {
  std::optional<engine::Allocation> found;
  daemon_.read_ledger([&](const engine::Ledger& ledger) {
    for (const auto& [key, allocation] : ledger.allocations()) {
      if (key.pod_uid != operation.pod || key.name != operation.container) continue;
      if (!found || found->workload.key.attempt <= key.attempt) found = allocation;
    }
  });
  return found;
}

std::optional<std::string> Simulation::container_id(const Operation& operation, OperationResult& result) {
  if (const auto known = container_ids_.find({operation.pod, operation.container}); known != container_ids_.end()) {
    return known->second;
  }
  // One whose create's answer was lost is known to the engine once it has asked the runtime.
  if (const auto allocation = allocation_of(operation); allocation && !allocation->container_id.empty()) {
    return allocation->container_id;
  }
  set_error(result, pods_.count(operation.pod) == 0
                        ? fmt::format("pod {} is not running", operation.pod)
                        : fmt::format("pod {} has no container {}", operation.pod, operation.container));
  return std::nullopt;
}

}  // namespace topolet::simulate
