#include "core/engine/planning/room_tries.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "core/engine/planning/better_place.hpp"
#include "core/engine/planning/movable.hpp"
#include "core/placement/zone.hpp"

namespace topolet::engine {
namespace {

/// Of the containers in one place, so many are looked at for moving several of them together.
constexpr std::size_t kMostMovedTogether = 24;

std::size_t count_common(const CpuSet& a, const CpuSet& b) { return set_words::count_both(a.words(), b.words()); }

/// It is where it should be, and nothing is under way with it.
bool is_settled(const Allocation& allocation) {
  const bool is_at_rest = allocation.phase == Phase::kCreated || allocation.phase == Phase::kRunning;
  return is_at_rest && allocation.vacating.empty() && !allocation.preferred && allocation.squeeze == Squeeze::kNone &&
         allocation.seen_on.empty() && allocation.overlapped.empty();
}

/// The nodes where a scheduler counts on room for pods that have no container yet.
NodeSet promised_nodes(const Ledger& ledger, const placement::PlacementRules& rules, const std::string& own_sandbox) {
  std::set<std::string> with_containers{own_sandbox};
  for (const auto& [key, allocation] : ledger.allocations()) with_containers.insert(key.sandbox_id);
  NodeSet promised;
  for (const auto& [id, pod] : ledger.pods()) {
    if (with_containers.contains(id)) continue;
    promised |= placement::zone_of_pod(pod.sandbox.annotations, rules);
  }
  return promised;
}

}  // namespace

bool RoomTry::operator<(const RoomTry& other) const {
  const auto rank = [](const RoomTry& one) {
    return std::tuple(one.hoped_for, one.moved.size(), !one.stays_inside_nodes, one.cpus);
  };
  if (const auto order = rank(*this) <=> rank(other); order != 0) return order < 0;
  return std::lexicographical_compare(moved.begin(), moved.end(), other.moved.begin(), other.moved.end(),
                                      [](const Resident* a, const Resident* b) { return a->key() < b->key(); });
}

RoomTries::RoomTries(const Ledger& ledger, const Placer& placer, std::chrono::milliseconds now,
                     const RoomWanted& wanted)
    : ledger_(ledger), placer_(placer), topology_(*placer.topology()), wanted_(wanted) {
  collect_residents(now);
  if (residents_.empty()) return;
  for (const Resident& resident : residents_) {
    for (const std::uint32_t node : resident.nodes) residents_of_node_[node].push_back(&resident);
  }
  for (const topology::Node& node : topology_.nodes) {
    if (!node.memory_only) free_of_node_[node.os_index] = count_common(wanted_.free, node.cpus);
  }
  promised_ = promised_nodes(ledger_, placer_.rules(), wanted_.key.sandbox_id);
}

/// Whoever may move, by key.
void RoomTries::collect_residents(std::chrono::milliseconds now) {
  const placement::PlacementRules& rules = placer_.rules();
  for (const auto& [key, allocation] : ledger_.allocations()) {
    if (key == wanted_.key || !allocation.is_exclusive() || !is_movable(allocation, rules)) continue;
    if (!is_settled(allocation) || was_just_moved(allocation, now) || has_devices(allocation.workload)) continue;
    if (allocation.placement.cpus.intersects(ledger_.inventory().isolated)) continue;
    if (!allocation.placement.mems.empty() && !rules.memory_migrate) continue;
    Resident resident;
    resident.allocation = &allocation;
    resident.held = allocation.dedicated_cpus();
    resident.size = resident.held.size();
    resident.nodes = topology_.nodes_of(allocation.placement.cpus);
    resident.caches = count_caches(topology_, allocation.placement.cpus);
    resident.cores = fewest_groups(topology_.cores, resident.held, resident.size);
    // Containers of one pod stay together: also where nobody has told topolet to place them by their pod.
    resident.may_leave_nodes = rules.make_room == placement::MakeRoomRule::kAll && ledger_.is_alone_in_pod(key) &&
                               may_leave_its_nodes(allocation, rules);
    residents_.push_back(std::move(resident));
  }
}

/// Ways to make up for `missing` CPUs of a place by moving the fewest containers, none of which could stay.
std::vector<std::vector<const Resident*>> RoomTries::minimal_groups(const std::vector<const Resident*>& here,
                                                                    const CpuSet& place, std::size_t missing) const {
  std::vector<std::vector<const Resident*>> groups;
  std::vector<std::pair<std::size_t, const Resident*>> small;
  for (const Resident* resident : here) {
    const std::size_t part = count_common(resident->held, place);
    if (part >= missing) groups.push_back({resident});
    if (part > 0 && part < missing) small.emplace_back(part, resident);
  }
  if (wanted_.most_moves == 1) return groups;
  std::stable_sort(small.begin(), small.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  small.resize(std::min(small.size(), kMostMovedTogether));
  for (std::size_t i = 0; i < small.size(); ++i) {
    for (std::size_t j = i + 1; j < small.size(); ++j) {
      const std::size_t two = small[i].first + small[j].first;
      if (two >= missing) {
        groups.push_back({small[i].second, small[j].second});
        continue;
      }
      for (std::size_t k = j + 1; k < small.size() && two + small[k].first >= missing; ++k)
        groups.push_back({small[i].second, small[j].second, small[k].second});
    }
  }
  return groups;
}

/// Counts only: whether each finds as few nodes outside of `place`, the largest first, where the least is left over.
bool RoomTries::have_room_outside(const std::vector<const Resident*>& moved, const NodeSet& place) const {
  std::vector<const Resident*> largest_first = moved;
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [](const Resident* a, const Resident* b) { return a->size > b->size; });
  std::map<std::uint32_t, std::size_t> free = free_of_node_;
  for (const Resident* resident : largest_first) {
    std::vector<std::pair<std::size_t, std::uint32_t>> nodes;  // the emptiest first
    for (const auto& [node, count] : free) {
      const bool is_open = !promised_.contains(node) || resident->nodes.contains(node);
      if (is_open && !place.contains(node)) nodes.emplace_back(count, node);
    }
    std::sort(nodes.rbegin(), nodes.rend());
    std::size_t missing = resident->size;
    if (resident->nodes.size() == 1) {
      const auto fits = std::find_if(nodes.rbegin(), nodes.rend(), [&](const auto& n) { return n.first >= missing; });
      if (fits == nodes.rend()) return false;
      free[fits->second] -= missing;
      continue;
    }
    for (std::size_t i = 0; i < std::min(nodes.size(), resident->nodes.size()); ++i) {
      const std::size_t taken = std::min(missing, nodes[i].first);
      free[nodes[i].second] -= taken;
      missing -= taken;
    }
    if (missing > 0) return false;
  }
  return true;
}

/// Counts only: whether it finds as few caches besides `cache`.
bool RoomTries::has_other_cache(const Resident& resident, const CpuSet& cache, bool stays_inside_nodes) const {
  std::map<NodeSet::Words, std::vector<std::size_t>> free_by_nodes;
  for (const CpuSet& other : topology_.l3s) {
    if (other == cache) continue;
    const NodeSet nodes = topology_.nodes_of(other);
    const bool is_own = nodes.is_subset_of(resident.nodes);
    if (stays_inside_nodes ? !is_own : (is_own || nodes.intersects(promised_))) continue;
    free_by_nodes[nodes.words()].push_back(count_common(wanted_.free, other));
  }
  return std::any_of(free_by_nodes.begin(), free_by_nodes.end(), [&resident](auto& of_nodes) {
    std::vector<std::size_t>& free = of_nodes.second;
    std::sort(free.rbegin(), free.rend());
    std::size_t sum = 0;
    for (std::size_t i = 0; i < std::min(free.size(), resident.caches); ++i) sum += free[i];
    return sum >= resident.size;
  });
}

void RoomTries::add_tries_on_nodes(const placement::Candidate& place, std::vector<RoomTry>& tries) const {
  const CpuSet here = wanted_.usable & place.cpus;
  if (place.nodes.empty() || here.size() < wanted_.cpus) return;
  const PlaceCost cost{place.nodes.size(), topology_.total_distance(place.nodes),
                       least_remote(topology_, here, wanted_.cpus, wanted_.devices), 0};
  const PlanCost hoped_for{false, misses_zone(place.nodes), cost};
  PlanCost now = wanted_.now;
  now.place.caches = 0;
  if (hoped_for >= now || (wanted_.cpus > wanted_.own.size() && !wanted_.own.is_subset_of(place.cpus))) return;
  std::size_t free = 0;
  std::set<const Resident*> seen;
  std::vector<const Resident*> residents;
  for (const std::uint32_t node : place.nodes) {
    if (const auto count = free_of_node_.find(node); count != free_of_node_.end()) free += count->second;
    const auto there = residents_of_node_.find(node);
    if (there == residents_of_node_.end()) continue;
    for (const Resident* resident : there->second) {
      if (resident->may_leave_nodes && seen.insert(resident).second) residents.push_back(resident);
    }
  }
  if (free >= wanted_.cpus) return;  // it is not for want of CPUs that it is not there
  for (std::vector<const Resident*>& group : minimal_groups(residents, place.cpus, wanted_.cpus - free)) {
    if (!have_room_outside(group, place.nodes)) continue;
    RoomTry next{hoped_for, std::move(group), false, 0};
    for (const Resident* resident : next.moved) next.cpus += resident->size;
    tries.push_back(std::move(next));
  }
}

void RoomTries::add_tries_in_cache(const CpuSet& cache, std::vector<RoomTry>& tries) const {
  const CpuSet here = wanted_.usable & cache;
  const bool leaves_own = wanted_.cpus > wanted_.own.size() && !wanted_.own.is_subset_of(cache);
  if (here.size() < wanted_.cpus || leaves_own) return;
  PlaceCost cost = cost_of_exclusive(topology_, here, {});
  cost.remote = least_remote(topology_, here, wanted_.cpus, wanted_.devices);
  const PlanCost hoped_for{false, misses_zone(topology_.nodes_of(here)), cost};
  if (hoped_for >= wanted_.now) return;
  const std::size_t free = count_common(wanted_.free, cache);
  if (free >= wanted_.cpus) return;
  for (const Resident& resident : residents_) {
    if (count_common(resident.held, cache) < wanted_.cpus - free) continue;
    const bool stays = has_other_cache(resident, cache, true);
    if (!stays && !(resident.may_leave_nodes && has_other_cache(resident, cache, false))) continue;
    tries.push_back({hoped_for, {&resident}, stays, resident.size});
  }
}

std::vector<RoomTry> RoomTries::best(std::size_t count) const {
  std::vector<RoomTry> tries;
  if (residents_.empty()) return tries;
  std::size_t fewest = topology_.nodes.size();
  if (wanted_.now.is_denied) {
    for (const placement::Candidate& place : placer_.candidates()) {
      if (!place.nodes.empty() && count_common(wanted_.usable, place.cpus) >= wanted_.cpus)
        fewest = std::min(fewest, place.nodes.size());
    }
  }
  for (const placement::Candidate& place : placer_.candidates()) {
    if (place.nodes.size() <= fewest) add_tries_on_nodes(place, tries);
  }
  if (tries.empty() && !wanted_.now.is_denied && wanted_.now.place.caches > 1) {
    for (const CpuSet& cache : topology_.l3s) add_tries_in_cache(cache, tries);
  }
  const std::size_t kept = std::min(tries.size(), count);
  std::partial_sort(tries.begin(), tries.begin() + static_cast<std::ptrdiff_t>(kept), tries.end());
  tries.resize(kept);
  return tries;
}

std::vector<NodeSet> RoomTries::nodes_for(const Resident& resident, const CpuSet& free) const {
  const std::uint32_t distance = topology_.total_distance(resident.nodes);
  std::vector<NodeSet> found;
  for (const placement::Candidate& place : placer_.candidates()) {
    if (place.nodes.empty() || place.nodes.size() > resident.nodes.size()) continue;
    if (place.nodes.size() == resident.nodes.size() && topology_.total_distance(place.nodes) > distance) continue;
    if ((place.nodes - resident.nodes).intersects(promised_)) continue;
    const CpuSet open = free & place.cpus;
    const bool has_room = open.size() >= resident.size &&
                          fewest_groups(topology_.l3s, open, resident.size) <= resident.caches &&
                          fewest_groups(topology_.cores, open, resident.size) <= resident.cores;
    if (has_room) found.push_back(place.nodes);
  }
  return found;
}

}  // namespace topolet::engine
