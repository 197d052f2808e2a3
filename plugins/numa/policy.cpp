#include "plugins/numa/policy.hpp"

#include <algorithm>
#include <utility>

#include "plugins/numa/amounts.hpp"
#include "plugins/numa/asked.hpp"
#include "plugins/numa/core_order.hpp"
#include "plugins/numa/judge.hpp"
#include "plugins/numa/place.hpp"
#include "plugins/numa/whole_cores.hpp"

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

std::string not_multiple(std::size_t cpus, std::size_t per_core) {
  return "SMT Alignment Error: requested " + std::to_string(cpus) +
         " cpus not multiple cpus per core = " + std::to_string(per_core) + " (full-pcpus-only)";
}

std::string too_few_physical_cpus(std::size_t cpus, std::size_t free, std::size_t per_core) {
  return "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = " + std::to_string(free) +
         ", requested CPUs = " + std::to_string(cpus) + ", CPUs per core = " + std::to_string(per_core) +
         " (full-pcpus-only)";
}

/// Whole cores as the places of an exclusive request have them.
struct CoresThere {
  explicit CoresThere(const topolet_request& request)
      : free(*request.topology, anywhere(request, &topolet_candidate::free).view()),
        allowed(*request.topology, anywhere(request, &topolet_candidate::cpus).view()) {}

  static Set anywhere(const topolet_request& request, topolet_set topolet_candidate::*cpus) {
    Set all;
    for (const topolet_candidate& candidate : sdk::candidates(request)) all |= Set(candidate.*cpus);
    return all;
  }

  /// Of cores that are not alike only those will do that add up to the request. Where all are alike that is for the
  /// kubelet's rule to say, which counts free CPUs: it's as good as whole cores, unless some are better.
  bool must_fit() const { return free.uneven(); }
  bool fit(const topolet_request& request, const topolet_candidate& candidate) const {
    return free.make_up(request.exclusive_cpus, candidate.free);
  }

  WholeCores free;
  WholeCores allowed;
};

/// The kubelet's rule divides by an average of threads; where cores differ, that says nothing about any of them.
std::string uneven_alignment_error(const topolet_request& request, const CoresThere& cores) {
  std::size_t most = 0;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    if (cores.fit(request, candidate)) return "";
    most = std::max(most, sdk::size_of_both(cores.free.cpus().view(), candidate.free));
  }
  if (most >= request.exclusive_cpus) return not_multiple(request.exclusive_cpus, cores.free.most_threads());
  return too_few_physical_cpus(request.exclusive_cpus, most, threads_per_core(*request.topology));
}

/// In the kubelet's words, for those who look for them; empty if the request is fine.
std::string smt_alignment_error(const topolet_request& request, const Asked& asked,
                                const std::optional<CoresThere>& cores, const PolicyOptions& options) {
  if (!options.order.full_pcpus_only || !asked.exclusive) return "";
  if (cores && cores->must_fit()) return uneven_alignment_error(request, *cores);
  const std::size_t per_core = threads_per_core(*request.topology);
  if (asked.cpus % per_core != 0 && !options.rounds_up) return not_multiple(asked.cpus, per_core);
  const std::size_t free = free_physical_cpus(request);
  return rounded_up(asked.cpus, per_core) <= free ? "" : too_few_physical_cpus(asked.cpus, free, per_core);
}

/// Under policy none any node will do, unless it would take parts of cores that are not alike.
std::vector<Verdict> indifferent(const topolet_request& request, const std::optional<CoresThere>& cores) {
  std::vector<Verdict> verdicts;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    const bool has_room = sdk::size_of(candidate.free) >= request.exclusive_cpus;
    if (cores && cores->must_fit() && has_room && !cores->fit(request, candidate)) {
      verdicts.push_back({TOPOLET_VERDICT_REJECT, 0, "no whole free cores there make up the CPUs (full-pcpus-only)"});
    } else {
      verdicts.push_back({TOPOLET_VERDICT_ABSTAIN, 0, "policy none: any node will do, CPUs in the kubelet's order"});
    }
  }
  return verdicts;
}

