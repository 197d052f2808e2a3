#include "core/engine/planning/heal_planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "core/base/text.hpp"
#include "core/engine/planning/device_nodes.hpp"
#include "core/engine/planning/movable.hpp"
#include "core/placement/candidates.hpp"
#include "core/placement/reason_codes.hpp"
#include "core/placement/settings.hpp"

namespace topolet::engine {
namespace {

using Load = SharedLoad::Load;

/// For so many containers of a size, one cache with room for another is left to newcomers.
constexpr std::size_t kContainersPerFreeCache = 10;

/// No place could be better, whatever its distances are.
bool is_best(const topology::Topology& topology, const Allocation& allocation, const PlaceCost& cost) {
  if (cost.nodes > 1 || cost.remote > 0) return false;
  std::size_t largest = 1;
  for (const CpuSet& cache : topology.l3s) largest = std::max(largest, cache.size());
  return cost.caches <= 1 || cost.caches <= (allocation.placement.cpus.size() + largest - 1) / largest;
}

Allocation moved_to(const Allocation& before, const placement::Decision& decision) {
  Allocation after = before;
  after.placement = decision.placement;
  after.within = decision.within;
  return after;
}

}  // namespace

bool HealPlanner::may_be_healed(const Allocation& allocation) const {
  if (!is_movable(allocation, placer_.rules()) || !is_at_rest(allocation)) return false;
  // It goes back to CPUs of its own that it has lost.
  if (allocation.was_exclusive()) return false;
  // One that requests nothing is as well off anywhere.
  return allocation.is_exclusive() || (shared_request_milli(allocation) > 0 &&
                                       cpus_annotation(allocation.workload) != placement::CpusAnnotation::kNone);
}

/// Its memory would stay behind, or may not leave.
bool HealPlanner::stays_on_its_nodes(const Allocation& allocation) const {
  const placement::PlacementRules& rules = placer_.rules();
  const bool is_bound = !allocation.placement.mems.empty() || !allocation.workload.kubelet_mems.empty();
  return !may_leave_its_nodes(allocation, rules) || (is_bound && !rules.memory_migrate);
}

/// A container that looks for a better place.
struct HealPlanner::Seeker {
  const Allocation& allocation;
  CpuSet free;  ///< that it may have, its own included
  std::vector<NodeSet> devices;
};

HealPlanner::Seeker HealPlanner::seeker_of(const Allocation& allocation) const {
  Seeker seeker{allocation, {}, places_of_devices(*placer_.topology(), allocation.workload.used_devices)};
  if (!allocation.is_exclusive()) {
    seeker.free = pool_for(allocation.placement.mode, ledger_.pool(), ledger_.free_reserved());
    return seeker;
  }
  const CpuSet& own = allocation.placement.cpus;
  const bool is_isolated = own.intersects(ledger_.inventory().isolated);
  seeker.free =
      ((is_isolated ? ledger_.free_isolated() : ledger_.pool()) | own) - ledger_.barred_for(&allocation.workload.key);
  return seeker;
}

/// Returns what the container would cost at least where it has CPUs of the candidate; nothing if there is no room, or
/// if that is not less than `most`.
std::optional<PlaceCost> HealPlanner::least_cost(const Seeker& seeker, const placement::Candidate& candidate,
                                                 const SharedLoad& load, const PlaceCost& most) const {
  const topology::Topology& topology = *placer_.topology();
  const Allocation& allocation = seeker.allocation;
  const CpuSet open = candidate.cpus & seeker.free;
  const CpuSet& own = allocation.placement.cpus;
  if (!allocation.is_exclusive()) {
    const PlaceCost cost = cost_of_shared(topology, candidate.nodes, seeker.devices);
    if (cost >= most || open.empty()) return std::nullopt;
    const std::int64_t milli = shared_request_milli(allocation);
    const Load of_own = SharedLoad::part(own, milli) * static_cast<Load>((open & own).size());
    const Load total = load.total(open) - of_own + milli * SharedLoad::kPerMilli;
    return total > SharedLoad::kWholeCpu * static_cast<Load>(open.size()) ? std::nullopt : std::optional(cost);
  }
  const std::size_t count = own.size();
  if (open.size() < count) return std::nullopt;
  PlaceCost cost{std::max<std::size_t>(1, candidate.nodes.size()), topology.total_distance(candidate.nodes),
                 least_remote(topology, open, count, seeker.devices), 0};
  if (cost >= most) return std::nullopt;
  cost.caches = fewest_groups(topology.l3s, open, count);
  return cost < most ? std::optional(cost) : std::nullopt;
}

std::optional<HealPlanner::Gain> HealPlanner::possible_gain(const Allocation& allocation,
                                                            const SharedLoad& load) const {
  const topology::Topology& topology = *placer_.topology();
  const PlaceCost now = cost_of(topology, allocation);
  if (is_best(topology, allocation, now)) return std::nullopt;
  const Seeker seeker = seeker_of(allocation);
  const bool stays = stays_on_its_nodes(allocation);
  const NodeSet nodes = nodes_of(allocation, topology);
  PlaceCost least = now;
  for (const placement::Candidate& candidate : placer_.candidates()) {
    if (candidate.nodes.size() > least.nodes || (stays && !candidate.nodes.is_subset_of(nodes))) continue;
    if (const auto cost = least_cost(seeker, candidate, load, least)) least = *cost;
  }
  if (least == now) return std::nullopt;
  const auto difference = [](std::size_t had, std::size_t has) {
    return static_cast<std::int64_t>(had) - static_cast<std::int64_t>(has);
  };
  return Gain{difference(now.nodes, least.nodes), difference(now.distance, least.distance),
              difference(now.remote, least.remote), difference(now.caches, least.caches)};
}

std::vector<placement::ContainerKey> HealPlanner::healable() const {
  struct Healable {
    Gain gain;
    std::int64_t memory;
    placement::ContainerKey key;
  };
  std::vector<Healable> found;
  const SharedLoad load = shared_load_of(ledger_);
  for (const auto& [key, allocation] : ledger_.allocations()) {
    if (!may_be_healed(allocation)) continue;
    if (const auto gain = possible_gain(allocation, load))
      found.push_back({*gain, allocation.workload.demand.memory_request_bytes, key});
  }
  std::sort(found.begin(), found.end(), [](const Healable& a, const Healable& b) {
    return std::tie(b.gain, a.memory, a.key) < std::tie(a.gain, b.memory, b.key);
  });
  std::vector<placement::ContainerKey> keys;
  keys.reserve(found.size());
  for (Healable& healable : found) keys.push_back(std::move(healable.key));
  return keys;
}

/// Where policies keep pods together, it stays where its pod is. In no case it leaves the last node that it has in
/// common with the others.
bool HealPlanner::leaves_pod(const Allocation& before, const placement::Workload& workload,
                             const placement::Decision& decision) const {
  if (decision.pod_scope && !workload.pod_nodes.empty() && !decision.nodes.is_subset_of(workload.pod_nodes))
    return true;
  const topology::Topology& topology = *placer_.topology();
  const std::string& pod_uid = workload.key.pod_uid;
  const auto& allocations = ledger_.allocations();
  NodeSet others;
  for (auto it = allocations.lower_bound({pod_uid, "", 0, ""}); it != allocations.end(); ++it) {
    if (it->first.pod_uid != pod_uid) break;
    if (it->first != workload.key) others |= nodes_of(it->second, topology);
  }
  return nodes_of(before, topology).intersects(others) && !decision.nodes.intersects(others);
}

/// Returns true if nobody who shares CPUs is crowded for it, or more than before.
bool HealPlanner::leaves_others_as_well_off(const Allocation& before, const placement::Decision& decision) const {
  Ledger after = ledger_.for_plan();
  after.assume(moved_to(before, decision));
  const SharedLoad load = shared_load_of(ledger_);
  const SharedLoad load_after = shared_load_of(after);
  const auto& allocations = after.allocations();
  return std::all_of(allocations.begin(), allocations.end(), [&](const auto& entry) {
    const Allocation& other = entry.second;
    if (shared_request_milli(other) == 0) return true;
    const Load mean = load.mean(ledger_.find(entry.first)->placement.cpus);
    return load_after.mean(other.placement.cpus) <= std::max(mean, SharedLoad::kWholeCpu);
  });
}

/// Returns true if all that is gained are caches, and newcomers may lose as much by it: for some size that exclusive
/// containers have, fewer caches than now would have room, and not for a tenth as many as there are. On a full machine
/// a newcomer would come to what was left behind, and be moved itself later.
bool HealPlanner::takes_room_of_newcomers(const Allocation& before, const placement::Decision& decision,
                                          const PlaceCost& now, const PlaceCost& then) const {
  if (!before.is_exclusive() || then.nodes < now.nodes || then.distance < now.distance || then.remote < now.remote)
    return false;
  const CpuSet& pool = ledger_.pool();
  const CpuSet left = (pool | before.dedicated_cpus()) - decision.placement.cpus - decision.placement.withheld;
  const auto caches_with = [this](const CpuSet& free, std::size_t size) {
    const auto& caches = placer_.topology()->l3s;
    const auto count =
        std::count_if(caches.begin(), caches.end(), [&](const CpuSet& cache) { return (cache & free).size() >= size; });
    return static_cast<std::size_t>(count);
  };
  std::map<std::size_t, std::size_t> containers;  // by size
  for (const auto& [key, allocation] : ledger_.allocations()) {
    if (key != before.workload.key && allocation.is_exclusive() && !allocation.is_kept())
      ++containers[allocation.dedicated_cpus().size()];
  }
  return std::any_of(containers.begin(), containers.end(), [&](const auto& of_size) {
    const auto& [size, count] = of_size;
    const std::size_t room = caches_with(left, size);
    return room < caches_with(pool, size) && room * kContainersPerFreeCache < count;
  });
}

Placer::Constraints HealPlanner::constraints_for(const Allocation& before) const {
  Placer::Constraints constraints;
  constraints.occasion = placement::Occasion::kMove;
  constraints.only_shared = !before.is_exclusive();
  if (before.is_exclusive()) {
    constraints.exclusive_cpus = static_cast<std::uint32_t>(before.placement.cpus.size());
    const bool is_isolated = before.placement.cpus.intersects(ledger_.inventory().isolated);
    constraints.only_from = is_isolated ? placement::CpuSource::kIsolated : placement::CpuSource::kPool;
  }
  if (stays_on_its_nodes(before)) constraints.within_nodes = nodes_of(before, *placer_.topology());
  return constraints;
}

BetterPlace HealPlanner::plan_heal(const Allocation& before) const {
  if (!may_be_healed(before)) return {};
  const topology::Topology& topology = *placer_.topology();
  placement::Workload workload = before.workload;
  const placement::ContainerKey& key = workload.key;
  workload.pod_nodes = ledger_.is_alone_in_pod(key) ? NodeSet() : ledger_.nodes_of_pod(key.pod_uid, key.sandbox_id);
  const Placer::Constraints constraints = constraints_for(before);
  Plan plan = placer_.plan(ledger_, workload, constraints);
  placement::Decision& decision = plan.decision;
  if (!decision.lost_votes.empty()) return {.plan = {}, .lacks_votes = true};
  const placement::Placement& to = decision.placement;
  const bool is_alike = !decision.denied && to.mode == before.placement.mode && !to.cpus.empty() &&
                        (!before.is_exclusive() || to.cpus.size() == before.placement.cpus.size());
  if (!is_alike || !plan.moves.empty()) return {};
  const PlaceCost cost_now = cost_of(topology, before);
  const PlaceCost cost_then = cost_of(topology, before, decision);
  if (cost_then >= cost_now || cost_then.remote > cost_now.remote || leaves_pod(before, workload, decision)) return {};
  if (takes_room_of_newcomers(before, decision, cost_now, cost_then)) return {};
  if (!rebalance_planner_.leaves_others_cpus(before, plan) || !leaves_others_as_well_off(before, decision)) return {};
  // Where the machine does not tell all devices, only the policies know how far away they would be.
  const bool are_devices_known =
      places_of_devices(topology, workload.used_devices).size() == workload.used_devices.size();
  const std::int32_t tolerance = are_devices_known ? placement::kMildPreference : 0;
  const std::optional<bool> mind = do_policies_mind(ledger_, placer_, before, workload, plan, constraints, tolerance);
  if (!mind || *mind) return {.plan = {}, .lacks_votes = !mind};
  decision.reason_code = placement::reason_code::kHealed;
  const std::string where = before.is_exclusive() ? named("CPU", to.cpus) : placement::node_names(decision.nodes);
  decision.reason = fmt::format("it moves to {}: {}; {}", where, describe_gain(cost_now, cost_then), decision.reason) +
                    describe_withheld_change(before.placement, to);
  plan.preferred = before.preferred;
  const bool is_better_than_former =
      plan.preferred &&
      cost_then <= cost_of_shared(topology, plan.preferred->nodes, places_of_devices(topology, workload.used_devices));
  if (is_better_than_former) plan.preferred.reset();
  plan.arrived_cpus = before.arrived_cpus;
  plan.cause = MoveCause::kHeal;
  return {.plan = std::move(plan)};
}

}  // namespace topolet::engine
