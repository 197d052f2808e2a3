#include "core/engine/planning/room_planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "core/engine/planning/better_place.hpp"
#include "core/engine/planning/device_nodes.hpp"
#include "core/engine/planning/room_tries.hpp"
#include "core/placement/exclusive_claim.hpp"
#include "core/placement/kept_cpus.hpp"
#include "core/placement/reason_codes.hpp"
#include "core/placement/settings.hpp"
#include "core/placement/validate.hpp"

namespace topolet::engine {

/// The search for one container.
class RoomPlanner::Search {
 public:
  Search(const RoomPlanner& planner, const Request& request, const Plan& without);

  std::optional<Plan> run();

 private:
  bool is_possible() const;
  bool has_best_nodes() const;
  std::optional<Plan> carry_out(const RoomTries& tries, const RoomTry& chosen) const;
  std::optional<Move> plan_move(const RoomTries& tries, const Ledger& trial, const Resident& resident,
                                bool stays_inside_nodes) const;
  bool leaves_others_cpus(const Plan& plan) const;
  PlanCost cost_of_plan(const Plan& plan) const;

  const RoomPlanner& planner_;
  const Ledger& ledger_;
  const Placer& placer_;
  const topology::Topology& topology_;
  const Request& request_;
  const Plan& without_;
  RoomWanted wanted_;
};

RoomPlanner::Search::Search(const RoomPlanner& planner, const Request& request, const Plan& without)
    : planner_(planner),
      ledger_(planner.ledger_),
      placer_(planner.placer_),
      topology_(*planner.placer_.topology()),
      request_(request),
      without_(without) {
  const CpuInventory& inventory = ledger_.inventory();
  const placement::ContainerKey& key = request.workload.key;
  const placement::Decision& decision = without.decision;
  wanted_.key = key;
  wanted_.zone = request.zone;
  wanted_.usable = inventory.allowed - inventory.reserved - inventory.isolated - inventory.occupied;
  if (const Allocation* own = ledger_.find(key); own != nullptr && own->is_exclusive())
    wanted_.own = own->dedicated_cpus();
  wanted_.free = ((ledger_.pool() | wanted_.own) & wanted_.usable) - ledger_.barred_for(&key);
  wanted_.devices = places_of_devices(topology_, decision.used_devices);
  wanted_.cpus = placement::exclusive_cpus_for(request.workload, placer_.rules());
  if (!decision.denied && decision.placement.mode == placement::Mode::kExclusive)
    wanted_.cpus = decision.placement.cpus.size() + decision.placement.withheld.size();
  wanted_.now = cost_of_plan(without);
  // A denial does not say which devices count.
  const bool is_for_device = !wanted_.devices.empty() || (wanted_.now.is_denied && has_devices(request.workload));
  if (is_for_device) wanted_.most_moves = kMostMovesForDevices;
}

PlanCost RoomPlanner::Search::cost_of_plan(const Plan& plan) const {
  const placement::Decision& decision = plan.decision;
  if (decision.denied || decision.placement.mode != placement::Mode::kExclusive) return {.is_denied = true};
  const std::vector<NodeSet> devices =
      wanted_.devices.empty() ? places_of_devices(topology_, decision.used_devices) : wanted_.devices;
  return {false, decision.reason_code == placement::reason_code::kZoneMissed,
          cost_of_exclusive(topology_, decision.placement.cpus, devices)};
}

bool RoomPlanner::Search::has_best_nodes() const {
  const PlanCost& now = wanted_.now;
  if (now.is_denied || now.misses_zone || now.place.nodes > 1) return false;
  return now.place.remote <=
         least_remote(topology_, wanted_.usable, without_.decision.placement.cpus.size(), wanted_.devices);
}

/// Returns false if nobody's move could give it a better place, or it has to be where it is.
bool RoomPlanner::Search::is_possible() const {
  const placement::PlacementRules& rules = placer_.rules();
  const placement::Decision& decision = without_.decision;
  const std::size_t wanted = wanted_.cpus;
  if (rules.make_room == placement::MakeRoomRule::kOff || wanted == 0) return false;
  if (!request_.workload.kubelet_cpus.empty() || decision.conflict || decision.unpinned) return false;
  if (!decision.lost_votes.empty() || decision.placement.cpus.intersects(ledger_.inventory().isolated)) return false;
  if (placement::cpu_source(request_.workload, rules) == placement::CpuSource::kIsolated) return false;
  if (wanted_.now.is_denied && !without_.lacks_cpus()) return false;
  const auto suffices = [&](const CpuSet& cache) { return (cache & wanted_.usable).size() >= wanted; };
  const bool could_be_in_one_cache =
      wanted_.now.place.caches > 1 && std::any_of(topology_.l3s.begin(), topology_.l3s.end(), suffices);
  if (has_best_nodes() && !could_be_in_one_cache) return false;
  // There are not enough CPUs, wherever.
  return placement::spare_cpus(wanted_.free, rules) >= wanted;
}

std::optional<Move> RoomPlanner::Search::plan_move(const RoomTries& tries, const Ledger& trial,
                                                   const Resident& resident, bool stays_inside_nodes) const {
  const Allocation& before = *resident.allocation;
  Placer::Constraints constraints;
  constraints.occasion = placement::Occasion::kMove;
  constraints.had = had_of(before);
  constraints.exclusive_cpus = static_cast<std::uint32_t>(before.placement.cpus.size());
  constraints.plan_began = request_.plan_began;
  if (stays_inside_nodes || !resident.may_leave_nodes) {
    constraints.within_nodes = resident.nodes;
  } else {
    for (const NodeSet& nodes : tries.nodes_for(resident, trial.pool() - trial.barred_for(nullptr)))
      constraints.among.insert(nodes.words());
    if (constraints.among.empty()) return std::nullopt;
  }
  placement::Workload workload = before.workload;
  const bool may_leave = !stays_inside_nodes && resident.may_leave_nodes;
  workload.pod_nodes = may_leave ? NodeSet() : ledger_.nodes_of_pod(workload.key.pod_uid, workload.key.sandbox_id);
  Plan plan = placer_.plan(trial, workload, constraints);
  placement::Decision& decision = plan.decision;
  placement::Placement& placement = decision.placement;
  const bool is_as_asked = !decision.denied && !decision.conflict && !decision.unpinned && plan.moves.empty() &&
                           decision.lost_votes.empty() && decision.verdicts.dropped.empty();
  // Where policies keep pods together, those that are still to come belong here.
  if (decision.pod_scope && !decision.nodes.is_subset_of(resident.nodes)) return std::nullopt;
  const bool has_as_many = placement.mode == placement::Mode::kExclusive &&
                           placement.cpus.size() == before.placement.cpus.size() &&
                           placement.withheld.size() >= before.placement.withheld.size();
  if (!is_as_asked || !has_as_many || !placement::are_as_near(topology_, placement.cpus, before.placement.cpus))
    return std::nullopt;
  retain_memory_nodes(before, placer_.rules(), placement);
  decision.reason_code = placement::reason_code::kRoom;
  decision.reason = fmt::format("it makes room for {}, and is as well off as before; {}",
                                display_name(request_.workload), decision.reason);
  decision.replace.clear();
  return Move{before.workload, std::move(decision), std::nullopt, MoveCause::kRoom};
}

/// CPUs that somebody is about to leave are nobody's until then.
bool RoomPlanner::Search::leaves_others_cpus(const Plan& plan) const {
  CpuSet pool = ledger_.pool();
  std::set<placement::ContainerKey> moved;
  const auto take = [&pool](const placement::Placement& placement) {
    if (placement.mode == placement::Mode::kExclusive) pool -= placement.cpus;
    pool -= placement.withheld;
  };
  take(plan.decision.placement);
  for (const Move& move : plan.moves) {
    take(move.decision.placement);
    moved.insert(move.workload.key);
  }
  if (placement::spare_cpus(ledger_.pool(), placer_.rules()) < ledger_.pool().size() - pool.size()) return false;
  const CpuSet free_reserved = ledger_.free_reserved();
  return std::all_of(ledger_.allocations().begin(), ledger_.allocations().end(), [&](const auto& entry) {
    const auto& [key, other] = entry;
    if (!other.follows_pool() || moved.contains(key)) return true;
    const placement::Mode mode = other.placement.mode;
    return other.within.intersects(pool_for(mode, pool, free_reserved)) ||
           !other.within.intersects(pool_for(mode, ledger_.pool(), free_reserved));
  });
}

/// Returns the whole plan, if the policies agree to it.
std::optional<Plan> RoomPlanner::Search::carry_out(const RoomTries& tries, const RoomTry& chosen) const {
  Ledger trial = ledger_.for_plan();
  for (const Resident* resident : chosen.moved) trial.assume_released(placement::ContainerKey(resident->key()));
  Plan plan = request_.plan_in(trial);
  const placement::Decision& decision = plan.decision;
  if (decision.denied || decision.conflict || !decision.lost_votes.empty()) return std::nullopt;
  if (plan.yielding.size() > without_.yielding.size() || cost_of_plan(plan) >= wanted_.now) return std::nullopt;
  for (const placement::ContainerKey& key : plan.yielding) trial.assume_released(key);
  trial.assume(assumed_allocation(request_.workload, decision));
  for (const Move& move : plan.moves) trial.assume(assumed_allocation(move.workload, move.decision));
  std::vector<const Resident*> largest_first = chosen.moved;
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [](const Resident* a, const Resident* b) { return a->size > b->size; });
  std::vector<std::string> names;
  for (const Resident* resident : largest_first) {
    std::optional<Move> move = plan_move(tries, trial, *resident, chosen.stays_inside_nodes);
    if (!move) return std::nullopt;
    const CpuSet taken = move->decision.placement.cpus | move->decision.placement.withheld;
    // Nobody waits for somebody who waits.
    const bool is_chain = std::any_of(chosen.moved.begin(), chosen.moved.end(), [&](const Resident* other) {
      return other != resident && other->held.intersects(taken);
    });
    if (is_chain) return std::nullopt;
    trial.assume(assumed_allocation(move->workload, move->decision));
    names.push_back(display_name(move->workload));
    plan.moves.push_back(*std::move(move));
  }
  if (!leaves_others_cpus(plan)) return std::nullopt;
  plan.decision.reason +=
      fmt::format("; {} {} room for it", fmt::join(names, ", "), names.size() > 1 ? "make" : "makes");
  return plan;
}

std::optional<Plan> RoomPlanner::Search::run() {
  if (!is_possible()) return std::nullopt;
  const RoomTries tries(ledger_, placer_, planner_.now_, wanted_);
  for (const RoomTry& next : tries.best(kMostRoomTries)) {
    if (std::optional<Plan> plan = carry_out(tries, next)) return plan;
  }
  return std::nullopt;
}

std::optional<Plan> RoomPlanner::plan(const Request& request, const Plan& without) const {
  return Search(*this, request, without).run();
}

Plan with_room_made(const Ledger& ledger, const Placer& placer, std::chrono::milliseconds now,
                    const RoomPlanner::Request& request, Plan without) {
  std::optional<Plan> with = RoomPlanner(ledger, placer, now).plan(request, without);
  return with ? *std::move(with) : std::move(without);
}

}  // namespace topolet::engine
