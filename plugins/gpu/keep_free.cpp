#include <algorithm>
#include <set>

#include "plugins/gpu/judge.hpp"
#include "plugins/gpu/locality.hpp"

namespace topolet::gpu {
namespace {

using Nodes = std::vector<std::uint32_t>;  // positions

/// CPUs that are asked for already, by shared containers, in thousandths.
std::int64_t shared_demand(const topolet_request& request, const Nodes& nodes) {
  std::int64_t sum = 0;
  for (const std::uint32_t node : nodes) {
    if (node >= request.ledger->node_demand_count) continue;
    const topolet_node_demand& demand = sdk::node_demands(*request.ledger)[node];
    sum += std::max<std::int64_t>(0, demand.cpu_request_milli - std::int64_t{1000} * demand.exclusive_cpus);
  }
  return sum;
}

bool has_room(const topolet_request& request, const topolet_candidate& candidate, const Nodes& nodes) {
  const auto free = static_cast<std::int64_t>(sdk::size_of(candidate.free));
  if (request.exclusive != 0) return free >= request.exclusive_cpus;
  const topolet_demand* const demand = request.workload->demand;
  const std::int64_t asked = demand == nullptr ? 0 : demand->cpu_request_milli;
  return free > 0 && shared_demand(request, nodes) + asked <= 1000 * free;
}

/// Nodes of accelerators, by position; those of devices near to every node don't count.
std::set<std::uint32_t> nodes_with_accelerators(const topolet_topology& topology, const CpuNodes& nodes) {
  std::set<std::uint32_t> found;
  const auto add = [&](const Spot& spot) {
    if (!is_accelerator(topology, spot)) return;
    const Nodes homes = homes_of(topology, spot);
    if (homes.size() < nodes.positions().size()) found.insert(homes.begin(), homes.end());
  };
  for (std::uint32_t i = 0; i < topology.pci_device_count; ++i) add({.pci_device = i});
  for (std::uint32_t i = 0; i < topology.os_device_count; ++i) {
    if (sdk::os_devices(topology)[i].pci_device == TOPOLET_NONE) add({.os_device = i});
  }
  return found;
}

}  // namespace

std::vector<Verdict> judge_keeping_free(const topolet_request& request) {
  // With the plugin's own weight: between them more than what a node more costs, less than what isolation is worth.
  constexpr std::int32_t kPoints = 4;
  const CpuNodes nodes(*request.topology);
  const std::set<std::uint32_t> kept = nodes_with_accelerators(*request.topology, nodes);
  if (kept.empty() || kept.size() == nodes.positions().size()) return {};

  sdk::Set kept_set;
  for (const std::uint32_t node : kept) kept_set.insert(nodes.os_index(node));
  std::vector<Verdict> verdicts;
  bool is_room_elsewhere = false;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    const Nodes usable = nodes.usable(candidate.nodes, candidate.free);
    const auto inside = static_cast<std::int32_t>(
        std::count_if(usable.begin(), usable.end(), [&kept](std::uint32_t node) { return kept.contains(node); }));
    const std::string where = nodes_text(candidate.nodes);
    if (inside > 0) {
      verdicts.push_back({TOPOLET_VERDICT_SCORE, -kPoints * inside / static_cast<std::int32_t>(usable.size()),
                          where + ": GPUs of " + nodes_text(kept_set) + " are kept free"});
    } else if (has_room(request, candidate, usable)) {
      is_room_elsewhere = true;
      verdicts.push_back({TOPOLET_VERDICT_SCORE, kPoints, where + ": room, and no GPUs"});
    } else {
      verdicts.push_back({TOPOLET_VERDICT_ABSTAIN, 0, where + ": no GPUs, but no room either"});
    }
  }
  if (is_room_elsewhere) return verdicts;
  return {request.candidate_count,
          Verdict{TOPOLET_VERDICT_ABSTAIN, 0, "no room away from the GPUs of " + nodes_text(kept_set)}};
}

}  // namespace topolet::gpu
