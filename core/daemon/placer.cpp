#include "core/daemon/placer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/placement/candidates.hpp"

namespace topolet {
namespace {

bool is_shared(const Holding& holding) {
  return holding.placement.mode == Mode::kShared || holding.placement.mode == Mode::kReserved;
}

/// Shared containers that would have to leave all CPUs they may use, unless the kubelet said where they are.
std::vector<ContainerKey> stranded_by(const Ledger& ledger, const ContainerKey& key, const Placement& placement) {
  std::vector<ContainerKey> stranded;
  CpuSet gone = placement.withheld;
  if (placement.mode == Mode::kExclusive) gone |= placement.cpus;
  if (!gone.intersects(ledger.pool())) return stranded;
  const CpuSet pool_after = ledger.pool() - gone;
  for (const auto& [other, holding] : ledger.holdings()) {
    if (other == key || !is_shared(holding) || holding.conflict || !holding.workload.kubelet_cpus.empty()) continue;
    if (!holding.within.intersects(gone)) continue;
    const CpuSet open = holding.placement.mode == Mode::kReserved ? pool_after | ledger.rules().reserved : pool_after;
    if (!holding.within.intersects(open)) stranded.push_back(other);
  }
  return stranded;
}

Holding holding_of(const Workload& workload, const Decision& decision) {
  Holding holding;
  holding.workload = workload;
  holding.placement = decision.placement;
  holding.within = decision.within;
  return holding;
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
  const Holding* crashed = ledger.find_crashed(workload.key);
  const ContainerKey* without = crashed != nullptr ? &crashed->workload.key : &workload.key;
  PolicyRequest request = make_request(parts_.topology, ledger.view(without), workload, parts_.candidates, parts_.rules,
                                       ledger.kubelet_hands_out_cpusets());
  if (terms.only_shared) {
    request.exclusive = false;
    request.exclusive_cpus = 0;
  }
  if (request.exclusive) {
    if (terms.exclusive_cpus > 0) request.exclusive_cpus = terms.exclusive_cpus;
    request.keep = terms.keep.cpus;
    request.keep_withheld = terms.keep.withheld | beside(*parts_.topology, terms.keep.cpus);
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
  PolicyRequest asked = request(ledger, workload, terms);
  std::string in_the_way;
  while (true) {
    Plan plan;
    plan.decision = decide(asked);
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
    std::erase_if(asked.candidates, [&](const Candidate& candidate) { return candidate.nodes == plan.decision.nodes; });
    asked.ruled_out.push_back(plan.decision.nodes);
  }
}

/// The error names somebody who has nowhere to go.
Result<std::vector<Move>> Placer::moves_for(const Ledger& ledger, const Workload& workload,
                                            const Decision& decision) const {
  std::vector<Move> moves;
  const std::vector<ContainerKey> stranded = stranded_by(ledger, workload.key, decision.placement);
  if (stranded.empty()) return moves;
  Ledger after = ledger;
  after.put(holding_of(workload, decision));
  for (const ContainerKey& key : stranded) {
    std::optional<Move> next = move(after, *ledger.find(key), workload);
    if (!next) {
      const Workload& left = ledger.find(key)->workload;
      return Error{
          Code::kResourceExhausted,
          fmt::format("{}/{}/{}, which shares CPUs, would have none left on node{} {}", left.pod_namespace,
                      left.pod_name, left.key.name, decision.nodes.size() == 1 ? "" : "s", decision.nodes.to_string())};
    }
    after.put(holding_of(next->workload, next->decision));
    moves.push_back(*std::move(next));
  }
  return moves;
}

std::optional<Move> Placer::move(const Ledger& after, const Holding& holding, const Workload& for_whom) const {
  Terms terms;
  terms.only_shared = true;
  Move move{holding.workload, decide(request(after, holding.workload, terms))};
  if (move.decision.denied || move.decision.placement.cpus.empty()) return std::nullopt;
  keep_memory(holding, parts_.rules, move.decision.placement);
  move.decision.placement.added = holding.placement.added;
  move.decision.reason = fmt::format("its CPUs go to {}/{}/{}; {}", for_whom.pod_namespace, for_whom.pod_name,
                                     for_whom.key.name, move.decision.reason);
  return move;
}

bool Placer::may_keep(const Ledger& ledger, const Workload& workload, const CpuSet& cpus) const {
  const PolicyRequest asked = request(ledger, workload, {});
  return asked.exclusive && asked.exclusive_cpus == cpus.size() &&
         validate({Mode::kExclusive, cpus, {}, {}}, asked.ledger, parts_.rules).ok();
}

Home home_of(const Holding& before, const Topology& topology) {
  if (before.home) return *before.home;
  Home home;
  home.placement.mode = before.placement.mode;
  home.within = before.within;
  if (before.placement.mode == Mode::kExclusive) {
    home.placement.cpus = before.placement.cpus;
    home.placement.withheld = before.placement.withheld - before.leaving;
  }
  home.nodes = topology.nodes_of(before.placement.mode == Mode::kExclusive ? before.placement.cpus : before.within);
  return home;
}

std::string told_of_withheld(const Placement& before, const Placement& now) {
  std::string text;
  const CpuSet given_up = before.withheld - now.withheld - now.cpus;
  if (!given_up.empty()) text += fmt::format("; CPUs {} are withheld no more", given_up.to_string());
  const CpuSet more = now.withheld - before.withheld;
  if (!more.empty()) text += fmt::format("; CPUs {} are withheld from now on", more.to_string());
  return text;
}

void keep_memory(const Holding& before, const DecideRules& rules, Placement& placement) {
  const NodeSet& had = before.placement.mems;
  if (placement.mems.empty()) {
    placement.mems = had;  // nothing in a request takes a set back
  } else if (before.started && !rules.memory_migrate) {
    // Without a set it may have memory on any node.
    placement.mems = had.empty() ? NodeSet() : had | placement.mems;
  }
}

}  // namespace topolet
