#include "core/engine/planning/room_planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "core/engine/planning/movable.hpp"
#include "core/engine/planning/standing.hpp"
#include "core/placement/exclusive_claim.hpp"
#include "core/placement/kept_cpus.hpp"
#include "core/placement/reason_codes.hpp"
#include "core/placement/settings.hpp"
#include "core/placement/validate.hpp"
#include "core/placement/zone.hpp"

namespace topolet::engine {
namespace {

/// Of the containers in one place, so many are looked at for moving several of them together.
constexpr std::size_t kMostMovedTogether = 24;

/// A container that may move, with what it has alone.
struct Resident {
  const Allocation* allocation = nullptr;
  CpuSet held;
  std::size_t size = 0;
  NodeSet nodes;
  std::size_t l3s = 0;
  bool may_leave_nodes = false;

  const placement::ContainerKey& key() const { return allocation->workload.key; }
};

/// Some containers that would move, so that the container for which they do finds room in a better place.
struct RoomTry {
  Standing hoped_for;
  std::vector<const Resident*> moved;
  bool stays_inside_nodes = false;  ///< they move within the nodes that they are on
  std::size_t cpus = 0;             ///< that move

  /// The best place comes first, then the fewest and shortest moves.
  bool operator<(const RoomTry& other) const {
    const auto rank = [](const RoomTry& one) {
      return std::tuple(one.hoped_for, one.moved.size(), !one.stays_inside_nodes, one.cpus);
    };
    if (const auto order = rank(*this) <=> rank(other); order != 0) return order < 0;
    return std::lexicographical_compare(moved.begin(), moved.end(), other.moved.begin(), other.moved.end(),
                                        [](const Resident* a, const Resident* b) { return a->key() < b->key(); });
  }
};

std::size_t count_common(const CpuSet& a, const CpuSet& b) { return set_words::count_both(a.words(), b.words()); }

bool uses_devices(const placement::Workload& workload) {
  return !workload.devices.empty() || !workload.cdi_devices.empty() || !workload.used_devices.empty();
}

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

/// The search for one container.
class RoomPlanner::Search {
 public:
  Search(const RoomPlanner& planner, const Request& request, const Plan& without);

  std::optional<Plan> run();

 private:
  bool is_possible() const;
  void collect_residents();
  std::vector<RoomTry> tries() const;
  void add_tries_on_nodes(const placement::Candidate& place, std::vector<RoomTry>& tries) const;
  void add_tries_in_l3(const CpuSet& l3, std::vector<RoomTry>& tries) const;
  std::vector<std::vector<const Resident*>> minimal_groups(const std::vector<const Resident*>& here,
                                                           const CpuSet& place, std::size_t missing) const;
  bool have_room_outside(const std::vector<const Resident*>& moved, const NodeSet& place) const;
  bool has_other_l3(const Resident& resident, const CpuSet& l3, bool stays_inside_nodes) const;
  std::vector<NodeSet> nodes_for(const Resident& resident, const CpuSet& free) const;
  std::optional<Plan> carry_out(const RoomTry& chosen) const;
  std::optional<Move> plan_move(const Ledger& trial, const Resident& resident, bool stays_inside_nodes) const;
  bool leaves_others_cpus(const Plan& plan) const;
  Standing standing_of_plan(const Plan& plan) const;
  std::size_t most_moves() const;

