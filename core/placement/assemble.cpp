#include "core/placement/assemble.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace topolet {
namespace {

/// CPUs that are alike behave alike: where one kind has enough of what the policies left, the container gets CPUs of
/// that kind only, of the fastest such kind.
CpuSet of_one_kind(const PolicyRequest& request, const CpuSet& usable) {
  const std::vector<CpuKind>& kinds = request.topology->cpu_kinds;
  if (!request.exclusive || kinds.size() < 2) return usable;
  for (const bool known : {true, false}) {
    for (auto kind = kinds.rbegin(); kind != kinds.rend(); ++kind) {
      if ((kind->efficiency != kNoPosition) != known) continue;
      CpuSet of_kind = usable & kind->cpus;
      if (are_enough(request, of_kind)) return of_kind;
    }
  }
  return usable;
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

/// What no policy may say whatever it prefers; empty if it is fine. Too few CPUs is another matter: that is dropped.
std::string nonsense(const Pick& pick, const CpuSet& offered) {
  const auto foreign = [&offered](const char* what, const CpuSet& cpus) {
    return fmt::format("pick {} CPUs {}, which it was not offered; it was offered {}", what,
                       (cpus - offered).to_string(), offered.to_string());
  };
  if (pick.narrow && pick.narrow->empty()) return "pick left no CPU";
  if (pick.narrow && !pick.narrow->is_subset_of(offered)) return foreign("chose", *pick.narrow);
  for (const Share& share : pick.at_least) {
    if (!share.cpus.is_subset_of(offered)) return foreign("wants some of", share.cpus);
  }
  return pick.withhold.is_subset_of(offered) ? std::string() : foreign("withheld", pick.withhold);
}

}  // namespace

bool Assembly::is_heard(const Heard& heard, const Voter& voter) {
  return !heard || std::find(heard->begin(), heard->end(), &voter) != heard->end();
}

Status Assembly::place(const Ranked& ranked) {
  const std::size_t dropped_before = decision_.verdicts.dropped.size();
  const Status chosen = choose(ranked, std::nullopt);
  if (rejections_.empty()) return chosen;
  const Heard heard = without_the_others();
  if (!heard) return rejection();
  const std::string why = rejection().error().message;
  const std::vector<const Voter*> choosers = choosers_;
  std::vector<const Voter*> unheard;
  decision_.verdicts.dropped.resize(dropped_before);
  for (const Voter* voter : choosers) {
    if (is_heard(heard, *voter)) continue;
    drop(voter->policy->name(), "its choice of CPUs: " + why);
    unheard.push_back(voter);
  }
  const Status chosen_anew = choose(ranked, heard);
  thwarted_.insert(thwarted_.end(), unheard.begin(), unheard.end());
  return rejections_.empty() ? chosen_anew : rejection();
}

Status Assembly::choose(const Ranked& ranked, const Heard& heard) {
  const CpuSet& offered = ranked.usable;
  insisted_.clear();
  thwarted_.clear();
  withholding_reasons_.clear();
  choosers_.clear();
  rejections_.clear();
  const Picked picked = ask_for_picks(ranked, heard);
  Placement& placement = decision_.placement;
  placement = {};
  placement.mode = request_.exclusive ? Mode::kExclusive : shared_mode(request_, rules_);
  placement.cpus = request_.exclusive ? take(ranked, picked) : picked.usable;
  const bool narrowed = picked.usable != offered;
  decision_.within = request_.exclusive ? CpuSet{}
                     : narrowed         ? picked.usable
                                        : request_.candidates[ranked.position].cpus;
  ask_what_to_withhold(ranked, offered);
  if (!insisted_.empty()) return Error{Code::kResourceExhausted, fmt::format("{}", fmt::join(insisted_, "; "))};
  return validate(placement, request_.ledger, rules_);
}

Assembly::Heard Assembly::without_the_others() {
  std::vector<const Voter*> heard;
  for (const Voter& voter : voters_) {
    const bool rejects = std::any_of(rejections_.begin(), rejections_.end(),
                                     [&voter](const auto& rejection) { return rejection.first == &voter; });
    if (rejects || votes_.insists(voter)) heard.push_back(&voter);
  }
  const Heard some = std::move(heard);
  const bool are_all =
      std::all_of(choosers_.begin(), choosers_.end(), [&some](const Voter* voter) { return is_heard(some, *voter); });
  return are_all ? std::nullopt : some;
}

Status Assembly::rejection() const {
  // By name, whatever the order in which the plugins are enabled.
  std::set<std::string> reasons;
  for (const auto& [voter, reason] : rejections_) reasons.insert(voter->policy->name() + ": " + reason);
  return Error{Code::kResourceExhausted, fmt::format("{}", fmt::join(reasons, "; "))};
}

template <class Ask>
std::optional<Pick> Assembly::ask(const Voter& voter, const CpuSet& offered, Ask ask) {
  if (votes_.has_lost(voter)) return std::nullopt;
  Result<Pick> pick = ask();
  if (!pick) {
    votes_.lose(voter, pick.error());
    return std::nullopt;
  }
  if (const std::string bad = nonsense(*pick, offered); !bad.empty()) {
    votes_.lose_for(voter, bad);
    return std::nullopt;
  }
  return *std::move(pick);
}

std::optional<Pick> Assembly::ask_for_pick(const Voter& voter, const Ranked& ranked, const CpuSet& usable,
                                           std::size_t count) {
  return ask(voter, ranked.usable, [&] { return voter.policy->pick(request_, ranked.position, usable, count); });
}

/// All are asked of the same CPUs, and who orders them once more if others narrowed them: so it does not matter who
/// comes first.
Assembly::Picked Assembly::ask_for_picks(const Ranked& ranked, const Heard& heard) {
  Picked picked;
  picked.usable = ranked.usable;
  std::vector<std::pair<const Voter*, Share>> shares;
  for (const Voter& voter : voters_) {
    std::optional<Pick> pick = ask_for_pick(voter, ranked, ranked.usable, request_.exclusive_cpus);
    if (!pick) continue;
    if (pick->narrow || !pick->at_least.empty()) choosers_.push_back(&voter);
    if (is_heard(heard, voter)) {
      if (pick->narrow) narrow(picked.usable, *pick->narrow, voter);
      for (Share& share : pick->at_least) shares.emplace_back(&voter, std::move(share));
    }
    if (picked.orderer != nullptr || pick->order.empty()) continue;
    picked.orderer = &voter;
    picked.order = std::move(pick->order);
  }
  std::stable_sort(shares.begin(), shares.end(), [](const auto& a, const auto& b) {
    if (a.first->weight != b.first->weight) return a.first->weight > b.first->weight;
    return a.first->policy->name() < b.first->policy->name();
  });
  for (auto& [_, share] : shares) picked.shares.push_back(std::move(share));
  picked.left = picked.usable;
  picked.usable = of_one_kind(request_, picked.left);
  if (picked.orderer == nullptr || picked.usable == ranked.usable) return picked;
  std::optional<Pick> anew = ask_for_pick(*picked.orderer, ranked, picked.usable, request_.exclusive_cpus);
  if (anew && !anew->order.empty()) picked.order = std::move(anew->order);
  return picked;
}

void Assembly::ask_what_to_withhold(const Ranked& ranked, const CpuSet& offered) {
  const CpuSet chosen = decision_.placement.cpus;
  for (const Voter& voter : voters_) {
    const std::optional<Pick> pick =
        ask(voter, offered, [&] { return voter.policy->pick_beside(request_, ranked.position, offered, chosen); });
    if (!pick) continue;
    if (!pick->unmet.empty()) drop_pick(voter, pick->unmet);
    if (!pick->rejected.empty()) rejections_.emplace_back(&voter, pick->rejected);
    const CpuSet beside = pick->withhold - chosen;
    if (beside.empty() || !withhold(beside, voter) || pick->reason.empty()) continue;
    withholding_reasons_ += "; " + voter.policy->name() + ": " + pick->reason;
  }
}

/// That CPUs are alike goes after what the policies want a share of.
CpuSet Assembly::take(const Ranked& ranked, const Picked& picked) {
  CpuSet alike = take_of(picked.usable, ranked, picked);
  if (picked.shares.empty() || picked.usable == picked.left) return alike;
  CpuSet of_all = take_of(picked.left, ranked, picked);
  for (const Share& share : picked.shares) {
    const std::size_t has = std::min((alike & share.cpus).size(), share.count);
    const std::size_t could = std::min((of_all & share.cpus).size(), share.count);
    if (has != could) return has < could ? of_all : alike;
  }
  return alike;
}

/// What the container has to keep goes before what the policies chose.
CpuSet Assembly::take_of(CpuSet usable, const Ranked& ranked, const Picked& picked) {
  const std::size_t count = request_.exclusive_cpus;
  CpuSet taken = request_.keep & ranked.usable;
  if (taken.size() >= count) {
    const CpuSet chosen = taken & usable;
    usable = chosen.size() >= count ? chosen : taken;
    taken = {};
  }
  const auto order_of = [&](const CpuSet& part, std::size_t of_it) {
    if (picked.orderer == nullptr || picked.shares.empty()) return picked.order;
    std::optional<Pick> pick = ask_for_pick(*picked.orderer, ranked, part, of_it);
    if (pick) return std::move(pick->order);
    return picked.order;
  };
  return take_shares(*request_.topology, usable, count, picked.shares, order_of, std::move(taken));
}

void Assembly::narrow(CpuSet& usable, const CpuSet& to, const Voter& voter) {
  CpuSet left = usable & to;
  if (left.size() >= needed_cpus(request_)) {
    usable = std::move(left);
  } else {
    drop_pick(voter, fmt::format("narrowing to {} would leave {} CPU{} of {} needed", to.to_string(), left.size(),
                                 left.size() == 1 ? "" : "s", needed_cpus(request_)));
  }
}

bool Assembly::withhold(const CpuSet& cpus, const Voter& voter) {
  Placement with = decision_.placement;
  with.withheld |= cpus;
  if (const Status valid = validate(with, request_.ledger, rules_); !valid) {
    drop_pick(voter, fmt::format("withholding {}: {}", cpus.to_string(), valid.error().message));
    return false;
  }
  decision_.placement = std::move(with);
  return true;
}

std::string Assembly::adjust(const Ranked& ranked) {
  const Chosen chosen{ranked.position, decision_.placement, memory_open_to(request_)};
  std::string reasons;
  for (const Voter& voter : voters_) {
    const std::string& name = voter.policy->name();
    if (votes_.has_lost(voter)) continue;
    const Result<Adjustment> adjustment = voter.policy->adjust(request_, chosen);
    if (!adjustment) {
      votes_.lose(voter, adjustment.error());
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
  }
  return reasons;
}

void Assembly::bind_memory(const NodeSet& nodes, const NodeSet& open, const std::string& policy) {
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
void Assembly::add(std::vector<std::pair<std::string, std::string>>& added,
                   const std::pair<std::string, std::string>& field, const Theirs& theirs, const std::string& policy,
                   std::string_view noun) {
  const auto is_this = [&field](const auto& other) { return other.first == field.first; };
  if (std::any_of(theirs.begin(), theirs.end(), is_this)) {
    drop(policy, fmt::format("{} {}: the pod sets it itself", noun, field.first));
  } else if (std::any_of(added.begin(), added.end(), is_this)) {
    drop(policy, fmt::format("{} {}: another plugin has set it", noun, field.first));
  } else {
    added.push_back(field);
  }
}

void Assembly::drop(const std::string& policy, const std::string& what) {
  decision_.verdicts.dropped.push_back(policy + ": " + what);
}

void Assembly::drop_pick(const Voter& voter, const std::string& what) {
  const std::string& name = voter.policy->name();
  drop(name, what);
  thwarted_.push_back(&voter);
  if (votes_.insists(voter)) insisted_.insert(fmt::format("{}: {} (required.{} = true)", name, what, name));
}

}  // namespace topolet
