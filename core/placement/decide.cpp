#include "core/placement/decide.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "core/base/text.hpp"
#include "core/placement/candidates.hpp"
#include "core/placement/exclusive_claim.hpp"
#include "core/placement/isolated_choice.hpp"
#include "core/placement/kept_cpus.hpp"
#include "core/placement/namespaces.hpp"
#include "core/placement/placement_builder.hpp"
#include "core/placement/pod_request.hpp"
#include "core/placement/rank.hpp"
#include "core/placement/reason_codes.hpp"
#include "core/placement/settings.hpp"
#include "core/placement/validate.hpp"
#include "core/placement/vote_tally.hpp"
#include "core/placement/why_shared.hpp"
#include "core/placement/zone.hpp"

namespace topolet::placement {
namespace {

/// Free CPUs node by node: "node 0: 1, node 1: 3, CPUs outside any node: 2".
std::string free_by_node(const PolicyRequest& request) {
  const CpuSet free = request.free();
  std::string text;
  std::string outside;
  NodeSet told;  // a machine of one node and CPUs outside it has that node again
  for (const Candidate& candidate : request.candidates) {
    const std::size_t here = (candidate.cpus & free).size();
    if (candidate.nodes.empty()) outside = fmt::format("CPUs outside any node: {}", here);
    if (candidate.nodes.size() != 1 || candidate.nodes.is_subset_of(told)) continue;
    told |= candidate.nodes;
    text += fmt::format("{}node {}: {}", text.empty() ? "" : ", ", candidate.nodes.to_string(), here);
  }
  return text + (text.empty() || outside.empty() ? "" : ", ") + outside;
}

/// Nobody is asked about a container that wishes for no preference, or about no candidates.
const Votes& votes_for(const PolicyRequest& request, const Votes& votes) {
  static const Votes kNobody;
  return request.whole_pool || request.candidates.empty() ? kNobody : votes;
}

CommonOptions common_options_of(const Votes& votes) {
  CommonOptions all;
  for (const Vote& vote : votes) {
    all.whole_cores = all.whole_cores || vote.common_options.whole_cores;
    all.pod_scope = all.pod_scope || vote.common_options.pod_scope;
    all.spread_cores = all.spread_cores || vote.common_options.spread_cores;
  }
  return all;
}

/// With the node sets that policies propose; nothing if there are none to add.
std::optional<PolicyRequest> with_proposals(const PolicyRequest& request, const Votes& votes) {
  if (!request.workload.kubelet_cpus.empty() || !omits_node_sets(request.candidates)) return std::nullopt;
  std::vector<NodeSet> proposals;
  for (const Vote& vote : votes_for(request, votes)) {
    const Result<std::vector<NodeSet>> proposed = vote.policy->propose(request);
    if (proposed) proposals.insert(proposals.end(), proposed->begin(), proposed->end());
  }
  if (proposals.empty()) return std::nullopt;
  // In an order that does not depend on which plugin is enabled first.
  std::sort(proposals.begin(), proposals.end(),
            [](const NodeSet& a, const NodeSet& b) { return a.words() < b.words(); });
  std::vector<Candidate> candidates = request.candidates;
  for (const NodeSet& nodes : proposals) {
    const auto& out = request.excluded_node_sets;
    if (std::find(out.begin(), out.end(), nodes) == out.end()) add_proposed(candidates, *request.topology, nodes);
  }
  if (candidates.size() == request.candidates.size()) return std::nullopt;
  PolicyRequest wider = request;
  wider.candidates = std::move(candidates);
  return wider;
}

constexpr const char* kTakenBack = ": its scores are taken back, because it lost its vote when it was asked for CPUs";

/// The way of one decision; holds what its steps share.
class DecisionRun {
 public:
  DecisionRun(const PolicyRequest& request, const PlacementRules& rules, const Votes& votes)
      : request_(request),
        rules_(rules),
        votes_(votes_for(request, votes)),
        tally_(request, decision_),
        builder_(request, rules, votes_, tally_, decision_) {
    decision_.pod_scope = request.common_options.pod_scope;
  }

