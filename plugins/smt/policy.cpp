#include "plugins/smt/policy.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "plugins/smt/core_sets.hpp"
#include "plugins/smt/demand.hpp"
#include "plugins/smt/isolation.hpp"
#include "plugins/smt/pairing.hpp"
#include "plugins/smt/proposals.hpp"
#include "plugins/smt/reasons.hpp"

namespace topolet::smt {
namespace {

using sdk::CoreMap;
using sdk::Set;

constexpr std::int32_t kHeavyWithoutConflict = 100;
constexpr std::int32_t kHeavyWithFewConflicts = 50;
constexpr std::int32_t kLightPaired = 20;
// Points lost for using sibling threads of one core: more than the numa plugin's strategy and distance, and less than
// one more node.
constexpr std::int32_t kFewOwnSiblings = 20;
constexpr std::int32_t kAllOwnSiblings = 25;
// Points that numa subtracts for each further node, and at most for the distance between nodes and its strategy.
constexpr std::int32_t kNodeCost = 30;
constexpr std::int32_t kOtherCost = 30;
constexpr std::int32_t kBesideHeavy = 20;  // for one of which nothing is known

std::vector<Verdict> same_for_all(const topolet_request& request, topolet_verdict_kind kind,
                                  const std::string& reason) {
  return {request.candidate_count, Verdict{kind, 0, reason}};
}

Set free_cpus(const topolet_request& request) { return sdk::union_of_candidates(request, &topolet_candidate::usable); }

bool has_enough_cpus(const topolet_candidate& candidate, const Demand& demand) {
  return sdk::size_of(candidate.usable) >= std::max<std::size_t>(1, demand.exclusive_cpus);
}

/// Abstains if all candidates that are large enough score the same, which would only favour them over smaller ones:
/// that is not for this policy to say.
void abstain_if_scores_are_equal(const topolet_request& request, const Demand& demand, std::vector<Verdict>& verdicts) {
  const Verdict* first = nullptr;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    if (!has_enough_cpus(sdk::candidates(request)[i], demand)) {
      verdicts[i] = {};
      continue;
    }
    if (first == nullptr) first = &verdicts[i];
    if (verdicts[i].score != first->score) return;
  }
  for (Verdict& verdict : verdicts) {
    if (verdict.kind == TOPOLET_VERDICT_SCORE) verdict.kind = TOPOLET_VERDICT_ABSTAIN;
  }
}

std::int32_t width_of(const topolet_candidate& candidate) {
  return static_cast<std::int32_t>(std::max<std::size_t>(1, sdk::size_of(candidate.nodes)));
}

/// Adjusts scores if isolation takes many more nodes than the CPUs alone would, as the points that numa subtracts for
/// these would outweigh it: candidates without isolation, which have 0 points, get as many less.
void outweigh_nodes(const topolet_request& request, const Demand& demand, std::vector<Verdict>& verdicts) {
  std::int32_t narrowest = INT32_MAX;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    const topolet_candidate& candidate = sdk::candidates(request)[i];
    if (verdicts[i].score == 0 && has_enough_cpus(candidate, demand))
      narrowest = std::min(narrowest, width_of(candidate));
  }
  std::int32_t highest = INT32_MIN;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    if (verdicts[i].score == 0 || narrowest == INT32_MAX) continue;
    const std::int32_t more_nodes = width_of(sdk::candidates(request)[i]) - narrowest;
    highest = std::max(highest, verdicts[i].score - kNodeCost * more_nodes - kOtherCost);
  }
  if (highest == INT32_MIN) return;  // nowhere, or wherever there are enough CPUs
  for (Verdict& verdict : verdicts) {
    if (verdict.score == 0) verdict.score = std::clamp(highest, TOPOLET_SCORE_MIN, 0);
  }
}

std::vector<Verdict> score_isolation(const topolet_request& request, const CoreMap& cores, const Demand& demand) {
  const Isolation isolation(cores, request, demand);
  const Set whole = cores.on_whole_cores(free_cpus(request).view());
  std::vector<Verdict> verdicts;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    verdicts.push_back(isolation.score(candidate, whole));
  }
  outweigh_nodes(request, demand, verdicts);
  abstain_if_scores_are_equal(request, demand, verdicts);
  return verdicts;
}