void count_cores(const topolet_request& request, const CoresThere& cores, std::vector<Place>& places) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    const topolet_candidate& candidate = sdk::candidates(request)[i];
    places[i].must_fit_cores = cores.must_fit();
    places[i].cores_fit = cores.fit(request, candidate);
    places[i].cores_could_fit = !cores.must_fit() || cores.allowed.make_up(request.exclusive_cpus, candidate.cpus);
  }
}

bool orders_cpus(const KubeletOrder& order) {
  return order.distribute_cpus_across_numa || order.distribute_cpus_across_cores ||
         order.prefer_align_cpus_by_uncorecache;
}

/// The kinds from the fastest to the slowest, unknown ones last.
std::vector<topolet_set> kinds_by_speed(const topolet_topology& topology) {
  std::vector<topolet_set> known;
  std::vector<topolet_set> unknown;
  const auto kinds = sdk::cpu_kinds(topology);
  for (std::size_t i = kinds.size(); i > 0; --i) {
    (kinds[i - 1].efficiency == TOPOLET_NONE ? unknown : known).push_back(kinds[i - 1].cpus);
  }
  known.insert(known.end(), unknown.begin(), unknown.end());
  return known;
}

/// The fastest kind of CPUs that has enough, so that a container does not run on CPUs of two kinds.
Set of_one_kind(const topolet_topology& topology, topolet_set usable, std::size_t wanted) {
  for (const topolet_set kind : kinds_by_speed(topology)) {
    if (sdk::size_of_both(kind, usable) >= wanted) return Set(kind) & Set(usable);
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

Set first_of(const CpuOrder& order, std::size_t wanted) {
  Set first;
  for (std::size_t i = 0; i < std::min(wanted, order.cpus.size()); ++i) first.insert(order.cpus[i]);
  return first;
}

/// Of CPUs all of which will do.
CpuOrder ordered(const topolet_pick_request& picking, topolet_set usable, std::size_t wanted,
                 const PolicyOptions& options) {
  const topolet_request& request = *picking.request;
  const topolet_topology& topology = *request.topology;
  if (alignment_of(*request.workload, options) == Alignment::kNone || orders_cpus(options.order)) {
    return kubelets(topology, usable, wanted, options.order);
  }
  const topolet_candidate& candidate = sdk::candidates(request)[picking.candidate];
  return tidiest(topology, usable, wanted, options.strategy, sdk::size_of(candidate.nodes) > 1);
}

/// Whole cores of the fastest kind that can make up the request, else of several kinds. Nothing if none can, and where
/// all cores are alike: there any order begins with whole cores.
std::optional<CpuOrder> in_whole_cores(const topolet_pick_request& picking, std::size_t wanted,
                                       const PolicyOptions& options) {
  const topolet_topology& topology = *picking.request->topology;
  const WholeCores cores(topology, picking.usable);
  const std::vector<topolet_set> kinds = kinds_by_speed(topology);
  const bool alike = !cores.uneven() && kinds.size() < 2;
  if (alike || !cores.make_up(wanted, picking.usable)) return std::nullopt;
  Set fastest;
  Set of_able_kinds;
  for (const topolet_set kind : kinds) {
    if (!cores.make_up(wanted, kind)) continue;
    of_able_kinds |= Set(kind) & Set(picking.usable);
    if (fastest.empty()) fastest = of_able_kinds;
  }
  const Set within = fastest.empty() ? Set(picking.usable) : fastest;
  CpuOrder order = ordered(picking, within.view(), wanted, options);
  if (!are_whole_cores(topology, first_of(order, wanted).view())) {
    order = whole_core_order(topology, (within & cores.cpus()).view(), wanted, options.strategy);
  }
  // Of the kinds that are left the core takes the fastest that has enough CPUs, and those that the container has.
  if (kinds.size() > 1) order.narrow = fastest.empty() ? first_of(order, wanted) : std::move(of_able_kinds);
  if (order.narrow == Set(picking.usable)) order.narrow = {};
  return order;
}

/// What others want of a container may leave it parts of cores; empty if it didn't.
std::string part_cores_error(const topolet_pick_request& picking) {
  const WholeCores cores(*picking.request->topology, picking.chosen);
  const Set parts = Set(picking.chosen) - cores.cpus();
  if (!cores.uneven() || parts.empty()) return "";
  return (parts.size() == 1 ? "CPU " : "CPUs ") + parts.to_string() +
         (parts.size() == 1 ? " is no whole core" : " are no whole cores") + " (full-pcpus-only)";
}

}  // namespace

std::vector<Verdict> Policy::score(const topolet_request& request) const {
  const Asked asked = asked_of(request, options_);
  std::string refusal = asked.bad_annotation;
  std::optional<CoresThere> cores;
  if (options_.whole_cores_only() && asked.exclusive) cores.emplace(request);
  if (refusal.empty()) refusal = smt_alignment_error(request, asked, cores, options_);
  if (!refusal.empty()) return {request.candidate_count, Verdict{TOPOLET_VERDICT_REJECT, 0, std::move(refusal)}};
  if (asked.alignment == Alignment::kNone && asked.exclusive) return indifferent(request, cores);
  if (asked.alignment == Alignment::kNone || asked.nothing()) return {};

  const NodeMemory memory(*request.topology, *request.ledger, options_.reserved_memory,
                          asked.memory > 0 || asked.pod_memory > 0, asked.huge_pages);
  std::vector<Place> places = places_of(request, asked, memory);
  if (cores) count_cores(request, *cores, places);
  const Judge judge(*request.topology, places, asked, options_);
  std::vector<Verdict> verdicts;
  verdicts.reserve(places.size());
  for (const Place& place : places) verdicts.push_back(judge.judge(place));
  return verdicts;
}

CpuOrder Policy::pick(const topolet_pick_request& picking) const {
  const topolet_request& request = *picking.request;
  const bool chosen = TOPOLET_HAS(&picking, chosen) && sdk::size_of(picking.chosen) > 0;
  if (request.exclusive == 0 || request.exclusive_cpus == 0) return {};
  // Once the CPUs are chosen there is nothing to order.
  if (chosen) return {{}, {}, {}, options_.whole_cores_only() ? part_cores_error(picking) : ""};
  const topolet_topology& topology = *request.topology;
  std::size_t wanted = TOPOLET_HAS(&picking, count) ? picking.count : request.exclusive_cpus;
  if (options_.order.full_pcpus_only && options_.rounds_up) {
    const std::size_t whole = rounded_up(wanted, threads_per_core(topology));
    if (whole <= sdk::size_of(picking.usable)) wanted = whole;
  }
  if (options_.whole_cores_only()) {
    if (std::optional<CpuOrder> whole = in_whole_cores(picking, wanted, options_)) return *std::move(whole);
  }
  const bool none = alignment_of(*request.workload, options_) == Alignment::kNone;
  const Set usable = none ? Set(picking.usable) : of_one_kind(topology, picking.usable, wanted);
  return ordered(picking, usable.view(), wanted, options_);
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
  if (!order.rejection.empty()) picks.reject(order.rejection);
  if (order.cpus.empty()) return;
  if (!order.narrow.empty()) picks.narrow(order.narrow.view());
  picks.order(order.cpus);
  picks.reason(order.reason);
}

void Policy::adjust(const topolet_adjust_request& request, sdk::Adjustments& adjustments) const {
  const MemoryBinding binding = adjust(request);
  if (binding.nodes) adjustments.mems(binding.nodes->view());
  if (!binding.reason.empty()) adjustments.reason(binding.reason);
}

}  // namespace topolet::numa