  Decision run() {
    if (!request_.workload.kubelet_cpus.empty()) return decide_inside_bound();
    if (request_.exclusive) {
      if (auto refusal = node_shortage()) return when_full(code_for_shortage(), std::move(*refusal));
    }
    std::vector<RankedCandidate> ranking = rank(request_, votes_, tally_, decision_);
    heeded_losses_ = decision_.lost_votes.size();
    for (std::size_t i = 0; i < ranking.size();) {
      if (tally_.denial()) return deny(reason_code::kPluginVoteLost, *tally_.denial());
      const bool is_placed = !ranking[i].rejected && place(ranking[i]);
      if (take_back_lost_votes(ranking)) {
        i = 0;
        continue;
      }
      if (!is_placed) {
        ++i;
        continue;
      }
      const std::int64_t penalty = ranking[i].penalty != 0 ? 0 : penalty_for(ranking[i]);
      if (penalty == 0 || apply_penalty(request_, ranking, i, penalty)) return finish(ranking[i]);
      // Said if it is taken after all.
      decision_.verdicts.dropped.resize(dropped_before_);
    }
    if (tally_.denial()) return deny(reason_code::kPluginVoteLost, *tally_.denial());
    return when_full(code_for_no_candidate(), no_candidate_reason());
  }

 private:
  /// The kubelet's set is a bound. It is exclusive for a Guaranteed container that asked for just so many CPUs.
  Decision decide_inside_bound() {
    const CpuSet& bound = request_.workload.kubelet_cpus;
    Placement& placement = decision_.placement;
    decision_.nodes = request_.topology->nodes_of(bound);
    placement.mems = request_.workload.kubelet_mems;
    if (is_kubelet_cpuset_exclusive(request_.workload)) {
      placement.mode = Mode::kExclusive;
      placement.cpus = bound;
      PlacementRules kubelet_rules = rules_;
      kubelet_rules.min_shared_cpus = 0;  // how much stays shared is the kubelet's business while it hands out CPUs
      if (const Status valid = validate(placement, request_.ledger, kubelet_rules); valid) {
        decision_.reason = fmt::format("the kubelet assigned {} exclusively", named("CPU", bound));
        decision_.reason_code = reason_code::kKubeletExclusive;
        return std::move(decision_);
      }
    }
    placement.mode = request_.shared_mode;
    placement.cpus = bound & request_.shared_cpus();
    decision_.within = bound;
    decision_.reason =
        fmt::format("the kubelet allows {}; it runs on those of them that are in the shared pool", named("CPU", bound));
    decision_.reason_code = reason_code::kKubeletBound;
    if (is_kubelet_cpuset_exclusive(request_.workload) && bound.intersects(request_.ledger.barred))
      decision_.reason += "; not exclusively, as " + describe_unmovable(request_.ledger, bound);
    if (placement.cpus.empty()) {
      placement.cpus = bound;
      decision_.conflict = true;
      decision_.reason_code = reason_code::kKubeletConflict;
      decision_.reason = fmt::format(
          "conflict: the kubelet allows only {}, none of them in the shared pool ({}); the container runs there "
          "nevertheless",
          named("CPU", bound), request_.ledger.pool.to_string());
    }
    return std::move(decision_);
  }

