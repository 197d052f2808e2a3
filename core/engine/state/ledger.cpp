#include "core/engine/state/ledger.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/find_by_prefix.hpp"
#include "core/engine/state/draft.hpp"
#include "core/placement/shared_estimates.hpp"

namespace topolet::engine {
namespace {

bool is_stray(const Allocation& allocation) { return !allocation.seen_on.empty() || !allocation.overlapped.empty(); }

/// Policies are shown the same of both.
bool is_shown_alike(const Allocation& a, const Allocation& b) {
  return a.placement == b.placement && a.intended_mems() == b.intended_mems() && a.vacating_alone == b.vacating_alone &&
         a.within == b.within && a.conflict == b.conflict && a.phase == b.phase && a.container_id == b.container_id &&
         a.adopted == b.adopted && a.workload == b.workload;
}

bool has_kubelet_cpus(const Allocation& allocation) {
  return !allocation.workload.kubelet_cpus.empty() && allocation.placement.mode != placement::Mode::kForeign;
}

bool leaves_pool_cpus(const Allocation& allocation) {
  return allocation.shares_pool_row && !allocation.vacating.empty();
}

}  // namespace

CpuSet Ledger::pool_of(const CpuInventory& inventory, const CpuSet& exclusive, const CpuSet& withheld) {
  return inventory.allowed - inventory.reserved - inventory.isolated - inventory.occupied - exclusive - withheld;
}

void DedicatedCpus::add(const Allocation& allocation) {
  if (holds_exclusively(allocation.placement.mode)) exclusive |= allocation.placement.cpus;
  withheld |= allocation.effective_withheld();
}

CpuSet DedicatedCpus::free_reserved_of(const CpuInventory& inventory) const {
  return inventory.reserved - inventory.occupied - exclusive - withheld;
}

CpuSet DedicatedCpus::free_isolated_of(const CpuInventory& inventory) const {
  return (inventory.isolated & inventory.allowed) - inventory.reserved - inventory.occupied - exclusive - withheld;
}

Ledger::Ledger(CpuInventory inventory, std::uint64_t generation, std::int64_t next_decision)
    : inventory_(std::move(inventory)),
      generation_(generation),
      next_decision_(next_decision),
      pool_(pool_of(inventory_, {}, {})),
      free_reserved_(DedicatedCpus().free_reserved_of(inventory_)),
      free_isolated_(DedicatedCpus().free_isolated_of(inventory_)) {}

const Allocation* Ledger::find(const placement::ContainerKey& key) const { return allocations_.find(key); }

const Allocation* Ledger::find_by_container(const std::string& container_id) const {
  const auto found = find_by_prefix(by_container_, container_id);
  return found == by_container_.end() ? nullptr : find(found->second);
}

const Allocation* Ledger::find_announced(const std::string& sandbox_id, const std::string& container_id) const {
  for (const auto& [key, allocation] : allocations_) {
    const bool is_it = allocation.is_pending() && allocation.container_id == container_id;
    if (is_it && key.sandbox_id == sandbox_id) return &allocation;
  }
  return nullptr;
}

std::uint32_t Ledger::next_attempt(const std::string& sandbox_id, const std::string& name) const {
  std::uint32_t next = 0;
  for (const auto& [key, allocation] : allocations_) {
    if (key.sandbox_id == sandbox_id && key.name == name) next = std::max(next, key.attempt + 1);
  }
  return next;
}

std::vector<placement::ContainerKey> Ledger::in_sandbox(const std::string& sandbox_id) const {
  std::vector<placement::ContainerKey> keys;
  for (const auto& [key, allocation] : allocations_) {
    if (key.sandbox_id == sandbox_id) keys.push_back(key);
  }
  return keys;
}

template <class Is>
const Allocation* Ledger::find_attempt(const placement::ContainerKey& key, Is is) const {
  const placement::ContainerKey first{key.pod_uid, key.name, 0, {}};
  for (auto it = allocations_.lower_bound(first); it != allocations_.end(); ++it) {
    if (it->first.pod_uid != key.pod_uid || it->first.name != key.name) break;
    // Pods made by hand may have no uid.
    if (key.pod_uid.empty() && it->first.sandbox_id != key.sandbox_id) continue;
    if (it->first != key && is(it->first, it->second)) return &it->second;
  }
  return nullptr;
}

std::uint32_t Ledger::cpus_awaited_before(const placement::ContainerKey& key) const {
  const Waiting* own = nullptr;
  if (const auto pod = pods_.find(key.sandbox_id); pod != pods_.end()) {
    const auto waiting = pod->second.waiting.find(key.name);
    if (waiting != pod->second.waiting.end()) own = &waiting->second;
  }
  std::uint32_t cpus = 0;
  for (const auto& [id, pod] : pods_) {
    for (const auto& [name, waiting] : pod.waiting) {
      if (&waiting != own && (own == nullptr || waiting.since < own->since)) cpus += waiting.cpus;
    }
  }
  return cpus;
}

bool Ledger::is_alone_in_pod(const placement::ContainerKey& key) const {
  for (auto it = allocations_.lower_bound({key.pod_uid, "", 0, ""}); it != allocations_.end(); ++it) {
    if (it->first.pod_uid != key.pod_uid) break;
    if (it->first != key) return false;
  }
  return true;
}

const Allocation* Ledger::find_kept(const placement::ContainerKey& key) const {
  return find_attempt(key, [](const auto&, const Allocation& other) { return other.is_kept(); });
}

bool Ledger::has_later_attempt(const placement::ContainerKey& key) const {
  const auto is_later = [&key](const placement::ContainerKey& other, const Allocation& /*allocation*/) {
    return other.attempt > key.attempt;
  };
  return find_attempt(key, is_later) != nullptr;
}

/// Where several ended in the same millisecond, their generations tell which did first.
std::vector<placement::ContainerKey> Ledger::kept() const {
  std::vector<std::tuple<std::chrono::milliseconds, std::uint64_t, placement::ContainerKey>> found;
  for (const auto& [key, allocation] : allocations_) {
    if (allocation.is_kept()) found.emplace_back(allocation.phase_since, allocation.generation, key);
  }
  std::sort(found.begin(), found.end());
  std::vector<placement::ContainerKey> keys;
  for (auto& [since, generation, key] : found) keys.push_back(std::move(key));
  return keys;
}

std::vector<std::string> Ledger::made_in(const std::string& sandbox_id) const {
  if (const auto pod = pods().find(sandbox_id); pod != pods().end() && !pod->second.made.empty())
    return pod->second.made;
  std::vector<std::pair<std::int64_t, std::string>> by_decision;
  for (const auto& [key, allocation] : allocations_) {
    if (key.sandbox_id == sandbox_id) by_decision.emplace_back(allocation.decision, key.name);
  }
  std::sort(by_decision.begin(), by_decision.end());
  std::vector<std::string> made;
  for (auto& [decision, name] : by_decision) {
    if (std::find(made.begin(), made.end(), name) == made.end()) made.push_back(std::move(name));
  }
  return made;
}

/// Init containers are created one after the other, and each ends before the next. So none but the newest can be one
/// whose end makes way for this, and one that was stopped is none: the kubelet lets them end.
const Allocation* Ledger::find_ended_init(const placement::ContainerKey& key) const {
  const std::vector<std::string> made = made_in(key.sandbox_id);
  if (made.empty() || std::find(made.begin(), made.end(), key.name) != made.end()) return nullptr;
  const Allocation* ended = nullptr;
  for (const placement::ContainerKey& other : in_sandbox(key.sandbox_id)) {
    if (other.name != made.back()) continue;
    const Allocation& allocation = *find(other);
    if (allocation.phase != Phase::kKept || allocation.stopping) return nullptr;
    ended = &allocation;
  }
  return ended;
}

placement::Placement Ledger::former_placement(const placement::ContainerKey& key) const {
  // A runtime that has forgotten an attempt lets the kubelet make the same once more.
  if (const Allocation* own = find(key); own != nullptr && own->is_kept()) return own->placement;
  if (const Allocation* kept = find_kept(key); kept != nullptr) return kept->placement;
  const auto has = [&key](const Pod& pod) { return pod.former.count(key.name) != 0; };
  const Pod* pod = find_pod_if(key.pod_uid, key.sandbox_id, has);
  if (pod == nullptr) return {};
  const FormerCpus& former = pod->former.at(key.name);
  return {placement::Mode::kExclusive, former.cpus, former.withheld, {}};
}

const Pod* Ledger::find_pod(const std::string& sandbox_id) const {
  const auto found = find_by_prefix(pods(), sandbox_id);
  return found == pods().end() ? nullptr : &found->second;
}

NodeSet Ledger::nodes_of_pod(const std::string& pod_uid, const std::string& sandbox_id) const {
  const Pod* pod = find_pod_if(pod_uid, sandbox_id, [](const Pod& candidate) { return !candidate.nodes.empty(); });
  return pod == nullptr ? NodeSet() : pod->nodes;
}

CpuSet Ledger::dedicated_to_others(const placement::ContainerKey& key) const {
  CpuSet held;
  for (const auto& [other, allocation] : allocations_) {
    if (other != key) held |= allocation.dedicated_cpus() | allocation.vacating_alone;
  }
  return held;
}

std::vector<placement::ContainerKey> Ledger::neighbours_blocking(const placement::ContainerKey& key) const {
  std::vector<placement::ContainerKey> keys;
  const Allocation* allocation = find(key);
  if (allocation == nullptr) return keys;
  const CpuSet alone = allocation->dedicated_cpus();
  if (alone.empty()) return keys;
  for (const auto& [other_key, other] : allocations_) {
    // One in conflict stays where the kubelet put it, and one without any CPU left where the kernel puts it.
    if (other_key == key || !other.is_managed() || other.conflict) continue;
    if (other.squeeze == Squeeze::kLeftToKernel) continue;
    if (other.vacating.intersects(alone)) keys.push_back(other_key);
  }
  return keys;
}

std::vector<placement::ContainerKey> Ledger::neighbours_blocking_outside_cycles(
    const placement::ContainerKey& key) const {
  std::vector<placement::ContainerKey> keys = neighbours_blocking(key);
  std::erase_if(keys, [&](const placement::ContainerKey& other) { return blocks_indirectly(key, other); });
  return keys;
}

bool Ledger::blocks_indirectly(const placement::ContainerKey& who, const placement::ContainerKey& of) const {
  std::set<placement::ContainerKey> seen;
  std::vector<placement::ContainerKey> open{of};
  while (!open.empty()) {
    const placement::ContainerKey next = std::move(open.back());
    open.pop_back();
    if (!seen.insert(next).second) continue;
    for (placement::ContainerKey& other : neighbours_blocking(next)) {
      if (other == who) return true;
      open.push_back(std::move(other));
    }
  }
  return false;
}

/// Counts it, or no more.
void Ledger::count(const Allocation& allocation, bool is_there) {
  const auto count_in = [is_there](std::size_t& counter) { counter = is_there ? counter + 1 : counter - 1; };
  if (is_stray(allocation)) count_in(strays_);
  if (!allocation.barred_cpus().empty()) count_in(unmovable_);
  if (has_kubelet_cpus(allocation)) count_in(with_kubelet_cpus_);
  if (leaves_pool_cpus(allocation)) count_in(leaving_pool_cpus_);
}

void Ledger::forget_container(const Allocation& allocation) {
  const auto by_id = by_container_.find(allocation.container_id);
  if (by_id != by_container_.end() && by_id->second == allocation.workload.key) by_container_.erase(by_id);
}

void Ledger::put(Allocation allocation) {
  const placement::ContainerKey& key = allocation.workload.key;
  const Allocation* before = find(key);
  if (before == nullptr) {
    shown_.insert(shown_at(key), entry_of(allocation));
  } else {
    if (!is_shown_alike(*before, allocation)) show(entry_of(allocation));
    count(*before, false);
    if (before->container_id != allocation.container_id) forget_container(*before);
  }
  count(allocation, true);
  const bool is_there = !allocation.container_id.empty() && !allocation.is_pending();
  if (is_there) by_container_[allocation.container_id] = key;
  allocations_.put(std::move(allocation));
}

void Ledger::erase(const placement::ContainerKey& key) {
  const Allocation* found = find(key);
  if (found == nullptr) return;
  count(*found, false);
  forget_container(*found);
  shown_.erase(shown_at(key));
  allocations_.erase(key);
}

void Ledger::apply(const Transition& transition) {
  generation_ = transition.generation;
  next_decision_ = transition.next_decision;
  pool_ = transition.pool;
  pool_vacating_ = transition.pool_vacating;
  free_reserved_ = transition.free_reserved;
  free_isolated_ = transition.free_isolated;
  if (transition.inventory) inventory_ = *transition.inventory;
  if (transition.topology) topology_ = transition.topology;
  if (transition.setup) setup_ = std::make_shared<const Setup>(*transition.setup);
  // Removals come first: the container of a removed key may belong to another key from now on.
  for (const Change& change : transition.changes) {
    if (!change.after) erase(change.before->workload.key);
  }
  for (const Change& change : transition.changes) {
    if (change.after) put(*change.after);
  }
  if (pods_of_ != nullptr && !transition.pods.empty()) {
    pods_ = pods_of_->pods();
    pods_of_ = nullptr;
  }
  for (const PodChange& change : transition.pods) {
    if (change.after) {
      pods_[change.sandbox_id] = *change.after;
    } else {
      pods_.erase(change.sandbox_id);
    }
  }
  for (const CapacityChange& change : transition.capacities) {
    if (change.after) {
      reported_capacities_[change.node] = *change.after;
    } else {
      reported_capacities_.erase(change.node);
    }
  }
  if (transition.recent_sizes) recent_sizes_ = *transition.recent_sizes;
  if (transition.besteffort) besteffort_ = *transition.besteffort;
  for (const Change& change : transition.changes) {
    book_pod((change.after ? *change.after : *change.before).workload.key);
  }
}

Ledger Ledger::for_plan() const {
  Ledger copy(inventory_, generation_, next_decision_);
  copy.pool_ = pool_;
  copy.pool_vacating_ = pool_vacating_;
  copy.free_reserved_ = free_reserved_;
  copy.free_isolated_ = free_isolated_;
  copy.topology_ = topology_;
  copy.setup_ = setup_;
  copy.allocations_ = allocations_.share();
  copy.shown_ = shown_;
  copy.strays_ = strays_;
  copy.unmovable_ = unmovable_;
  copy.with_kubelet_cpus_ = with_kubelet_cpus_;
  copy.leaving_pool_cpus_ = leaving_pool_cpus_;
  copy.pods_of_ = this;
  copy.reported_capacities_ = reported_capacities_;
  copy.recent_sizes_ = recent_sizes_;
  copy.besteffort_ = besteffort_;
  return copy;
}

void Ledger::assume(Allocation allocation) {
  Draft draft(*this, {});
  draft.put(std::move(allocation));
  apply(std::move(draft).finish());
}

void Ledger::assume_released(const placement::ContainerKey& key) {
  Draft draft(*this, {});
  draft.end(key, "");
  apply(std::move(draft).finish());
}

void Ledger::load(std::vector<Allocation> allocations, std::vector<Pod> pods, std::vector<ReportedCapacity> capacities,
                  RecentSizes recent_sizes) {
  DedicatedCpus held;
  for (Allocation& allocation : allocations) {
    held.add(allocation);
    if (allocation.shares_pool_row) pool_vacating_ |= allocation.vacating;
    if (!allocation.narrowed_to.empty()) besteffort_ = allocation.narrowed_to;
    put(std::move(allocation));
  }
  for (Pod& pod : pods) pods_[pod.sandbox.id] = std::move(pod);
  for (ReportedCapacity& reported : capacities) reported_capacities_[reported.node] = std::move(reported);
  recent_sizes_ = std::move(recent_sizes);
  for (const auto& [key, allocation] : allocations_) book_pod(key);
  pool_ = Ledger::pool_of(inventory_, held.exclusive, held.withheld);
  free_reserved_ = held.free_reserved_of(inventory_);
  free_isolated_ = held.free_isolated_of(inventory_);
}

const Ledger& ledger_without(const Ledger& ledger, const std::vector<placement::ContainerKey>& released,
                             std::optional<Ledger>& trial) {
  if (released.empty()) return ledger;
  trial = ledger.for_plan();
  for (const placement::ContainerKey& key : released) trial->assume_released(key);
  return *trial;
}

}  // namespace topolet::engine
