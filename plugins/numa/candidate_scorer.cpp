#include "plugins/numa/candidate_scorer.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "plugins/numa/quantities.hpp"
#include "plugins/numa/zone.hpp"

namespace topolet::numa {
namespace {

// One more node outweighs memory that is not there and any distance; these outweigh the pod; that outweighs the number
// of caches, then crowded cores; and these outweigh the strategy.
constexpr std::int32_t kBest = 100;
constexpr std::int32_t kWorst = -100;
constexpr std::int32_t kPerNode = 30;
constexpr std::size_t kMostNodesCounted = 7;

/// Points that the second best loses, and the most that the worst can lose.
struct Cost {
  std::int32_t least;
  std::int32_t most;
};
struct Costs {
  Cost nearness;
  Cost pod;
  Cost division;
  Cost strategy;
};
constexpr Costs kCosts = {{14, 16}, {0, 0}, {5, 9}, {1, 4}};
constexpr Costs kClosest = {{20, 22}, {0, 0}, {4, 5}, {1, 2}};  // with prefer-closest-numa-nodes
// Costs if the pod makes a difference.
constexpr Costs kCostsOfPod = {{15, 15}, {7, 8}, {3, 4}, {1, 2}};
constexpr Costs kClosestOfPod = {{19, 19}, {5, 6}, {2, 3}, {1, 1}};

constexpr bool are_layered(const Costs& costs) {
  const std::int32_t below_pod = costs.division.most + costs.strategy.most;
  return costs.nearness.most + costs.pod.most + below_pod < kPerNode &&
         costs.nearness.least > costs.pod.most + below_pod && (costs.pod.most == 0 || costs.pod.least > below_pod) &&
         costs.division.least > costs.strategy.most;
}
static_assert(are_layered(kCosts) && are_layered(kClosest) && are_layered(kCostsOfPod) && are_layered(kClosestOfPod));

const Costs& costs_of(const PolicyOptions& options, bool pod_counts) {
  if (pod_counts) return options.prefer_closest_numa_nodes ? kClosestOfPod : kCostsOfPod;
  return options.prefer_closest_numa_nodes ? kClosest : kCosts;
}

// With align-by-socket a further node of the same package costs almost nothing.
constexpr std::int32_t kPerNodeOfPackage = 2;
constexpr std::size_t kMostNodesOfPackageCounted = 5;
// A candidate with a shortage ranks below all candidates without one.
constexpr std::int32_t kWorstWithoutShortage = -50;
constexpr std::int32_t kBestWithShortage = -60;

/// 0 for the best value, the least cost for the second best, and one more for each further one, up to the most.
template <class Value>
std::int32_t penalty(const Value& value, const std::set<Value>& best_first, const Cost& cost) {
  const auto better = std::distance(best_first.begin(), best_first.lower_bound(value));
  if (better == 0) return 0;
  return static_cast<std::int32_t>(std::min<std::ptrdiff_t>(cost.least + better - 1, cost.most));
}

/// Thousandths of `wanted` that are missing; at least one if any are.
std::int64_t missing(std::int64_t wanted, std::int64_t available) {
  if (wanted <= available) return 0;
  const double part = static_cast<double>(wanted - non_negative(available)) / static_cast<double>(wanted);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(part * 1000));
}

std::string requester(bool is_pod) { return is_pod ? "the pod" : "the container"; }

}  // namespace

