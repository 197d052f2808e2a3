#include "core/machine/machine.hpp"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "core/base/host_name.hpp"
#include "core/placement/candidates.hpp"

namespace topolet::machine {
namespace {

std::int64_t memory_total(const topology::Topology& topology) {
  return std::accumulate(topology.nodes.begin(), topology.nodes.end(), std::int64_t{0},
                         [](std::int64_t sum, const topology::Node& node) { return sum + node.memory_bytes; });
}

}  // namespace

Status check_machine(const topology::Topology& topology, const config::PlacementOptions& options,
                     const std::optional<CpuSet>& pods) {
  if (const CpuSet unknown = options.reserved_cpus - topology.present; !unknown.empty()) {
    return Error{Code::kInvalidArgument,
                 fmt::format("placement.reserved-cpus names CPUs that this machine does not have: {}; it has {}",
                             unknown.to_string(), topology.present.to_string())};
  }
  const CpuSet offline = topology.present - topology.online;
  CpuSet allowed = topology.allowed | offline;
  // While CPUs are offline, the kernel leaves them out of the pods' cgroup too.
  if (pods) allowed &= *pods | offline;
  if (options.allowed_cpus) allowed &= *options.allowed_cpus;
  if (allowed.empty()) {
    return Error{
        Code::kFailedPrecondition,
        fmt::format("no CPU is left to place containers on: online are {}, the pods' cgroup may use {}, "
                    "placement.allowed-cpus is {}",
                    topology.online.empty() ? "none" : topology.online.to_string(), pods ? pods->to_string() : "all",
                    options.allowed_cpus ? options.allowed_cpus->to_string() : "all")};
  }
  const CpuSet reserved = options.reserved_cpus & allowed;
  if ((allowed - reserved - topology.isolated).empty()) {
    return Error{
        Code::kFailedPrecondition,
        fmt::format("no CPU is left for the shared pool: containers may use {}, of which {} are reserved "
                    "(placement.reserved-cpus) and {} isolated by the kernel",
                    allowed.to_string(), reserved.empty() ? "none" : reserved.to_string(),
                    (topology.isolated & allowed).empty() ? "none" : (topology.isolated & allowed).to_string())};
  }
  return {};
}

engine::Engine::Machine make_machine(std::shared_ptr<const topology::Topology> topology,
                                     const config::PlacementOptions& options, const std::optional<CpuSet>& pods) {
  engine::CpuInventory cpus{topology->allowed, {}, topology->isolated};
  if (pods) cpus.allowed &= *pods;
  if (options.allowed_cpus) cpus.allowed &= *options.allowed_cpus;
  cpus.reserved = options.reserved_cpus & cpus.allowed;
  std::vector<placement::Candidate> candidates = placement::make_candidates(*topology, cpus.allowed);
  return {std::move(topology), std::move(candidates), std::move(cpus)};
}

placement::PlacementRules placement_rules(const config::PlacementOptions& options) {
  placement::PlacementRules rules = options.rules;
  if (rules.node_name.empty()) rules.node_name = host_name_in_lower_case();
  return rules;
}

engine::Engine::Options engine_options(const config::PlacementOptions& options, const topology::Topology& topology) {
  engine::Engine::Options engine;
  engine.runtime_handlers = options.handlers;
  engine.confine_foreign = options.confine_foreign;
  engine.doubt_timeout = options.pending_timeout;
  engine.start_grace = options.start_grace;
  engine.demand_rules.memory_total_bytes = memory_total(topology);
  return engine;
}

}  // namespace topolet::machine
