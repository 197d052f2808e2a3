#include "core/engine/planning/placer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/placement/candidates.hpp"

namespace topolet::engine {
namespace {

/// Shared containers that would have to leave all CPUs they may use, unless the kubelet said where they are.
std::vector<ContainerKey> stranded_by(const Ledger& ledger, const ContainerKey& key, const Placement& placement) {
  std::vector<ContainerKey> stranded;
  CpuSet gone = placement.withheld;
  if (placement.mode == Mode::kExclusive) gone |= placement.cpus;
  if (!gone.intersects(ledger.pool())) return stranded;
  const CpuSet pool_after = ledger.pool() - gone;
  const CpuSet reserved = ledger.free_reserved();
  for (const auto& [other, allocation] : ledger.allocations()) {
    if (other == key || !allocation.follows_pool() || allocation.conflict || !allocation.workload.kubelet_cpus.empty())
      continue;
    if (!allocation.within.intersects(gone)) continue;
    const CpuSet open = allocation.placement.mode == Mode::kReserved ? pool_after | reserved : pool_after;
    if (!allocation.within.intersects(open)) stranded.push_back(other);
  }
  return stranded;
}

Allocation allocation_of(const Workload& workload, const Decision& decision) {
  Allocation allocation;
  allocation.workload = workload;
  allocation.placement = decision.placement;
  allocation.within = decision.within;
  return allocation;
}

}  // namespace

CpuSet beside(const Topology& topology, const CpuSet& cpus) {
  CpuSet cores;
  for (const CpuSet& core : topology.cores) {
    if (core.intersects(cpus)) cores |= core;
  }
  return cores - cpus;
}

PolicyRequest Placer::request(const Ledger& ledger, const Workload& workload, const Terms& terms) const {
  const Allocation* crashed = ledger.find_crashed(workload.key);
  const ContainerKey* without = crashed != nullptr ? &crashed->workload.key : &workload.key;
  PolicyRequest request = make_request(deps_.topology, ledger.view(without), workload, deps_.candidates, deps_.rules,
                                       ledger.kubelet_hands_out_cpusets());
  if (terms.only_shared) {
    request.exclusive = false;
    request.exclusive_cpus = 0;
  }
  if (request.exclusive) {
    if (terms.exclusive_cpus > 0) request.exclusive_cpus = terms.exclusive_cpus;
    request.keep = terms.keep.cpus;
    request.keep_withheld = terms.keep.withheld | beside(*deps_.topology, terms.keep.cpus);
    request.must_keep = terms.must_keep;
  }
  if (request.exclusive) {
    add_emptiest(request.candidates, *request.topology, request.free(), request.exclusive_cpus);
  }
  if (terms.within) {
    std::erase_if(request.candidates,
                  [&](const Candidate& candidate) { return !candidate.nodes.is_subset_of(*terms.within); });
  }
  if (terms.nodes) {
    std::erase_if(request.candidates, [&](const Candidate& candidate) { return candidate.nodes != *terms.nodes; });
  }
  return request;
}

Plan Placer::plan(const Ledger& ledger, const Workload& workload, const Terms& terms) const {
  auto asked = std::make_shared<const PolicyRequest>(request(ledger, workload, terms));
  std::string in_the_way;
  while (true) {
    Plan plan;
    plan.decision = deps_.decide(asked, deps_.rules);
    if (plan.decision.denied) plan.decision.reason += in_the_way;
    if (plan.decision.denied || plan.decision.conflict) return plan;
    Result<std::vector<Move>> moves = moves_for(ledger, workload, plan.decision);
    if (moves) {
      plan.moves = *std::move(moves);
      return plan;
    }
    // What the kubelet says has no next best.
    if (!workload.kubelet_cpus.empty()) return plan;
    if (in_the_way.empty()) in_the_way = "; " + moves.error().message;
    PolicyRequest next = *asked;
    std::erase_if(next.candidates, [&](const Candidate& candidate) { return candidate.nodes == plan.decision.nodes; });
    next.ruled_out.push_back(plan.decision.nodes);
    asked = std::make_shared<const PolicyRequest>(std::move(next));
  }
}

/// The error names somebody who has nowhere to go.
Result<std::vector<Move>> Placer::moves_for(const Ledger& ledger, const Workload& workload,
                                            const Decision& decision) const {
  std::vector<Move> moves;
  const std::vector<ContainerKey> stranded = stranded_by(ledger, workload.key, decision.placement);
  if (stranded.empty()) return moves;
  Ledger after = ledger;
  after.assume(allocation_of(workload, decision));
  for (const ContainerKey& key : stranded) {
    std::optional<Move> next = move(after, *ledger.find(key), workload);
    if (!next) {
      const Workload& left = ledger.find(key)->workload;
      return Error{
          Code::kResourceExhausted,
          fmt::format("{}/{}/{}, which shares CPUs, would have none left on node{} {}", left.pod_namespace,
                      left.pod_name, left.key.name, decision.nodes.size() == 1 ? "" : "s", decision.nodes.to_string())};
    }
    after.assume(allocation_of(next->workload, next->decision));
    moves.push_back(*std::move(next));
  }
  return moves;
}

std::optional<Move> Placer::move(const Ledger& after, const Allocation& allocation, const Workload& for_whom) const {
  Terms terms;
  terms.only_shared = true;
  const auto asked = std::make_shared<const PolicyRequest>(request(after, allocation.workload, terms));
  Move move{allocation.workload, deps_.decide(asked, deps_.rules), preferred_of(allocation, *deps_.topology)};
  if (move.decision.denied || move.decision.placement.cpus.empty()) return std::nullopt;
  keep_memory(allocation, deps_.rules, move.decision.placement);
  move.decision.reason = fmt::format("its CPUs go to {}/{}/{}; {}", for_whom.pod_namespace, for_whom.pod_name,
                                     for_whom.key.name, move.decision.reason);
  return move;
}

bool Placer::may_keep(const Ledger& ledger, const Workload& workload, const CpuSet& cpus) const {
  const PolicyRequest asked = request(ledger, workload, {});
  return asked.exclusive && asked.exclusive_cpus == cpus.size() &&
         validate({Mode::kExclusive, cpus, {}, {}}, asked.ledger, deps_.rules).ok();
}

Preferred preferred_of(const Allocation& before, const Topology& topology) {
  if (before.preferred) return *before.preferred;
  Preferred preferred;
  preferred.placement.mode = before.placement.mode;
  preferred.within = before.within;
  if (before.is_exclusive()) {
    preferred.placement.cpus = before.placement.cpus;
    preferred.placement.withheld = before.placement.withheld;
  }
  preferred.nodes = topology.nodes_of(before.is_exclusive() ? before.placement.cpus : before.within);
  return preferred;
}

std::string told_of_withheld(const Placement& before, const Placement& now) {
  std::string text;
  const CpuSet given_up = before.withheld - now.withheld - now.cpus;
  if (!given_up.empty()) text += fmt::format("; CPUs {} are withheld no more", given_up.to_string());
  const CpuSet more = now.withheld - before.withheld;
  if (!more.empty()) text += fmt::format("; CPUs {} are withheld from now on", more.to_string());
  return text;
}

void keep_memory(const Allocation& before, const DecideRules& rules, Placement& placement) {
  const NodeSet& had = before.placement.mems;
  if (placement.mems.empty()) {
    placement.mems = had;  // nothing in a request takes a set back
  } else if (before.may_run() && !rules.memory_migrate) {
    // Without a set it may have memory on any node.
    placement.mems = had.empty() ? NodeSet() : had | placement.mems;
  }
}

}  // namespace topolet::engine