CandidateScorer::CandidateScorer(const topolet_topology& topology, const std::vector<CandidateResources>& candidates,
                                 const Demand& demand, const PolicyOptions& options, bool has_room)
    : demand_(demand), options_(options), has_room_(has_room), distances_known_(topology.distances_known != 0) {
  set_target(candidates);
  std::size_t most_os_nodes = 0;
  std::size_t most_packages = 0;
  std::size_t fewest_nodes_for_cpus = SIZE_MAX;
  for (const CandidateResources& candidate : candidates) {
    if (has_cpus_if_empty(candidate)) fewest_nodes_for_cpus = std::min(fewest_nodes_for_cpus, candidate.node_count);
    most_nodes_ = std::max(most_nodes_, candidate.node_count);
    most_os_nodes = std::max(most_os_nodes, sdk::size_of(candidate.nodes));
    most_packages = std::max(most_packages, candidate.package_count);
    if (fits_if_empty(candidate)) fewest_nodes_ = std::min(fewest_nodes_, candidate.node_count);
  }
  // A request that does not fit even on an empty machine is denied for the missing resource, not for the number of
  // nodes.
  if (fewest_nodes_ == SIZE_MAX) fewest_nodes_ = most_nodes_;
  widened_by_memory_ = fewest_nodes_for_cpus < fewest_nodes_;
  by_package_ = options.align_by_socket && demand.alignment != Alignment::kSingleNumaNode && most_packages > 0 &&
                most_packages <= most_os_nodes;
  if (by_package_) {
    const std::size_t nodes_per_package = std::max<std::size_t>(1, most_os_nodes / most_packages);
    fewest_packages_ = (fewest_nodes_ + nodes_per_package - 1) / nodes_per_package;
  }
  for (const CandidateResources& candidate : candidates) {
    if (!is_feasible(candidate)) continue;
    if (shortage(candidate) > 0) {
      any_shortage_ = true;
      continue;
    }
    nearnesses_[width_of(candidate)].insert(nearness_of(candidate));
    pod_fits_[place_of(candidate)].insert(pod_fit(candidate));
    divisions_[place_of_pod(candidate)].insert(division_of(candidate));
    if (crowds_out_shared(candidate)) continue;
    preferences_[{place_of_pod(candidate), division_of(candidate)}].insert(preference(candidate));
  }
  pod_counts_ =
      std::any_of(pod_fits_.begin(), pod_fits_.end(), [](const auto& fits) { return fits.second.size() > 1; });
  if (!demand_.zone.empty()) look_into_zone(candidates);
}

/// A zone that lacks something which other nodes have is not what the scheduler took it for.
void CandidateScorer::look_into_zone(const std::vector<CandidateResources>& candidates) {
  bool zone_fits = false;
  bool zone_is_usable = false;
  for (const CandidateResources& candidate : candidates) {
    if (!rejection(candidate).empty()) continue;
    const bool fits = shortage(candidate) == 0;
    any_fit_ = any_fit_ || fits;
    zone_fits = zone_fits || (fits && candidate.in_zone);
    zone_is_usable = zone_is_usable || candidate.in_zone;
  }
  zone_counts_ = any_fit_ ? zone_fits : zone_is_usable;
}

void CandidateScorer::set_target(const std::vector<CandidateResources>& candidates) {
  const auto any_feasible = [&](auto has_it) {
    return std::any_of(candidates.begin(), candidates.end(), [&](const CandidateResources& candidate) {
      return is_feasible(candidate) && has_it(candidate);
    });
  };
  const bool pod_fits = any_feasible([&](const auto& c) { return c.free_cpus >= demand_.pod_exclusive_cpus; });
  target_.exclusive_cpus = std::max(demand_.exclusive_cpus, pod_fits ? demand_.pod_exclusive_cpus : 0);
  const bool pod_shares_fit =
      any_feasible([&](const auto& c) { return c.uncommitted_milli() >= demand_.pod_shared_milli; });
  target_.shared_milli = std::max(demand_.shared_milli, pod_shares_fit ? demand_.pod_shared_milli : 0);
  for (const std::int64_t bytes : {demand_.memory_bytes, demand_.pod_memory_bytes}) {
    const bool fits = any_feasible([&](const auto& c) { return c.memory.fits(bytes); });
    if (fits) target_.memory_bytes = std::max(target_.memory_bytes, bytes);
  }
  target_.huge_pages = any_feasible([](const auto& c) { return c.huge_pages_fit; });
  target_.whole_cores = any_feasible([](const auto& c) { return c.whole_cores_fit; });
}

bool CandidateScorer::has_cpus_if_empty(const CandidateResources& candidate) const {
  if (!candidate.whole_cores_fit_if_empty) return false;
  if (demand_.exclusive) {
    return candidate.allowed_cpus >= (demand_.is_strict() ? demand_.required_cpus() : target_.exclusive_cpus);
  }
  return demand_.is_strict() || static_cast<std::int64_t>(candidate.allowed_cpus) * 1000 >= demand_.shared_milli;
}

