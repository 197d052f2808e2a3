#include "tests/engine/consistency_check.hpp"

#include <fmt/format.h>

#include "tests/engine/preferences.hpp"

namespace topolet::testing {
namespace {

using Difference = std::optional<std::string>;

const ObservedAllocation* find(const ObservedLedger& ledger, const std::string& container_id) {
  for (const ObservedAllocation& allocation : ledger.allocations) {
    if (allocation.is_bound && allocation.container_id == container_id) {
      return &allocation;
    }
  }
  return nullptr;
}

bool is_right(const ObservedAllocation& allocation, const CpuSet& kernel) {
  return allocation.exclusive ? kernel == allocation.cpus : kernel.is_subset_of(allocation.cpus);
}

Difference check_container(const std::string& id, const VerifyingRuntime::Container& container,
                           const ObservedLedger& ledger, bool cpus_were_gone) {
  const ObservedAllocation* allocation = find(ledger, id);
  if (allocation == nullptr) {
    if (!container.process) return std::nullopt;  // should it be started after all, it is placed then
    return fmt::format("{} runs on {} and the ledger does not know it", id, container.process->cpus.to_string());
  }
  const std::string cpus = allocation->cpus.to_string();
  if (allocation->cpus != container.spec_cpus()) {
    return fmt::format("{}: the ledger has it on {}, the runtime on {}", id, cpus, container.spec.cpuset_cpus());
  }
  if (container.process && !is_right(*allocation, container.process->cpus)) {
    return fmt::format("{}: the ledger has it on {}, the kernel on {}", id, cpus, container.process->cpus.to_string());
  }
  if (allocation->exclusive && !cpus_were_gone && allocation->cpus.size() != container.whole_cpus()) {
    return fmt::format("{} has {} for itself and asks for {} CPUs", id, cpus, container.whole_cpus());
  }
  return std::nullopt;
}

/// Checks a kept allocation: its pod is there, it does not run, and there is no later attempt.
Difference check_kept(const ObservedAllocation& allocation, const std::string& what, const VerifyingRuntime& runtime) {
  const placement::ContainerKey& key = allocation.key;
  const auto sandbox = runtime.sandboxes().find(key.sandbox_id);
  if (sandbox == runtime.sandboxes().end() || sandbox->second.state() != 0) return what + " for a pod that is over";
  for (const auto& [id, container] : runtime.containers()) {
    const auto& metadata = container.config.metadata();
    if (container.sandbox_id != key.sandbox_id || metadata.name() != key.name) continue;
    const bool is_over = container.state == RunState::kExited || container.superseded;
    if (is_over || (container.state == RunState::kCreated && metadata.attempt() < key.attempt)) continue;
    return fmt::format("{} for a next attempt, and {} is there", what, id);
  }
  return std::nullopt;
}

Difference check_allocation(const ObservedAllocation& allocation, const VerifyingRuntime& runtime) {
  const std::string what =
      fmt::format("{} ({}) holds {}", allocation.container_id, allocation.container, allocation.cpus.to_string());
  if (!allocation.withheld.empty()) {
    return fmt::format("{} and {} is withheld for it, which nobody is about to leave", what,
                       allocation.withheld.to_string());
  }
  if (allocation.is_kept) return check_kept(allocation, what, runtime);
  if (!allocation.is_bound) return what + " for a create that is long over";
  const auto found = runtime.containers().find(allocation.container_id);
  if (found == runtime.containers().end()) return what + " and is gone";
  if (found->second.state == RunState::kExited) return what + " and has exited";
  return std::nullopt;
}

/// Returns the CPUs of the node that a container which shares was made for; empty if that was not a single node.
CpuSet preferred_cpus_of(const VerifyingRuntime::Container& container, const VerifyingRuntime& runtime,
                         const topology::Topology& machine) {
  const auto sandbox = runtime.sandboxes().find(container.sandbox_id);
  if (sandbox == runtime.sandboxes().end() || container.is_guaranteed() || container.superseded) {
    return {};
  }
  const NodeSet preferred = preferred_node(sandbox->second.metadata().uid());
  const CpuSet made_on = CpuSet::parse(container.config.linux().resources().cpuset_cpus()).value();
  for (const topology::Node& node : machine.nodes) {
    if (preferred.contains(node.os_index) && made_on.is_subset_of(node.cpus)) return node.cpus;
  }
  return {};
}

Difference check_is_on_preferred(const ObservedAllocation& allocation, const CpuSet& preferred_cpus,
                                 const CpuSet& pool) {
  const CpuSet open = preferred_cpus & pool;
  if (open.empty() || allocation.cpus == open) return std::nullopt;
  return fmt::format("{} ({}) shares {}, and could be back on {}", allocation.container_id, allocation.container,
                     allocation.cpus.to_string(), open.to_string());
}

}  // namespace

Difference find_inconsistency(const ObservedLedger& ledger, const VerifyingRuntime& runtime, const Expected& expected) {
  for (const auto& [id, container] : runtime.containers()) {
    if (container.state == RunState::kExited) continue;
    if (Difference difference = check_container(id, container, ledger, expected.cpus_were_gone)) return difference;
    const ObservedAllocation* allocation = expected.pods_prefer_nodes ? find(ledger, id) : nullptr;
    if (allocation == nullptr || !container.process) continue;
    const CpuSet preferred_cpus = preferred_cpus_of(container, runtime, expected.machine);
    if (Difference difference = check_is_on_preferred(*allocation, preferred_cpus, ledger.pool)) return difference;
  }
  CpuSet pool = expected.machine.allowed;
  for (const ObservedAllocation& allocation : ledger.allocations) {
    if (Difference difference = check_allocation(allocation, runtime)) return difference;
    if (allocation.exclusive) pool -= allocation.cpus;
  }
  if (ledger.pool == pool) return std::nullopt;
  return fmt::format("the pool is {} and should be {}", ledger.pool.to_string(), pool.to_string());
}

Difference find_unexpected_narrowing(const ObservedLedger& ledger, const VerifyingRuntime& runtime) {
  for (const auto& [id, container] : runtime.containers()) {
    const ObservedAllocation* allocation = find(ledger, id);
    if (allocation == nullptr || !container.process || container.process->cpus == allocation->cpus) continue;
    return fmt::format("{} runs on {} only, though the ledger has it on {}", id, container.process->cpus.to_string(),
                       allocation->cpus.to_string());
  }
  return std::nullopt;
}

}  // namespace topolet::testing
