#include "plugins/smt/policy.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "plugins/smt/isolation.hpp"
#include "plugins/smt/pairing.hpp"
#include "plugins/smt/words.hpp"

namespace topolet::smt {
namespace {

using sdk::Set;

constexpr std::int32_t kNobodyMet = 100;
// Siblings taken both cost more than the numa plugin's strategy and distance, and less than one more node.
constexpr std::int32_t kFewestOwnSiblings = 20;
constexpr std::int32_t kMostOwnSiblings = 25;
constexpr std::int32_t kSomeMet = 50;
constexpr std::int32_t kPairedLight = 20;  ///< a taste

std::vector<Verdict> all(const topolet_request& request, topolet_verdict_kind kind, const std::string& reason) {
  return {request.candidate_count, Verdict{kind, 0, reason}};
}

/// What the container could get anywhere.
Set free_anywhere(const topolet_request& request) {
  Set free;
  for (const topolet_candidate& candidate : sdk::candidates(request)) free |= Set(candidate.free);
  return free;
}

bool has_room(const topolet_candidate& candidate, const Wish& wish) {
  return sdk::size_of(candidate.free) >= std::max<std::size_t>(1, wish.cpus);
}

/// Places that are all the same are no matter for a score: that would only speak for the smaller ones.
void abstain_if_alike(const topolet_request& request, const Wish& wish, std::vector<Verdict>& verdicts) {
  const Verdict* first = nullptr;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    if (!has_room(sdk::candidates(request)[i], wish)) {
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

std::vector<Verdict> judge_isolation(const topolet_request& request, const Cores& cores, const Wish& wish,
                                     const PolicyOptions& options) {
  const Isolation isolation(cores, request, wish, options);
  const Set whole = cores.whole(free_anywhere(request).view());
  std::vector<Verdict> verdicts;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    verdicts.push_back(isolation.judge(candidate, whole));
  }
  abstain_if_alike(request, wish, verdicts);
  return verdicts;
}

/// numa.full-pcpus-only: a place without enough whole cores is none while another has them. If none has, it's the numa
/// plugin's matter what becomes of a request that would fill its cores.
std::vector<Verdict> judge_whole_cores(const topolet_request& request, const Cores& cores, const Wish& wish,
                                       const PolicyOptions& options) {
  const Set whole = cores.whole(free_anywhere(request).view());
  const auto here = [&whole](const topolet_candidate& candidate) {
    return sdk::size_of_both(whole.view(), candidate.free);
  };
  std::size_t most = 0;
  for (const topolet_candidate& candidate : sdk::candidates(request)) most = std::max(most, here(candidate));
  const std::size_t per_core = cores.threads_per_core();
  if (most < wish.cpus && (wish.cpus % per_core == 0 || !options.rounds_up)) return {};
  if (most < wish.cpus) {
    return all(request, TOPOLET_VERDICT_REJECT,
               "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = " + std::to_string(most) +
                   ", requested CPUs = " + std::to_string(wish.cpus) + ", CPUs per core = " + std::to_string(per_core) +
                   " (numa.full-pcpus-only, smt.round = idle-sibling)");
  }
  std::vector<Verdict> verdicts;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    const bool spoils = has_room(candidate, wish) && here(candidate) < wish.cpus;
    verdicts.push_back(spoils ? Verdict{TOPOLET_VERDICT_REJECT, 0,
                                        on_whole_cores(candidate, here(candidate)) + " for " +
                                            std::to_string(wish.cpus) + " (numa.full-pcpus-only)"}
                              : Verdict{});
  }
  return verdicts;
}

/// Heavy: 100, less 20 to 25 if they run beside each other; where others are met up to 50, the fewer the better.
/// Light: up to 20 as they run beside heavy ones, less 20 to 25 if they run beside each other.
std::int32_t score_of(const Tally& tally, Profile profile) {
  const auto count = [&tally](Terms terms) {
    return static_cast<std::int32_t>(tally[static_cast<std::size_t>(terms)]);
  };
  const std::int32_t wanted = count(Terms::kPaired) + count(Terms::kAlone) + count(Terms::kOwn) + count(Terms::kMeets);
  if (wanted == 0) return 0;
  const std::int32_t more = (kMostOwnSiblings - kFewestOwnSiblings) * count(Terms::kOwn) / wanted;
  const std::int32_t own = count(Terms::kOwn) > 0 ? kFewestOwnSiblings + more : 0;
  if (profile == Profile::kLight) return kPairedLight * count(Terms::kPaired) / wanted - own;
  if (count(Terms::kMeets) == 0) return kNobodyMet - own;
  return kSomeMet * (wanted - count(Terms::kMeets)) / wanted;
}

std::string reason_of(const topolet_candidate& candidate, const Tally& tally, const Wish& wish) {
  const auto count = [&tally](Terms terms) { return tally[static_cast<std::size_t>(terms)]; };
  const bool heavy = wish.profile == Profile::kHeavy;
  const bool shares = wish.cpus == 0;
  std::vector<std::string> parts;
  const auto add = [&](Terms terms, std::string_view noun, const char* what) {
    if (count(terms) > 0) parts.push_back(counted(count(terms), noun) + what);
  };
  if (heavy && !shares) parts.push_back(counted(count(Terms::kPaired), "core") + " without another heavy container");
  if (heavy && shares) add(Terms::kPaired, "core", " with a thread for heavy containers");
  if (!heavy && !shares) parts.push_back(counted(count(Terms::kPaired), "CPU") + " beside heavy containers");
  if (!heavy && shares && count(Terms::kPaired) > 0) parts.emplace_back("room beside those CPUs that heavy ones share");
  if (!heavy) add(Terms::kAlone, "CPU", shares ? " kept for heavy containers" : " on other cores");
  add(Terms::kOwn, "CPU", shares ? " beside those" : " beside another of its own");
  add(Terms::kMeets, "CPU", heavy ? " beside a heavy container" : " that a heavy container shares");
  std::string reason = name_of(candidate) + ": ";
  for (std::size_t i = 0; i < parts.size(); ++i) reason += (i > 0 ? ", " : "") + parts[i];
  return parts.empty() ? reason + "no room" : reason;
}

std::vector<Verdict> judge_pairing(const topolet_request& request, const Cores& cores, const Wish& wish) {
  const Pairing pairing(cores, *request.ledger, wish);
  const std::vector<Level> levels = pairing.levels(free_anywhere(request).view());
  std::vector<Verdict> verdicts;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    const std::size_t wanted = wish.cpus > 0 ? wish.cpus : pairing.asked_for(candidate.free, request.workload->demand);
    const Tally tally = tally_of(levels, candidate.free, wanted);
    verdicts.push_back({TOPOLET_VERDICT_SCORE, score_of(tally, wish.profile), reason_of(candidate, tally, wish)});
  }
  abstain_if_alike(request, wish, verdicts);
  return verdicts;
}

Set narrowed(const topolet_pick_request& picking, const Cores& cores, const Wish& wish, const PolicyOptions& options) {
  if (wish.isolated) return Isolation(cores, *picking.request, wish, options).narrowed(picking.usable);
  if (wish.whole_cores) {
    Set whole = cores.whole(picking.usable);
    return whole.size() < wish.cpus ? Set() : whole;
  }
  const Pairing pairing(cores, *picking.request->ledger, wish);
  const std::size_t wanted =
      wish.cpus > 0 ? wish.cpus : pairing.asked_for(picking.usable, picking.request->workload->demand);
  return pairing.choice(picking.usable, wanted);
}

std::string idle(const Set& siblings, std::string_view why) {
  return (siblings.size() == 1 ? "CPU " : "CPUs ") + siblings.to_string() +
         (siblings.size() == 1 ? " stays idle: " : " stay idle: ") + std::string(why);
}

Picked beside(const topolet_pick_request& picking, const Cores& cores, const Wish& wish, const PolicyOptions& options) {
  Picked picked;
  Set siblings = cores.beside(picking.chosen);
  const Set taken = siblings - Set(picking.usable);
  const bool must = wish.isolated || wish.cpus % cores.threads_per_core() != 0;
  if (siblings.empty() || (!wish.isolated && !options.rounds_up)) return picked;
  if (wish.isolated) {
    const Isolation isolation(cores, *picking.request, wish, options);
    picked.unmet = isolation.too_few_for_pod(picking.usable, Set(picking.chosen), siblings);
    if (!picked.unmet.empty()) return picked;
  }
  const std::string why = wish.isolated ? wish.isolated_by : "numa.full-pcpus-only, round = idle-sibling";
  if (taken.empty()) {
    picked.reason = idle(siblings, why);
    picked.withhold = std::move(siblings);
  } else if (must) {
    picked.unmet = (taken.size() == 1 ? "CPU " : "CPUs ") + taken.to_string() + " beside " +
                   Set(picking.chosen).to_string() + (taken.size() == 1 ? " is" : " are") + " in other hands (" + why +
                   ')';
  }
  return picked;
}

}  // namespace