bool CandidateScorer::fits_if_empty(const CandidateResources& candidate) const {
  if (!has_cpus_if_empty(candidate)) return false;
  if (demand_.binds_memory) {
    return candidate.memory.fits_if_empty(std::max(demand_.memory_bytes, demand_.pod_memory_bytes));
  }
  // Memory that is not bound denies nobody, but nodes with too little of it are not worth 100 points either.
  return demand_.is_strict() || candidate.memory.fits_if_empty(target_.memory_bytes);
}

bool CandidateScorer::is_feasible(const CandidateResources& candidate) const {
  if (candidate.needs_whole_cores && !candidate.whole_cores_fit) return false;
  if (demand_.exclusive && candidate.free_cpus < demand_.required_cpus()) return false;
  if (!demand_.binds_memory) return true;
  return candidate.huge_pages_fit && candidate.memory.fits(demand_.required_memory());
}

bool CandidateScorer::is_aligned(const CandidateResources& candidate) const {
  if (demand_.alignment == Alignment::kSingleNumaNode) return candidate.node_count == 1;
  return candidate.node_count == fewest_nodes_ || (by_package_ && candidate.package_count == fewest_packages_);
}

std::int64_t CandidateScorer::shortage(const CandidateResources& candidate) const {
  const bool lacks_pages = target_.huge_pages && !candidate.huge_pages_fit;
  const bool lacks_cores = target_.whole_cores && !candidate.whole_cores_fit;
  std::int64_t most = lacks_pages || lacks_cores ? 500 : 0;
  const auto free_cpus = static_cast<std::int64_t>(candidate.free_cpus);
  if (demand_.exclusive) {
    most = std::max(most, missing(static_cast<std::int64_t>(target_.exclusive_cpus), free_cpus));
  } else if (target_.shared_milli > 0) {
    // The requests of all containers count: of two overcommitted nodes the less overcommitted one is better.
    most = std::max(most, missing(candidate.shared_milli_requested + target_.shared_milli, free_cpus * 1000));
  }
  if (candidate.memory.known) most = std::max(most, missing(target_.memory_bytes, candidate.memory.free_bytes));
  if (candidate.nodes_outside_pod > 0) {
    // Away from the pod, too, fewer nodes are better.
    const std::size_t more_nodes = candidate.node_count - std::min(candidate.node_count, fewest_nodes_);
    most += static_cast<std::int64_t>(300 + 100 * std::min(more_nodes, kMostNodesCounted));
  }
  return std::min<std::int64_t>(most, 1000);
}

std::int64_t CandidateScorer::uncommitted(const CandidateResources& candidate) const {
  // If shared containers cannot run there anyway, their requests do not matter.
  const bool is_apart = demand_.exclusive && candidate.unshared_cpus == candidate.free_cpus;
  if (is_apart) return static_cast<std::int64_t>(candidate.free_cpus) * 1000;
  if (demand_.exclusive || demand_.shared_milli > 0 || !candidate.memory.known) return candidate.uncommitted_milli();
  return candidate.memory.free_bytes >> 20;
}

bool CandidateScorer::crowds_out_shared(const CandidateResources& candidate) const {
  if (!demand_.exclusive) return false;
  const std::size_t left = candidate.shared_cpus_beside(demand_.exclusive_cpus);
  return left < candidate.shared_cpus && static_cast<std::int64_t>(left) * 1000 < candidate.shared_milli_requested;
}

std::uint32_t CandidateScorer::distance_of(const CandidateResources& candidate) const {
  return distances_known_ ? candidate.distance : static_cast<std::uint32_t>(candidate.package_count);
}

CandidateScorer::Width CandidateScorer::width_of(const CandidateResources& candidate) const {
  return {by_package_ ? candidate.package_count : 0, candidate.node_count};
}

/// Returns true if a rejection names the nodes and their numbers. There are many sets of several nodes: if all are
/// rejected with the same words, the denial that lists the different reasons stays readable.
bool CandidateScorer::is_named(const CandidateResources& candidate) const {
  return candidate.node_count == 1 || candidate.node_count == most_nodes_;
}

