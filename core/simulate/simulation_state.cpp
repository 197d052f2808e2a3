// The state of a simulation, for its results and for whoever asks.
#include <string>

#include "core/engine/state/ledger.hpp"
#include "core/simulate/simulation.hpp"

namespace topolet::simulate {
namespace {

std::string mode_of(const engine::Allocation& allocation) {
  const auto cpus = allocation.workload.settings.find("cpus");
  const bool none = cpus != allocation.workload.settings.end() && cpus->second == "none";
  return none ? "none" : std::string(seen_mode(allocation));
}

/// A start that nobody heard of is as good as one that worked: it may run.
std::string displayed_phase(const engine::Allocation& allocation) {
  switch (allocation.phase) {
    case engine::Phase::kPending:
      return "in flight";
    case engine::Phase::kInDoubt:
      return "in doubt";
    case engine::Phase::kCrashed:
      return "crashed";
    case engine::Phase::kKept:
      return "kept";
    case engine::Phase::kCreated:
      return "bound";
    case engine::Phase::kStarting:
    case engine::Phase::kRunning:
      return "started";
  }
  return "";
}

}  // namespace

Simulation::HeldCpusByContainer Simulation::held_cpus() {
  HeldCpusByContainer held_cpus;
  daemon_.read_ledger([&held_cpus](const engine::Ledger& ledger) {
    for (const auto& [key, allocation] : ledger.allocations()) {
      const placement::Placement& placement = allocation.placement;
      held_cpus[key] = {mode_of(allocation), allocation.is_exclusive(), placement.cpus, allocation.effective_withheld(),
                        placement.mems,      allocation.squeeze};
    }
  });
  return held_cpus;
}

void Simulation::fill_placement(const Operation& operation, OperationResult& result) {
  const auto allocation = allocation_of(operation);
  if (!allocation) return;
  result.mode = mode_of(*allocation);
  result.cpus = allocation->placement.cpus;
  result.withheld = allocation->effective_withheld();
  result.mems = allocation->placement.mems;
}

std::uint64_t Simulation::generation() {
  const std::lock_guard lock(busy_);
  std::uint64_t generation = 0;
  daemon_.read_ledger([&generation](const engine::Ledger& ledger) { generation = ledger.generation(); });
  return generation;
}

Snapshot Simulation::snapshot() {
  const std::lock_guard lock(busy_);
  Snapshot snapshot{topology_, {}, offline_, {}, {}};
  daemon_.read_ledger([&snapshot](const engine::Ledger& ledger) {
    snapshot.rules = ledger.inventory();
    snapshot.ledger = ledger.snapshot();
    for (const auto& [key, allocation] : ledger.allocations()) {
      const placement::Placement& placement = allocation.placement;
      snapshot.containers.push_back({key, displayed_phase(allocation), mode_of(allocation), placement.cpus,
                                     allocation.effective_withheld(), placement.mems, allocation.seen_on});
    }
  });
  return snapshot;
}

}  // namespace topolet::simulate