/// numa.full-pcpus-only: a candidate without enough whole cores is rejected while another has them. If none has, a
/// request that fills its cores is left to the numa plugin.
std::vector<Verdict> score_whole_cores(const topolet_request& request, const CoreMap& cores, const Demand& demand,
                                       const PolicyOptions& options) {
  const Set whole = cores.on_whole_cores(free_cpus(request).view());
  const auto whole_here = [&whole](const topolet_candidate& candidate) {
    return sdk::size_of_both(whole.view(), candidate.usable);
  };
  std::size_t most = 0;
  for (const topolet_candidate& candidate : sdk::candidates(request)) most = std::max(most, whole_here(candidate));
  const std::size_t per_core = cores.threads_per_core();
  if (most < demand.exclusive_cpus && (demand.exclusive_cpus % per_core == 0 || !options.rounds_up)) return {};
  if (most < demand.exclusive_cpus) {
    return same_for_all(
        request, TOPOLET_VERDICT_REJECT,
        "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = " + std::to_string(most) +
            ", requested CPUs = " + std::to_string(demand.exclusive_cpus) +
            ", CPUs per core = " + std::to_string(per_core) + " (numa.full-pcpus-only, smt.round = idle-sibling)");
  }
  std::vector<Verdict> verdicts;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    Verdict verdict;
    if (has_enough_cpus(candidate, demand) && whole_here(candidate) < demand.exclusive_cpus) {
      verdict.kind = TOPOLET_VERDICT_REJECT;
      verdict.reason = free_whole_cores(candidate, whole_here(candidate)) + ", too few for the " +
                       std::to_string(demand.exclusive_cpus) + " requested (numa.full-pcpus-only)";
    }
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

/// Heavy: 100 without a conflict, less 20 to 25 for sibling threads of one core; with conflicts up to 50, the fewer the
/// more. Light: up to 20 for CPUs beside heavy containers, less 20 to 25 for sibling threads of one core. Unknown: less
/// up to 20 for CPUs beside heavy containers.
std::int32_t score_of(const NeighbourCounts& counts, Profile profile) {
  const auto count = [&counts](Neighbours neighbours) {
    return static_cast<std::int32_t>(counts[static_cast<std::size_t>(neighbours)]);
  };
  const std::int32_t own = count(Neighbours::kOwnSibling);
  const std::int32_t conflicts = count(Neighbours::kConflict);
  const std::int32_t wanted = count(Neighbours::kPaired) + count(Neighbours::kAlone) + own + conflicts;
  if (wanted == 0) return 0;
  if (profile == Profile::kUnknown) return -kBesideHeavy * conflicts / wanted;
  const std::int32_t more = (kAllOwnSiblings - kFewOwnSiblings) * own / wanted;
  const std::int32_t own_cost = own > 0 ? kFewOwnSiblings + more : 0;
  if (profile == Profile::kLight) return kLightPaired * count(Neighbours::kPaired) / wanted - own_cost;
  if (conflicts == 0) return kHeavyWithoutConflict - own_cost;
  return kHeavyWithFewConflicts * (wanted - conflicts) / wanted;
}

/// Lists the CPUs for a heavy container, one item for each kind.
std::vector<std::string> items_for_heavy(const NeighbourCounts& counts, bool shares) {
  const auto count = [&counts](Neighbours neighbours) { return counts[static_cast<std::size_t>(neighbours)]; };
  const std::size_t paired = count(Neighbours::kPaired);
  std::vector<std::string> items;
  if (!shares) items.push_back(sdk::counted(paired, "core") + " without another heavy container");
  if (shares && paired > 0)
    items.push_back(sdk::counted(paired, "core") + " with a thread for heavy containers to share");
  if (const std::size_t own = count(Neighbours::kOwnSibling); own > 0) {
    items.push_back(sdk::counted(own, "sibling thread") + (shares ? " of those" : " of the same cores"));
  }
  if (const std::size_t conflicts = count(Neighbours::kConflict); conflicts > 0) {
    items.push_back(sdk::counted(conflicts, "CPU") + " beside another heavy container");
  }
  return items;
}

/// Lists the CPUs for a light container.
std::vector<std::string> items_for_light(const NeighbourCounts& counts, bool shares) {
  const auto count = [&counts](Neighbours neighbours) { return counts[static_cast<std::size_t>(neighbours)]; };
  const std::size_t paired = count(Neighbours::kPaired);
  std::vector<std::string> items;
  if (!shares) items.push_back(sdk::counted(paired, "CPU") + " beside heavy containers");
  if (shares && paired > 0) items.emplace_back("sibling threads of the CPUs that heavy containers share");
  if (const std::size_t alone = count(Neighbours::kAlone); alone > 0) {
    items.push_back(sdk::counted(alone, "CPU") + (shares ? " kept for heavy containers" : " on cores without one"));
  }
  if (const std::size_t own = count(Neighbours::kOwnSibling); own > 0) {
    items.push_back(sdk::counted(own, "sibling thread") + " of the same cores");
  }
  if (const std::size_t conflicts = count(Neighbours::kConflict); conflicts > 0) {
    items.push_back(sdk::counted(conflicts, "CPU") + " that a heavy container shares");
  }
  return items;
}

/// Lists the CPUs for a container of which nothing is known.
std::vector<std::string> items_for_unknown(const NeighbourCounts& counts) {
  const auto count = [&counts](Neighbours neighbours) { return counts[static_cast<std::size_t>(neighbours)]; };
  std::vector<std::string> items;
  if (const std::size_t alone = count(Neighbours::kAlone); alone > 0) {
    items.push_back(sdk::counted(alone, "CPU") + " on cores without a heavy container");
  }
  if (const std::size_t beside = count(Neighbours::kConflict); beside > 0) {
    items.push_back(sdk::counted(beside, "CPU") + " beside heavy containers");
  }
  return items;
}

std::string reason_of(const topolet_candidate& candidate, const NeighbourCounts& counts, const Demand& demand) {
  const bool shares = demand.exclusive_cpus == 0;
  const std::vector<std::string> items = demand.profile == Profile::kUnknown ? items_for_unknown(counts)
                                         : demand.profile == Profile::kHeavy ? items_for_heavy(counts, shares)
                                                                             : items_for_light(counts, shares);
  std::string reason = sdk::node_names(candidate.nodes) + ": ";
  for (std::size_t i = 0; i < items.size(); ++i) reason += (i > 0 ? ", " : "") + items[i];
  if (items.empty()) reason += "no free CPUs";
  return demand.profile_reason.empty() ? reason : reason + "; " + demand.profile_reason;
}

/// Counts the neighbours of the best CPUs of each candidate, as many CPUs as the container requests.
std::vector<NeighbourCounts> neighbours_by_candidate(const topolet_request& request, const CoreMap& cores,
                                                     const Profiles& profiles, const Demand& demand) {
  const Pairing pairing(cores, *request.ledger, profiles, demand);
  const std::vector<Level> levels = pairing.levels(free_cpus(request).view());
  std::vector<NeighbourCounts> counts;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    const std::size_t wanted = demand.exclusive_cpus > 0
                                   ? demand.exclusive_cpus
                                   : pairing.shared_cpus_requested(candidate.usable, request.workload->demand);
    counts.push_back(count_neighbours(levels, candidate.usable, wanted));
  }
  return counts;
}