/// Returns the text after "node 0 has"; empty if the CPUs suffice.
std::string CandidateScorer::cpu_rejection(const CandidateResources& candidate) const {
  const std::size_t required = demand_.required_cpus();
  if (!demand_.exclusive) return "";
  if (candidate.free_cpus >= required && (candidate.whole_cores_fit || !candidate.needs_whole_cores)) return "";
  if (candidate.free_cpus >= required) {
    return "no free whole cores that add up to " + sdk::counted(demand_.exclusive_cpus, "CPU") + " (full-pcpus-only)";
  }
  const std::string who = requester(required > demand_.exclusive_cpus);
  const std::string cpus = sdk::counted(candidate.allowed_cpus, "CPU");
  if (!is_named(candidate))
    return "too few free CPUs for the " + std::to_string(required) + " that " + who + " requests";
  const bool too_small = candidate.allowed_cpus < required;
  return (too_small ? "only " + cpus : std::to_string(candidate.free_cpus) + " of " + cpus + " free") + ", but " + who +
         " requests " + std::to_string(required);
}

/// Returns the text after "node 0 has"; empty if memory and huge pages suffice, or are not bound.
std::string CandidateScorer::memory_rejection(const CandidateResources& candidate) const {
  if (!demand_.binds_memory) return "";
  const std::int64_t required = demand_.required_memory();
  if (!candidate.memory.fits(required)) {
    const std::string who = requester(required > demand_.memory_bytes);
    const std::string bytes = format_bytes(required);
    if (!is_named(candidate)) return "too little free memory for the " + bytes + " that " + who + " needs";
    return format_bytes(candidate.memory.free_bytes) + " of " + format_bytes(candidate.memory.capacity_bytes) +
           " memory free, but " + who + " needs " + bytes;
  }
  if (candidate.huge_pages_fit) return "";
  std::string needed;
  for (const auto& [page, bytes] : demand_.huge_pages) {
    needed += (needed.empty() ? "" : " and ") + format_bytes(bytes) + " in pages of " + format_bytes(page);
  }
  return "too few free huge pages: the container needs " + needed;
}

/// Returns the reason for a rejection; empty if the candidate may be used.
std::string CandidateScorer::rejection(const CandidateResources& candidate) const {
  if (options_.requires_zone && !candidate.in_zone) return rejection_outside(demand_.zone);
  // Sets of too many nodes are rejected whatever they have.
  if (demand_.is_strict() && !demand_.pod_is_placed && !is_aligned(candidate) &&
      (candidate.node_count > fewest_nodes_ || demand_.alignment == Alignment::kSingleNumaNode)) {
    const std::string policy = "policy " + std::string(name_of(demand_.alignment));
    if (demand_.alignment == Alignment::kSingleNumaNode) return policy + " allows one node only, not a set of several";
    return policy + " allows at most " + sdk::counted(fewest_nodes_, "node") +
           ": so many would be enough on an empty machine";
  }
  const std::string cpus = cpu_rejection(candidate);
  const std::string memory = memory_rejection(candidate);
  if (!cpus.empty() || !memory.empty()) {
    const bool is_one_node = candidate.node_count == 1 && sdk::size_of(candidate.nodes) == 1;
    const std::string subject =
        is_named(candidate) ? candidate.name() : sdk::counted(candidate.node_count, "node") + " together";
    const std::string has = is_one_node ? " has " : " have ";
    return subject + has + cpus +
           (!cpus.empty() && !memory.empty() ? (is_one_node ? "; it has " : "; they have ") : "") + memory;
  }
  if (demand_.is_strict() && candidate.nodes_outside_pod > 0) {
    return "it is not within " + sdk::node_names(demand_.pod_nodes) + ", where the pod was placed (scope = pod)";
  }
  return "";
}

std::int32_t CandidateScorer::node_penalty(const CandidateResources& candidate) const {
  const std::size_t more_nodes = candidate.node_count - std::min(candidate.node_count, fewest_nodes_);
  if (by_package_ && candidate.package_count <= fewest_packages_) {
    return kPerNodeOfPackage * static_cast<std::int32_t>(std::min(more_nodes, kMostNodesOfPackageCounted));
  }
  const std::size_t more = by_package_ ? candidate.package_count - fewest_packages_ : more_nodes;
  return kPerNode * static_cast<std::int32_t>(std::min(more, kMostNodesCounted));
}

