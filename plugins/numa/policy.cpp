#include "plugins/numa/policy.hpp"

#include <algorithm>
#include <utility>

#include "plugins/numa/candidate_resources.hpp"
#include "plugins/numa/candidate_scorer.hpp"
#include "plugins/numa/core_order.hpp"
#include "plugins/numa/demand.hpp"
#include "plugins/numa/quantities.hpp"
#include "plugins/numa/room.hpp"
#include "plugins/numa/whole_cores.hpp"
#include "plugins/numa/zone.hpp"

namespace topolet::numa {
namespace {

using sdk::Set;

/// CPUs of the pool, less those that share a core with a reserved CPU, which the kubelet does not count.
std::size_t free_physical_cpus(const topolet_request& request) {
  const topolet_ledger& ledger = *request.ledger;
  Set free(ledger.pool);
  const Set reserved(ledger.reserved_cpus);
  for (std::size_t i = 0; i < request.topology->core_count && !reserved.empty(); ++i) {
    const topolet_set core = request.topology->cores[i];
    if (sdk::size_of_both(core, reserved.view()) > 0) free -= core;
  }
  return free.size();
}

/// A container that was placed before and is to stay where it is, with as many CPUs: it is offered its own and the rest
/// of their cores.
bool is_offered_its_own(const topolet_request& request) {
  if (request.exclusive == 0) return false;
  const bool gives_back =
      request.occasion == TOPOLET_OCCASION_RESIZE && sdk::size_of(request.had_cpus) > request.exclusive_cpus;
  if (gives_back) return false;
  const Set offered = sdk::union_of_candidates(request, &topolet_candidate::usable);
  Set open = sdk::union_of_candidates(request, &topolet_candidate::cpus);
  open &= request.ledger->pool;
  if (offered.empty() || offered == open || !(offered - open).empty()) return false;
  std::size_t cores = 0;
  for (std::size_t i = 0; i < request.topology->core_count; ++i) {
    if (sdk::size_of_both(request.topology->cores[i], offered.view()) > 0) ++cores;
  }
  return cores <= request.exclusive_cpus;
}

std::size_t rounded_up(std::size_t cpus, std::size_t per_core) { return (cpus + per_core - 1) / per_core * per_core; }

std::string not_a_multiple(std::size_t cpus, std::size_t per_core) {
  return "SMT Alignment Error: requested " + std::to_string(cpus) +
         " cpus not multiple cpus per core = " + std::to_string(per_core) + " (full-pcpus-only)";
}

std::string too_few_physical_cpus(std::size_t cpus, std::size_t free, std::size_t per_core) {
  return "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = " + std::to_string(free) +
         ", requested CPUs = " + std::to_string(cpus) + ", CPUs per core = " + std::to_string(per_core) +
         " (full-pcpus-only)";
}

/// The whole cores of all candidates of a request for exclusive CPUs.
struct CandidateCores {
  explicit CandidateCores(const topolet_request& request)
      : free(*request.topology, sdk::union_of_candidates(request, &topolet_candidate::usable).view()),
        allowed(*request.topology, sdk::union_of_candidates(request, &topolet_candidate::cpus).view()) {}

  /// Returns true if whole cores must add up to the request. If all cores are of one size the kubelet's rule holds,
  /// which counts free CPUs; whole cores are then only preferred.
  bool required() const { return free.sizes_differ(); }
  bool fit(const topolet_request& request, const topolet_candidate& candidate) const {
    return free.add_up_to(request.exclusive_cpus, candidate.usable);
  }

