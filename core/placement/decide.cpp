#include "core/placement/decide.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace topolet {
namespace {

constexpr std::size_t kAuditedCandidates = 8;

/// One candidate on its way to a verdict.
struct Ranked {
  std::size_t position = 0;  ///< in PolicyRequest::candidates
  CpuSet usable;             ///< what the workload could use of it
  std::int64_t sum = 0;
  bool scored = false;
  bool rejected = false;
  std::vector<VerdictRow::Word> words;
};

bool in_reserved_namespace(const Workload& workload, const DecideRules& rules) {
  const auto& names = rules.reserved_namespaces;
  return std::find(names.begin(), names.end(), workload.pod_namespace) != names.end();
}

std::string name_of(const Workload& workload) {
  return workload.pod_namespace + "/" + workload.pod_name + "/" + workload.key.name;
}

std::string plural(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// Free CPUs node by node: "node 0: 1, node 1: 3".
std::string free_by_node(const PolicyRequest& request) {
  std::string text;
  for (const Candidate& candidate : request.candidates) {
    if (candidate.nodes.size() != 1) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("node {}: {}", candidate.nodes.to_string(), (candidate.cpus & request.ledger.pool).size());
  }
  return text;
}

/// The nodes that the container's memory may be bound to.
NodeSet memory_open_to(const PolicyRequest& request) {
  NodeSet open;
  for (const Node& node : request.topology->nodes) {
    if (node.has_memory) open.insert(node.os_index);
  }
  const NodeSet& bound = request.workload.kubelet_mems;
  return bound.empty() ? open : open & bound;
}

/// The way of one decision; holds what its steps share.
class Deciding {
 public:
  Deciding(const PolicyRequest& request, const DecideRules& rules, const std::vector<Voter>& voters)
      : request_(request), rules_(rules), voters_(voters) {}

  Decision run() {
    if (!request_.workload.kubelet_cpus.empty()) return decide_inside_bound();
    if (request_.exclusive) {
      if (auto refusal = refuse_before_asking()) return when_full(std::move(*refusal));
    }
    rank();
    if (closed_vote_lost_) return deny(*closed_vote_lost_);
    for (const Ranked& ranked : ranking_) {
      if (!ranked.rejected && place(ranked)) return finish(ranked);
    }
    return when_full(nothing_fits());
  }

 private:
  Mode shared_mode() const {
    return in_reserved_namespace(request_.workload, rules_) ? Mode::kReserved : Mode::kShared;
  }

  CpuSet open_cpus() const {
    return shared_mode() == Mode::kReserved ? request_.ledger.pool | request_.ledger.reserved : request_.ledger.pool;
  }

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
    placement.mode = shared_mode();
    placement.cpus = bound & open_cpus();
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
    const std::size_t free = request_.ledger.pool.size();
    const std::size_t asked = request_.exclusive_cpus;
    if (free >= asked + rules_.min_shared_cpus) return std::nullopt;
    return fmt::format(
        "{} asks for {} of its own: requested={}, available={} ({} free in the pool ({}), of which min-shared-cpus "
        "keeps "
        "{} for the others); stop an exclusive container, lower min-shared-cpus, or set when-full = share",
        name_of(request_.workload), plural(asked, "CPU"), asked,
        free > rules_.min_shared_cpus ? free - rules_.min_shared_cpus : 0, free, free_by_node(request_),
        rules_.min_shared_cpus);
  }

  std::string nothing_fits() const {
    std::string text = fmt::format("no place for {}: ", name_of(request_.workload));
    if (request_.exclusive) {
      text += fmt::format("requested={}, available={} ({})", request_.exclusive_cpus, request_.ledger.pool.size(),
                          free_by_node(request_));
    } else {
      text += "the shared pool has no CPU left; give it some (min-shared-cpus) or stop an exclusive container";
    }
    for (const auto& [reason, count] : decision_.verdicts.rejected) text += fmt::format("; {} ({})", reason, count);
    if (!last_invalid_.empty()) text += "; " + last_invalid_;
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
    if (!request_.exclusive || rules_.when_full == WhenFull::kDeny) return deny(std::move(reason));
    PolicyRequest shared = request_;
    shared.exclusive = false;
    shared.exclusive_cpus = 0;
    Decision decision = Deciding(shared, rules_, voters_).run();
    decision.reason = fmt::format("{}; shared instead (when-full = share): {}", reason, decision.reason);
    return decision;
  }

  void rank() {
    start_ranking();
    for (const Voter& voter : voters_) ask(voter);
    for (Ranked& ranked : ranking_) count_rejects(ranked);
    const bool any_score = std::any_of(ranking_.begin(), ranking_.end(), [](const Ranked& r) { return r.scored; });
    std::stable_sort(ranking_.begin(), ranking_.end(), [&](const Ranked& a, const Ranked& b) {
      if (!any_score && is_machine(a) != is_machine(b)) return is_machine(a);
      return better(a, b);
    });
    audit_ranking();
  }

  void start_ranking() {
    decision_.verdicts.candidates = static_cast<std::uint32_t>(request_.candidates.size());
    for (std::size_t i = 0; i < request_.candidates.size(); ++i) {
      Ranked ranked;
      ranked.position = i;
      ranked.usable = request_.candidates[i].cpus & (request_.exclusive ? request_.ledger.pool : open_cpus());
      const std::size_t needed = request_.exclusive ? request_.exclusive_cpus : 1;
      if (ranked.usable.size() < needed) {
        ranked.rejected = true;
        ranked.words.push_back({"core", "reject", 0, request_.exclusive ? "too few free CPUs" : "no shared CPUs"});
      }
      ranking_.push_back(std::move(ranked));
    }
  }

  void ask(const Voter& voter) {
    Result<std::vector<Verdict>> verdicts = voter.policy->score(request_);
    if (verdicts && verdicts->size() != request_.candidates.size()) {
      verdicts = Error{Code::kInternal,
                       fmt::format("{} verdicts for {} candidates", verdicts->size(), request_.candidates.size())};
    }
    if (!verdicts) {
      lose_vote(voter, verdicts.error());
      return;
    }
    ++answers_;
    for (std::size_t i = 0; i < verdicts->size(); ++i) add_word(ranking_[i], voter, (*verdicts)[i]);
  }

  void lose_vote(const Voter& voter, const Error& error) {
    const std::string& name = voter.policy->name();
    decision_.lost_votes.push_back(name);
    decision_.verdicts.lost_votes.push_back(name + ": " + error.message);
    if (voter.fail_closed && !in_reserved_namespace(request_.workload, rules_)) {
      closed_vote_lost_ =
          fmt::format("plugin {} did not answer ({}) and on-failure.{} = closed", name, error.message, name);
    }
  }

  static void add_word(Ranked& ranked, const Voter& voter, Verdict& verdict) {
    switch (verdict.kind) {
      case Verdict::Kind::kAbstain:
        if (verdict.reason.empty()) return;
        ranked.words.push_back({voter.policy->name(), "abstain", 0, std::move(verdict.reason)});
        return;
      case Verdict::Kind::kReject:
        ranked.rejected = true;
        ranked.words.push_back({voter.policy->name(), "reject", 0, std::move(verdict.reason)});
        return;
      case Verdict::Kind::kScore:
        ranked.scored = true;
        ranked.sum += std::int64_t{voter.weight} * verdict.score;
        ranked.words.push_back({voter.policy->name(), "score", verdict.score, std::move(verdict.reason)});
        return;
    }
  }

  void count_rejects(const Ranked& ranked) {
    for (const VerdictRow::Word& word : ranked.words) {
      if (word.kind == "reject") ++decision_.verdicts.rejected[word.policy + ": " + word.reason];
    }
  }

  bool is_machine(const Ranked& ranked) const { return ranked.position + 1 == request_.candidates.size(); }

  /// Score; then fewer nodes, smaller distance, the fullest that still fits, the lowest nodes.
  bool better(const Ranked& a, const Ranked& b) const {
    const Candidate& first = request_.candidates[a.position];
    const Candidate& second = request_.candidates[b.position];
    if (a.rejected != b.rejected) return b.rejected;
    if (a.sum != b.sum) return a.sum > b.sum;
    return std::tuple(first.nodes.size(), first.distance, a.usable.size(), a.position) <
           std::tuple(second.nodes.size(), second.distance, b.usable.size(), b.position);
  }

  void audit_ranking() {
    for (const Ranked& ranked : ranking_) {
      if (decision_.verdicts.best.size() == kAuditedCandidates) break;
      decision_.verdicts.best.push_back(
          {request_.candidates[ranked.position].nodes.to_string(), ranked.sum, ranked.rejected, ranked.words});
    }
  }

  /// The picks of all policies for one candidate, put together. False if what comes out is not valid.
  bool place(const Ranked& ranked) {
    const std::size_t needed = request_.exclusive ? request_.exclusive_cpus : 1;
    CpuSet usable = ranked.usable;
    CpuSet withheld;
    std::vector<std::uint32_t> order;
    for (const Voter& voter : voters_) {
      const std::string& name = voter.policy->name();
      if (has_lost_its_vote(name)) continue;
      Result<Pick> pick = voter.policy->pick(request_, ranked.position, usable);
      if (!pick) {
        lose_vote(voter, pick.error());
        continue;
      }
      if (const std::string bad = nonsense(*pick, ranked.usable); !bad.empty()) {
        decision_.bad_answers.push_back({name, bad});
        lose_vote(voter, {Code::kInternal, bad});
        continue;
      }
      if (pick->narrow) narrow(usable, *pick->narrow, needed, name);
      if (order.empty()) order = pick->order;
      withheld |= pick->withhold;
    }
    Placement& placement = decision_.placement;
    placement = {};
    placement.mode = request_.exclusive ? Mode::kExclusive : shared_mode();
    placement.cpus =
        request_.exclusive ? take_cpus(*request_.topology, usable, request_.exclusive_cpus, order) : usable;
    const bool narrowed = usable != ranked.usable;
    decision_.within = request_.exclusive ? CpuSet{} : narrowed ? usable : request_.candidates[ranked.position].cpus;
    withhold(withheld - placement.cpus);
    const Status valid = validate(placement, request_.ledger, rules_);
    if (!valid) last_invalid_ = valid.error().message;
    return valid.ok();
  }

  /// What no policy may say whatever it prefers; empty if it is fine. Too few CPUs is another matter: that is dropped.
  static std::string nonsense(const Pick& pick, const CpuSet& usable) {
    const auto foreign = [&usable](const char* what, const CpuSet& cpus) {
      return fmt::format("pick {} CPUs {}, which it was not offered; it was offered {}", what,
                         (cpus - usable).to_string(), usable.to_string());
    };
    if (pick.narrow && pick.narrow->empty()) return "pick left no CPU";
    if (pick.narrow && !pick.narrow->is_subset_of(usable)) return foreign("chose", *pick.narrow);
    return pick.withhold.is_subset_of(usable) ? std::string() : foreign("withheld", pick.withhold);
  }

  void narrow(CpuSet& usable, const CpuSet& to, std::size_t needed, const std::string& policy) {
    CpuSet left = usable & to;
    if (left.size() >= needed) {
      usable = std::move(left);
    } else {
      decision_.verdicts.dropped.push_back(fmt::format("{}: narrowing to {} would leave {} of {} needed", policy,
                                                       to.to_string(), plural(left.size(), "CPU"), needed));
    }
  }

  void withhold(CpuSet withheld) {
    if (withheld.empty()) return;
    Placement with = decision_.placement;
    with.withheld = std::move(withheld);
    if (const Status valid = validate(with, request_.ledger, rules_); valid) {
      decision_.placement = std::move(with);
    } else {
      decision_.verdicts.dropped.push_back(
          fmt::format("withholding {}: {}", with.withheld.to_string(), valid.error().message));
    }
  }

  bool has_lost_its_vote(const std::string& policy) const {
    const auto& lost = decision_.lost_votes;
    return std::find(lost.begin(), lost.end(), policy) != lost.end();
  }

  /// What the policies set besides the CPUs, put together.
  void adjust(const Ranked& ranked) {
    const Chosen chosen{ranked.position, decision_.placement, memory_open_to(request_)};
    for (const Voter& voter : voters_) {
      const std::string& name = voter.policy->name();
      if (has_lost_its_vote(name)) continue;
      const Result<Adjustment> adjustment = voter.policy->adjust(request_, chosen);
      if (!adjustment) {
        lose_vote(voter, adjustment.error());
        continue;
      }
      if (!adjustment->reason.empty()) adjust_reasons_ += "; " + name + ": " + adjustment->reason;
      if (adjustment->mems) bind_memory(*adjustment->mems, chosen.memory, name);
      const Workload& workload = request_.workload;
      AddedFields& added = decision_.placement.added;
      for (const auto& variable : adjustment->added.env) add(added.env, variable, workload.env, name, "variable");
      for (const auto& annotation : adjustment->added.annotations) {
        add(added.annotations, annotation, workload.annotations, name, "annotation");
      }
    }
  }

  void bind_memory(const NodeSet& nodes, const NodeSet& open, const std::string& policy) {
    NodeSet& mems = decision_.placement.mems;
    if (const NodeSet foreign = nodes - open; !foreign.empty()) {
      drop(policy, fmt::format("memory on {}: the container may have it on {}", nodes.to_string(),
                               open.empty() ? "no node that is known" : open.to_string()));
      return;
    }
    NodeSet left = mems.empty() ? nodes : mems & nodes;
    if (left.empty()) {
      drop(policy, mems.empty()
                       ? "memory on no node"
                       : fmt::format("memory on {}: it is bound to {} already", nodes.to_string(), mems.to_string()));
      return;
    }
    mems = std::move(left);
  }

  /// Values are not told: they may be secrets.
  template <class Theirs>
  void add(std::vector<std::pair<std::string, std::string>>& added, const std::pair<std::string, std::string>& field,
           const Theirs& theirs, const std::string& policy, std::string_view noun) {
    const auto is_this = [&field](const auto& other) { return other.first == field.first; };
    if (std::any_of(theirs.begin(), theirs.end(), is_this)) {
      drop(policy, fmt::format("{} {}: the pod sets it itself", noun, field.first));
    } else if (std::any_of(added.begin(), added.end(), is_this)) {
      drop(policy, fmt::format("{} {}: another plugin has set it", noun, field.first));
    } else {
      added.push_back(field);
    }
  }

  void drop(const std::string& policy, const std::string& what) {
    decision_.verdicts.dropped.push_back(policy + ": " + what);
  }

  Decision finish(const Ranked& ranked) {
    adjust(ranked);
    if (closed_vote_lost_) return deny(*closed_vote_lost_);
    decision_.unpinned = answers_ == 0;
    decision_.nodes = request_.candidates[ranked.position].nodes;
    decision_.reason = reason_for(ranked) + adjust_reasons_;
    auto& best = decision_.verdicts.best;
    const std::string nodes = decision_.nodes.to_string();
    const auto won = std::find_if(best.begin(), best.end(),
                                  [&](const VerdictRow& row) { return !row.rejected && row.nodes == nodes; });
    if (won != best.end()) {
      std::rotate(best.begin(), won, won + 1);
    } else {
      best.insert(best.begin(), {nodes, ranked.sum, false, ranked.words});
      if (best.size() > kAuditedCandidates) best.pop_back();
    }
    return std::move(decision_);
  }

  std::string reason_for(const Ranked& ranked) const {
    std::string text;
    for (const VerdictRow::Word& word : ranked.words) {
      if (word.reason.empty()) continue;
      if (!text.empty()) text += "; ";
      text += word.policy + ": " + word.reason;
    }
    if (!text.empty()) return text;
    if (request_.exclusive) {
      return fmt::format("{} of its own, whole cores first; no policy had an opinion",
                         plural(request_.exclusive_cpus, "CPU"));
    }
    std::string pool =
        decision_.placement.mode == Mode::kReserved ? "the reserved CPUs and the shared pool" : "the shared pool";
    return pool + shared_because();
  }

  std::string shared_because() const {
    switch (request_.workload.qos) {
      case Qos::kGuaranteed:
        if (whole_cpus(request_.workload) == 0) return ": its CPU request is not a whole number";
        if (decision_.placement.mode == Mode::kReserved) return ": its namespace is reserved";
        if (request_.kubelet_hands_out_cpusets)
          return ": while the kubelet hands out CPU sets, topolet gives none alone";
        return ": placement.exclusive = never";
      case Qos::kBurstable:
        return ": burstable containers share";
      case Qos::kBestEffort:
        return ": besteffort containers share";
    }
    return "";
  }

  const PolicyRequest& request_;
  const DecideRules& rules_;
  const std::vector<Voter>& voters_;
  std::vector<Ranked> ranking_;
  std::optional<std::string> closed_vote_lost_;
  std::size_t answers_ = 0;
  std::string last_invalid_;
  std::string adjust_reasons_;
  Decision decision_;
};

Status check_shared_stay(const Placement& placement, const LedgerView& view, const CpuSet& pool_after) {
  for (const LedgerEntry& entry : view.entries) {
    const Mode mode = entry.placement.mode;
    if ((mode != Mode::kShared && mode != Mode::kReserved) || !entry.placement.cpus.intersects(view.pool)) continue;
    const CpuSet left = Ledger::shared_cpus(mode, entry.within, pool_after, view.reserved, entry.bound);
    if (left.empty()) {
      return Error{Code::kResourceExhausted, fmt::format("taking {} would leave container {} without CPUs",
                                                         placement.cpus.to_string(), entry.key.name)};
    }
  }
  return {};
}

}  // namespace

