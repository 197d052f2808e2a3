#include "core/engine/planning/better_place.hpp"

#include <algorithm>
#include <string>

namespace topolet::engine {
namespace {

const placement::CandidateOpinions* opinions_on(const placement::Decision& decision, const NodeSet& nodes) {
  const auto& best = decision.verdicts.best;
  const std::string name = nodes.to_string();
  const auto found = std::find_if(best.begin(), best.end(), [&](const auto& row) { return row.nodes == name; });
  return found == best.end() ? nullptr : &*found;
}

/// One of them scores `then` by more than `tolerance` below `now`.
bool does_one_mind(const placement::CandidateOpinions* now, const placement::CandidateOpinions* then,
                   std::int32_t tolerance) {
  if (now == nullptr || then == nullptr || now->rejected) return false;
  return std::any_of(now->opinions.begin(), now->opinions.end(), [&](const auto& opinion) {
    return std::any_of(then->opinions.begin(), then->opinions.end(), [&](const auto& other) {
      return opinion.policy == other.policy && opinion.kind == "score" && other.kind == "score" &&
             opinion.score - other.score > tolerance;
    });
  });
}

/// The decision that leaves it where it is. One with CPUs of its own keeps just these.
placement::Decision decide_to_stay(const Ledger& ledger, const Placer& placer, const Allocation& before,
                                   const placement::Workload& workload, Placer::Constraints constraints,
                                   const NodeSet& now) {
  if (before.is_exclusive()) {
    constraints.keep = before.placement;
    constraints.must_retain = true;
    constraints.within_nodes.reset();
  } else {
    constraints.among = {now.words()};
  }
  return placer.plan(ledger, workload, constraints).decision;
}

}  // namespace

bool is_at_rest(const Allocation& allocation) {
  return (allocation.phase == Phase::kCreated || allocation.phase == Phase::kRunning) && !allocation.stopping &&
         allocation.vacating.empty() && allocation.squeeze == Squeeze::kNone;
}

bool has_devices(const placement::Workload& workload) {
  return !workload.devices.empty() || !workload.cdi_devices.empty() || !workload.used_devices.empty();
}

std::optional<bool> do_policies_mind(const Ledger& ledger, const Placer& placer, const Allocation& before,
                                     const placement::Workload& workload, const Plan& plan,
                                     Placer::Constraints constraints, std::int32_t tolerance) {
  const NodeSet now = nodes_of(before, *placer.topology());
  const placement::Decision& decision = plan.decision;
  if (!decision.verdicts.dropped.empty()) {
    const placement::Decision stays = decide_to_stay(ledger, placer, before, workload, constraints, now);
    if (!stays.lost_votes.empty()) return std::nullopt;
    if (!stays.denied && stays.verdicts.dropped.size() < decision.verdicts.dropped.size()) return true;
  }
  if (now == decision.nodes) return false;
  if (const auto* of_now = opinions_on(decision, now); of_now != nullptr) {
    return does_one_mind(of_now, opinions_on(decision, decision.nodes), tolerance);
  }
  // It is not among the best, which are all that a decision tells of.
  constraints.among = {now.words(), decision.nodes.words()};
  const placement::Decision pair = placer.plan(ledger, workload, constraints).decision;
  if (!pair.lost_votes.empty()) return std::nullopt;
  return does_one_mind(opinions_on(pair, now), opinions_on(pair, decision.nodes), tolerance);
}

}  // namespace topolet::engine