  /// Looked at before any policy is asked: what the node lacks as a whole no candidate has.
  std::optional<std::string> node_shortage() const {
    const std::size_t asked = request_.exclusive_cpus;
    const std::size_t free = request_.free().size();
    if (request_.from != CpuSource::kPool) {
      if (free >= asked) return std::nullopt;
      return fmt::format(
          "{} cannot have {} among those that the kernel isolates ({}): requested={}, available={} ({}); {}stop a "
          "container that has some of them, isolate more (kernel parameter isolcpus){}",
          display_name(request_.workload), counted(asked, "exclusive CPU"), why_isolated(), asked, free,
          free_by_node(request_), unmovable_text(), instead_of_isolated());
    }
    const std::size_t spare = spare_cpus(request_.ledger.pool, rules_);
    const std::size_t available = std::min(spare - std::min<std::size_t>(spare, request_.awaited_cpus), free);
    if (available >= asked) return std::nullopt;
    const bool may_share_instead = !request_.must_retain && rules_.when_full != WhenFull::kShare;
    return fmt::format(
        "{} cannot have {}: requested={}, available={} ({} {} ({}), of which placement.min-shared-cpus keeps {} "
        "shared{}); {}stop an exclusive container{}",
        display_name(request_.workload), counted(asked, "exclusive CPU"), asked, available, counted(free, "CPU"),
        request_.ledger.barred.empty() ? "in the pool" : "of the pool could be given alone", free_by_node(request_),
        rules_.min_shared_cpus, awaited_text() + isolated_text(), unmovable_text(),
        may_share_instead ? ", lower placement.min-shared-cpus, or set placement.when-full = share"
                          : " or lower placement.min-shared-cpus");
  }

  bool is_always() const {
    return rules_.isolated == IsolatedRule::kAlways && request_.workload.settings.count(kIsolatedAnnotation) == 0;
  }
  bool stays_with_its_own() const { return request_.must_retain && !request_.keep.empty(); }
  /// Names the setting that would let it have others.
  const char* instead_of_isolated() const {
    if (stays_with_its_own()) return "";
    const bool may_say_so =
        rules_.isolated != IsolatedRule::kAlways || may_take_more_than_requested(request_.workload, rules_);
    return is_always() || !may_say_so ? ", or use placement.isolated = prefer" : ", or use topolet.io/isolated: prefer";
  }
  const char* why_isolated() const {
    if (stays_with_its_own()) return "where it has its CPUs";
    return is_always() ? "placement.isolated = always" : "annotation topolet.io/isolated";
  }
  std::string awaited_text() const {
    if (request_.awaited_cpus == 0) return "";
    return fmt::format("; {} for containers that have waited for CPUs of their own", request_.awaited_cpus);
  }

  /// Counts the CPUs that the kernel isolates, if they were tried or would help.
  std::string isolated_text() const {
    const std::size_t isolated = request_.ledger.isolated.size();
    const bool was_tried = cpu_source(request_.workload, rules_) != CpuSource::kPool;
    if ((isolated == 0 && !was_tried) || request_.must_retain) return "";
    return fmt::format("; {} free of those that the kernel isolates{}", isolated,
                       was_tried ? "" : ", which placement.isolated says who gets");
  }

  /// Names the containers that are in the way as long as they stay there: "fin/a/main runs on CPUs 0-3 and cannot be
  /// moved; ".
  std::string unmovable_text() const {
    const std::string text = describe_unmovable(request_.ledger, request_.ledger.pool | request_.ledger.isolated);
    return text.empty() || !request_.exclusive ? std::string() : text + "; ";
  }

  const char* code_for_shortage() const {
    const bool is_from_pool = request_.from == CpuSource::kPool;
    const std::size_t without_them =
        is_from_pool ? spare_cpus(request_.ledger.pool, rules_) : request_.ledger.isolated.size();
    if (!request_.ledger.barred.empty() && without_them >= request_.exclusive_cpus)
      return reason_code::kNeighboursStuck;
    return is_from_pool ? reason_code::kTooFewFreeCpus : reason_code::kTooFewIsolatedCpus;
  }

  const char* code_for_no_candidate() const {
    if (!request_.exclusive && request_.shared_cpus().empty()) return reason_code::kNoSharedCpu;
    if (!decision_.verdicts.rejected.empty()) return reason_code::kPluginRejected;
    return request_.exclusive ? code_for_shortage() : reason_code::kNoSharedCpu;
  }

