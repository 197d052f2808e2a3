// Ledgers of eight CPUs for tests, with allocations that are as they are said to be.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/engine/state/ledger.hpp"
#include "core/engine/state/plan.hpp"
#include "core/placement/validate.hpp"
#include "tests/placement/machine.hpp"

namespace topolet::engine {

using testing::besteffort;
using testing::guaranteed;

inline const CpuInventory kEightCpus{CpuSet::range(0, 7), {}, {}};

inline Allocation in_phase(Allocation allocation, Phase phase) {
  allocation.phase = phase;
  allocation.phase_since = std::chrono::milliseconds(1);
  if (phase != Phase::kPending && phase != Phase::kInDoubt) {
    allocation.container_id = "c-" + allocation.workload.key.name;
  }
  return allocation;
}

inline Allocation exclusive(const std::string& name, const CpuSet& cpus, Phase phase = Phase::kRunning,
                            const CpuSet& withheld = {}) {
  Allocation allocation;
  allocation.workload = guaranteed(name, static_cast<std::int64_t>(cpus.size()));
  allocation.placement = {placement::Mode::kExclusive, cpus, withheld, {}};
  allocation.evaluated_cpus = cpus;
  return in_phase(std::move(allocation), phase);
}

/// Without CPUs: it is given those of `within` that are in the pool; see ledger_of().
inline Allocation shared(const std::string& name, Phase phase = Phase::kRunning,
                         const CpuSet& within = CpuSet::range(0, 7)) {
  Allocation allocation;
  allocation.workload = besteffort(name);
  allocation.within = allocation.evaluated_cpus = within;
  return in_phase(std::move(allocation), phase);
}

/// Their decisions are numbered from 1.
inline Ledger ledger_of(std::vector<Allocation> allocations, std::vector<Pod> pods = {},
                        const CpuInventory& rules = kEightCpus) {
  const auto next_decision = static_cast<std::int64_t>(allocations.size()) + 1;
  Ledger ledger(rules, 10, next_decision);
  std::int64_t decision = 0;
  for (Allocation& allocation : allocations) allocation.decision = ++decision;
  ledger.load(allocations, {});
  for (Allocation& allocation : allocations) {
    if (!allocation.follows_pool() || !allocation.placement.cpus.empty()) continue;
    allocation.placement.cpus =
        shared_cpus(allocation.placement.mode, allocation.within, ledger.pool(), rules.reserved, false);
  }
  ledger.load(std::move(allocations), std::move(pods));
  return ledger;
}

inline Pod pod_of(const std::string& name) {
  Pod pod;
  pod.sandbox = {"sandbox-" + name, "uid-" + name, "default", name, "", true, {}};
  return pod;
}

/// As a container of the same pod as the one of `name`.
inline Allocation in_pod_of(const std::string& name, Allocation allocation) {
  allocation.workload.key.pod_uid = "uid-" + name;
  allocation.workload.key.sandbox_id = "sandbox-" + name;
  return allocation;
}

inline Plan plan_of(placement::Placement placement, const CpuSet& within = {}) {
  Plan plan;
  plan.decision.placement = std::move(placement);
  plan.decision.within = within;
  plan.decision.reason = "as the test says";
  return plan;
}

inline Plan exclusive_on(const CpuSet& cpus, const CpuSet& withheld = {}) {
  return plan_of({placement::Mode::kExclusive, cpus, withheld, {}});
}

inline Plan shared_on(const CpuSet& cpus, const CpuSet& within = CpuSet::range(0, 7)) {
  return plan_of({placement::Mode::kShared, cpus, {}, {}}, within);
}

}  // namespace topolet::engine
