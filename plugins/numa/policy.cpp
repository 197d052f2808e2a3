#include "plugins/numa/policy.hpp"

#include <algorithm>
#include <utility>

#include "plugins/numa/amounts.hpp"
#include "plugins/numa/asked.hpp"
#include "plugins/numa/core_order.hpp"
#include "plugins/numa/judge.hpp"
#include "plugins/numa/place.hpp"

namespace topolet::numa {
namespace {

using sdk::Set;

/// CPUs in the pool whose whole core is in nobody's hands but shared ones': the kubelet counts out what shares a core
/// with a reserved CPU.
std::size_t free_physical_cpus(const topolet_request& request) {
  const topolet_ledger& ledger = *request.ledger;
  Set free(ledger.pool);
  const Set reserved(ledger.reserved);
  for (std::size_t i = 0; i < request.topology->core_count && !reserved.empty(); ++i) {
    const topolet_set core = request.topology->cores[i];
    if (sdk::size_of_both(core, reserved.view()) > 0) free -= core;
  }
  return free.size();
}

std::size_t rounded_up(std::size_t cpus, std::size_t per_core) { return (cpus + per_core - 1) / per_core * per_core; }

/// In the kubelet's words, for those who look for them; empty if the request is fine.
std::string smt_alignment_error(const topolet_request& request, const Asked& asked, const PolicyOptions& options) {
  if (!options.order.full_pcpus_only || !asked.exclusive) return "";
  const std::size_t per_core = threads_per_core(*request.topology);
  if (asked.cpus % per_core != 0 && !options.rounds_up) {
    return "SMT Alignment Error: requested " + std::to_string(asked.cpus) +
           " cpus not multiple cpus per core = " + std::to_string(per_core) + " (full-pcpus-only)";
  }
  const std::size_t free = free_physical_cpus(request);
  if (rounded_up(asked.cpus, per_core) <= free) return "";
  return "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = " + std::to_string(free) +
         ", requested CPUs = " + std::to_string(asked.cpus) + ", CPUs per core = " + std::to_string(per_core) +
         " (full-pcpus-only)";
}

bool orders_cpus(const KubeletOrder& order) {
  return order.distribute_cpus_across_numa || order.distribute_cpus_across_cores ||
         order.prefer_align_cpus_by_uncorecache;
}

/// The fastest kind of CPUs that has enough, so that a container does not run on CPUs of two kinds.
Set of_one_kind(const topolet_topology& topology, topolet_set usable, std::size_t wanted) {
  const auto kinds = sdk::cpu_kinds(topology);
  for (std::size_t i = kinds.size(); i > 0; --i) {
    if (kinds[i - 1].efficiency == TOPOLET_NONE) continue;
    if (sdk::size_of_both(kinds[i - 1].cpus, usable) >= wanted) return Set(kinds[i - 1].cpus) & Set(usable);
  }
  return usable;
}

CpuOrder kubelets(const topolet_topology& topology, topolet_set usable, std::size_t wanted, const KubeletOrder& order) {
  CpuOrder taken{kubelet_order(Layout(topology), usable, wanted, order), "the kubelet's order"};
  if (order.distribute_cpus_across_numa) taken.reason += ", evenly over nodes if it takes more than one";
  if (order.distribute_cpus_across_cores) taken.reason += ", over cores";
  if (order.prefer_align_cpus_by_uncorecache) taken.reason += ", by cache";
  return taken;
}

CpuOrder tidiest(const topolet_topology& topology, topolet_set usable, std::size_t wanted, Strategy strategy,
                 bool several_nodes) {
  if (!several_nodes) return core_order(topology, usable, wanted, strategy);
  const std::vector<std::uint32_t> whole = whole_nodes(Layout(topology), usable, wanted);
  Set whole_set;
  for (const std::uint32_t cpu : whole) whole_set.insert(cpu);
  const Set rest = Set(usable) - whole_set;
  CpuOrder order = core_order(topology, rest.view(), wanted - whole.size(), strategy);
  order.cpus.insert(order.cpus.begin(), whole.begin(), whole.end());
  if (!whole.empty()) order.reason = "whole nodes" + (order.reason.empty() ? "" : ", " + order.reason);
  return order;
}

}  // namespace

std::vector<Verdict> Policy::score(const topolet_request& request) const {
  const Asked asked = asked_of(request, options_);
  std::string refusal = asked.bad_annotation;
  if (refusal.empty()) refusal = smt_alignment_error(request, asked, options_);
  if (!refusal.empty()) return {request.candidate_count, Verdict{TOPOLET_VERDICT_REJECT, 0, std::move(refusal)}};
  if (asked.alignment == Alignment::kNone && asked.exclusive) {
    return {request.candidate_count,
            Verdict{TOPOLET_VERDICT_ABSTAIN, 0, "policy none: any node will do, CPUs in the kubelet's order"}};
  }
  if (asked.alignment == Alignment::kNone || asked.nothing()) return {};

  const NodeMemory memory(*request.topology, *request.ledger, options_.reserved_memory,
                          asked.memory > 0 || asked.pod_memory > 0, asked.huge_pages);
  const std::vector<Place> places = places_of(request, asked, memory);
  const Judge judge(*request.topology, places, asked, options_);
  std::vector<Verdict> verdicts;
  verdicts.reserve(places.size());
  for (const Place& place : places) verdicts.push_back(judge.judge(place));
  return verdicts;
}

CpuOrder Policy::pick(const topolet_pick_request& picking) const {
  const topolet_request& request = *picking.request;
  // Once the CPUs are chosen there is nothing to add.
  const bool chosen = TOPOLET_HAS(&picking, chosen) && sdk::size_of(picking.chosen) > 0;
  if (request.exclusive == 0 || request.exclusive_cpus == 0 || chosen) return {};
  const topolet_topology& topology = *request.topology;
  std::size_t wanted = TOPOLET_HAS(&picking, count) ? picking.count : request.exclusive_cpus;
  if (options_.order.full_pcpus_only && options_.rounds_up) {
    const std::size_t whole = rounded_up(wanted, threads_per_core(topology));
    if (whole <= sdk::size_of(picking.usable)) wanted = whole;
  }
  if (alignment_of(*request.workload, options_) == Alignment::kNone) {
    return kubelets(topology, picking.usable, wanted, options_.order);
  }
  const Set usable = of_one_kind(topology, picking.usable, wanted);
  if (orders_cpus(options_.order)) return kubelets(topology, usable.view(), wanted, options_.order);
  const topolet_candidate& candidate = sdk::candidates(request)[picking.candidate];
  return tidiest(topology, usable.view(), wanted, options_.strategy, sdk::size_of(candidate.nodes) > 1);
}

MemoryBinding Policy::adjust(const topolet_adjust_request& adjusting) const {
  const topolet_request& request = *adjusting.request;
  const Asked asked = asked_of(request, options_);
  if (!asked.memory_bound || adjusting.mode == TOPOLET_MODE_FOREIGN) return {};
  const NodeMemory memory(*request.topology, *request.ledger, options_.reserved_memory, true, asked.huge_pages);
  const topolet_candidate& candidate = sdk::candidates(request)[adjusting.candidate];
  std::optional<Set> nodes =
      memory_nodes(*request.topology, memory, asked.memory, adjusting.cpus, candidate.nodes, adjusting.memory);
  if (!nodes) {
    return {std::nullopt, "memory not bound: " + bytes_text(asked.memory) + " are free on no nodes that it may use"};
  }
  std::string reason = "memory bound to node" + std::string(nodes->size() == 1 ? " " : "s ") + nodes->to_string();
  return {std::move(nodes), std::move(reason)};
}

void Policy::score(const topolet_request& request, sdk::Scores& scores) const { scores.give(score(request)); }

void Policy::pick(const topolet_pick_request& request, sdk::Picks& picks) const {
  const CpuOrder order = pick(request);
  if (order.cpus.empty()) return;
  picks.order(order.cpus);
  picks.reason(order.reason);
}

void Policy::adjust(const topolet_adjust_request& request, sdk::Adjustments& adjustments) const {
  const MemoryBinding binding = adjust(request);
  if (binding.nodes) adjustments.mems(binding.nodes->view());
  if (!binding.reason.empty()) adjustments.reason(binding.reason);
}

}  // namespace topolet::numa
