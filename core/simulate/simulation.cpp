#include "core/simulate/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/cri/lens.pb.h"
#include "core/daemon/machine.hpp"

namespace topolet::simulate {
namespace {

/// No vote is lost because this machine is busy.
constexpr std::chrono::minutes kDeadline{5};
constexpr std::int32_t kContainerStopped = 2;  // CRI: CONTAINER_STOPPED_EVENT

void fail(Outcome& outcome, std::string reason) {
  outcome.outcome = "error";
  outcome.is_bad_line = true;
  outcome.reason = std::move(reason);
}

/// The same machine with the devices that the topology does not name.
Result<std::shared_ptr<const Topology>> with_devices(std::shared_ptr<const Topology> machine,
                                                     const std::vector<Operation>& devices) {
  if (devices.empty()) return machine;
  auto more = std::make_shared<Topology>(*machine);
  for (const Operation& device : devices) {
    OsDevice added;
    added.name = device.path;
    added.subtype = device.device_kind;
    added.nodes = device.nodes;
    for (const std::uint32_t node : device.nodes) {
      const Node* found = more->node(node);
      if (found == nullptr) {
        return Error{Code::kInvalidArgument, fmt::format("device {}: there is no NUMA node {}", device.path, node)};
      }
      added.cpus |= found->cpus;
    }
    const auto& functions = more->pci_devices;
    const auto function = std::find_if(functions.begin(), functions.end(),
                                       [&](const PciDevice& candidate) { return candidate.address == device.pci; });
    if (!device.pci.empty() && function == functions.end()) {
      return Error{
          Code::kInvalidArgument,
          fmt::format("device {}: the topology has no PCI device {}; say \"nodes\" instead", device.path, device.pci)};
    }
    if (function != functions.end()) {
      added.pci_device = static_cast<std::uint32_t>(function - functions.begin());
      added.cpus = function->cpus;
      added.nodes = function->nodes;
    }
    more->os_devices.push_back(std::move(added));
  }
  return std::shared_ptr<const Topology>(std::move(more));
}

std::string mode_of(const Holding& holding) {
  const auto cpus = holding.workload.settings.find("cpus");
  const bool none = cpus != holding.workload.settings.end() && cpus->second == "none";
  return none ? "none" : std::string(to_string(holding.placement.mode));
}

std::string without_name(const std::string& message) {
  constexpr std::string_view kName = "topolet: ";
  return message.rfind(kName, 0) == 0 ? message.substr(kName.size()) : message;
}

/// The row with the decision about the operation's container, of one attempt if that is said. What follows it only
/// carries the decision out.
const DecidedRow* decision_of(const std::vector<DecidedRow>& rows, const Operation& operation,
                              std::optional<std::uint32_t> attempt = std::nullopt) {
  const auto about = std::find_if(rows.begin(), rows.end(), [&](const DecidedRow& row) {
    return row.pod_uid == operation.pod && row.container == operation.container &&
           row.attempt == attempt.value_or(row.attempt);
  });
  return about == rows.end() ? nullptr : &*about;
}

/// The last word on a container that was moved; nothing if no decision moved it.
std::string why_changed(const std::vector<DecidedRow>& rows, const ContainerKey& key) {
  const auto last = std::find_if(rows.rbegin(), rows.rend(), [&](const DecidedRow& row) {
    return row.pod_uid == key.pod_uid && row.container == key.name && row.attempt == key.attempt && row.holds;
  });
  return last == rows.rend() ? std::string() : last->reason;
}

}  // namespace

Simulation::Simulation(DiscoverOptions machine, Setup setup)
    : machine_options_(std::move(machine)), setup_(std::move(setup)) {}

Simulation::~Simulation() {
  if (engine_) engine_->stop();
  engine_.reset();
}

Result<std::unique_ptr<Simulation>> Simulation::make(DiscoverOptions machine, Setup setup) {
  std::unique_ptr<Simulation> simulation(new Simulation(std::move(machine), std::move(setup)));
  if (Status started = simulation->start(); !started) return started.error();
  return simulation;
}

Result<Engine::Machine> Simulation::make_machine_now() const {
  DiscoverOptions options = machine_options_;
  options.offline = offline_;
  auto discovered = discover(options);
  if (!discovered) return discovered.error();
  auto with_all = with_devices(*std::move(discovered), devices_);
  if (!with_all) return with_all.error();
  auto numbered = std::make_shared<Topology>(**with_all);
  numbered->generation = topology_generation_;
  PlacementOptions placement = setup_.config.options.placement;
  placement.reserved_cpus -= offline_;
  auto machine = make_machine(std::move(numbered), placement, std::nullopt);
  if (machine) {
    machine->cpus.outside = occupied_;
    machine->cpus.reserved -= occupied_;
  }
  return machine;
}

Placer::Decide Simulation::decide_with_policies() {
  return [this, rules = setup_.config.options.placement.rules](const std::shared_ptr<const PolicyRequest>& request) {
    Decision decision = policies_->run_as<Decision>(voters_, [request, rules](const std::vector<Voter>& voters) {
      return topolet::decide(*request, rules, voters);
    });
    for (const Decision::BadAnswer& bad : decision.bad_answers) policies_->report_bad_answer(bad.policy, bad.what);
    return decision;
  };
}

Status Simulation::start() {
  Result<Engine::Machine> machine = make_machine_now();
  if (!machine) return machine.error();
  topology_ = machine->topology;
  const auto state = std::make_shared<StateInMemory>();
  for (const PluginOptions& options : setup_.config.options.plugins) {
    const auto& libraries = setup_.plugins.libraries;
    const auto library = std::find_if(libraries.begin(), libraries.end(),
                                      [&](const PluginLibrary& loaded) { return loaded.id() == options.name; });
    if (library == libraries.end()) continue;
    auto policy = library->create({options.values.begin(), options.values.end()}, log_, state,
                                  options_of_others(setup_.config.options, options.name));
    if (!policy) return policy.error();
    voters_.push_back({*policy, options.weight, options.fail_closed, options.required});
  }
  auto loop = std::make_unique<DrivenLoop>();
  loop_ = loop.get();
  const Clock clock = loop->clock();
  policies_ = std::make_unique<PolicyThread>(PolicyThread::Options{.deadline = kDeadline, .clock = clock, .log = log_});
  const Engine::Options options = engine_options(setup_.config.options.placement, *topology_);
  memory_total_bytes_ = options.demand_rules.memory_total_bytes;
  engine_ = std::make_unique<Engine>(
      options, Engine::Parts{.runtime = runtime_,
                             .store = store_,
                             .cpus = std::move(machine->cpus),
                             .placing = {.topology = topology_,
                                         .candidates = std::move(machine->candidates),
                                         .rules = setup_.config.options.placement.rules,
                                         .decide = decide_with_policies()},
                             .kernel = Kernel({}, {}),
                             .clock = clock,
                             .log = *log_,
                             .somebody_hears = [] { return true; },
                             .notify = [this](auto happening) { policies_->notify(voters_, std::move(happening)); },
                             .tick_plugins = [this](const auto& view) { return policies_->tick(voters_, view); },
                             .loop = std::move(loop)});
  if (Status started = engine_->start(); !started) return started;
  loop_->run();
  return {};
}

Outcome Simulation::apply(const Operation& operation) {
  const Places before = places();
  store_.forget();
  Outcome outcome;
  act(operation, outcome);
  loop_->run();
  for (const auto& [key, now] : places()) {
    const auto was = before.find(key);
    const bool is_about = key.pod_uid == operation.pod && key.name == operation.container;
    if (was == before.end() || is_about) continue;
    if (was->second == now) continue;
    outcome.changed.push_back(
        {key.pod_uid, key.name, now.mode, now.cpus, now.withheld, now.mems, why_changed(store_.decisions(), key)});
  }
  return outcome;
}

void Simulation::act(const Operation& operation, Outcome& outcome) {
  switch (operation.kind) {
    case OperationKind::kOccupy:
    case OperationKind::kVacate:
      return occupy(operation, outcome);
    case OperationKind::kRunPod:
      return run_pod(operation, outcome);
    case OperationKind::kCreate:
      return create(operation, outcome);
    case OperationKind::kUpdate:
      return update(operation, outcome);
    case OperationKind::kExit:
      return exit(operation, outcome);
    case OperationKind::kStop:
      return stop(operation, outcome);
    case OperationKind::kRemovePod:
      return remove_pod(operation, outcome);
    case OperationKind::kOffline:
    case OperationKind::kOnline:
      return change_online(operation, outcome);
    case OperationKind::kDevice:
      return add_device(operation, outcome);
    case OperationKind::kClock:
      return loop_->advance(operation.advance);
    case OperationKind::kRuntime:
      return runtime_.set_next(operation.next);
  }
}

void Simulation::occupy(const Operation& operation, Outcome& outcome) {
  const CpuSet before = occupied_;
  if (operation.kind == OperationKind::kVacate) {
    if (const CpuSet free = operation.cpus - occupied_; !free.empty()) {
      return fail(outcome, fmt::format("CPUs {} are not occupied", free.to_string()));
    }
    occupied_ -= operation.cpus;
  } else {
    if (const CpuSet unknown = operation.cpus - topology_->online; !unknown.empty()) {
      return fail(outcome, fmt::format("CPUs {} are not online; online are {}", unknown.to_string(),
                                       topology_->online.to_string()));
    }
    for (const auto& [key, place] : places()) {
      const CpuSet held = (place.mode == "exclusive" ? place.cpus | place.withheld : place.withheld) & operation.cpus;
      if (held.empty()) continue;
      return fail(outcome,
                  fmt::format("CPUs {} are held by container {} of pod {}", held.to_string(), key.name, key.pod_uid));
    }
    occupied_ |= operation.cpus;
  }
  apply_machine(outcome);
  if (outcome.outcome == "error") occupied_ = before;
}

void Simulation::change_online(const Operation& operation, Outcome& outcome) {
  const CpuSet before = offline_;
  if (operation.kind == OperationKind::kOffline) {
    if (const CpuSet unknown = operation.cpus - topology_->online; !unknown.empty()) {
      return fail(outcome, fmt::format("CPUs {} are not online; online are {}", unknown.to_string(),
                                       topology_->online.to_string()));
    }
    offline_ |= operation.cpus;
  } else {
    if (const CpuSet others = operation.cpus - offline_; !others.empty()) {
      return fail(outcome, fmt::format("CPUs {} are not offline; offline are {}", others.to_string(),
                                       offline_.empty() ? "none" : offline_.to_string()));
    }
    offline_ -= operation.cpus;
  }
  apply_machine(outcome);
  if (outcome.outcome == "error") offline_ = before;
}

void Simulation::add_device(const Operation& operation, Outcome& outcome) {
  const std::vector<Operation> before = devices_;
  std::erase_if(devices_, [&operation](const Operation& other) { return other.path == operation.path; });
  devices_.push_back(operation);
  apply_machine(outcome);
  if (outcome.outcome == "error") devices_ = before;
}

void Simulation::apply_machine(Outcome& outcome) {
  ++topology_generation_;
  Result<Engine::Machine> machine = make_machine_now();
  if (!machine) return fail(outcome, machine.error().message);
  topology_ = machine->topology;
  engine_->change_machine(*std::move(machine));
  loop_->run();
}

Answer Simulation::call(std::string method, std::string request) {
  const auto call = std::make_shared<SimulatedCall>(std::move(method), std::move(request), runtime_);
  engine_->on_call(call);
  loop_->run();
  return call->answer().value_or(Answer{Code::kUnavailable, "the call did not end", {}});
}

void Simulation::run_pod(const Operation& operation, Outcome& outcome) {
  if (pods_.count(operation.pod) != 0) return fail(outcome, fmt::format("pod {} runs already", operation.pod));
  const Answer answer = call("RunPodSandbox", run_pod_request(operation, memory_total_bytes_));
  lens::Target target;
  if (answer.code != Code::kOk || !target.ParseFromString(answer.body)) return fail(outcome, answer.message);
  pods_[operation.pod] = {operation, target.id()};
}

void Simulation::create(const Operation& operation, Outcome& outcome) {
  const auto pod = pods_.find(operation.pod);
  if (pod == pods_.end()) {
    return fail(outcome, fmt::format("pod {} does not run; a run_pod must come before", operation.pod));
  }
  const ContainerName name{operation.pod, operation.container};
  const std::uint32_t attempt = operation.attempt.value_or(next_attempts_[name]);
  const Answer answer = call("CreateContainer", create_request(operation, pod->second, attempt, memory_total_bytes_));
  const std::vector<DecidedRow> rows = store_.decisions();
  const DecidedRow* decision = decision_of(rows, operation, attempt);
  if (decision != nullptr) {
    outcome.reason = decision->reason;
    outcome.verdicts = decision->verdicts;
  }
  lens::Target target;
  if (answer.code == Code::kOk && target.ParseFromString(answer.body)) {
    next_attempts_[name] = attempt + 1;
    container_ids_[name] = target.id();
    outcome.outcome = decision != nullptr && decision->event == "unpinned" ? "unpinned" : "placed";
    if (decision == nullptr) outcome.reason = "the same create again: it stays where it was placed before";
    const Answer started = call("StartContainer", target_request(target.id()));
    if (started.code != Code::kOk) fail(outcome, "it could not be started: " + started.message);
  } else if (decision == nullptr || decision->event == "denied") {
    const bool own = answer.message.rfind("topolet: ", 0) == 0;
    outcome.outcome = decision != nullptr || own ? "denied" : "error";
    outcome.reason = without_name(answer.message);
    if (outcome.outcome == "denied") return;  // what an earlier attempt holds is not this one's
  } else {
    outcome.outcome = "error";
    outcome.reason = answer.message;
  }
  describe(operation, outcome);
}

void Simulation::update(const Operation& operation, Outcome& outcome) {
  const auto id = container_id(operation, outcome);
  if (!id) return;
  const Answer answer = call("UpdateContainerResources", update_request(operation, *id));
  const std::vector<DecidedRow> rows = store_.decisions();
  if (const DecidedRow* decision = decision_of(rows, operation); decision != nullptr) {
    outcome.reason = decision->reason;
    outcome.verdicts = decision->verdicts;
  }
  if (answer.code != Code::kOk) {
    outcome.outcome = "denied";
    outcome.reason = without_name(answer.message);
  }
  describe(operation, outcome);
}

void Simulation::exit(const Operation& operation, Outcome& outcome) {
  const auto id = container_id(operation, outcome);
  if (!id) return;
  describe(operation, outcome);
  runtime_.exit(*id, operation.exit_code);
  lens::ContainerEvent event;
  event.set_container_id(*id);
  event.set_type(kContainerStopped);
  engine_->on_observed({"/runtime.v1.RuntimeService/GetContainerEvents", {}, event.SerializeAsString()});
  loop_->run();
  if (const auto holding = holding_of(operation); holding && holding->state == HoldingState::kCrashed) {
    outcome.reason = "its CPUs are held for its next attempt";
  } else {
    outcome.outcome = "released";
  }
}

void Simulation::stop(const Operation& operation, Outcome& outcome) {
  const auto id = container_id(operation, outcome);
  if (!id) return;
  describe(operation, outcome);
  const Answer answer = call("StopContainer", target_request(*id));
  if (answer.code != Code::kOk) return fail(outcome, answer.message);
  outcome.outcome = "released";
}

void Simulation::remove_pod(const Operation& operation, Outcome& outcome) {
  const auto pod = pods_.find(operation.pod);
  if (pod == pods_.end()) return fail(outcome, fmt::format("pod {} does not run", operation.pod));
  const std::string request = target_request(pod->second.sandbox_id);
  const Answer stopped = call("StopPodSandbox", request);
  const Answer removed = call("RemovePodSandbox", request);
  if (stopped.code != Code::kOk || removed.code != Code::kOk) {
    return fail(outcome, stopped.code != Code::kOk ? stopped.message : removed.message);
  }
  outcome.outcome = "released";
  const auto is_its = [&](const auto& entry) { return entry.first.first == operation.pod; };
  std::erase_if(next_attempts_, is_its);
  std::erase_if(container_ids_, is_its);
  pods_.erase(pod);
}

Simulation::Places Simulation::places() {
  Places places;
  engine_->look([&places](const Ledger& ledger) {
    for (const auto& [key, holding] : ledger.holdings()) {
      const Placement& placement = holding.placement;
      places[key] = {mode_of(holding), placement.cpus, placement.withheld, placement.mems};
    }
  });
  loop_->run();
  return places;
}

std::optional<Holding> Simulation::holding_of(const Operation& operation) {
  std::optional<Holding> found;
  engine_->look([&](const Ledger& ledger) {
    for (const auto& [key, holding] : ledger.holdings()) {
      if (key.pod_uid != operation.pod || key.name != operation.container) continue;
      if (!found || found->workload.key.attempt <= key.attempt) found = holding;
    }
  });
  loop_->run();
  return found;
}

std::optional<std::string> Simulation::container_id(const Operation& operation, Outcome& outcome) {
  if (const auto known = container_ids_.find({operation.pod, operation.container}); known != container_ids_.end()) {
    return known->second;
  }
  // One whose create's answer was lost is known to the engine once it has asked the runtime.
  if (const auto holding = holding_of(operation); holding && !holding->container_id.empty()) {
    return holding->container_id;
  }
  fail(outcome, pods_.count(operation.pod) == 0
                    ? fmt::format("pod {} does not run", operation.pod)
                    : fmt::format("pod {} has no container {}", operation.pod, operation.container));
  return std::nullopt;
}

void Simulation::describe(const Operation& operation, Outcome& outcome) {
  const auto holding = holding_of(operation);
  if (!holding) return;
  outcome.mode = mode_of(*holding);
  outcome.cpus = holding->placement.cpus;
  outcome.withheld = holding->placement.withheld;
  outcome.mems = holding->placement.mems;
}

Picture Simulation::picture() {
  Picture picture{topology_, {}, offline_, {}};
  engine_->look([&picture](const Ledger& ledger) {
    picture.rules = ledger.rules();
    picture.ledger = ledger.view();
  });
  loop_->run();
  return picture;
}

}  // namespace topolet::simulate