std::vector<Verdict> Policy::score(const topolet_request& request) const {
  const Wish wish = wish_of(request, options_);
  if (!wish.bad_annotation.empty()) return all(request, TOPOLET_VERDICT_REJECT, wish.bad_annotation);
  if (wish.nothing()) {
    if (wish.without_effect.empty()) return {};
    return all(request, TOPOLET_VERDICT_ABSTAIN, wish.without_effect);
  }
  const Cores cores(*request.topology);
  if (wish.whole_cores) return judge_whole_cores(request, cores, wish, options_);
  if (!wish.isolated && !cores.has_siblings()) return {};
  return wish.isolated ? judge_isolation(request, cores, wish, options_) : judge_pairing(request, cores, wish);
}

Picked Policy::pick(const topolet_pick_request& picking) const {
  const Wish wish = wish_of(*picking.request, options_);
  if (!wish.bad_annotation.empty() || wish.nothing()) return {};
  const Cores cores(*picking.request->topology);
  const bool chosen = TOPOLET_HAS(&picking, chosen) && sdk::size_of(picking.chosen) > 0;
  if (chosen) {
    const bool keeps_idle = wish.isolated || wish.whole_cores;
    return keeps_idle ? beside(picking, cores, wish, options_) : Picked{};
  }
  Picked picked;
  if (!wish.isolated && !cores.has_siblings()) return picked;
  picked.narrow = narrowed(picking, cores, wish, options_);
  if (picked.narrow.size() == sdk::size_of(picking.usable)) picked.narrow = {};
  return picked;
}

void Policy::score(const topolet_request& request, sdk::Scores& scores) const { scores.give(score(request)); }

void Policy::pick(const topolet_pick_request& request, sdk::Picks& picks) const {
  const Picked picked = pick(request);
  if (!picked.narrow.empty()) picks.narrow(picked.narrow.view());
  if (!picked.withhold.empty()) picks.withhold(picked.withhold.view());
  if (!picked.reason.empty()) picks.reason(picked.reason);
  if (!picked.unmet.empty()) picks.unmet(picked.unmet);
}

}  // namespace topolet::smt