  std::string no_candidate_reason() const {
    std::string text = fmt::format("{} cannot be placed: ", display_name(request_.workload));
    if (request_.exclusive) {
      text += fmt::format("requested={}, available={} ({})", request_.exclusive_cpus, request_.free().size(),
                          free_by_node(request_));
      if (!request_.keep.empty())
        text += fmt::format(", besides {}, which it has already", named("CPU", request_.keep));
      if (const std::string unmovable = describe_unmovable(request_.ledger, request_.ledger.pool); !unmovable.empty())
        text += "; " + unmovable;
    } else if (request_.shared_cpus().empty()) {
      text += "the shared pool has no CPU left; stop an exclusive container, or raise placement.min-shared-cpus";
    }
    for (const auto& [reason, count] : decision_.verdicts.rejected) {
      text += (text.ends_with(": ") ? "" : "; ") + reason;
      if (count > 1) text += fmt::format(" ({} candidates)", count);
    }
    if (!last_placement_error_.empty()) text += (text.ends_with(": ") ? "" : "; ") + last_placement_error_;
    return text;
  }

  Decision deny(const char* code, std::string reason) {
    decision_.denied = true;
    decision_.reason_code = code;
    decision_.placement = {};
    decision_.within = {};
    decision_.replace.clear();
    decision_.reason = std::move(reason);
    return std::move(decision_);
  }

  Decision when_full(const char* code, std::string reason) {
    const bool must_be_exclusive = request_.must_retain || request_.from != CpuSource::kPool;
    const bool shares = rules_.when_full == WhenFull::kShare && !must_be_exclusive;
    if (!request_.exclusive || !shares || request_.may_go_elsewhere()) return deny(code, std::move(reason));
    PolicyRequest shared = request_;
    shared.share(NotExclusive::kNodeFull);
    Decision decision = DecisionRun(shared, rules_, votes_).run();
    decision.shared_because_full = true;
    if (!decision.denied) decision.reason_code = reason_code::kNodeFullShared;
    decision.reason = fmt::format("{}; shared instead (placement.when-full = share): {}", reason, decision.reason);
    return decision;
  }

  bool place(const RankedCandidate& ranked) {
    dropped_before_ = decision_.verdicts.dropped.size();
    const Status valid = builder_.place(ranked);
    // So that it does not depend on the order in which the plugins are enabled.
    auto& dropped = decision_.verdicts.dropped;
    std::sort(dropped.begin() + static_cast<std::ptrdiff_t>(dropped_before_), dropped.end());
    if (!valid) last_placement_error_ = valid.error().message;
    return valid.has_value();
  }

  /// Who loses its vote over its pick has none, as if it had lost it when it was asked for scores: what it said of the
  /// candidates is taken back, and the best of them is tried again. Not so of who was not asked for want of time.
  /// Returns true if something was taken back.
  bool take_back_lost_votes(std::vector<RankedCandidate>& ranking) {
    const std::vector<std::string>& lost = decision_.lost_votes;
    const std::set<std::string> lately(lost.begin() + static_cast<std::ptrdiff_t>(heeded_losses_), lost.end());
    heeded_losses_ = lost.size();
    const auto is_to_blame = [&](const Vote& vote) {
      return lately.contains(vote.policy->name()) && !tally_.ran_out_of_time(vote);
    };
    if (std::none_of(votes_.begin(), votes_.end(), is_to_blame)) return false;
    // What was dropped so far was dropped for votes that do not count any more, or is found once more.
    std::vector<std::string>& dropped = decision_.verdicts.dropped;
    std::erase_if(dropped, [](const std::string& what) { return !what.ends_with(kTakenBack); });
    for (const Vote& vote : votes_) {
      if (!is_to_blame(vote)) continue;
      take_back_opinions(request_, vote, ranking, decision_);
      tally_.take_back_reply();
      dropped.push_back(vote.policy->name() + kTakenBack);
    }
    return true;
  }

