#include "core/engine/planning/memory_growth.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/engine/planning/crash_hold.hpp"
#include "core/placement/candidates.hpp"
#include "core/placement/make_request.hpp"
#include "core/placement/memory_nodes.hpp"
#include "core/placement/node_demand.hpp"

namespace topolet::engine {
namespace {

/// Returns the nodes whose memory is not all requested, the nearest to `from` first.
std::vector<std::uint32_t> nearest_with_room(const topology::Topology& topology, const Ledger& ledger,
                                             const NodeSet& from) {
  const std::vector<placement::NodeDemand> demands = placement::demand_by_node(topology, ledger.snapshot().entries);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> nodes;
  for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
    const topology::Node& node = topology.nodes[i];
    const bool is_full = node.memory_bytes > 0 && demands[i].memory_request_bytes >= node.memory_bytes;
    if (from.contains(node.os_index) || is_full) continue;
    NodeSet with = from;
    with.insert(node.os_index);
    nodes.emplace_back(topology.total_distance(with), node.os_index);
  }
  std::sort(nodes.begin(), nodes.end());
  std::vector<std::uint32_t> nearest;
  nearest.reserve(nodes.size());
  for (const auto& [distance, os_index] : nodes) nearest.push_back(os_index);
  return nearest;
}

/// Where not every combination of nodes is a candidate, each node is added once to those that it has, and then as many
/// of the nearest ones as there are.
std::vector<NodeSet> node_sets_beside(const CpuSet& cpus, const Placer& placer, const Ledger& ledger,
                                      const Allocation& before) {
  std::vector<NodeSet> sets;
  if (!placement::omits_node_sets(placer.candidates())) return sets;
  const topology::Topology& topology = *placer.topology();
  const NodeSet now = topology.nodes_of(cpus) | before.placement.mems;
  for (const topology::Node& node : topology.nodes) sets.push_back(now | NodeSet{node.os_index});
  NodeSet nearest = now;
  for (const std::uint32_t node : nearest_with_room(topology, ledger, now)) {
    nearest.insert(node);
    sets.push_back(nearest);
  }
  return sets;
}

std::vector<placement::Candidate> candidates_beside(const CpuSet& cpus, const Placer& placer, const Ledger& ledger,
                                                    const Allocation& before) {
  std::vector<placement::Candidate> candidates = placer.candidates();
  for (const NodeSet& nodes : node_sets_beside(cpus, placer, ledger, before))
    placement::add_proposed(candidates, *placer.topology(), nodes);
  return candidates;
}

/// A running container only gains memory nodes.
NodeSet kept_memory_nodes(const Placer& placer, const Allocation& before) {
  const bool only_gains = before.may_run() && !placer.rules().memory_migrate;
  return only_gains ? before.placement.mems : NodeSet();
}

placement::PolicyRequest request_on_its_cpus(const Placer& placer, const Ledger& ledger, const Allocation& before,
                                             const placement::Workload& requested) {
  placement::Workload asked = requested;
  placement::LedgerSnapshot view = ledger.snapshot(&requested.key);
  ledger.book_together(asked, view);
  placement::PolicyRequest request = make_request(placer.topology(), std::move(view), std::move(asked), {},
                                                  placer.rules(), ledger.kubelet_hands_out_cpusets());
  request.occasion = placement::Occasion::kResize;
  request.container_id = before.id_in_runtime();
  request.had = had_of(before);
  const CpuSet cpus = before.home_cpus();
  // Its present mode counts, not the one that the rules would give it now.
  request.exclusive = before.is_exclusive();
  if (request.exclusive) {
    request.from =
        cpus.intersects(request.ledger.isolated) ? placement::CpuSource::kIsolated : placement::CpuSource::kPool;
    request.keep = cpus & request.free();
    request.why_not_exclusive.reset();
    request.retained_withheld = before.placement.withheld | core_siblings_of(*placer.topology(), cpus);
  } else {
    if (!request.why_not_exclusive) request.why_not_exclusive = placement::NotExclusive::kOnlyAtCreation;
    request.shared_mode = before.placement.mode;
    request.keep = cpus & request.shared_cpus();
    // It has the reserved CPUs wherever it is placed.
    if (const CpuSet chosen = request.keep - request.ledger.reserved; !chosen.empty()) request.keep = chosen;
  }
  request.exclusive_cpus = request.exclusive ? static_cast<std::uint32_t>(request.keep.size()) : 0;
  request.must_retain = true;
  request.candidates = candidates_beside(request.keep, placer, ledger, before);
  return request;
}

placement::Decision decide(const Placer& placer, placement::PolicyRequest request) {
  // It takes no CPU from anybody.
  placement::PlacementRules rules = placer.rules();
  rules.min_shared_cpus = 0;
  return placer.deps().decide(std::make_shared<const placement::PolicyRequest>(std::move(request)), rules);
}

/// Returns true if the nodes that it has and keeps belong to the candidate that won, or were chosen anyway, or it gains
/// none.
bool covers(const placement::Decision& decision, const NodeSet& kept) {
  const NodeSet& mems = decision.placement.mems;
  return (kept - mems).is_subset_of(decision.nodes) || mems.is_subset_of(kept);
}

void keep_cpus(const Allocation& before, placement::Decision& decision) {
  const NodeSet mems = decision.placement.mems;
  decision.placement = before.placement;
  decision.placement.mems = mems;
  decision.within = before.within;
}

/// Nobody binds its memory any more, or there is nowhere enough for it: as a new one it would not be bound. That cannot
/// be said of a container that has memory nodes, but that it may use all.
void bind_to_all_if_to_none(const placement::PolicyRequest& request, placement::Decision& decision) {
  if (decision.placement.mems.empty()) decision.placement.mems = allowed_memory_nodes(request);
}

placement::Decision decide_with(const Placer& placer, const Allocation& before,
                                const placement::PolicyRequest& request) {
  const NodeSet kept = kept_memory_nodes(placer, before);
  placement::PolicyRequest with_kept_nodes = request;
  with_kept_nodes.keep_nodes = kept & request.candidates.back().nodes;
  placement::Decision decision = decide(placer, std::move(with_kept_nodes));
  if (decision.denied) {
    // Memory nodes that belong to no candidate of few nodes are those nearest to CPUs without memory of their own.
    placement::Decision anywhere = decide(placer, request);
    if (anywhere.denied || covers(anywhere, kept)) decision = std::move(anywhere);
  }
  if (decision.denied) return decision;
  bind_to_all_if_to_none(request, decision);
  keep_cpus(before, decision);
  retain_memory_nodes(before, placer.rules(), decision.placement);
  return decision;
}

}  // namespace