std::vector<Verdict> score_pairing(const topolet_request& request, const CoreMap& cores, const Profiles& profiles,
                                   const Demand& demand) {
  const std::vector<NeighbourCounts> counts = neighbours_by_candidate(request, cores, profiles, demand);
  const auto has_conflict = [](const NeighbourCounts& of) {
    return of[static_cast<std::size_t>(Neighbours::kConflict)] > 0;
  };
  // Most containers have no profile, and heavy ones do not concern them as long as they do not meet.
  const bool may_meet_heavy = std::any_of(counts.begin(), counts.end(), has_conflict);
  if (demand.profile == Profile::kUnknown && !may_meet_heavy) return {};
  std::vector<Verdict> verdicts;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    verdicts.push_back({TOPOLET_VERDICT_SCORE, score_of(counts[i], demand.profile),
                        reason_of(sdk::candidates(request)[i], counts[i], demand)});
  }
  abstain_if_scores_are_equal(request, demand, verdicts);
  return verdicts;
}

Set cpus_to_choose_from(const topolet_pick_request& picking, const CoreMap& cores, const Profiles& profiles,
                        const Demand& demand) {
  if (demand.isolated) return Isolation(cores, *picking.request, demand).cpus_to_choose_from(picking.usable);
  if (demand.whole_cores) {
    Set whole = cores.on_whole_cores(picking.usable);
    return whole.size() < demand.exclusive_cpus ? Set() : whole;
  }
  const Pairing pairing(cores, *picking.request->ledger, profiles, demand);
  const std::size_t wanted = demand.exclusive_cpus > 0
                                 ? demand.exclusive_cpus
                                 : pairing.shared_cpus_requested(picking.usable, picking.request->workload->demand);
  return pairing.cpus_to_choose_from(picking.usable, wanted);
}