  const RoomPlanner& planner_;
  const Ledger& ledger_;
  const Placer& placer_;
  const topology::Topology& topology_;
  const Request& request_;
  const Plan& without_;
  const placement::ContainerKey& key_;
  CpuSet own_;   ///< what a container that is resized has
  CpuSet free_;  ///< what it could be given as things are
  CpuSet usable_;
  CpuSet near_devices_;
  std::size_t wanted_ = 0;
  Standing now_;
  NodeSet promised_;
  std::vector<Resident> residents_;
  std::map<std::uint32_t, std::vector<const Resident*>> residents_of_node_;
  std::map<std::uint32_t, std::size_t> free_of_node_;
};

RoomPlanner::Search::Search(const RoomPlanner& planner, const Request& request, const Plan& without)
    : planner_(planner),
      ledger_(planner.ledger_),
      placer_(planner.placer_),
      topology_(*planner.placer_.topology()),
      request_(request),
      without_(without),
      key_(request.workload.key) {
  const CpuInventory& inventory = ledger_.inventory();
  usable_ = inventory.allowed - inventory.reserved - inventory.isolated - inventory.occupied;
  if (const Allocation* own = ledger_.find(key_); own != nullptr && own->is_exclusive()) own_ = own->dedicated_cpus();
  free_ = ((ledger_.pool() | own_) & usable_) - ledger_.barred_for(&key_);
  near_devices_ = cpus_near_devices(topology_, without.decision);
  wanted_ = placement::exclusive_cpus_for(request.workload, placer_.rules());
  if (!without.decision.denied && without.decision.placement.mode == placement::Mode::kExclusive) {
    const placement::Placement& placement = without.decision.placement;
    wanted_ = placement.cpus.size() + placement.withheld.size();
  }
  now_ = standing_of_plan(without);
}

Standing RoomPlanner::Search::standing_of_plan(const Plan& plan) const {
  const placement::Decision& decision = plan.decision;
  if (decision.denied || decision.placement.mode != placement::Mode::kExclusive) return {.is_denied = true};
  const CpuSet near = near_devices_.empty() ? cpus_near_devices(topology_, decision) : near_devices_;
  Standing standing = standing_of(topology_, decision.placement.cpus, near);
  standing.misses_zone = decision.reason_code == placement::reason_code::kZoneMissed;
  return standing;
}

/// A denial does not say which devices count.
std::size_t RoomPlanner::Search::most_moves() const {
  const bool is_for_device = !near_devices_.empty() || (now_.is_denied && uses_devices(request_.workload));
  return is_for_device ? kMostMovesForDevices : 1;
}

/// Returns false if nobody's move could give it a better place, or it has to be where it is.
bool RoomPlanner::Search::is_possible() const {
  const placement::PlacementRules& rules = placer_.rules();
  const placement::Decision& decision = without_.decision;
  if (rules.make_room == placement::MakeRoomRule::kOff || wanted_ == 0) return false;
  if (!request_.workload.kubelet_cpus.empty() || decision.conflict || decision.unpinned) return false;
  if (!decision.lost_votes.empty() || decision.placement.cpus.intersects(ledger_.inventory().isolated)) return false;
  if (placement::cpu_source(request_.workload, rules) == placement::CpuSource::kIsolated) return false;
  if (now_.is_denied && !without_.lacks_cpus()) return false;
  const bool has_best_nodes = !now_.is_denied && !now_.misses_zone && now_.nodes <= 1 && now_.remote_cpus == 0;
  const auto suffices = [this](const CpuSet& l3) { return count_common(l3, usable_) >= wanted_; };
  const bool could_be_in_one_l3 = now_.l3s > 1 && std::any_of(topology_.l3s.begin(), topology_.l3s.end(), suffices);
  if (has_best_nodes && !could_be_in_one_l3) return false;
  // There are not enough CPUs, wherever.
  return placement::spare_cpus(free_, rules) >= wanted_;
}

/// Whoever may move, by key.
void RoomPlanner::Search::collect_residents() {
  const placement::PlacementRules& rules = placer_.rules();
  const auto& allocations = ledger_.allocations();
  for (const auto& [key, allocation] : allocations) {
    if (key == key_ || !allocation.is_exclusive() || !is_movable(allocation, rules)) continue;
    if (!is_settled(allocation) || was_just_moved(allocation, planner_.now_)) continue;
    if (uses_devices(allocation.workload) || allocation.placement.cpus.intersects(ledger_.inventory().isolated))
      continue;
    if (!allocation.placement.mems.empty() && !rules.memory_migrate) continue;
    Resident resident;
    resident.allocation = &allocation;
    resident.held = allocation.dedicated_cpus();
    resident.size = resident.held.size();
    resident.nodes = topology_.nodes_of(allocation.placement.cpus);
    resident.l3s = count_l3s(topology_, allocation.placement.cpus);
    const auto is_mate = [&key = key](const auto& other) {
      return other.first != key && other.first.sandbox_id == key.sandbox_id && !other.second.is_kept();
    };
    const auto first = allocations.lower_bound({key.pod_uid, "", 0, ""});
    auto last = first;
    while (last != allocations.end() && last->first.pod_uid == key.pod_uid) ++last;
    // Containers of one pod stay together: also where nobody has told topolet to place them by their pod.
    const bool is_bound_to_pod =
        std::any_of(first, last, is_mate) || !ledger_.nodes_of_pod(key.pod_uid, key.sandbox_id).empty();
    resident.may_leave_nodes =
        rules.make_room == placement::MakeRoomRule::kAll && !is_bound_to_pod && may_leave_its_nodes(allocation, rules);
    residents_.push_back(std::move(resident));
  }
  if (residents_.empty()) return;
  for (const Resident& resident : residents_) {
    for (const std::uint32_t node : resident.nodes) residents_of_node_[node].push_back(&resident);
  }
  for (const topology::Node& node : topology_.nodes) {
    if (!node.memory_only) free_of_node_[node.os_index] = count_common(free_, node.cpus);
  }
  promised_ = promised_nodes(ledger_, rules, key_.sandbox_id);
}

/// Ways to make up for `missing` CPUs of a place by moving the fewest containers, none of which could stay.
std::vector<std::vector<const Resident*>> RoomPlanner::Search::minimal_groups(const std::vector<const Resident*>& here,
                                                                              const CpuSet& place,
                                                                              std::size_t missing) const {
  std::vector<std::vector<const Resident*>> groups;
  std::vector<std::pair<std::size_t, const Resident*>> small;
  for (const Resident* resident : here) {
    const std::size_t part = count_common(resident->held, place);
    if (part >= missing) groups.push_back({resident});
    if (part > 0 && part < missing) small.emplace_back(part, resident);
  }
  if (most_moves() == 1) return groups;
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
bool RoomPlanner::Search::have_room_outside(const std::vector<const Resident*>& moved, const NodeSet& place) const {
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

/// Counts only: whether it finds as few caches besides `l3`.
bool RoomPlanner::Search::has_other_l3(const Resident& resident, const CpuSet& l3, bool stays_inside_nodes) const {
  std::map<NodeSet::Words, std::vector<std::size_t>> free_by_nodes;
  for (const CpuSet& other : topology_.l3s) {
    if (other == l3) continue;
    const NodeSet nodes = topology_.nodes_of(other);
    const bool is_own = nodes.is_subset_of(resident.nodes);
    if (stays_inside_nodes ? !is_own : (is_own || nodes.intersects(promised_))) continue;
    free_by_nodes[nodes.words()].push_back(count_common(free_, other));
  }
  return std::any_of(free_by_nodes.begin(), free_by_nodes.end(), [&resident](auto& of_nodes) {
    std::vector<std::size_t>& free = of_nodes.second;
    std::sort(free.rbegin(), free.rend());
    std::size_t sum = 0;
    for (std::size_t i = 0; i < std::min(free.size(), resident.l3s); ++i) sum += free[i];
    return sum >= resident.size;
  });
}

void RoomPlanner::Search::add_tries_on_nodes(const placement::Candidate& place, std::vector<RoomTry>& tries) const {
  const CpuSet here = usable_ & place.cpus;
  if (place.nodes.empty() || here.size() < wanted_) return;
  Standing hoped_for;
  hoped_for.misses_zone = request_.zone && !place.nodes.is_subset_of(*request_.zone);
  hoped_for.nodes = place.nodes.size();
  hoped_for.distance = topology_.total_distance(place.nodes);
  if (!near_devices_.empty()) hoped_for.remote_cpus = wanted_ - std::min(wanted_, count_common(here, near_devices_));
  Standing now = now_;
  now.l3s = 0;
  if (hoped_for >= now || (wanted_ > own_.size() && !own_.is_subset_of(place.cpus))) return;
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
  if (free >= wanted_) return;  // it is not for want of CPUs that it is not there
  for (std::vector<const Resident*>& group : minimal_groups(residents, place.cpus, wanted_ - free)) {
    if (!have_room_outside(group, place.nodes)) continue;
    RoomTry next{hoped_for, std::move(group), false, 0};
    for (const Resident* resident : next.moved) next.cpus += resident->size;
    tries.push_back(std::move(next));
  }
}

void RoomPlanner::Search::add_tries_in_l3(const CpuSet& l3, std::vector<RoomTry>& tries) const {
  const CpuSet here = usable_ & l3;
  if (here.size() < wanted_ || (wanted_ > own_.size() && !own_.is_subset_of(l3))) return;
  Standing hoped_for = standing_of(topology_, here, near_devices_);
  hoped_for.misses_zone = request_.zone && !topology_.nodes_of(here).is_subset_of(*request_.zone);
  if (hoped_for.remote_cpus > 0) hoped_for.remote_cpus = wanted_ - std::min(wanted_, count_common(here, near_devices_));
  if (hoped_for >= now_) return;
  const std::size_t free = count_common(free_, l3);
  if (free >= wanted_) return;
  for (const Resident& resident : residents_) {
    if (count_common(resident.held, l3) < wanted_ - free) continue;
    const bool stays = has_other_l3(resident, l3, true);
    if (!stays && !(resident.may_leave_nodes && has_other_l3(resident, l3, false))) continue;
    tries.push_back({hoped_for, {&resident}, stays, resident.size});
  }
}

/// Returns the most promising ways, the best first. A wide container is looked after first; then one of several caches.
std::vector<RoomTry> RoomPlanner::Search::tries() const {
  std::vector<RoomTry> tries;
  std::size_t fewest = topology_.nodes.size();
  if (now_.is_denied) {
    for (const placement::Candidate& place : placer_.candidates()) {
      if (!place.nodes.empty() && count_common(usable_, place.cpus) >= wanted_)
        fewest = std::min(fewest, place.nodes.size());
    }
  }
  for (const placement::Candidate& place : placer_.candidates()) {
    if (place.nodes.size() <= fewest) add_tries_on_nodes(place, tries);
  }
  if (tries.empty() && !now_.is_denied && now_.l3s > 1) {
    for (const CpuSet& l3 : topology_.l3s) add_tries_in_l3(l3, tries);
  }
  const std::size_t count = std::min(tries.size(), kMostRoomTries);
  std::partial_sort(tries.begin(), tries.begin() + static_cast<std::ptrdiff_t>(count), tries.end());
  tries.resize(count);
  return tries;
}

/// Returns the node sets that are as good as its own, have enough of `free`, and are promised to nobody else.
std::vector<NodeSet> RoomPlanner::Search::nodes_for(const Resident& resident, const CpuSet& free) const {
  const std::uint32_t distance = topology_.total_distance(resident.nodes);
  std::vector<NodeSet> found;
  for (const placement::Candidate& place : placer_.candidates()) {
    if (place.nodes.empty() || place.nodes.size() > resident.nodes.size()) continue;
    if (place.nodes.size() == resident.nodes.size() && topology_.total_distance(place.nodes) > distance) continue;
    if ((place.nodes - resident.nodes).intersects(promised_)) continue;
    if (count_common(free, place.cpus) >= resident.size) found.push_back(place.nodes);
  }
  return found;
}

std::optional<Move> RoomPlanner::Search::plan_move(const Ledger& trial, const Resident& resident,
                                                   bool stays_inside_nodes) const {
  const Allocation& before = *resident.allocation;
  Placer::Constraints constraints;
  constraints.occasion = placement::Occasion::kMove;
  constraints.had = had_of(before);
  constraints.exclusive_cpus = static_cast<std::uint32_t>(before.placement.cpus.size());
  constraints.plan_began = request_.plan_began;
  if (stays_inside_nodes || !resident.may_leave_nodes) {
    constraints.within_nodes = resident.nodes;
  } else {
    for (const NodeSet& nodes : nodes_for(resident, trial.pool() - trial.barred_for(nullptr)))
      constraints.among.insert(nodes.words());
    if (constraints.among.empty()) return std::nullopt;
  }
  placement::Workload workload = before.workload;
  workload.pod_nodes = ledger_.nodes_of_pod(workload.key.pod_uid, workload.key.sandbox_id);
  Plan plan = placer_.plan(trial, workload, constraints);
  placement::Decision& decision = plan.decision;
  placement::Placement& placement = decision.placement;
  const bool is_as_asked = !decision.denied && !decision.conflict && !decision.unpinned && plan.moves.empty() &&
                           decision.lost_votes.empty() && decision.verdicts.dropped.empty();
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
std::optional<Plan> RoomPlanner::Search::carry_out(const RoomTry& chosen) const {
  Ledger trial = ledger_;
  for (const Resident* resident : chosen.moved) trial.assume_released(placement::ContainerKey(resident->key()));
  Plan plan = request_.plan_in(trial);
  const placement::Decision& decision = plan.decision;
  if (decision.denied || decision.conflict || !decision.lost_votes.empty()) return std::nullopt;
  if (plan.yielding.size() > without_.yielding.size() || standing_of_plan(plan) >= now_) return std::nullopt;
  for (const placement::ContainerKey& key : plan.yielding) trial.assume_released(key);
  trial.assume(assumed_allocation(request_.workload, decision));
  for (const Move& move : plan.moves) trial.assume(assumed_allocation(move.workload, move.decision));
  std::vector<const Resident*> largest_first = chosen.moved;
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [](const Resident* a, const Resident* b) { return a->size > b->size; });
  std::vector<std::string> names;
  for (const Resident* resident : largest_first) {
    std::optional<Move> move = plan_move(trial, *resident, chosen.stays_inside_nodes);
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
  collect_residents();
  if (residents_.empty()) return std::nullopt;
  for (const RoomTry& next : tries()) {
    if (std::optional<Plan> plan = carry_out(next)) return plan;
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