Result<Adjustment> Policy::adjust(const PolicyRequest& /*request*/, const Chosen& /*chosen*/) { return Adjustment(); }

std::uint32_t whole_cpus(const Workload& workload) {
  const std::int64_t milli = workload.demand.cpu_request_milli;
  if (workload.qos != Qos::kGuaranteed || milli <= 0 || milli % 1000 != 0) return 0;
  return static_cast<std::uint32_t>(milli / 1000);
}

PolicyRequest make_request(std::shared_ptr<const Topology> topology, LedgerView ledger, Workload workload,
                           std::vector<Candidate> candidates, const DecideRules& rules,
                           bool kubelet_hands_out_cpusets) {
  PolicyRequest request;
  request.topology = std::move(topology);
  request.ledger = std::move(ledger);
  request.candidates = std::move(candidates);
  request.kubelet_hands_out_cpusets = kubelet_hands_out_cpusets;
  if (rules.exclusive == ExclusiveRule::kGuaranteedInteger && !kubelet_hands_out_cpusets &&
      workload.kubelet_cpus.empty() && !in_reserved_namespace(workload, rules)) {
    request.exclusive_cpus = whole_cpus(workload);
    request.exclusive = request.exclusive_cpus > 0;
  }
  request.workload = std::move(workload);
  return request;
}

