// The machine and the configuration as the engine gets them; the same for the daemon and the simulator.
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

/// Checks that the options suit the machine: reserved-cpus names CPUs that it has, and some CPU is left for the shared
/// pool. CPUs that are offline count, as they may come back. `pods`: the CPUs of the pods' cgroup; absent = all.
Status check_machine(const topology::Topology& topology, const config::PlacementOptions& options,
                     const std::optional<CpuSet>& pods);

/// Allowed CPUs = online ∩ `pods` ∩ allowed-cpus. Never cut by the daemon's own cgroup. None may be left while CPUs are
/// offline.
engine::Engine::Machine make_machine(std::shared_ptr<const topology::Topology> topology,
                                     const config::PlacementOptions& options, const std::optional<CpuSet>& pods);

/// The rules that are configured; where no name of this node is, it is the host's.
placement::PlacementRules placement_rules(const config::PlacementOptions& options);

engine::Engine::Options engine_options(const config::PlacementOptions& options, const topology::Topology& topology);

}  // namespace topolet::machine