  WholeCores free;
  WholeCores allowed;
};

/// For machines whose cores differ in size, where the kubelet's rule, which divides by the average size, means nothing.
std::string alignment_error_of_unequal_cores(const topolet_request& request, const CandidateCores& cores) {
  std::size_t most = 0;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    if (cores.fit(request, candidate)) return "";
    most = std::max(most, sdk::size_of_both(cores.free.cpus().view(), candidate.usable));
  }
  if (most >= request.exclusive_cpus) return not_a_multiple(request.exclusive_cpus, cores.free.most_threads());
  return too_few_physical_cpus(request.exclusive_cpus, most, sdk::threads_per_core(*request.topology));
}

/// The violation of full-pcpus-only in the kubelet's own words, so that they can be searched for; empty if there is
/// none.
std::string smt_alignment_error(const topolet_request& request, const Demand& demand,
                                const std::optional<CandidateCores>& cores, const PolicyOptions& options) {
  if (!options.order.full_pcpus_only || !demand.exclusive || is_offered_its_own(request)) return "";
  if (cores && cores->required()) return alignment_error_of_unequal_cores(request, *cores);
  const std::size_t per_core = sdk::threads_per_core(*request.topology);
  const std::size_t cpus = demand.exclusive_cpus;
  if (cpus % per_core != 0 && !options.rounds_up) return not_a_multiple(cpus, per_core);
  const std::size_t free = free_physical_cpus(request);
  return rounded_up(cpus, per_core) <= free ? "" : too_few_physical_cpus(cpus, free, per_core);
}

/// Policy none has no opinion on the nodes, but full-pcpus-only holds where cores differ in size.
std::vector<Verdict> verdicts_of_policy_none(const topolet_request& request,
                                             const std::optional<CandidateCores>& cores) {
  std::vector<Verdict> verdicts;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    const bool has_enough_cpus = sdk::size_of(candidate.usable) >= request.exclusive_cpus;
    if (cores && cores->required() && has_enough_cpus && !cores->fit(request, candidate)) {
      verdicts.push_back(
          {TOPOLET_VERDICT_REJECT, 0, "no free whole cores here add up to the CPUs requested (full-pcpus-only)"});
    } else {
      verdicts.push_back(
          {TOPOLET_VERDICT_ABSTAIN, 0, "policy none: any node may be used, and CPUs are taken in the kubelet's order"});
    }
  }
  return verdicts;
}

void add_whole_cores(const topolet_request& request, const CandidateCores& cores,
                     std::vector<CandidateResources>& resources) {
  for (std::size_t i = 0; i < resources.size(); ++i) {
    const topolet_candidate& candidate = sdk::candidates(request)[i];
    resources[i].needs_whole_cores = cores.required();
    resources[i].whole_cores_fit = cores.fit(request, candidate);
    resources[i].whole_cores_fit_if_empty =
        !cores.required() || cores.allowed.add_up_to(request.exclusive_cpus, candidate.cpus);
  }
}

/// Counts CPUs that share cores with others, on machines whose cores have several threads.
void add_crowded_cpus(const topolet_request& request, const PolicyOptions& options,
                      std::vector<CandidateResources>& resources) {
  const topolet_topology& topology = *request.topology;
  if (topology.core_count == topology.pu_count) return;
  const std::size_t wanted = request.exclusive_cpus;
  const Set free = sdk::union_of_candidates(request, &topolet_candidate::usable);
  const bool across_cores = options.order.distribute_cpus_across_cores;
  const sdk::CoreMap core_map(topology);
  const WholeCores whole(topology, free.view());
  const Set cores = across_cores ? core_map.lowest_of_each_core(free.view()) : Set();
  const Set idle_cores = across_cores ? core_map.lowest_of_each_core(whole.cpus().view()) : Set();
  for (std::size_t i = 0; i < resources.size(); ++i) {
    const topolet_set here = sdk::candidates(request)[i].usable;
    if (!across_cores) {
      resources[i].crowded_cpus = whole.beside_others(wanted, here);
      continue;
    }
    const std::size_t on_cores = std::min(wanted, sdk::size_of_both(cores.view(), here));
    resources[i].crowded_cpus = wanted - on_cores;
    resources[i].beside_strangers = on_cores - std::min(on_cores, sdk::size_of_both(idle_cores.view(), here));
  }
}

