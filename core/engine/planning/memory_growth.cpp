#include "core/engine/planning/memory_growth.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/placement/candidates.hpp"

namespace topolet::engine {
namespace {

/// Those that have all CPUs of the container. Where not every combination of nodes is a candidate, each node is added
/// once to those that it has.
std::vector<placement::Candidate> candidates_with(const CpuSet& cpus, const Placer& placer, const Allocation& before) {
  std::vector<placement::Candidate> candidates = placer.candidates();
  if (placement::omits_node_sets(candidates)) {
    const NodeSet now = placer.topology()->nodes_of(cpus) | before.placement.mems;
    for (const topology::Node& node : placer.topology()->nodes) {
      NodeSet more = now;
      more.insert(node.os_index);
      placement::add_proposed(candidates, *placer.topology(), more);
    }
  }
  std::erase_if(candidates, [&cpus](const auto& candidate) { return !cpus.is_subset_of(candidate.cpus); });
  return candidates;
}

placement::PolicyRequest request_on_its_cpus(const Placer& placer, const Ledger& ledger, const Allocation& before,
                                             const placement::Workload& requested) {
  placement::PolicyRequest request = make_request(placer.topology(), ledger.snapshot(&requested.key), requested, {},
                                                  placer.rules(), ledger.kubelet_hands_out_cpusets());
  const CpuSet& cpus = before.placement.cpus;
  // What it has counts, not what the rules would give it now.
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
  }
  request.exclusive_cpus = request.exclusive ? static_cast<std::uint32_t>(request.keep.size()) : 0;
  request.must_retain = true;
  request.candidates = candidates_with(request.keep, placer, before);
  return request;
}

placement::Decision decide(const Placer& placer, placement::PolicyRequest request) {
  // It takes no CPU from anybody.
  placement::PlacementRules rules = placer.rules();
  rules.min_shared_cpus = 0;
  return placer.deps().decide(std::make_shared<const placement::PolicyRequest>(std::move(request)), rules);
}

/// Whether the nodes that it has and keeps are of the candidate that won, or chosen anyway.
bool covers(const placement::Decision& decision, const NodeSet& kept) {
  return (kept - decision.placement.mems).is_subset_of(decision.nodes);
}

void keep_cpus(const Allocation& before, placement::Decision& decision) {
  const NodeSet mems = decision.placement.mems;
  decision.placement = before.placement;
  decision.placement.mems = mems;
  decision.within = before.within;
}

}  // namespace

bool needs_memory_decision(const Allocation& before, const placement::Demand& requested) {
  if (before.conflict || before.squeeze == Squeeze::kLeftToKernel) return false;
  if (before.placement.mems.empty() || !before.workload.kubelet_cpus.empty()) return false;
  return needs_more_memory(before.workload.demand, requested);
}

std::optional<placement::Decision> decide_on_memory(const Placer& placer, const Ledger& ledger,
                                                    const Allocation& before, const placement::Workload& requested) {
  placement::PolicyRequest request = request_on_its_cpus(placer, ledger, before, requested);
  if (request.keep.empty()) return std::nullopt;
  const bool only_gains = before.may_run() && !placer.rules().memory_migrate;
  const NodeSet kept = only_gains ? before.placement.mems : NodeSet();
  placement::PolicyRequest with_kept_nodes = request;
  std::erase_if(with_kept_nodes.candidates, [&](const placement::Candidate& candidate) {
    return !(kept & request.candidates.back().nodes).is_subset_of(candidate.nodes);
  });
  placement::Decision decision = decide(placer, std::move(with_kept_nodes));
  if (decision.denied) {
    // Memory nodes that belong to no candidate of few nodes are those nearest to CPUs without memory of their own.
    placement::Decision anywhere = decide(placer, std::move(request));
    if (!anywhere.denied && covers(anywhere, kept)) decision = std::move(anywhere);
  }
  if (decision.denied) return decision;
  keep_cpus(before, decision);
  retain_memory_nodes(before, placer.rules(), decision.placement);
  return decision;
}

}  // namespace topolet::engine