Decision decide(const PolicyRequest& request, const DecideRules& rules, const std::vector<Voter>& voters) {
  return Deciding(request, rules, voters).run();
}

Status validate(const Placement& placement, const LedgerView& view, const DecideRules& rules) {
  if (placement.cpus.empty()) return Error{Code::kResourceExhausted, "no CPU is left"};
  const CpuSet touched = placement.cpus | placement.withheld;
  if (!touched.is_subset_of(view.allowed)) {
    return Error{Code::kInvalidArgument, fmt::format("CPUs {} are not among the allowed {}",
                                                     (touched - view.allowed).to_string(), view.allowed.to_string())};
  }
  if (const CpuSet taken = touched & (view.exclusive | view.withheld); !taken.empty()) {
    return Error{Code::kAlreadyExists, fmt::format("CPUs {} are held by another container", taken.to_string())};
  }
  if (placement.cpus.intersects(placement.withheld)) {
    return Error{Code::kInvalidArgument, "a CPU cannot be used and withheld at once"};
  }
  CpuSet gone = placement.withheld;
  if (placement.mode == Mode::kExclusive) gone |= placement.cpus;
  if (gone.empty()) return {};
  if (gone.intersects(view.reserved)) {
    return Error{Code::kInvalidArgument, fmt::format("CPUs {} are reserved", (gone & view.reserved).to_string())};
  }
  const CpuSet pool_after = view.pool - gone;
  if (pool_after.size() < rules.min_shared_cpus) {
    return Error{Code::kResourceExhausted, fmt::format("the pool would keep {} CPUs, min-shared-cpus is {}",
                                                       pool_after.size(), rules.min_shared_cpus)};
  }
  return check_shared_stay(placement, view, pool_after);
}

}  // namespace topolet