  /// Returns the sum of the scores of policies whose picks are dropped there: they scored CPUs that the container does
  /// not get.
  std::int64_t penalty_for(const RankedCandidate& ranked) const {
    std::int64_t sum = 0;
    for (const Vote& vote : votes_) {
      const auto& overridden = builder_.overridden();
      if (std::find(overridden.begin(), overridden.end(), &vote) == overridden.end()) continue;
      for (const CandidateOpinions::Opinion& opinion : ranked.opinions) {
        if (opinion.policy == vote.policy->name()) sum += std::int64_t{vote.weight} * std::max(opinion.score, 0);
      }
    }
    return sum;
  }

  Decision finish(const RankedCandidate& ranked) {
    const std::string adjusted = builder_.adjust(ranked);
    if (tally_.denial()) return deny(reason_code::kPluginVoteLost, *tally_.denial());
    decision_.unpinned = tally_.has_no_reply();
    decision_.nodes = request_.candidates[ranked.position].nodes;
    decision_.cpus_of_candidate = request_.candidates[ranked.position].cpus;
    decision_.reason_code = code_for(ranked);
    decision_.reason = reason_for(ranked) + builder_.withholding_reasons() + adjusted + dropped_text();
    if (const std::string missed = missed_zone(); !missed.empty()) {
      decision_.reason_code = reason_code::kZoneMissed;
      decision_.reason += missed;
    }
    decision_.reason += tally_.lost_votes_text();
    for (const CandidateOpinions::Opinion& opinion : ranked.opinions) decision_.verdicts.add_code(opinion.code);
    auto& best = decision_.verdicts.best;
    const std::string nodes = decision_.nodes.to_string();
    const auto won = std::find_if(best.begin(), best.end(),
                                  [&](const CandidateOpinions& row) { return !row.rejected && row.nodes == nodes; });
    if (won != best.end()) {
      std::rotate(best.begin(), won, won + 1);
    } else {
      best.insert(best.begin(), {nodes, ranked.sum, false, ranked.opinions});
      if (best.size() > kAuditedCandidates) best.pop_back();
    }
    return std::move(decision_);
  }

  /// Explains why a container is not in the zone that a scheduler has reserved for it; empty for all others.
  std::string missed_zone() const {
    const std::optional<NodeSet> zone = zone_of(request_.workload);
    if (!zone || request_.whole_pool) return "";
    if (!decision_.nodes.empty() && decision_.nodes.is_subset_of(*zone)) return "";
    return describe_outside_zone(*zone);
  }

  /// Lists the wishes of policies for the winning place that were dropped.
  std::string dropped_text() const {
    const auto& dropped = decision_.verdicts.dropped;
    std::string text;
    for (std::size_t i = dropped_before_; i < dropped.size(); ++i) text += "; dropped: " + dropped[i];
    return text;
  }

  /// Joins the opinions of policies, sorted by name, so that the text does not depend on the order in which they are
  /// enabled.
  static std::string opinions_text(const RankedCandidate& ranked) {
    std::vector<const CandidateOpinions::Opinion*> opinions;
    for (const CandidateOpinions::Opinion& opinion : ranked.opinions) opinions.push_back(&opinion);
    std::stable_sort(opinions.begin(), opinions.end(),
                     [](const auto* a, const auto* b) { return a->policy < b->policy; });
    std::string text;
    for (const CandidateOpinions::Opinion* opinion : opinions) {
      if (!opinion->reason.empty()) text += (text.empty() ? "" : "; ") + opinion->policy + ": " + opinion->reason;
    }
    return text;
  }

  const char* code_for(const RankedCandidate& ranked) const {
    if (decision_.unpinned && !votes_.empty()) return reason_code::kNoPluginAnswered;
    const bool has_opinion = std::any_of(ranked.opinions.begin(), ranked.opinions.end(),
                                         [](const auto& opinion) { return !opinion.reason.empty(); });
    return has_opinion ? reason_code::kBestScore : reason_code::kNoOpinion;
  }

