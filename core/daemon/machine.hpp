// What the engine is told of the machine and the configuration; the same for the daemon and the simulator.
#pragma once

#include <memory>
#include <optional>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "core/engine/engine.hpp"
#include "core/options.hpp"
#include "core/topology/topology.hpp"

namespace topolet {

/// Allowed CPUs = online ∩ `pods` (the CPUs of the pods' cgroup; absent = all) ∩ allowed-cpus. Never cut by the
/// daemon's own cgroup. An error where nothing is left, or reserved-cpus names CPUs that are not online.
Result<engine::Engine::Machine> make_machine(std::shared_ptr<const Topology> topology, const PlacementOptions& options,
                                             const std::optional<CpuSet>& pods);

engine::Engine::Options engine_options(const PlacementOptions& options, const Topology& topology);

}  // namespace topolet