/// For how many CPUs it matters whether they share a cache; 0 = for none.
std::size_t cpus_in_caches(const topolet_request& request, const Demand& demand, const PolicyOptions& options) {
  const KubeletOrder& order = options.order;
  if (order.distribute_cpus_across_numa || order.distribute_cpus_across_cores) return 0;
  const bool in_whole_cores = order.full_pcpus_only && options.rounds_up;
  return in_whole_cores ? rounded_up(demand.exclusive_cpus, sdk::threads_per_core(*request.topology))
                        : demand.exclusive_cpus;
}

bool orders_cpus(const KubeletOrder& order) {
  return order.distribute_cpus_across_numa || order.distribute_cpus_across_cores ||
         order.prefer_align_cpus_by_uncorecache;
}

/// The kinds of CPUs from the fastest to the slowest, those of unknown speed last.
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

/// The kubelet's, but for cores that others are on: with it, their numbers alone would decide.
KubeletOrder sparing_others(KubeletOrder order) {
  order.idle_cores_first = true;
  return order;
}

CpuOrder order_as_kubelet(const topolet_topology& topology, topolet_set usable, std::size_t wanted,
                          const KubeletOrder& order) {
  CpuOrder taken{kubelet_order(Layout(topology), usable, wanted, order), "in the kubelet's order"};
  if (order.distribute_cpus_across_numa) taken.reason += ", evenly over the nodes if one is not enough";
  if (order.distribute_cpus_across_cores) taken.reason += ", from different cores first";
  if (order.prefer_align_cpus_by_uncorecache) taken.reason += ", from as few caches as possible";
  return taken;
}

CpuOrder order_whole_nodes_first(const topolet_topology& topology, topolet_set usable, std::size_t wanted,
                                 Strategy strategy, bool several_nodes) {
  if (!several_nodes) return core_order(topology, usable, wanted, strategy);
  const std::vector<std::uint32_t> whole = whole_nodes(Layout(topology), usable, wanted);
  Set whole_set;
  for (const std::uint32_t cpu : whole) whole_set.insert(cpu);
  const Set rest = Set(usable) - whole_set;
  CpuOrder order = core_order(topology, rest.view(), wanted - whole.size(), strategy);
  order.cpus.insert(order.cpus.begin(), whole.begin(), whole.end());
  if (!whole.empty()) order.reason = "whole nodes" + (order.reason.empty() ? "" : ", then " + order.reason);
  return order;
}

Set first_of(const CpuOrder& order, std::size_t wanted) {
  Set first;
  for (std::size_t i = 0; i < std::min(wanted, order.cpus.size()); ++i) first.insert(order.cpus[i]);
  return first;
}

/// The order of CPUs that may all be used.
CpuOrder order_cpus(const topolet_pick_request& picking, topolet_set usable, std::size_t wanted,
                    const PolicyOptions& options) {
  const topolet_request& request = *picking.request;
  const topolet_topology& topology = *request.topology;
  if (alignment_of(*request.workload, options) == Alignment::kNone)
    return order_as_kubelet(topology, usable, wanted, options.order);
  if (orders_cpus(options.order)) return order_as_kubelet(topology, usable, wanted, sparing_others(options.order));
  const topolet_candidate& candidate = sdk::candidates(request)[picking.candidate];
  return order_whole_nodes_first(topology, usable, wanted, options.strategy, sdk::size_of(candidate.nodes) > 1);
}

/// The order of the CPUs of one kind, of which there are enough.
struct OrderOfKind {
  CpuOrder order = {};
  std::size_t beside_others = 0;  ///< so many of the CPUs wanted share a core with others
};

std::optional<OrderOfKind> order_of_kind(const topolet_pick_request& picking, const Set& of_kind, std::size_t wanted,
                                         const PolicyOptions& options) {
  if (of_kind.size() < wanted) return std::nullopt;
  CpuOrder order = order_cpus(picking, of_kind.view(), wanted, options);
  const Set first = first_of(order, wanted);
  const std::size_t beside = count_beside_others(*picking.request->topology, first.view(), picking.usable);
  return OrderOfKind{std::move(order), beside};
}

