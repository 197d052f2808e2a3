// The part of the simulation that changes its machine: CPUs and devices that come and go.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "core/machine/machine.hpp"
#include "core/simulate/added_devices.hpp"
#include "core/simulate/simulation.hpp"

namespace topolet::simulate {

Result<engine::Engine::Machine> Simulation::make_machine_now() const {
  topology::DiscoverOptions options = machine_options_;
  options.offline = offline_;
  auto discovered = discover(options);
  if (!discovered) return discovered.error();
  auto with_all = with_devices(*std::move(discovered), devices_);
  if (!with_all) return with_all.error();
  auto numbered = std::make_shared<topology::Topology>(**with_all);
  numbered->generation = topology_generation_;
  const config::PlacementOptions& placement = setup_.config.options.placement;
  if (Status fits = machine::check_machine(*numbered, placement, std::nullopt); !fits) return fits.error();
  engine::Engine::Machine machine = machine::make_machine(std::move(numbered), placement, std::nullopt);
  machine.cpus.occupied = occupied_;
  machine.cpus.reserved -= occupied_;
  return machine;
}

void Simulation::occupy(const Operation& operation, OperationResult& result) {
  const CpuSet before = occupied_;
  if (operation.kind == OperationKind::kVacate) {
    if (const CpuSet free = operation.cpus - occupied_; !free.empty()) {
      return set_error(result, fmt::format("CPUs {} are not occupied", free.to_string()));
    }
    occupied_ -= operation.cpus;
  } else {
    if (const CpuSet unknown = operation.cpus - topology_->online; !unknown.empty()) {
      return set_error(result, fmt::format("CPUs {} are not online; online are {}", unknown.to_string(),
                                           topology_->online.to_string()));
    }
    for (const auto& [key, place] : held_cpus()) {
      const CpuSet held = (place.is_exclusive ? place.cpus | place.withheld : place.withheld) & operation.cpus;
      if (held.empty()) continue;
      return set_error(
          result, fmt::format("CPUs {} are held by container {} of pod {}", held.to_string(), key.name, key.pod_uid));
    }
    occupied_ |= operation.cpus;
  }
  apply_machine(result);
  if (result.outcome == "error") occupied_ = before;
}

/// Leaves an error in the result, and all as it is, if that cannot be.
bool Simulation::take_offline(const CpuSet& cpus, OperationResult& result) {
  if (const CpuSet unknown = cpus - topology_->online; !unknown.empty()) {
    set_error(result,
              fmt::format("CPUs {} are not online; online are {}", unknown.to_string(), topology_->online.to_string()));
    return false;
  }
  if (topology_->online.is_subset_of(cpus)) {
    set_error(result,
              fmt::format("CPUs {} are all that are online; one stays, as on a real machine", cpus.to_string()));
    return false;
  }
  offline_ |= cpus;
  return true;
}

bool Simulation::bring_online(const CpuSet& cpus, OperationResult& result) {
  if (const CpuSet others = cpus - offline_; !others.empty()) {
    set_error(result, fmt::format("CPUs {} are not offline; offline are {}", others.to_string(),
                                  offline_.empty() ? "none" : offline_.to_string()));
    return false;
  }
  offline_ -= cpus;
  return true;
}

void Simulation::change_online(const Operation& operation, OperationResult& result) {
  const CpuSet before = offline_;
  const bool changed = operation.kind == OperationKind::kOffline ? take_offline(operation.cpus, result)
                                                                 : bring_online(operation.cpus, result);
  if (!changed) return;
  apply_machine(result);
  if (result.outcome == "error") offline_ = before;
}

void Simulation::add_device(const Operation& operation, OperationResult& result) {
  const std::vector<Operation> before = devices_;
  std::erase_if(devices_, [&operation](const Operation& other) { return other.path == operation.path; });
  devices_.push_back(operation);
  apply_machine(result);
  if (result.outcome == "error") devices_ = before;
}

void Simulation::apply_machine(OperationResult& result) {
  ++topology_generation_;
  Result<engine::Engine::Machine> machine = make_machine_now();
  if (!machine) return set_error(result, machine.error().message);
  topology_ = machine->topology;
  daemon_.change_machine(*std::move(machine));
}

}  // namespace topolet::simulate
