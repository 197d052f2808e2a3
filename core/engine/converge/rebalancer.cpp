#include "core/engine/converge/rebalancer.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace topolet::engine {
namespace {

constexpr std::chrono::minutes kLongestRetry{5};

}  // namespace

Rebalancer::Rebalancer(Deps deps) : deps_(deps), plans_(deps_.committer.ledger(), deps_.placer) {
  deps_.committer.subscribe(*this);
}

void Rebalancer::begin() {
  has_begun_ = true;
  // CPUs may have gone offline while nobody looked.
  leave_what_is_gone();
  reclaim();
}

void Rebalancer::committed(const Transition& transition) {
  const bool gains = !transition.rules && !transition.pool.is_subset_of(transition.pool_before);
  if (gains && !transition.undoes) reclaim_later();
}

/// Once for all that is given back at a time.
void Rebalancer::reclaim_later() {
  if (std::exchange(will_reclaim_, true)) return;
  deps_.loop.post([this] {
    will_reclaim_ = false;
    if (has_begun_) reclaim();
  });
}

void Rebalancer::leave_what_is_gone() {
  std::vector<ContainerKey> keys;
  for (const auto& [key, allocation] : deps_.committer.ledger().allocations()) {
    if (may_be_moved(allocation) && plans_.holds_what_is_gone(allocation)) keys.push_back(key);
  }
  for (const ContainerKey& key : keys) leave_what_is_gone(key);
}

/// Each time that it does not help, twice as long passes before the next.
bool Rebalancer::is_due(const ContainerKey& key) {
  const auto now = deps_.clock.steady();
  Retry& retry = retries_[key];
  if (now < retry.next) return false;
  retry.next = now + retry.delay;
  retry.delay = std::min<std::chrono::seconds>(retry.delay * 2, kLongestRetry);
  return true;
}

void Rebalancer::retry() {
  if (!has_begun_) return;
  std::set<ContainerKey> concerned;
  for (const auto& [key, allocation] : deps_.committer.ledger().allocations()) {
    if (!may_be_moved(allocation)) continue;
    if (plans_.holds_what_is_gone(allocation) || plans_.lacks_cpus(allocation)) concerned.insert(key);
  }
  std::erase_if(retries_, [&](const auto& retry) { return concerned.count(retry.first) == 0; });
  for (const ContainerKey& key : concerned) {
    const Allocation* allocation = deps_.committer.ledger().find(key);
    if (allocation == nullptr || deps_.mover.is_busy(allocation->container_id) || !is_due(key)) continue;
    catch_up(key);
  }
}

void Rebalancer::leave_what_is_gone(const ContainerKey& key) {
  const Allocation* allocation = deps_.committer.ledger().find(key);
  if (allocation == nullptr || !may_be_moved(*allocation) || !plans_.holds_what_is_gone(*allocation)) return;
  // What the kernel makes of a set of which nothing is there is never the set.
  deps_.mover.move(key, ContainerQueues::Needs::kTurn, [this](const Allocation& before) {
    return plans_.holds_what_is_gone(before) ? plans_.leave_what_is_gone(before) : std::nullopt;
  });
}

void Rebalancer::reclaim() {
  std::vector<ContainerKey> first;
  std::vector<ContainerKey> lacking;
  std::vector<ContainerKey> sharing;
  for (const auto& [key, allocation] : deps_.committer.ledger().allocations()) {
    if (!may_be_moved(allocation) || !plans_.may_reclaim(allocation)) continue;
    const bool was_exclusive = allocation.preferred && allocation.preferred->placement.mode == Mode::kExclusive;
    if (!allocation.is_exclusive() && !was_exclusive) {
      sharing.push_back(key);
      continue;
    }
    // Before those that lack some: these could take them from beside somebody.
    const bool regains = !plans_.lacks_cpus(allocation) || plans_.has_siblings_that_arrived(allocation);
    (regains ? first : lacking).push_back(key);
  }
  for (const std::vector<ContainerKey>& keys : {first, lacking, sharing}) {
    for (const ContainerKey& key : keys) reclaim(key);
  }
}

void Rebalancer::reclaim(const ContainerKey& key) {
  const Allocation* allocation = deps_.committer.ledger().find(key);
  if (allocation == nullptr || !may_be_moved(*allocation) || !plans_.may_reclaim(*allocation)) return;
  deps_.mover.move(key, ContainerQueues::Needs::kConverged, [this, key](const Allocation& before) {
    deps_.committer.commit(event::Evaluated{key});
    return plans_.reclaim(before);
  });
}

void Rebalancer::catch_up(const ContainerKey& key) {
  leave_what_is_gone(key);
  reclaim(key);
}

void Rebalancer::change_machine(Machine machine) {
  retries_.clear();
  const Ledger& ledger = deps_.committer.ledger();
  const CpuSet allowed_before = ledger.rules().allowed;
  const std::vector<Candidate> candidates_before = deps_.placer.candidates();
  std::vector<ContainerKey> restricted = plans_.restricted(allowed_before, candidates_before);
  deps_.placer.set_machine(std::move(machine.topology), std::move(machine.candidates));
  event::MachineChanged changed{std::move(machine.cpus), std::move(restricted), {}};
  for (const auto& [key, allocation] : ledger.allocations()) {
    if (!allocation.follows_pool() || allocation.conflict || !allocation.workload.kubelet_cpus.empty()) continue;
    const auto& held_back = changed.restricted;
    if (std::find(held_back.begin(), held_back.end(), key) != held_back.end()) continue;
    CpuSet within = plans_.within_now(allocation, allowed_before, candidates_before);
    if (within != allocation.within) changed.widened.emplace_back(key, std::move(within));
  }
  deps_.committer.commit(std::move(changed));
  leave_what_is_gone();
  reclaim();
}

void Rebalancer::replace(const ReplacementWish& wish) {
  const Allocation* wished = deps_.committer.ledger().find(wish.key);
  if (wished == nullptr || !may_be_moved(*wished)) {
    return deps_.log.debug("{}: container {} cannot be placed anew now", wish.plugin, wish.key.name);
  }
  deps_.mover.move(wish.key, ContainerQueues::Needs::kConverged, [this, wish](const Allocation& before) {
    const std::string why = wish.plugin + " wished it: " + wish.reason;
    if (wish.move_nodes) return plans_.replace(before, nullptr, why);
    NodeSet nodes;
    for (const Node& node : deps_.placer.topology()->nodes) {
      if (node.cpus.intersects(before.placement.cpus)) nodes.insert(node.os_index);
    }
    return plans_.replace(before, &nodes, why);
  });
}

}  // namespace topolet::engine