/// CPUs of one kind, so that the container does not get CPUs of two: of the fastest kind that has enough. Where some of
/// them would share a core with others, those of cores of it that are free as a whole; and where it has too few of
/// these, CPUs of a slower kind, if fewer of them share one. All usable CPUs if no kind has enough.
CpuOrder order_of_one_kind(const topolet_pick_request& picking, std::size_t wanted, const PolicyOptions& options) {
  const topolet_topology& topology = *picking.request->topology;
  const std::vector<topolet_set> kinds = kinds_by_speed(topology);
  const auto of_kind = [&](std::size_t kind, topolet_set cpus) { return Set(kinds[kind]) & Set(cpus); };
  std::optional<OrderOfKind> best;
  std::size_t fastest = 0;
  std::size_t taken = 0;
  for (std::size_t kind = 0; kind < kinds.size() && (!best || best->beside_others > 0); ++kind) {
    std::optional<OrderOfKind> order = order_of_kind(picking, of_kind(kind, picking.usable), wanted, options);
    if (!order || (best && order->beside_others >= best->beside_others)) continue;
    if (!best) fastest = kind;
    taken = kind;
    best = std::move(order);
  }
  if (!best) return order_cpus(picking, picking.usable, wanted, options);
  if (taken == fastest) return std::move(best->order);
  // Parts of cores are for others to fill, but a slower kind is a higher price than a core of which a part stays free.
  // The host takes any of the fastest kind that has enough, so other kinds must be named.
  best->order.wanted = of_kind(taken, picking.usable);
  const Set whole = WholeCores(topology, picking.usable).cpus();
  for (std::size_t kind = fastest; kind < taken; ++kind) {
    Set faster = of_kind(kind, whole.view());
    std::optional<OrderOfKind> order = order_of_kind(picking, faster, wanted, options);
    if (!order) continue;
    order->order.wanted = std::move(faster);
    return std::move(order->order);
  }
  return std::move(best->order);
}

/// Whole cores that add up to the request: of the fastest kind of CPUs that has such cores, else of several kinds.
/// Nothing if there are none, and where all cores are alike, since every order begins with whole cores there.
std::optional<CpuOrder> order_of_whole_cores(const topolet_pick_request& picking, std::size_t wanted,
                                             const PolicyOptions& options) {
  const topolet_topology& topology = *picking.request->topology;
  const WholeCores cores(topology, picking.usable);
  const std::vector<topolet_set> kinds = kinds_by_speed(topology);
  const bool alike = !cores.sizes_differ() && kinds.size() < 2;
  if (alike || !cores.add_up_to(wanted, picking.usable)) return std::nullopt;
  Set fastest;
  Set of_sufficient_kinds;
  for (const topolet_set kind : kinds) {
    if (!cores.add_up_to(wanted, kind)) continue;
    of_sufficient_kinds |= Set(kind) & Set(picking.usable);
    if (fastest.empty()) fastest = of_sufficient_kinds;
  }
  const Set within = fastest.empty() ? Set(picking.usable) : fastest;
  CpuOrder order = order_cpus(picking, within.view(), wanted, options);
  if (!are_whole_cores(topology, first_of(order, wanted).view())) {
    order = whole_core_order(topology, (within & cores.cpus()).view(), wanted, options.strategy);
  }
  // Among the CPUs narrowed to, the host takes those that the container has already, and the fastest kind that
  // suffices.
  if (kinds.size() > 1) order.narrow = fastest.empty() ? first_of(order, wanted) : std::move(of_sufficient_kinds);
  if (order.narrow == Set(picking.usable)) order.narrow = {};
  return order;
}

/// The choice of CPUs is also made by other policies, and may contain parts of cores; empty if it does not.
std::string partial_core_error(const topolet_pick_request& picking) {
  const WholeCores cores(*picking.request->topology, picking.chosen);
  const Set parts = Set(picking.chosen) - cores.cpus();
  if (!cores.sizes_differ() || parts.empty()) return "";
  return sdk::cpu_names(parts) + (parts.size() == 1 ? " is" : " are") +
         " only part of a core, and cores must be taken whole (full-pcpus-only)";
}