  std::string reason_for(const RankedCandidate& ranked) const {
    std::string text = opinions_text(ranked);
    if (request_.exclusive) {
      if (text.empty()) {
        text = fmt::format("{}, whole cores first; no plugin had an opinion",
                           counted(request_.exclusive_cpus, "exclusive CPU"));
      }
      if (request_.from != CpuSource::kPool) text += "; from the isolated CPUs (kernel parameter isolcpus)";
      if (!request_.keep.empty()) text += fmt::format("; it had {} before", named("CPU", request_.keep));
      return text;
    }
    const WhyShared why = why_shared(*request_.why_not_exclusive);
    const bool is_for_want_of_request = request_.why_not_exclusive == NotExclusive::kNoOwnRequest ||
                                        request_.why_not_exclusive == NotExclusive::kNoRequest ||
                                        request_.why_not_exclusive == NotExclusive::kNothingRequested;
    const std::string of_pod = is_for_want_of_request ? describe_request_of_pod(request_.workload) : std::string();
    if (!text.empty())
      return why.is_unexpected ? fmt::format("{}; it shares CPUs: {}{}", text, why.text, of_pod) : text;
    const std::string pool = decision_.placement.mode == Mode::kReserved
                                 ? "runs on the reserved CPUs and the shared pool"
                                 : "runs in the shared pool";
    return *why.text == '\0' ? pool : fmt::format("{}: {}{}", pool, why.text, of_pod);
  }

  const PolicyRequest& request_;
  const PlacementRules& rules_;
  const Votes& votes_;
  Decision decision_;
  VoteTally tally_;
  PlacementBuilder builder_;
  std::string last_placement_error_;
  std::size_t heeded_losses_ = 0;   ///< entries of `lost_votes` without which the candidates are ranked
  std::size_t dropped_before_ = 0;  ///< entries of `dropped` that are about candidates tried before
};

/// All that live as long as the decision: what is made of a request may be kept by its address.
using Requests = std::deque<PolicyRequest>;

/// With the former CPUs, if they are as good as others.
Decision decide_from(const PolicyRequest& request, const PlacementRules& rules, const Votes& votes,
                     Requests& requests) {
  const PolicyRequest* asked = &request;
  std::optional<Decision> again;
  while (true) {
    Decision decision = DecisionRun(*asked, rules, votes).run();
    if (asked->may_go_elsewhere() && !decision.denied) {
      again = std::move(decision);
    } else if (again && is_as_good(*request.topology, *again, decision)) {
      return *std::move(again);
    } else if (!decision.denied) {
      if (again) decision.reason += fmt::format("; {}, which it had, would suit it less", named("CPU", request.keep));
      return decision;
    }
    if (!asked->may_go_elsewhere()) return decision;
    PolicyRequest& anywhere = requests.emplace_back(*asked);
    anywhere.keep = anywhere.retained_withheld = {};
    asked = &anywhere;
  }
}

}  // namespace

Decision decide(const PolicyRequest& request, const PlacementRules& rules, const Votes& votes) {
  Requests requests;
  const PolicyRequest* asked = &request;
  if (const CommonOptions common_options = common_options_of(votes); common_options != request.common_options) {
    PolicyRequest& with_options = requests.emplace_back(request);
    with_options.common_options = common_options;
    asked = &with_options;
  }
  if (std::optional<PolicyRequest> wider = with_proposals(*asked, votes))
    asked = &requests.emplace_back(*std::move(wider));
  if (!asked->exclusive || asked->from != CpuSource::kPreferIsolated)
    return decide_from(*asked, rules, votes, requests);
  return decide_by_preference(*asked, [&](PolicyRequest from_some) {
    return decide_from(requests.emplace_back(std::move(from_some)), rules, votes, requests);
  });
}

}  // namespace topolet::placement
