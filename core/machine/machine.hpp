// What the engine is told about the machine and the configuration; the same for the daemon and the simulator.
//
// The room core/machine, namespace topolet::machine: which CPUs of the machine may be used now, and when that changes
// (MachineWatch, kubepods_cpus()). It may include core/base, config, topology, placement and engine; not the store, the
// plugins or the CRI side.
#pragma once

#include <memory>
#include <optional>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "core/config/options.hpp"
#include "core/engine/engine.hpp"
#include "core/topology/topology.hpp"

namespace topolet::machine {

/// Allowed CPUs = online ∩ `pods` (the CPUs of the pods' cgroup; absent = all) ∩ allowed-cpus. Never cut by the
/// daemon's own cgroup. An error where nothing is left, or reserved-cpus names CPUs that are not online.
Result<engine::Engine::Machine> make_machine(std::shared_ptr<const topology::Topology> topology,
                                             const config::PlacementOptions& options,
                                             const std::optional<CpuSet>& pods);

engine::Engine::Options engine_options(const config::PlacementOptions& options, const topology::Topology& topology);

}  // namespace topolet::machine