/// Returns the part of the rest of the pod that fits on isolated CPUs here, in whole CPUs.
std::int64_t CandidateScorer::milli_on_isolated_cpus(const CandidateResources& candidate) const {
  const bool takes_some = demand_.exclusive && candidate.unshared_cpus == candidate.free_cpus;
  const std::size_t own = takes_some ? demand_.exclusive_cpus : 0;
  const std::size_t left = candidate.isolated_cpus - std::min(candidate.isolated_cpus, own);
  return std::min(static_cast<std::int64_t>(left), demand_.rest_of_pod_milli / 1000) * 1000;
}

/// Returns how badly CPUs are lacking for containers of the pod that are still to come; 0 if they are not.
int CandidateScorer::cpus_missing_for_pod(const CandidateResources& candidate) const {
  const std::int64_t isolated = milli_on_isolated_cpus(candidate);
  const std::int64_t milli = demand_.rest_of_pod_milli - isolated;
  const std::int64_t shared =
      demand_.exclusive ? static_cast<std::int64_t>(candidate.shared_cpus_beside(demand_.exclusive_cpus)) * 1000
                        : static_cast<std::int64_t>(candidate.free_cpus) * 1000 - demand_.shared_milli;
  if (shared < milli) return 8;
  // Containers that are given isolated CPUs first would go elsewhere for them.
  const bool lacks_isolated = demand_.pod_takes_isolated && isolated < demand_.rest_of_pod_milli / 1000 * 1000;
  const bool is_requested = shared - candidate.shared_milli_requested < milli;
  return (lacks_isolated ? 4 : 0) + (is_requested ? 2 : 0);
}

/// The place of the first container of a pod counts for those that follow.
CandidateScorer::PodFit CandidateScorer::pod_fit(const CandidateResources& candidate) const {
  if (demand_.rest_of_pod_milli == 0 && demand_.rest_of_pod_bytes == 0) return {candidate.pod_distance, 0};
  const bool has_memory = candidate.memory.fits(demand_.memory_bytes + demand_.rest_of_pod_bytes);
  return {candidate.pod_distance, cpus_missing_for_pod(candidate) + (has_memory ? 0 : 1)};
}

Strategy CandidateScorer::strategy() const { return demand_.exclusive ? options_.strategy : options_.shared_strategy; }

CandidateScorer::Preference CandidateScorer::preference(const CandidateResources& candidate) const {
  const auto left_behind = static_cast<std::int64_t>(candidate.left_behind);
  if (strategy() == Strategy::kSpread) return {left_behind, -uncommitted(candidate), 0, 0, 0};
  const auto rest = static_cast<std::int64_t>(candidate.caches.rest);
  if (has_room_) {
    const auto siblings = static_cast<std::int64_t>(candidate.siblings);
    return {left_behind, candidate.is_busy ? 1 : 0, siblings, -uncommitted(candidate), rest};
  }
  return {left_behind, rest, uncommitted(candidate), 0, 0};
}

std::int32_t CandidateScorer::pod_penalty(const CandidateResources& candidate) const {
  return penalty(pod_fit(candidate), pod_fits_.at(place_of(candidate)), costs_of(options_, pod_counts_).pod);
}

std::int32_t CandidateScorer::division_penalty(const CandidateResources& candidate) const {
  return penalty(division_of(candidate), divisions_.at(place_of_pod(candidate)),
                 costs_of(options_, pod_counts_).division);
}

std::int32_t CandidateScorer::strategy_penalty(const CandidateResources& candidate) const {
  const Cost& cost = costs_of(options_, pod_counts_).strategy;
  if (crowds_out_shared(candidate)) return cost.most;
  return penalty(preference(candidate), preferences_.at({place_of_pod(candidate), division_of(candidate)}), cost);
}

