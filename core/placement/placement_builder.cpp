#include "core/placement/placement_builder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/base/text.hpp"
#include "core/placement/container_notes.hpp"
#include "core/placement/memory_nodes.hpp"
#include "core/placement/take_cpus.hpp"
#include "core/placement/unified_value.hpp"
#include "core/placement/validate.hpp"

namespace topolet::placement {
namespace {

/// CPUs of different kinds behave differently. If one kind suffices among the CPUs that the policies left, the
/// container gets CPUs of that kind only, and of the fastest such kind.
CpuSet of_one_cpu_kind(const PolicyRequest& request, const CpuSet& usable) {
  const std::vector<topology::CpuKind>& kinds = request.topology->cpu_kinds;
  if (!request.exclusive || kinds.size() < 2) return usable;
  for (const bool known : {true, false}) {
    for (auto kind = kinds.rbegin(); kind != kinds.rend(); ++kind) {
      if ((kind->efficiency != topology::kNoPosition) != known) continue;
      CpuSet of_kind = usable & kind->cpus;
      if (fits(request, of_kind)) return of_kind;
    }
  }
  return usable;
}

/// By one of the annotations that containerd and CRI-O read.
bool names_rdt_class(const Workload& workload) {
  const std::string of_pod = "rdt.resources.beta.kubernetes.io/";
  return workload.annotations.count(kRdtClassAnnotation) != 0 || workload.pod_annotations.count(of_pod + "pod") != 0 ||
         workload.pod_annotations.count(of_pod + "container." + workload.key.name) != 0;
}

std::string named_nodes(const NodeSet& nodes) { return nodes.empty() ? "no node" : named("node", nodes); }

/// Returns why the pick is invalid; empty if it is valid. A pick that leaves too few CPUs is valid, and dropped later.
std::string invalid_pick_reason(const Pick& pick, const CpuSet& offered) {
  const auto not_offered = [&offered](const char* what, const CpuSet& cpus) {
    return fmt::format("pick {} CPUs {}, which it was not offered; it was offered {}", what,
                       (cpus - offered).to_string(), offered.to_string());
  };
  if (pick.narrow && pick.narrow->empty()) return "pick left no CPU";
  if (pick.narrow && !pick.narrow->is_subset_of(offered)) return not_offered("chose", *pick.narrow);
  for (const CpuMinimum& share : pick.at_least) {
    if (!share.cpus.is_subset_of(offered)) return not_offered("wants some of", share.cpus);
  }
  return pick.withhold.is_subset_of(offered) ? std::string() : not_offered("withheld", pick.withhold);
}

/// Returns true if the reserved CPUs belong to the container wherever it is placed. One that was squeezed onto them has
/// only the nearest.
bool has_reserved_cpus(const PolicyRequest& request) {
  return !request.exclusive && request.shared_mode == Mode::kReserved && !request.stay_near;
}

}  // namespace

bool PlacementBuilder::is_considered(const Considered& considered, const Vote& vote) {
  return !considered || std::find(considered->begin(), considered->end(), &vote) != considered->end();
}

Status PlacementBuilder::place(const RankedCandidate& ranked) {
  const std::size_t dropped_before = decision_.verdicts.dropped.size();
  const Status chosen = choose(ranked, std::nullopt);
  if (rejections_.empty()) return chosen;
  const Considered considered = rejecting_or_required();
  if (!considered) return rejection();
  const std::string why = rejection().error().message;
  const std::vector<const Vote*> choosing_votes = choosing_votes_;
  std::vector<const Vote*> not_considered;
  decision_.verdicts.dropped.resize(dropped_before);
  for (const Vote* vote : choosing_votes) {
    if (is_considered(considered, *vote)) continue;
    drop(vote->policy->name(), "its choice of CPUs was rejected: " + why);
    not_considered.push_back(vote);
  }
  const Status chosen_anew = choose(ranked, considered);
  overridden_.insert(overridden_.end(), not_considered.begin(), not_considered.end());
  return rejections_.empty() ? chosen_anew : rejection();
}

Status PlacementBuilder::choose(const RankedCandidate& ranked, const Considered& considered) {
  const CpuSet& offered = ranked.usable;
  unmet_requirements_.clear();
  overridden_.clear();
  withholding_reasons_.clear();
  choosing_votes_.clear();
  rejections_.clear();
  decision_.replace.clear();
  const CombinedPicks picked = ask_for_picks(ranked, considered);
  if (request_.may_go_elsewhere()) {
    const std::size_t again = std::min<std::size_t>(request_.keep.size(), request_.exclusive_cpus);
    if ((request_.keep & picked.of_any_kind).size() < again)
      return Error{Code::kResourceExhausted, "the policies choose other CPUs than those that it had"};
  }
  Placement& placement = decision_.placement;
  placement = {};
  placement.mode = request_.exclusive ? Mode::kExclusive : request_.shared_mode;
  placement.cpus = request_.exclusive ? take(ranked, picked) : picked.usable;
  const bool narrowed = picked.usable != offered;
  decision_.within = request_.exclusive ? CpuSet{}
                     : narrowed         ? picked.usable
                                        : request_.candidates[ranked.position].cpus;
  if (has_reserved_cpus(request_)) {
    placement.cpus |= request_.ledger.free_reserved();
    decision_.within |= request_.ledger.reserved;
  }
  // A container that has shared CPUs to keep keeps all of them, whatever policies would leave it.
  if (!request_.exclusive && !request_.keep.empty()) placement.cpus = request_.keep;
  review_choice(ranked, offered);
  if (!unmet_requirements_.empty())
    return Error{Code::kResourceExhausted, fmt::format("{}", fmt::join(unmet_requirements_, "; "))};
  return validate(placement, request_.ledger, rules_);
}

PlacementBuilder::Considered PlacementBuilder::rejecting_or_required() {
  std::vector<const Vote*> considered;
  for (const Vote& vote : votes_) {
    const bool rejects = std::any_of(rejections_.begin(), rejections_.end(),
                                     [&vote](const auto& rejection) { return rejection.first == &vote; });
    if (rejects || tally_.is_required(vote)) considered.push_back(&vote);
  }
  const Considered some = std::move(considered);
  const bool are_all = std::all_of(choosing_votes_.begin(), choosing_votes_.end(),
                                   [&some](const Vote* vote) { return is_considered(some, *vote); });
  return are_all ? std::nullopt : some;
}

Status PlacementBuilder::rejection() const {
  // By name, whatever the order in which the plugins are enabled.
  std::set<std::string> reasons;
  for (const auto& [vote, reason] : rejections_) reasons.insert(vote->policy->name() + ": " + reason);
  return Error{Code::kResourceExhausted, fmt::format("{}", fmt::join(reasons, "; "))};
}

template <class Ask>
std::optional<Pick> PlacementBuilder::ask(const Vote& vote, const CpuSet& offered, Ask ask) {
  if (tally_.has_lost(vote)) return std::nullopt;
  Result<Pick> pick = ask();
  if (!pick) {
    tally_.lose(vote, pick.error());
    return std::nullopt;
  }
  if (const std::string bad = invalid_pick_reason(*pick, offered); !bad.empty()) {
    tally_.lose_for_invalid_reply(vote, bad);
    return std::nullopt;
  }
  return *std::move(pick);
}

std::vector<std::uint32_t> PlacementBuilder::ask_for_order(const Vote& vote, const RankedCandidate& ranked,
                                                           const CpuSet& usable, std::size_t count) {
  std::optional<Pick> pick =
      ask(vote, ranked.usable, [&] { return vote.policy->order_pick(request_, ranked.position, usable, count); });
  return pick ? std::move(pick->order) : std::vector<std::uint32_t>();
}

/// All policies are asked about the same CPUs. Where only one can have its way, the first vote has it: narrowings that
/// leave too few CPUs together, minimums, the order. Then they are asked for an order of what is left, until one has
/// any: CPUs that are shared are not taken one by one.
PlacementBuilder::CombinedPicks PlacementBuilder::ask_for_picks(const RankedCandidate& ranked,
                                                                const Considered& considered) {
  CombinedPicks picked;
  picked.usable = ranked.usable;
  for (const Vote& vote : votes_) {
    std::optional<Pick> pick = ask(vote, ranked.usable, [&] {
      return vote.policy->pick(request_, ranked.position, ranked.usable, request_.exclusive_cpus);
    });
    if (!pick) continue;
    if (pick->narrow || !pick->at_least.empty()) choosing_votes_.push_back(&vote);
    if (is_considered(considered, vote)) {
      if (pick->narrow || !pick->at_least.empty()) decision_.verdicts.add_code(pick->code);
      if (pick->narrow) narrow(picked.usable, *pick->narrow, vote);
      picked.shares.insert(picked.shares.end(), pick->at_least.begin(), pick->at_least.end());
    }
  }
  picked.of_any_kind = picked.usable;
  picked.usable = of_one_cpu_kind(request_, picked.of_any_kind);
  for (const Vote& vote : votes_) {
    if (!request_.exclusive || !picked.order.empty()) break;
    picked.order = ask_for_order(vote, ranked, picked.usable, request_.exclusive_cpus);
    if (!picked.order.empty()) picked.ordering_vote = &vote;
  }
  return picked;
}

/// Nobody lets a container out of CPUs that another policy has narrowed it to.
void PlacementBuilder::review_choice(const RankedCandidate& ranked, const CpuSet& offered) {
  const CpuSet chosen = decision_.placement.cpus;
  const bool may_be_soft =
      !request_.exclusive && decision_.within == request_.candidates[ranked.position].cpus && choosing_votes_.empty();
  decision_.soft_home = false;
  for (const Vote& vote : votes_) {
    const std::optional<Pick> pick =
        ask(vote, offered, [&] { return vote.policy->review_pick(request_, ranked.position, offered, chosen); });
    if (!pick) continue;
    if (!pick->unmet.empty()) drop_pick(vote, pick->unmet);
    if (!pick->rejected.empty()) reject(vote, pick->rejected);
    if (!pick->unmet.empty() || !pick->rejected.empty() || !(pick->withhold - chosen).empty())
      decision_.verdicts.add_code(pick->code);
    for (const Replacement& other : pick->replace) add_replacement(vote, other);
    decision_.soft_home = decision_.soft_home || (pick->soft_home && may_be_soft);
    const CpuSet beside = pick->withhold - chosen;
    if (beside.empty() || !withhold(beside, vote) || pick->reason.empty()) continue;
    withholding_reasons_ += "; " + vote.policy->name() + ": " + pick->reason;
  }
}

/// The first policy that names a container says why; one that lets it move to other nodes is enough.
void PlacementBuilder::add_replacement(const Vote& vote, const Replacement& other) {
  auto& replace = decision_.replace;
  const auto place =
      std::lower_bound(replace.begin(), replace.end(), other.key,
                       [](const WishedReplacement& wish, const ContainerKey& key) { return wish.key < key; });
  if (place != replace.end() && place->key == other.key) {
    place->move_nodes |= other.move_nodes;
    return;
  }
  replace.insert(place, {other.key, other.move_nodes, vote.policy->name() + ": " + other.reason});
}

/// The minimums that policies ask for matter more than using CPUs of one kind only.
CpuSet PlacementBuilder::take(const RankedCandidate& ranked, const CombinedPicks& picked) {
  CpuSet alike = take_of(picked.usable, ranked, picked);
  if (picked.shares.empty() || picked.usable == picked.of_any_kind) return alike;
  CpuSet of_all = take_of(picked.of_any_kind, ranked, picked);
  for (const CpuMinimum& share : picked.shares) {
    const std::size_t has = std::min((alike & share.cpus).size(), share.count);
    const std::size_t could = std::min((of_all & share.cpus).size(), share.count);
    if (has != could) return has < could ? of_all : alike;
  }
  return alike;
}

/// Takes the CPUs that the container has to keep before those that the policies chose.
CpuSet PlacementBuilder::take_of(CpuSet usable, const RankedCandidate& ranked, const CombinedPicks& picked) {
  const std::size_t count = request_.exclusive_cpus;
  CpuSet taken = request_.keep & ranked.usable;
  if (taken.size() >= count) {
    const CpuSet chosen = taken & usable;
    usable = chosen.size() >= count ? chosen : taken;
    taken = {};
  }
  const auto order_of = [&](const CpuSet& part, std::size_t of_it) {
    if (picked.ordering_vote == nullptr || picked.shares.empty()) return picked.order;
    std::vector<std::uint32_t> order = ask_for_order(*picked.ordering_vote, ranked, part, of_it);
    return order.empty() ? picked.order : order;
  };
  return take_with_minimums(*request_.topology, usable, count, picked.shares, order_of, std::move(taken));
}

void PlacementBuilder::narrow(CpuSet& usable, const CpuSet& to, const Vote& vote) {
  CpuSet left = usable & to;
  if (left.size() >= needed_cpus(request_)) {
    usable = std::move(left);
  } else {
    drop_pick(vote, fmt::format("narrowing to {} would leave {} of the {} needed", named("CPU", to), left.size(),
                                counted(needed_cpus(request_), "CPU")));
  }
}

bool PlacementBuilder::withhold(const CpuSet& cpus, const Vote& vote) {
  Placement with = decision_.placement;
  with.withheld |= cpus;
  if (const Status valid = validate(with, request_.ledger, rules_); !valid) {
    drop_pick(vote, fmt::format("withholding {}: {}", named("CPU", cpus), valid.error().message));
    return false;
  }
  decision_.placement = std::move(with);
  return true;
}

std::string PlacementBuilder::adjust(const RankedCandidate& ranked) {
  ChosenPlacement chosen{ranked.position, decision_.placement, allowed_memory_nodes(request_)};
  // Memory is beside the CPUs that were chosen, not beside reserved ones that it has besides.
  const CpuSet chosen_cpus = decision_.placement.cpus - request_.ledger.reserved;
  if (has_reserved_cpus(request_) && !chosen_cpus.empty()) chosen.placement.cpus = chosen_cpus;
  std::string reasons;
  std::set<std::string> used;
  std::vector<WantedMemoryPolicy> memory_policies;
  decision_.tags.reset();
  for (const Vote& vote : votes_) {
    const std::string& name = vote.policy->name();
    if (tally_.has_lost(vote)) continue;
    const Result<Adjustment> adjustment = vote.policy->adjust(request_, chosen);
    if (!adjustment) {
      tally_.lose(vote, adjustment.error());
      continue;
    }
    if (!adjustment->reason.empty()) reasons += "; " + name + ": " + adjustment->reason;
    if (adjustment->mems) bind_memory(*adjustment->mems, chosen.memory, name);
    const Workload& workload = request_.workload;
    AddedFields& added = decision_.placement.added;
    for (const auto& variable : adjustment->added.env) add(added.env, variable, workload.env, name, "variable");
    for (const auto& annotation : adjustment->added.annotations) {
      add(added.annotations, annotation, workload.annotations, name, "annotation");
    }
    for (const auto& file : adjustment->added.unified) set_file(file, name);
    if (!adjustment->added.rdt_class.empty()) set_rdt_class(adjustment->added.rdt_class, name);
    set_first(added.scheduler, adjustment->added.scheduler, "scheduler class", name);
    set_first(added.io_priority, adjustment->added.io_priority, "I/O priority", name);
    if (const auto& policy = adjustment->added.memory_policy) memory_policies.emplace_back(name, *policy);
    used.insert(adjustment->used_devices.begin(), adjustment->used_devices.end());
    if (const auto& tags = adjustment->added.tags; !tags.empty()) {
      decision_.tags = with_tags(decision_.tags.value_or(workload.tags), name, tags);
      added.tags.insert(added.tags.end(), tags.begin(), tags.end());
    }
  }
  set_memory_policy(memory_policies, chosen.memory);
  std::sort(decision_.placement.added.tags.begin(), decision_.placement.added.tags.end());
  decision_.used_devices.assign(used.begin(), used.end());
  const auto& files = decision_.placement.added.unified;
  decision_.unified = SharedStringMap::Map(files.begin(), files.end());
  return reasons;
}

void PlacementBuilder::set_file(const std::pair<std::string, std::string>& file, const std::string& policy) {
  const Workload& workload = request_.workload;
  if (!is_within_limit(file.second, workload.demand.memory_limit_bytes))
    return drop(policy, file.first + ": it would be more than the memory limit");
  add(decision_.placement.added.unified, file, workload.kubelet_unified, policy, "cgroup file");
}

void PlacementBuilder::set_rdt_class(const std::string& rdt_class, const std::string& policy) {
  std::string& chosen = decision_.placement.added.rdt_class;
  if (names_rdt_class(request_.workload)) {
    drop(policy, "RDT class " + rdt_class + ": the pod sets one itself");
  } else if (!chosen.empty()) {
    drop(policy, "RDT class " + rdt_class + ": another plugin has set one");
  } else {
    chosen = rdt_class;
  }
}

template <class Setting>
void PlacementBuilder::set_first(std::optional<Setting>& chosen, const std::optional<Setting>& wanted,
                                 std::string_view noun, const std::string& policy) {
  if (!wanted) return;
  if (chosen) return drop(policy, fmt::format("{} {}: another plugin has set one", noun, describe(*wanted)));
  chosen = wanted;
}

/// The kernel refuses a policy with no node that the container may use, and the container would not start.
void PlacementBuilder::set_memory_policy(const std::vector<WantedMemoryPolicy>& wanted, const NodeSet& open) {
  const NodeSet& bound = decision_.placement.mems.empty() ? open : decision_.placement.mems;
  std::optional<MemoryPolicy>& chosen = decision_.placement.added.memory_policy;
  for (const auto& [name, policy] : wanted) {
    const std::string what = "memory policy " + describe(policy);
    if (!policy.relative_nodes && !policy.nodes.is_subset_of(bound)) {
      drop(name, fmt::format("{}: the container's memory may be on {} only", what, named_nodes(bound)));
    } else if (chosen) {
      drop(name, what + ": another plugin has set one");
    } else {
      chosen = policy;
    }
  }
}

void PlacementBuilder::bind_memory(const NodeSet& nodes, const NodeSet& open, const std::string& policy) {
  NodeSet& mems = decision_.placement.mems;
  const std::string binding = "binding memory to " + named_nodes(nodes);
  if (const NodeSet not_offered = nodes - open; !not_offered.empty()) {
    drop(policy, fmt::format("{}: the container's memory may be on {} only", binding, named_nodes(open)));
    return;
  }
  NodeSet left = mems.empty() ? nodes : mems & nodes;
  if (left.empty()) {
    drop(policy, mems.empty() ? binding : fmt::format("{}: it is bound to {} already", binding, named_nodes(mems)));
    return;
  }
  mems = std::move(left);
}

/// Values are not told: they may be secrets.
template <class Theirs>
void PlacementBuilder::add(std::vector<std::pair<std::string, std::string>>& added,
                           const std::pair<std::string, std::string>& field, const Theirs& theirs,
                           const std::string& policy, std::string_view noun) {
  const auto is_this = [&field](const auto& other) { return other.first == field.first; };
  if (std::any_of(theirs.begin(), theirs.end(), is_this)) {
    drop(policy, fmt::format("{} {}: the pod sets it itself", noun, field.first));
  } else if (std::any_of(added.begin(), added.end(), is_this)) {
    drop(policy, fmt::format("{} {}: another plugin has set it", noun, field.first));
  } else {
    added.push_back(field);
  }
}

void PlacementBuilder::reject(const Vote& vote, const std::string& why) {
  if (request_.stay_near) {
    drop(vote.policy->name(), why);
  } else {
    rejections_.emplace_back(&vote, why);
  }
}

void PlacementBuilder::drop(const std::string& policy, const std::string& what) {
  decision_.verdicts.dropped.push_back(policy + ": " + what);
}

void PlacementBuilder::drop_pick(const Vote& vote, const std::string& what) {
  const std::string& name = vote.policy->name();
  drop(name, what);
  overridden_.push_back(&vote);
  if (tally_.is_required(vote))
    unmet_requirements_.insert(fmt::format("{}: {} (plugins.required.{} = true)", name, what, name));
}

}  // namespace topolet::placement