/// Returns the siblings of the chosen CPUs that stay idle, or the reason why they cannot.
PickAnswer withhold_siblings(const topolet_pick_request& picking, const CoreMap& cores, const Demand& demand,
                             const PolicyOptions& options) {
  PickAnswer answer;
  Set siblings = siblings_of(cores, picking.chosen);
  const Set unavailable = siblings - Set(picking.usable);
  const bool required = demand.isolated || demand.exclusive_cpus % cores.threads_per_core() != 0;
  if (siblings.empty() || (!demand.isolated && !options.rounds_up)) return answer;
  if (demand.isolated) {
    const Isolation isolation(cores, *picking.request, demand);
    answer.unmet = isolation.shortage_for_pod(picking.usable, Set(picking.chosen), siblings);
    if (!answer.unmet.empty()) return answer;
  }
  const std::string why =
      " (" + (demand.isolated ? demand.isolated_by : "numa.full-pcpus-only, smt.round = idle-sibling") + ')';
  if (unavailable.empty()) {
    answer.reason = sdk::cpu_names(siblings) + (siblings.size() == 1 ? " is" : " are") + " kept idle" + why;
    answer.withhold = std::move(siblings);
  } else if (required) {
    answer.unmet = sdk::cpu_names(unavailable) + " cannot be kept idle beside " + sdk::cpu_names(Set(picking.chosen)) +
                   ": reserved or used by others" + why;
  }
  return answer;
}

}  // namespace

std::vector<Verdict> Policy::score(const topolet_request& request) const {
  const Profiles profiles(request, options_, history_);
  const Demand demand = demand_of(request, options_, profiles);
  if (!demand.annotation_error.empty()) return same_for_all(request, TOPOLET_VERDICT_REJECT, demand.annotation_error);
  std::vector<Verdict> verdicts;
  if (!demand.is_empty()) {
    const CoreMap cores(*request.topology);
    if (demand.whole_cores) return score_whole_cores(request, cores, demand, options_);
    if (!demand.isolated && !has_siblings(cores)) return {};
    verdicts =
        demand.isolated ? score_isolation(request, cores, demand) : score_pairing(request, cores, profiles, demand);
  }
  if (!verdicts.empty() || demand.ineffective_annotation.empty()) return verdicts;
  return same_for_all(request, TOPOLET_VERDICT_ABSTAIN, demand.ineffective_annotation);
}

void Policy::propose(const topolet_request& request, sdk::Proposals& proposals) const {
  const Demand demand = demand_of(request, options_, Profiles(request, options_, history_));
  if (!demand.annotation_error.empty() || (!demand.isolated && !demand.whole_cores)) return;
  for (const Set& nodes : node_sets_of_whole_cores(request, CoreMap(*request.topology), demand)) {
    proposals.nodes(nodes.view());
  }
}

PickAnswer Policy::pick(const topolet_pick_request& picking) const {
  if (picking.stage != TOPOLET_PICK_CHOOSE && picking.stage != TOPOLET_PICK_REVIEW) return {};
  const Profiles profiles(*picking.request, options_, history_);
  const Demand demand = demand_of(*picking.request, options_, profiles);
  if (!demand.annotation_error.empty() || demand.is_empty()) return {};
  const CoreMap cores(*picking.request->topology);
  if (picking.stage == TOPOLET_PICK_REVIEW) {
    const bool keeps_idle = demand.isolated || demand.whole_cores;
    return keeps_idle ? withhold_siblings(picking, cores, demand, options_) : PickAnswer{};
  }
  PickAnswer answer;
  if (!demand.isolated && !has_siblings(cores)) return answer;
  answer.narrow = cpus_to_choose_from(picking, cores, profiles, demand);
  if (answer.narrow.size() == sdk::size_of(picking.usable)) answer.narrow = {};
  return answer;
}

/// What a container counts as stays as it is for as long as the container lives, so that nobody moves to and fro with
/// its load.
void Policy::adjust(const topolet_adjust_request& asked, sdk::Adjustments& adjustments) const {
  if (options_.pair != Pair::kMeasured) return;
  const LoadProfile own = Profiles(*asked.request, options_, history_).of_newcomer();
  if (own.is_measured) adjustments.tag(kProfileTag, tag_text(own));
}

void Policy::tick(const topolet_tick_request& request, sdk::Wishes& /*wishes*/) {
  if (options_.pair == Pair::kMeasured) history_.tick(request);
}

void Policy::score(const topolet_request& request, sdk::Scores& scores) const { scores.give(score(request)); }

void Policy::pick(const topolet_pick_request& request, sdk::Picks& picks) const {
  const PickAnswer answer = pick(request);
  if (!answer.narrow.empty()) picks.narrow(answer.narrow.view());
  if (!answer.withhold.empty()) picks.withhold(answer.withhold.view());
  if (!answer.reason.empty()) picks.reason(answer.reason);
  if (!answer.unmet.empty()) picks.unmet(answer.unmet);
}

}  // namespace topolet::smt