std::string CandidateScorer::strategy_text(const CandidateResources& candidate) const {
  if (crowds_out_shared(candidate)) {
    return "shared containers there request " + format_milli_cpus(candidate.shared_milli_requested) +
           ", more than would be left for them";
  }
  const Preference& best = *preferences_.at({place_of_pod(candidate), division_of(candidate)}).begin();
  const Preference own = preference(candidate);
  if (own[0] > best[0]) return "it has more CPUs on nodes as good";
  const std::string option = demand_.exclusive ? "strategy" : "shared-strategy";
  if (strategy() == Strategy::kSpread) return option + " spread prefers emptier nodes";
  const std::string preferring = option + (strategy() == Strategy::kRoomy ? " roomy" : " packed") + " prefers ";
  if (has_room_ && own[1] > best[1]) return preferring + "nodes whose shared CPUs are used less";
  if (has_room_ && own[2] > best[2]) return preferring + "nodes with fewer pods of its workload";
  if (has_room_ && own[3] > best[3]) return preferring + "emptier nodes";
  const bool leaves_more = has_room_ || own[1] > best[1];
  return preferring + (leaves_more ? "caches of which less would be left over" : "fuller nodes");
}

std::string CandidateScorer::pod_text(const CandidateResources& candidate) const {
  const PodFit& best = *pod_fits_.at(place_of(candidate)).begin();
  if (candidate.pod_distance > best.first) return "other containers of its pod are on nodes as good";
  const std::int64_t milli = demand_.rest_of_pod_milli;
  return "other nodes have room for the rest of its pod, too" +
         (milli > 0 ? ", which requests " + format_milli_cpus(milli) : std::string());
}

/// Describes the caches, if they matter.
std::string CandidateScorer::cache_text(const CandidateResources& candidate) const {
  if (candidate.caches.caches == 0 || demand_.exclusive_cpus < 2) return "";
  return candidate.caches.caches == 1 ? " in one cache" : " in " + std::to_string(candidate.caches.caches) + " caches";
}

/// Why others are nearer.
std::string CandidateScorer::nearness_text(const CandidateResources& candidate) const {
  const Nearness& best = *nearnesses_.at(width_of(candidate)).begin();
  if (best.first < candidate.nodes_without_memory) {
    return candidate.node_count == 1 ? "it has no memory of its own, unlike others"
                                     : "other sets of as many nodes have more nodes with memory of their own";
  }
  return std::string("other sets of as many nodes ") +
         (distances_known_ ? "are closer together" : "span fewer packages");
}

/// Why the CPUs would be better off on others.
std::string CandidateScorer::division_text(const CandidateResources& candidate) const {
  const Division& best = *divisions_.at(place_of_pod(candidate)).begin();
  if (std::get<0>(best) < candidate.caches.caches) return "other nodes have room in fewer caches";
  const bool wants_more = options_.order.distribute_cpus_across_cores && std::get<1>(best) < candidate.crowded_cpus;
  return std::string("other nodes have more cores ") + (wants_more ? "for it" : "that are free as a whole");
}

std::string CandidateScorer::fit_text(const CandidateResources& candidate) const {
  if (demand_.exclusive) {
    const bool one = demand_.exclusive_cpus == 1;
    return std::string(one ? "the " : "all ") + sdk::counted(demand_.exclusive_cpus, "CPU") + " requested " +
           (one ? "fits" : "fit") + " on " + candidate.name() + cache_text(candidate) + " (" +
           std::to_string(candidate.free_cpus) + " free)";
  }
  const bool is_one_node = candidate.node_count == 1 && sdk::size_of(candidate.nodes) == 1;
  const std::string subject = candidate.name() + (is_one_node ? " has " : " have ");
  const char* requested = demand_.stands_for_pod ? " requested by its pod" : " requested";
  if (demand_.shared_milli == 0) {
    if (!candidate.memory.known) return subject + "an unknown amount of memory, which is taken to be enough";
    return subject + format_bytes(candidate.memory.free_bytes) + " of memory uncommitted (" +
           format_bytes(demand_.memory_bytes) + requested + ")";
  }
  return subject + format_milli(non_negative(candidate.uncommitted_milli())) + " of " +
         sdk::counted(candidate.free_cpus, "shared CPU") + " uncommitted (" + format_milli(demand_.shared_milli) +
         requested + ")";
}

