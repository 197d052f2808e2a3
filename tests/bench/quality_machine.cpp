#include "tests/bench/quality_machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/base/file_exists.hpp"
#include "core/plugin/host/loaded_config.hpp"

namespace topolet::bench {
namespace {

using simulate::Operation;
using simulate::OperationKind;

constexpr std::int64_t kMemoryBytes = 1 << 20;
constexpr std::string_view kUidPrefix = "pod-";
constexpr const char* kFirst = "main";
constexpr const char* kBeside = "beside";

/// No vote is lost because the machine that measures is busy.
constexpr const char* kDeadline = "--placement.deadline-ms=60000";

plugin::LoadedConfig configuration_of(const MachineOptions& options) {
  std::vector<std::string> arguments = {"--config", "/dev/null", "--daemon.plugin-dir=" + options.plugin_dir,
                                        kDeadline};
  for (const std::string& name : options.plugins) arguments.push_back("--plugins.enable=" + name);
  for (const std::string& setting : options.settings) arguments.push_back("--" + setting);
  return plugin::load_config(config::read_raw(arguments));
}

plugin::LoadedConfig setup_of(const MachineOptions& options) {
  plugin::LoadedConfig setup = configuration_of(options);
  if (!setup.mistakes().empty()) throw std::runtime_error(fmt::format("{}", fmt::join(setup.mistakes(), "\n")));
  return setup;
}

topology::DiscoverOptions machine_of(const std::string& name) {
  if (file_exists(name)) return {.xml_file = name};
  return {.synthetic = name};
}

std::string gpu_path(std::uint32_t gpu) { return fmt::format("/dev/nvidia{}", gpu); }
std::string uid_of(std::size_t pod) { return fmt::format("{}{}", kUidPrefix, pod); }

Operation about(OperationKind kind, std::size_t pod) {
  Operation operation;
  operation.kind = kind;
  operation.pod = operation.name = uid_of(pod);
  return operation;
}

simulate::Resources resources_of(std::int64_t milli_cpus, std::int64_t memory_bytes) {
  simulate::Resources resources;
  resources.cpu_request_milli = resources.cpu_limit_milli = milli_cpus;
  resources.memory_request = resources.memory_limit = memory_bytes;
  return resources;
}

/// Guaranteed, so that a whole number of CPUs is exclusive.
Operation create_of(std::size_t pod, const char* container, std::int64_t milli_cpus) {
  Operation create = about(OperationKind::kCreate, pod);
  create.container = container;
  create.resources = resources_of(milli_cpus, kMemoryBytes);
  return create;
}

/// Without a limit, so that it may use more than it requests.
Operation unlimited(Operation create) {
  create.resources.cpu_limit_milli.reset();
  create.resources.memory_limit.reset();
  return create;
}

/// Its sandbox tells what the whole pod requests, as the kubelet's does.
Operation run_pod_of(std::size_t pod, const Arrival& arrival, bool may_burst) {
  Operation run_pod = about(OperationKind::kRunPod, pod);
  run_pod.qos = may_burst ? "burstable" : "guaranteed";
  run_pod.has_resources = true;
  run_pod.resources =
      resources_of(arrival.all_milli_cpus(), arrival.beside_milli_cpus > 0 ? 2 * kMemoryBytes : kMemoryBytes);
  return may_burst ? unlimited(run_pod) : run_pod;
}

Result<Operation> load_of(std::size_t pod, std::int64_t milli, std::int64_t pressure_permille) {
  return simulate::parse_operation(
      fmt::format(R"({{"op":"load","pod":"{}","container":"{}","cpu_milli":{},"psi_some_permille":{}}})", uid_of(pod),
                  kFirst, milli, pressure_permille));
}

void check(const simulate::OperationResult& result, const Operation& operation) {
  if (result.outcome != "error") return;
  throw std::runtime_error(
      fmt::format("{} of {}: {}", simulate::to_string(operation.kind), operation.pod, result.reason));
}

}  // namespace

std::vector<std::string> mistakes_of(const MachineOptions& options) { return configuration_of(options).mistakes(); }

bool takes_load() { return load_of(0, 0, 0).has_value(); }

QualityMachine::QualityMachine(const MachineOptions& options) : shared_may_burst_(options.shared_may_burst) {
  auto made = simulate::Simulation::make(machine_of(options.topology), setup_of(options));
  if (!made) throw std::runtime_error(made.error().message);
  simulation_ = *std::move(made);
  topology_ = simulation_->snapshot().topology;
  judge_ = std::make_unique<moves::MoveJudge>(topology_, moves::MoveRules::from_flags(options.settings));
  add_gpus(options.gpus_per_node);
  const simulate::Snapshot snapshot = simulation_->snapshot();
  topology_ = snapshot.topology;
  cpus_ = snapshot.rules.allowed - snapshot.rules.reserved - snapshot.rules.isolated;
  free_ = cpus_;
}

void QualityMachine::add_gpus(std::uint32_t per_node) {
  for (const topology::Node& node : topology_->nodes) {
    for (std::uint32_t i = 0; i < per_node && !node.memory_only; ++i) gpu_nodes_.push_back(node.os_index);
  }
  for (std::uint32_t gpu = 0; gpu < gpus(); ++gpu) {
    Operation device;
    device.kind = OperationKind::kDevice;
    device.path = gpu_path(gpu);
    device.device_kind = "gpu";
    device.nodes.insert(gpu_nodes_[gpu]);
    check(apply(device), device);
  }
}

simulate::OperationResult QualityMachine::apply(const Operation& operation) {
  simulate::OperationResult result = simulation_->apply(operation);
  judge_->observe(operation, result);
  return result;
}

void QualityMachine::pass(std::chrono::seconds time) {
  Operation clock;
  clock.kind = OperationKind::kClock;
  clock.advance = time;
  check(apply(clock), clock);
  read_ledger();
}

void QualityMachine::tell_load(std::size_t pod, std::int64_t milli, std::int64_t pressure_permille) {
  const auto load = load_of(pod, milli, pressure_permille);
  if (!load) throw std::runtime_error(load.error().message);
  check(apply(*load), *load);
}

const CpuSet& QualityMachine::cpus_beside_gpu(std::uint32_t gpu) const {
  return topology_->node(gpu_nodes_[gpu])->cpus;
}

/// A pod that was moved counts where it is now: where policies see it, and where it runs, which may be more.
void QualityMachine::read_ledger() {
  free_ = cpus_;
  const simulate::Snapshot snapshot = simulation_->snapshot();
  for (const placement::LedgerEntry& entry : snapshot.ledger.entries) {
    const placement::Placement& placement = entry.placement;
    if (placement.mode == placement::Mode::kExclusive) free_ -= placement.cpus;
    free_ -= placement.withheld;
    Placed& pod = pods_.at(std::stoul(entry.key.pod_uid.substr(kUidPrefix.size())));
    (entry.key.name == kBeside ? pod.beside : pod.cpus) = placement.cpus;
    if (entry.key.name == kFirst) pod.runs_on = placement.cpus;
  }
  for (const simulate::RunningContainer& running : simulation_->runtime().running()) {
    const auto pod = pods_.find(std::stoul(running.pod.substr(kUidPrefix.size())));
    if (pod != pods_.end() && running.container == kFirst && !running.cpus.empty()) pod->second.runs_on = running.cpus;
  }
}

Placed QualityMachine::admit(std::size_t pod, const Arrival& arrival) {
  const bool may_burst = shared_may_burst_ && !arrival.is_exclusive();
  const Operation run_pod = run_pod_of(pod, arrival, may_burst);
  check(apply(run_pod), run_pod);
  Placed& placed = pods_[pod];
  Operation first = create_of(pod, kFirst, arrival.milli_cpus);
  if (may_burst) first = unlimited(first);
  if (arrival.gpu) first.devices.push_back(gpu_path(*arrival.gpu));
  create(first, placed);
  if (arrival.beside_milli_cpus > 0 && !placed.is_denied)
    create(create_of(pod, kBeside, arrival.beside_milli_cpus), placed);
  const Placed result = placed;
  if (result.is_denied) end(pod);
  read_ledger();
  return result.is_denied ? result : pods_.at(pod);
}

void QualityMachine::create(const Operation& create, Placed& pod) {
  const simulate::OperationResult result = apply(create);
  check(result, create);
  pod.is_denied = pod.is_denied || result.outcome == "denied";
  pod.has_lost_votes = pod.has_lost_votes || result.outcome == "unpinned";
  (create.container == kBeside ? pod.beside : pod.cpus) = result.cpus;
}

void QualityMachine::end(std::size_t pod) {
  if (pods_.erase(pod) == 0) return;
  const Operation remove_pod = about(OperationKind::kRemovePod, pod);
  check(apply(remove_pod), remove_pod);
  read_ledger();
}

void play(const Churn& churn, QualityMachine& machine, const std::function<void(const Admission&)>& look) {
  play(churn, machine, std::chrono::seconds(0), look, [](std::size_t) {});
}

void play(const Churn& churn, QualityMachine& machine, std::chrono::seconds interval,
          const std::function<void(const Admission&)>& look, const std::function<void(std::size_t)>& rest) {
  const auto pass = [&](std::size_t pod) {
    if (interval.count() == 0) return;
    machine.pass(interval / 2);
    rest(pod);
  };
  for (std::size_t pod = 0; pod < churn.size(); ++pod) {
    for (const std::size_t ended : churn[pod].ended_before) machine.end(ended);
    pass(pod);
    const CpuSet free_before = machine.free();
    const Placed placed = machine.admit(pod, churn[pod]);
    look({pod, churn[pod], free_before, placed});
    pass(pod);
  }
}

}  // namespace topolet::bench
