#include "core/engine/planning/crowd_planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "core/base/text.hpp"
#include "core/placement/reason_codes.hpp"
#include "core/placement/settings.hpp"

namespace topolet::engine {
namespace {

using Load = SharedLoad::Load;

bool may_be_relieved(const Allocation& allocation) {
  const bool can_be_moved = allocation.is_movable_in_pool() && !allocation.stuck && !allocation.overruled;
  return is_at_rest(allocation) && can_be_moved && shared_request_milli(allocation) > 0 &&
         cpus_annotation(allocation.workload) != placement::CpusAnnotation::kNone &&
         move_annotation(allocation.workload) != placement::MoveAnnotation::kNever;
}

/// Room for all that is requested, or at least a fifth less to share with.
bool is_clearly_less(Load mean, Load mean_before) {
  return mean < mean_before && (mean <= SharedLoad::kWholeCpu || mean <= mean_before / 5 * 4);
}

/// To leave memory or devices behind costs more than the others' move.
bool is_tied_to_place(const Allocation& allocation) {
  return !allocation.placement.mems.empty() || has_devices(allocation.workload);
}

std::string cpus_text(Load load) {
  const Load milli = (load + SharedLoad::kPerMilli / 2) / SharedLoad::kPerMilli;
  return fmt::format("{:g}", static_cast<double>(milli) / 1000);
}

}  // namespace

std::vector<CrowdPlanner::Place> CrowdPlanner::places(placement::Mode mode, const SharedLoad& load) const {
  CpuSet left = pool_for(mode, ledger_.pool(), ledger_.free_reserved());
  std::vector<Place> places;
  const auto add = [&](CpuSet cpus) {
    if (cpus.empty()) return;
    const Load total = load.total(cpus);
    places.push_back({std::move(cpus), total});
  };
  for (const topology::Node& node : placer_.topology()->nodes) {
    if (node.memory_only) continue;
    add(left & node.cpus);
    left -= node.cpus;
  }
  add(std::move(left));  // of no node
  return places;
}

/// The lowest mean load that a container which leaves `from` could find, itself included. The best set of places is
/// made of those with the lowest loads; only how many of them is open.
Load CrowdPlanner::least_load(const std::vector<Place>& places, const CpuSet& from, std::int64_t milli) {
  const Load part = SharedLoad::part(from, milli);
  std::vector<std::tuple<Load, Load, Load>> without;  // for each CPU, of all, how many CPUs
  without.reserve(places.size());
  for (const Place& place : places) {
    const auto count = static_cast<Load>(place.cpus.size());
    const auto left = static_cast<Load>(set_words::count_both(place.cpus.words(), from.words()));
    const Load total = place.total - part * left;
    without.emplace_back(total / count, total, count);
  }
  std::sort(without.begin(), without.end());
  std::optional<Load> least;
  Load sum = SharedLoad::kPerMilli * milli;
  Load count = 0;
  for (const auto& [each, total, more] : without) {
    sum += total;
    count += more;
    least = std::min(least.value_or(sum / count), sum / count);
  }
  return least.value_or(0);
}

std::vector<placement::ContainerKey> CrowdPlanner::crowded(const SharedLoad& load) const {
  if (load.highest(ledger_.inventory().allowed) <= SharedLoad::kWholeCpu) return {};
  struct Crowded {
    bool is_tied;
    Load relief;
    placement::ContainerKey key;
  };
  std::vector<Crowded> found;
  std::map<placement::Mode, std::vector<Place>> places_of;
  std::map<std::tuple<placement::Mode, std::int64_t, set_words::Words>, Load> elsewhere_of;  // many are alike
  for (const auto& [key, allocation] : ledger_.allocations()) {
    if (!may_be_relieved(allocation)) continue;
    const placement::Mode mode = allocation.placement.mode;
    const CpuSet cpus = allocation.home_cpus();
    const std::int64_t milli = shared_request_milli(allocation);
    const Load mean = load.mean(cpus);
    if (mean <= SharedLoad::kWholeCpu) continue;
    if (places_of.count(mode) == 0) places_of[mode] = places(mode, load);
    const auto [elsewhere, is_new] = elsewhere_of.try_emplace({mode, milli, cpus.words()}, 0);
    if (is_new) elsewhere->second = least_load(places_of[mode], cpus, milli);
    if (!is_clearly_less(elsewhere->second, mean)) continue;
    const Load left = mean - SharedLoad::part(cpus, milli);
    found.push_back({is_tied_to_place(allocation), mean - std::max(left, elsewhere->second), key});
  }
  std::sort(found.begin(), found.end(), [](const Crowded& a, const Crowded& b) {
    return std::tie(a.is_tied, b.relief, a.key) < std::tie(b.is_tied, a.relief, b.key);
  });
  std::vector<placement::ContainerKey> keys;
  keys.reserve(found.size());
  for (Crowded& crowded : found) keys.push_back(std::move(crowded.key));
  return keys;
}

bool CrowdPlanner::helps(const SharedLoad& load, const Allocation& before, const CpuSet& cpus) {
  const std::int64_t milli = shared_request_milli(before);
  const CpuSet home = before.home_cpus();
  SharedLoad after = load;
  after.remove(home, milli);
  after.add(cpus, milli);
  const CpuSet touched = home | cpus;
  return after.highest(touched) < load.highest(touched) && is_clearly_less(after.mean(cpus), load.mean(home));
}

/// Only that it is crowded may speak against where it is now. Its devices, for instance, are to be no farther away.
BetterPlace CrowdPlanner::plan_relief(const Allocation& before) const {
  const SharedLoad load = shared_load_of(ledger_);
  const CpuSet from = before.home_cpus();
  if (!may_be_relieved(before) || load.mean(from) <= SharedLoad::kWholeCpu) return {};
  placement::Workload workload = before.workload;
  workload.pod_nodes = ledger_.nodes_of_pod(workload.key.pod_uid, workload.key.sandbox_id);
  Placer::Constraints shared;
  shared.occasion = placement::Occasion::kMove;
  shared.only_shared = true;
  Plan plan = placer_.plan(ledger_, workload, shared);
  placement::Decision& decision = plan.decision;
  if (!decision.lost_votes.empty()) return {.plan = {}, .lacks_votes = true};
  const CpuSet& to = decision.placement.cpus;
  if (decision.denied || decision.placement.mode != before.placement.mode || to.empty()) return {};
  if (!plan.moves.empty() || !helps(load, before, to)) return {};
  // A container beside its devices stays with them, also if only some of the new CPUs are farther away.
  const std::int32_t tolerance = has_devices(workload) ? 0 : placement::kMildPreference;
  const std::optional<bool> mind = do_policies_mind(ledger_, placer_, before, workload, plan, shared, tolerance);
  if (!mind || *mind) return {.plan = {}, .lacks_votes = !mind};
  SharedLoad others = load;
  others.remove(from, shared_request_milli(before));
  const std::string where = decision.nodes.empty() ? named("CPU", to) : named("node", decision.nodes);
  decision.reason_code = placement::reason_code::kCrowded;
  decision.reason = fmt::format(
      "its {} {} shared by containers that request {} CPUs; it moves to {}, where {} {} {} requested; {}",
      named("CPU", from), from.size() == 1 ? "is" : "are", cpus_text(load.total(from)), where,
      counted(to.size(), "CPU"), to.size() == 1 ? "has" : "have", cpus_text(others.total(to)), decision.reason);
  plan.preferred = before.preferred;
  if (plan.preferred && plan.preferred->within == decision.within) plan.preferred.reset();
  plan.arrived_cpus = before.arrived_cpus;
  plan.cause = MoveCause::kCrowd;
  return {.plan = std::move(plan)};
}

}  // namespace topolet::engine