/// Lists the shortages of the candidate, each after a semicolon.
std::string CandidateScorer::shortage_text(const CandidateResources& candidate) const {
  std::string text;
  const auto add = [&text](const std::string& what) { text += "; " + what; };
  if (candidate.nodes_outside_pod > 0) add("the pod is on " + sdk::node_names(demand_.pod_nodes));
  if (demand_.exclusive && candidate.free_cpus < target_.exclusive_cpus) {
    add("too few for the whole pod, which requests " + std::to_string(target_.exclusive_cpus));
  }
  if (target_.shared_milli > demand_.shared_milli && target_.shared_milli > candidate.uncommitted_milli()) {
    add("too few for the whole pod, which requests " + format_milli(target_.shared_milli));
  }
  if (!candidate.memory.fits(target_.memory_bytes) && (demand_.exclusive || demand_.shared_milli > 0)) {
    add("only " + format_bytes(candidate.memory.free_bytes) + " of " + format_bytes(candidate.memory.capacity_bytes) +
        " memory free, " + format_bytes(target_.memory_bytes) + " needed");
  }
  if (target_.huge_pages && !candidate.huge_pages_fit) add("too few free huge pages");
  if (target_.whole_cores && !candidate.whole_cores_fit) add("too few of them on free whole cores (full-pcpus-only)");
  return text;
}

/// Candidates in the zone stay as they are, but above all others. Those lose 100 points; where they would fall below
/// the candidates with a shortage, they come closer together instead.
std::int32_t CandidateScorer::score_by_zone(const CandidateResources& candidate, std::int32_t score) const {
  if (!zone_counts_) return score;
  if (candidate.in_zone) return std::max(score, 1);
  constexpr std::int32_t kLowestApart = 60;
  const std::int32_t apart = std::max(score, kLowestApart) - kBest;
  const std::int32_t crowded =
      std::max(kLowestApart - score, 0) * (kLowestApart - kBest - kWorstWithoutShortage) / (kLowestApart - kWorst);
  return apart - crowded;
}

Verdict CandidateScorer::score(const CandidateResources& candidate) const {
  std::string reason = fit_text(candidate);
  if (zone_counts_) reason += candidate.in_zone ? kInZone : kNotInZone;
  if (const std::int64_t lacking = shortage(candidate); lacking > 0) {
    const auto worse = static_cast<std::int32_t>(lacking * (kBestWithShortage - kWorst) / 1000);
    const std::int32_t for_zone = zone_counts_ && !any_fit_ && candidate.in_zone ? kBest : 0;
    return {TOPOLET_VERDICT_SCORE, kBestWithShortage - worse + for_zone, reason + shortage_text(candidate)};
  }
  const std::int32_t nodes = node_penalty(candidate);
  const std::int32_t nearness =
      penalty(nearness_of(candidate), nearnesses_.at(width_of(candidate)), costs_of(options_, pod_counts_).nearness);
  const std::int32_t pod = pod_penalty(candidate);
  const std::int32_t division = division_penalty(candidate);
  const std::int32_t strategy = strategy_penalty(candidate);
  if (nodes > 0) reason += "; " + sdk::counted(fewest_nodes_, "node") + " would be enough on an empty machine";
  if (widened_by_memory_ && candidate.node_count == fewest_nodes_) {
    const std::int64_t bytes = std::max(demand_.memory_bytes, demand_.pod_memory_bytes);
    reason += "; fewer nodes cannot hold the " + format_bytes(bytes) + " of memory needed";
  }
  if (nearness > 0) reason += "; " + nearness_text(candidate);
  if (pod > 0) reason += "; " + pod_text(candidate);
  if (division > 0) reason += "; " + division_text(candidate);
  if (strategy > 0) reason += "; " + strategy_text(candidate);
  if (candidate.node_count > 1 && !distances_known_) {
    reason += "; the machine does not report node distances: 10 and 20 are assumed";
  }
  const std::int32_t least = any_shortage_ ? kWorstWithoutShortage : kWorst;
  const std::int32_t score = std::max(least, kBest - nodes - nearness - pod - division - strategy);
  return {TOPOLET_VERDICT_SCORE, score_by_zone(candidate, score), std::move(reason)};
}

Verdict CandidateScorer::verdict_on(const CandidateResources& candidate) const {
  if (std::string why_not = rejection(candidate); !why_not.empty()) {
    return {TOPOLET_VERDICT_REJECT, 0, std::move(why_not)};
  }
  Verdict verdict = score(candidate);
  if (!demand_.note.empty()) verdict.reason += "; " + demand_.note;
  return verdict;
}

}  // namespace topolet::numa