bool needs_memory_decision(const Allocation& before, const placement::Demand& requested) {
  if (before.conflict || before.squeeze == Squeeze::kLeftToKernel) return false;
  if (before.placement.mems.empty() || !before.workload.kubelet_cpus.empty()) return false;
  return needs_more_memory(before.workload.demand, requested);
}

std::optional<MemoryDecision> decide_on_memory(const Placer& placer, const Ledger& ledger, const Allocation& before,
                                               const placement::Workload& requested) {
  const auto decide_in = [&](const Ledger& as_it_is) -> std::optional<placement::Decision> {
    const placement::PolicyRequest request = request_on_its_cpus(placer, as_it_is, before, requested);
    if (request.keep.empty()) return std::nullopt;
    return decide_with(placer, before, request);
  };
  std::optional<placement::Decision> decision = decide_in(ledger);
  if (!decision) return std::nullopt;
  if (!decision->denied) return MemoryDecision{*std::move(decision), {}};
  const auto suffices = [&](const Ledger& trial) {
    const auto with = decide_in(trial);
    return with && !with->denied;
  };
  const auto yielding = yielding_until(ledger, requested.key, suffices);
  if (!yielding) return MemoryDecision{*std::move(decision), {}};
  std::optional<Ledger> trial;
  return MemoryDecision{*decide_in(ledger_without(ledger, *yielding, trial)), *yielding};
}

Plan plan_other_size(const Placer& placer, const Ledger& ledger, const Allocation& before,
                     const placement::Workload& requested, Placer::Constraints constraints) {
  Plan plan = reclaim_and_plan(placer, ledger, requested, constraints);
  const NodeSet kept = kept_memory_nodes(placer, before);
  const bool is_bound_by_policies = !kept.empty() && requested.kubelet_mems.empty();
  if (!is_bound_by_policies || (!plan.decision.denied && covers(plan.decision, kept))) return plan;
  constraints.keep_nodes = kept & placer.candidates().back().nodes;
  constraints.also_among = node_sets_beside(before.home_cpus(), placer, ledger, before);
  Plan on_kept_nodes = reclaim_and_plan(placer, ledger, requested, constraints);
  // If both are denied, the denial for all nodes says more.
  return plan.decision.denied && on_kept_nodes.decision.denied ? plan : on_kept_nodes;
}

}  // namespace topolet::engine