/// The rest of the cores of a container that stays on CPUs which were whole cores when it was placed: other threads of
/// them have come online, and nobody else is to run there.
Set siblings_to_withhold(const topolet_pick_request& picking) {
  const topolet_topology& topology = *picking.request->topology;
  Set whole;
  for (std::size_t i = 0; i < topology.core_count; ++i) {
    if (sdk::size_of_both(topology.cores[i], picking.chosen) > 0) whole |= Set(topology.cores[i]);
  }
  const Set beside = Set(picking.usable) - Set(picking.chosen);
  return (beside - whole).empty() ? beside : Set();
}

/// Where a policy or a scheduler says on which nodes a container has to be, it stays there.
bool has_soft_home(const topolet_request& request, const PolicyOptions& options) {
  if (!options.soft_homes || request.exclusive != 0 || request.mode != TOPOLET_MODE_SHARED) return false;
  const Demand demand = demand_of(request, options);
  const bool must_be_in_zone = options.requires_zone && !demand.zone.empty();
  return demand.alignment < Alignment::kRestricted && !must_be_in_zone && !demand.binds_memory;
}

}  // namespace

std::vector<Verdict> Policy::score(const topolet_request& request) const {
  const Demand demand = demand_of(request, options_);
  std::string rejection = demand.annotation_error;
  std::optional<CandidateCores> cores;
  if (options_.whole_cores_only() && demand.exclusive && !is_offered_its_own(request)) cores.emplace(request);
  if (rejection.empty()) rejection = smt_alignment_error(request, demand, cores, options_);
  if (!rejection.empty()) return {request.candidate_count, Verdict{TOPOLET_VERDICT_REJECT, 0, std::move(rejection)}};
  if (demand.alignment == Alignment::kNone || demand.is_empty()) {
    const bool orders_cpus = demand.alignment == Alignment::kNone && demand.exclusive;
    return with_verdicts_on_zone(request, demand, options_.requires_zone,
                                 orders_cpus ? verdicts_of_policy_none(request, cores) : std::vector<Verdict>());
  }

  const NodeMemory memory(*request.topology, *request.ledger, options_.reserved_memory,
                          demand.memory_bytes + demand.pod_memory_bytes + demand.rest_of_pod_bytes > 0,
                          demand.huge_pages);
  std::vector<CandidateResources> resources =
      candidate_resources(request, demand, memory, cpus_in_caches(request, demand, options_));
  if (cores) add_whole_cores(request, *cores, resources);
  if (demand.exclusive) add_crowded_cpus(request, options_, resources);
  const bool has_room = demand.exclusive && options_.strategy == Strategy::kRoomy && leaves_room(request);
  if (has_room) {
    add_busy(request, resources);
    add_siblings(request, resources);
  }
  const CandidateScorer scorer(*request.topology, resources, demand, options_, has_room);
  std::vector<Verdict> verdicts;
  verdicts.reserve(resources.size());
  for (const CandidateResources& candidate : resources) verdicts.push_back(scorer.verdict_on(candidate));
  return verdicts;
}

CpuOrder Policy::pick(const topolet_pick_request& picking) const {
  const topolet_request& request = *picking.request;
  if (request.exclusive == 0 || request.exclusive_cpus == 0) return {};
  if (picking.stage == TOPOLET_PICK_REVIEW) return check_chosen(picking);
  const topolet_topology& topology = *request.topology;
  std::size_t wanted = picking.count;
  if (options_.order.full_pcpus_only && options_.rounds_up) {
    const std::size_t whole = rounded_up(wanted, sdk::threads_per_core(topology));
    if (whole <= sdk::size_of(picking.usable)) wanted = whole;
  }
  if (options_.whole_cores_only()) {
    if (std::optional<CpuOrder> whole = order_of_whole_cores(picking, wanted, options_)) return *std::move(whole);
  }
  const bool none = alignment_of(*request.workload, options_) == Alignment::kNone;
  return none ? order_cpus(picking, picking.usable, wanted, options_) : order_of_one_kind(picking, wanted, options_);
}

