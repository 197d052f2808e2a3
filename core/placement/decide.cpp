#include "core/placement/decide.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "core/placement/assemble.hpp"
#include "core/placement/candidates.hpp"
#include "core/placement/rank.hpp"
#include "core/placement/settings.hpp"
#include "core/placement/votes.hpp"

namespace topolet {
namespace {

std::string name_of(const Workload& workload) {
  return workload.pod_namespace + "/" + workload.pod_name + "/" + workload.key.name;
}

std::string plural(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// Free CPUs node by node: "node 0: 1, node 1: 3".
std::string free_by_node(const PolicyRequest& request) {
  const CpuSet free = request.free();
  std::string text;
  for (const Candidate& candidate : request.candidates) {
    if (candidate.nodes.size() != 1) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("node {}: {}", candidate.nodes.to_string(), (candidate.cpus & free).size());
  }
  return text;
}

/// What to ask for if all of this cannot be had; none if that is all there is to ask for.
std::optional<PolicyRequest> more_modest(const PolicyRequest& request) {
  if (!request.exclusive) return std::nullopt;
  PolicyRequest modest = request;
  if (!request.keep.empty() && !request.must_keep) {
    modest.keep = modest.keep_withheld = {};
  } else if (request.from == TakeFrom::kIsolatedFirst) {
    modest.from = TakeFrom::kPool;
  } else {
    return std::nullopt;
  }
  return modest;
}

const std::vector<Voter>& voters_for(const PolicyRequest& request, const std::vector<Voter>& voters) {
  static const std::vector<Voter> kNobody;
  return request.whole_pool ? kNobody : voters;
}

/// With the node sets that policies propose; nothing if there are none to add.
std::optional<PolicyRequest> with_proposals(const PolicyRequest& request, const std::vector<Voter>& voters) {
  if (!request.workload.kubelet_cpus.empty() || !are_not_all(request.candidates)) return std::nullopt;
  std::vector<NodeSet> proposals;
  for (const Voter& voter : voters_for(request, voters)) {
    const Result<std::vector<NodeSet>> proposed = voter.policy->propose(request);
    if (proposed) proposals.insert(proposals.end(), proposed->begin(), proposed->end());
  }
  if (proposals.empty()) return std::nullopt;
  // Whoever is enabled first.
  std::sort(proposals.begin(), proposals.end(),
            [](const NodeSet& a, const NodeSet& b) { return a.words() < b.words(); });
  std::vector<Candidate> candidates = request.candidates;
  for (const NodeSet& nodes : proposals) {
    const auto& out = request.ruled_out;
    if (std::find(out.begin(), out.end(), nodes) == out.end()) add_proposed(candidates, *request.topology, nodes);
  }
  if (candidates.size() == request.candidates.size()) return std::nullopt;
  PolicyRequest wider = request;
  wider.candidates = std::move(candidates);
  return wider;
}

/// The way of one decision; holds what its steps share.
class Deciding {
 public:
  /// `for_lack`: it shares because it could not have CPUs of its own, which is said elsewhere.
  Deciding(const PolicyRequest& request, const DecideRules& rules, const std::vector<Voter>& voters,
           bool for_lack = false)
      : request_(request),
        rules_(rules),
        for_lack_(for_lack),
        voters_(voters_for(request, voters)),
        votes_(request, rules, decision_),
        assembly_(request, rules, voters_, votes_, decision_) {}

  Decision run() {
    if (!request_.workload.kubelet_cpus.empty()) return decide_inside_bound();
    if (request_.exclusive) {
      if (auto refusal = refuse_before_asking()) return when_full(std::move(*refusal));
    }
    std::vector<Ranked> ranking = rank(request_, rules_, voters_, votes_, decision_);
    if (votes_.denial()) return deny(*votes_.denial());
    for (std::size_t i = 0; i < ranking.size();) {
      if (ranking[i].rejected || !place(ranking[i])) {
        ++i;
        continue;
      }
      const std::int64_t forfeited = ranking[i].lowered ? 0 : forfeited_by(ranking[i]);
      if (forfeited == 0 || lower(request_, ranking, i, forfeited)) return finish(ranking[i]);
      // Said if it is taken after all.
      decision_.verdicts.dropped.resize(dropped_before_);
    }
    if (votes_.denial()) return deny(*votes_.denial());
    return when_full(nothing_fits());
  }

 private:
  /// The kubelet's set is a bound. It is exclusive for a Guaranteed container that asked for just so many CPUs.
  Decision decide_inside_bound() {
    const CpuSet& bound = request_.workload.kubelet_cpus;
    Placement& placement = decision_.placement;
    decision_.nodes = request_.topology->nodes_of(bound);
    placement.mems = request_.workload.kubelet_mems;
    if (whole_cpus(request_.workload) == bound.size()) {
      placement.mode = Mode::kExclusive;
      placement.cpus = bound;
      DecideRules kubelets_own = rules_;
      kubelets_own.min_shared_cpus = 0;  // how much stays shared is the kubelet's business while it hands out CPUs
      if (const Status valid = validate(placement, request_.ledger, kubelets_own); valid) {
        decision_.reason = fmt::format("the kubelet gave it {} for itself", bound.to_string());
        return std::move(decision_);
      }
    }
    placement.mode = shared_mode(request_, rules_);
    placement.cpus = bound & shared_cpus_open_to(request_, rules_);
    decision_.within = bound;
    decision_.reason = fmt::format("the kubelet's CPUs {}, as far as the pool has them", bound.to_string());
    if (placement.cpus.empty()) {
      placement.cpus = bound;
      decision_.conflict = true;
      decision_.reason =
          fmt::format("conflict: the kubelet says {}, none of which is in the pool {}; applied as it says",
                      bound.to_string(), request_.ledger.pool.to_string());
    }
    return std::move(decision_);
  }

  std::optional<std::string> refuse_before_asking() const {
    const std::size_t asked = request_.exclusive_cpus;
    const std::size_t free = request_.free().size();
    if (request_.from != TakeFrom::kPool) {
      if (free >= asked) return std::nullopt;
      return fmt::format(
          "{} asks for {} of its own that the kernel isolated (topolet.io/isolated): requested={}, available={} ({}); "
          "stop a container that has some, isolate more (isolcpus), or write topolet.io/isolated: prefer",
          name_of(request_.workload), plural(asked, "CPU"), asked, free, free_by_node(request_));
    }
    if (free >= asked + rules_.min_shared_cpus) return std::nullopt;
    return fmt::format(
        "{} asks for {} of its own: requested={}, available={} ({} free in the pool ({}), of which min-shared-cpus "
        "keeps {} for the others); stop an exclusive container, or lower min-shared-cpus{}",
        name_of(request_.workload), plural(asked, "CPU"), asked,
        free > rules_.min_shared_cpus ? free - rules_.min_shared_cpus : 0, free, free_by_node(request_),
        rules_.min_shared_cpus,
        request_.must_keep || rules_.when_full == WhenFull::kShare ? "" : ", or set when-full = share");
  }

  std::string nothing_fits() const {
    std::string text = fmt::format("no place for {}: ", name_of(request_.workload));
    if (request_.exclusive) {
      text += fmt::format("requested={}, available={} ({})", request_.exclusive_cpus, request_.free().size(),
                          free_by_node(request_));
      if (!request_.keep.empty()) text += fmt::format(", beside {} that it has", request_.keep.to_string());
    } else if (shared_cpus_open_to(request_, rules_).empty()) {
      text += "the shared pool has no CPU left; give it some (min-shared-cpus) or stop an exclusive container";
    }
    for (const auto& [reason, count] : decision_.verdicts.rejected) {
      text += (text.ends_with(": ") ? "" : "; ") + reason;
      if (count > 1) text += fmt::format(" ({} candidates)", count);
    }
    if (!last_invalid_.empty()) text += (text.ends_with(": ") ? "" : "; ") + last_invalid_;
    return text;
  }

  Decision deny(std::string reason) {
    decision_.denied = true;
    decision_.placement = {};
    decision_.within = {};
    decision_.reason = std::move(reason);
    return std::move(decision_);
  }

  Decision when_full(std::string reason) {
    const bool insists = request_.must_keep || request_.from == TakeFrom::kIsolated;
    const bool shares = rules_.when_full == WhenFull::kShare && !insists;
    if (!request_.exclusive || !shares || more_modest(request_)) return deny(std::move(reason));
    PolicyRequest shared = request_;
    shared.exclusive = false;
    shared.exclusive_cpus = 0;
    shared.keep = shared.keep_withheld = {};
    Decision decision = Deciding(shared, rules_, voters_, true).run();
    decision.shared_for_lack = true;
    decision.reason = fmt::format("{}; shared instead (when-full = share): {}", reason, decision.reason);
    return decision;
  }

  bool place(const Ranked& ranked) {
    dropped_before_ = decision_.verdicts.dropped.size();
    const Status valid = assembly_.place(ranked);
    // So that it does not depend on the order in which the plugins are enabled.
    auto& dropped = decision_.verdicts.dropped;
    std::sort(dropped.begin() + static_cast<std::ptrdiff_t>(dropped_before_), dropped.end());
    if (!valid) last_invalid_ = valid.error().message;
    return valid.ok();
  }

  /// What a candidate has of policies that would not have their way there: they like it for what they don't get.
  std::int64_t forfeited_by(const Ranked& ranked) const {
    std::int64_t sum = 0;
    for (const Voter& voter : voters_) {
      const auto& thwarted = assembly_.thwarted();
      if (std::find(thwarted.begin(), thwarted.end(), &voter) == thwarted.end()) continue;
      for (const CandidateVerdict::Word& word : ranked.words) {
        if (word.policy == voter.policy->name()) sum += std::int64_t{voter.weight} * std::max(word.score, 0);
      }
    }
    return sum;
  }

  Decision finish(const Ranked& ranked) {
    const std::string adjusted = assembly_.adjust(ranked);
    if (votes_.denial()) return deny(*votes_.denial());
    decision_.unpinned = votes_.nobody_answered();
    decision_.nodes = request_.candidates[ranked.position].nodes;
    decision_.reason = reason_for(ranked) + assembly_.withholding_reasons() + adjusted + dropped_here();
    auto& best = decision_.verdicts.best;
    const std::string nodes = decision_.nodes.to_string();
    const auto won = std::find_if(best.begin(), best.end(),
                                  [&](const CandidateVerdict& row) { return !row.rejected && row.nodes == nodes; });
    if (won != best.end()) {
      std::rotate(best.begin(), won, won + 1);
    } else {
      best.insert(best.begin(), {nodes, ranked.sum, false, ranked.words});
      if (best.size() > kAuditedCandidates) best.pop_back();
    }
    return std::move(decision_);
  }

  /// What the policies wished for the place that won and could not have.
  std::string dropped_here() const {
    const auto& dropped = decision_.verdicts.dropped;
    std::string text;
    for (std::size_t i = dropped_before_; i < dropped.size(); ++i) text += "; dropped: " + dropped[i];
    return text;
  }

  /// What policies said, by their names, so that it does not depend on the order in which they are enabled.
  static std::string words_of(const Ranked& ranked) {
    std::vector<const CandidateVerdict::Word*> words;
    for (const CandidateVerdict::Word& word : ranked.words) words.push_back(&word);
    std::stable_sort(words.begin(), words.end(), [](const auto* a, const auto* b) { return a->policy < b->policy; });
    std::string text;
    for (const CandidateVerdict::Word* word : words) {
      if (!word->reason.empty()) text += (text.empty() ? "" : "; ") + word->policy + ": " + word->reason;
    }
    return text;
  }

  std::string reason_for(const Ranked& ranked) const {
    std::string text = words_of(ranked);
    if (request_.exclusive) {
      if (text.empty()) {
        text = fmt::format("{} of its own, whole cores first; no policy had an opinion",
                           plural(request_.exclusive_cpus, "CPU"));
      }
      if (request_.from != TakeFrom::kPool) text += "; from the CPUs that the kernel isolated";
      if (!request_.keep.empty()) text += fmt::format("; it had {}", request_.keep.to_string());
      return text;
    }
    if (!text.empty()) return might_have_its_own() ? text + "; it shares CPUs" + shared_because() : text;
    std::string pool =
        decision_.placement.mode == Mode::kReserved ? "the reserved CPUs and the shared pool" : "the shared pool";
    return pool + shared_because();
  }

  /// Whose reader may wonder why it has no CPUs of its own.
  bool might_have_its_own() const {
    return !for_lack_ && (whole_cpus(request_.workload) > 0 || cpus_wish(request_.workload) == CpusWish::kExclusive);
  }

  std::string shared_because() const {
    const Workload& workload = request_.workload;
    const CpusWish wish = cpus_wish(workload);
    if (for_lack_) return {};
    if (wish == CpusWish::kNone) return ": annotation topolet.io/cpus = none";
    if (wish == CpusWish::kShared) return ": annotation topolet.io/cpus = shared";
    const bool wished = wish == CpusWish::kExclusive;
    if (!wished && workload.qos == Qos::kBurstable) return ": burstable containers share";
    if (!wished && workload.qos == Qos::kBestEffort) return ": besteffort containers share";
    if (!wished && whole_cpus(workload) == 0) return ": its CPU request is not a whole number";
    if (wished && workload.demand.cpu_request_milli <= 0) return ": topolet.io/cpus = exclusive needs a CPU request";
    if (!wished && in_reserved_namespace(workload, rules_)) return ": its namespace is reserved";
    if (request_.kubelet_hands_out_cpusets) return ": while the kubelet hands out CPU sets, topolet gives none alone";
    if (rules_.exclusive == ExclusiveRule::kNever) return ": placement.exclusive = never";
    if (!wished && rules_.exclusive == ExclusiveRule::kAnnotated) {
      return ": placement.exclusive = annotated, and it has no annotation topolet.io/cpus = exclusive";
    }
    return ": CPUs of its own are given only when a container is created";
  }

  const PolicyRequest& request_;
  const DecideRules& rules_;
  const bool for_lack_;
  const std::vector<Voter>& voters_;
  Decision decision_;
  Votes votes_;
  Assembly assembly_;
  std::string last_invalid_;
  std::size_t dropped_before_ = 0;  ///< the place that is tried: what was dropped for others
};

}  // namespace

Result<Pick> Policy::pick_beside(const PolicyRequest& request, std::size_t candidate, const CpuSet& usable,
                                 const CpuSet& /*chosen*/) {
  return pick(request, candidate, usable, request.exclusive_cpus);
}

Result<std::vector<NodeSet>> Policy::propose(const PolicyRequest& /*request*/) { return std::vector<NodeSet>(); }

Result<Adjustment> Policy::adjust(const PolicyRequest& /*request*/, const Chosen& /*chosen*/) { return Adjustment(); }

std::uint32_t whole_cpus(const Workload& workload) {
  const std::int64_t milli = workload.demand.cpu_request_milli;
  if (workload.qos != Qos::kGuaranteed || milli <= 0 || milli % 1000 != 0) return 0;
  return static_cast<std::uint32_t>(milli / 1000);
}

std::uint32_t cpus_of_its_own(const Workload& workload, const DecideRules& rules) {
  if (rules.exclusive == ExclusiveRule::kNever) return 0;
  switch (cpus_wish(workload)) {
    case CpusWish::kShared:
    case CpusWish::kNone:
      return 0;
    case CpusWish::kExclusive:
      return static_cast<std::uint32_t>((std::max<std::int64_t>(workload.demand.cpu_request_milli, 0) + 999) / 1000);
    case CpusWish::kUsual:
      break;
  }
  if (rules.exclusive == ExclusiveRule::kAnnotated || in_reserved_namespace(workload, rules)) return 0;
  return whole_cpus(workload);
}

PolicyRequest make_request(std::shared_ptr<const Topology> topology, LedgerView ledger, Workload workload,
                           std::vector<Candidate> candidates, const DecideRules& rules,
                           bool kubelet_hands_out_cpusets) {
  PolicyRequest request;
  request.topology = std::move(topology);
  request.ledger = std::move(ledger);
  request.candidates = std::move(candidates);
  request.kubelet_hands_out_cpusets = kubelet_hands_out_cpusets;
  if (!kubelet_hands_out_cpusets && workload.kubelet_cpus.empty()) {
    request.exclusive_cpus = cpus_of_its_own(workload, rules);
    request.exclusive = request.exclusive_cpus > 0;
  }
  if (request.exclusive) request.from = isolated_wish(workload);
  request.whole_pool = cpus_wish(workload) == CpusWish::kNone;
  request.workload = std::move(workload);
  return request;
}

Decision decide(const PolicyRequest& request, const DecideRules& rules, const std::vector<Voter>& voters) {
  std::deque<PolicyRequest>
      modest;  // all of them live to the end: what is made of a request may be kept by its address
  const PolicyRequest* asked = &request;
  if (std::optional<PolicyRequest> wider = with_proposals(request, voters))
    asked = &modest.emplace_back(*std::move(wider));
  while (true) {
    Decision decision = Deciding(*asked, rules, voters).run();
    if (!decision.denied) return decision;
    std::optional<PolicyRequest> less = more_modest(*asked);
    if (!less) return decision;
    asked = &modest.emplace_back(*std::move(less));
  }
}

}  // namespace topolet
