#include "core/machine/machine.hpp"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "core/placement/candidates.hpp"

namespace topolet::machine {
namespace {

std::int64_t memory_total(const topology::Topology& topology) {
  return std::accumulate(topology.nodes.begin(), topology.nodes.end(), std::int64_t{0},
                         [](std::int64_t sum, const topology::Node& node) { return sum + node.memory_bytes; });
}

Result<engine::CpuInventory> cpu_inventory(const topology::Topology& topology, const config::PlacementOptions& options,
                                           const std::optional<CpuSet>& pods) {
  engine::CpuInventory cpus{topology.allowed, {}, topology.isolated};
  if (pods) cpus.allowed &= *pods;
  if (options.allowed_cpus) cpus.allowed &= *options.allowed_cpus;
  if (cpus.allowed.empty()) {
    return Error{Code::kFailedPrecondition,
                 fmt::format("no CPU is left to place containers on: online are {}, placement.allowed-cpus is {}",
                             topology.online.empty() ? "none" : topology.online.to_string(),
                             options.allowed_cpus ? options.allowed_cpus->to_string() : "all")};
  }
  cpus.reserved = options.reserved_cpus;
  if (!cpus.reserved.is_subset_of(topology.online)) {
    return Error{Code::kInvalidArgument,
                 fmt::format("placement.reserved-cpus names CPUs that are not online: {}; online are {}",
                             (cpus.reserved - topology.online).to_string(), topology.online.to_string())};
  }
  cpus.reserved &= cpus.allowed;
  if ((cpus.allowed - cpus.reserved - cpus.isolated).empty()) {
    return Error{Code::kFailedPrecondition,
                 fmt::format("no CPU is left for the shared pool: containers may use {}, of which {} are reserved "
                             "(placement.reserved-cpus) and {} isolated by the kernel",
                             cpus.allowed.to_string(), cpus.reserved.empty() ? "none" : cpus.reserved.to_string(),
                             cpus.isolated.empty() ? "none" : cpus.isolated.to_string())};
  }
  return cpus;
}

}  // namespace

Result<engine::Engine::Machine> make_machine(std::shared_ptr<const topology::Topology> topology,
                                             const config::PlacementOptions& options,
                                             const std::optional<CpuSet>& pods) {
  Result<engine::CpuInventory> cpus = cpu_inventory(*topology, options, pods);
  if (!cpus) return cpus.error();
  std::vector<placement::Candidate> candidates = placement::make_candidates(*topology, cpus->allowed);
  return engine::Engine::Machine{std::move(topology), std::move(candidates), *std::move(cpus)};
}

engine::Engine::Options engine_options(const config::PlacementOptions& options, const topology::Topology& topology) {
  engine::Engine::Options engine;
  engine.placed_runtime_handlers = options.handlers;
  engine.doubt_timeout = options.pending_timeout;
  engine.start_grace = options.start_grace;
  engine.demand_rules.memory_total_bytes = memory_total(topology);
  return engine;
}

}  // namespace topolet::machine