CpuOrder Policy::check_chosen(const topolet_pick_request& picking) const {
  CpuOrder answer;
  if (!options_.whole_cores_only()) return answer;
  answer.withhold = siblings_to_withhold(picking);
  if (answer.withhold.empty()) {
    answer.rejection = partial_core_error(picking);
  } else {
    answer.reason = sdk::cpu_names(answer.withhold) + (answer.withhold.size() == 1 ? " is" : " are") +
                    " kept idle beside whole cores (full-pcpus-only)";
  }
  return answer;
}

MemoryBinding Policy::adjust(const topolet_adjust_request& adjusting) const {
  const topolet_request& request = *adjusting.request;
  const Demand demand = demand_of(request, options_);
  if (adjusting.mode == TOPOLET_MODE_FOREIGN) return {};
  const bool asks_for_memory = demand.memory_bytes > 0 || !demand.huge_pages.empty();
  if (!options_.bind_memory && asks_for_memory)
    return {std::nullopt, "memory counts as a preference only (memory = none)"};
  if (!demand.binds_memory) return {};
  const NodeMemory memory(*request.topology, *request.ledger, options_.reserved_memory, true, demand.huge_pages);
  const topolet_candidate& candidate = sdk::candidates(request)[adjusting.candidate];
  std::optional<Set> nodes = choose_memory_nodes(*request.topology, memory,
                                                 {.bytes = demand.memory_bytes,
                                                  .huge_pages = demand.huge_pages,
                                                  .cpus = adjusting.cpus,
                                                  .preferred = candidate.nodes,
                                                  .allowed = adjusting.memory});
  if (!nodes) {
    return {std::nullopt, "memory is not bound: the nodes that the container may use do not have " +
                              format_bytes(demand.memory_bytes) +
                              (demand.huge_pages.empty() ? "" : " and its huge pages") + " free"};
  }
  std::string reason = "memory is bound to " + sdk::node_names(nodes->view());
  return {std::move(nodes), std::move(reason)};
}

sdk::Set Policy::propose(const topolet_request& request) const {
  sdk::Set zone = zone_of(*request.workload);
  if (zone.empty()) return zone;
  zone &= sdk::union_of_candidates(request, &topolet_candidate::nodes);
  return zone.size() > 1 ? zone : sdk::Set();
}

void Policy::score(const topolet_request& request, sdk::Scores& scores) const { scores.give(score(request)); }

void Policy::propose(const topolet_request& request, sdk::Proposals& proposals) const {
  if (const Set zone = propose(request); !zone.empty()) proposals.nodes(zone.view());
}

void Policy::pick(const topolet_pick_request& request, sdk::Picks& picks) const {
  // Where all CPUs are of one kind there is nothing to choose but an order.
  const bool is_to_choose = request.stage == TOPOLET_PICK_CHOOSE;
  if (request.stage == TOPOLET_PICK_REVIEW && has_soft_home(*request.request, options_)) picks.soften();
  if (is_to_choose && sdk::cpu_kinds(*request.request->topology).size() < 2) return;
  const CpuOrder order = pick(request);
  if (!order.rejection.empty()) picks.reject(order.rejection);
  if (!order.withhold.empty()) {
    picks.withhold(order.withhold.view());
    picks.reason(order.reason);
  }
  if (order.cpus.empty()) return;
  if (is_to_choose) {
    if (!order.narrow.empty()) picks.narrow(order.narrow.view());
    if (!order.wanted.empty()) picks.at_least(order.wanted.view(), request.request->exclusive_cpus);
  } else {
    picks.order(order.cpus);
  }
  picks.reason(order.reason);
}

void Policy::adjust(const topolet_adjust_request& request, sdk::Adjustments& adjustments) const {
  const MemoryBinding binding = adjust(request);
  if (binding.nodes) adjustments.mems(binding.nodes->view());
  if (!binding.reason.empty()) adjustments.reason(binding.reason);
}

}  // namespace topolet::numa
