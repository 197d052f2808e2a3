#include "core/engine/converge/rebalancer.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "core/base/log.hpp"
#include "core/engine/converge/heal_pass.hpp"

namespace topolet::engine {
namespace {

constexpr std::chrono::minutes kLongestRebalanceRetry{5};

using Keys = std::vector<placement::ContainerKey>;

}  // namespace

Rebalancer::Rebalancer(Deps deps)
    : deps_(deps),
      planner_(deps_.committer.ledger(), deps_.placer),
      crowd_planner_(deps_.committer.ledger(), deps_.placer),
      heal_planner_(deps_.committer.ledger(), deps_.placer),
      paced_moves_(
          {deps_.loop, deps_.committer, deps_.mover, deps_.clock},
          {{[this] { return has_ended_ ? Keys() : crowd_planner_.crowded(shared_load_of(deps_.committer.ledger())); },
            [this](const Allocation& before) { return crowd_planner_.plan_relief(before); }},
           {[this] { return has_ended_ ? Keys() : heal_planner_.healable(); },
            [this](const Allocation& before) { return heal_planner_.plan_heal(before); }}}),
      move_withdrawals_({deps_.loop, deps_.committer, deps_.mover}) {
  deps_.committer.subscribe(*this);
}

void Rebalancer::begin() {
  has_begun_ = true;
  // CPUs may have gone offline while nobody checked.
  vacate_unavailable_cpus();
  regain();
  move_withdrawals_.begin();
  paced_moves_.begin();
}

void Rebalancer::on_durable(const Transition& transition) {
  const bool gains = !transition.inventory && !transition.pool.is_subset_of(transition.pool_before);
  if (gains && !transition.is_rollback) schedule_regain();
  if (has_begun_) move_withdrawals_.on_durable(transition);
  if (has_begun_ && (!transition.changes.empty() || transition.inventory)) paced_moves_.schedule();
}

/// Once for all that is given back at a time.
void Rebalancer::schedule_regain() {
  if (std::exchange(regain_scheduled_, true)) return;
  deps_.loop.post([this] {
    regain_scheduled_ = false;
    if (has_begun_) regain();
  });
}

void Rebalancer::vacate_unavailable_cpus() {
  std::vector<placement::ContainerKey> keys;
  for (const auto& [key, allocation] : deps_.committer.ledger().allocations()) {
    if (may_be_moved(allocation) && planner_.holds_unavailable_cpus(allocation)) keys.push_back(key);
  }
  for (const placement::ContainerKey& key : keys) vacate_unavailable_cpus(key);
}

/// Each time that it does not help, twice as long passes before the next.
bool Rebalancer::is_due(const placement::ContainerKey& key) {
  const auto now = deps_.clock.steady();
  Retry& retry = retries_[key];
  if (now < retry.next) return false;
  retry.next = now + retry.delay;
  retry.delay = std::min<std::chrono::seconds>(retry.delay * 2, kLongestRebalanceRetry);
  return true;
}

void Rebalancer::retry() {
  if (!has_begun_) return;
  std::set<placement::ContainerKey> concerned;
  for (const auto& [key, allocation] : deps_.committer.ledger().allocations()) {
    if (!may_be_moved(allocation)) continue;
    if (planner_.holds_unavailable_cpus(allocation) || planner_.has_fewer_than_promised(allocation) ||
        allocation.squeeze == Squeeze::kPlaced)
      concerned.insert(key);
  }
  std::erase_if(retries_, [&](const auto& retry) { return concerned.count(retry.first) == 0; });
  for (const placement::ContainerKey& key : concerned) {
    const Allocation* allocation = deps_.committer.ledger().find(key);
    if (allocation == nullptr || deps_.mover.is_busy(allocation->container_id) || !is_due(key)) continue;
    catch_up(key);
  }
  paced_moves_.retry();
}

void Rebalancer::vacate_unavailable_cpus(const placement::ContainerKey& key) {
  const Allocation* allocation = deps_.committer.ledger().find(key);
  if (allocation == nullptr || !may_be_moved(*allocation) || !planner_.holds_unavailable_cpus(*allocation)) return;
  // Not kConverged: a set of which no CPU is available never converges, because the kernel replaces it.
  deps_.mover.move(key, ContainerQueues::Needs::kTurn, [this](const Allocation& before) {
    return planner_.holds_unavailable_cpus(before) ? std::optional(planner_.plan_vacate(before)) : std::nullopt;
  });
}

void Rebalancer::regain() {
  std::vector<placement::ContainerKey> first;
  std::vector<placement::ContainerKey> lacking;
  std::vector<placement::ContainerKey> sharing;
  for (const auto& [key, allocation] : deps_.committer.ledger().allocations()) {
    if (!may_be_moved(allocation) || !planner_.may_regain(allocation)) continue;
    if (!allocation.is_exclusive() && !allocation.was_exclusive()) {
      sharing.push_back(key);
      continue;
    }
    // Before those that lack CPUs, which might take the siblings that are to be withheld again.
    const bool goes_first = !planner_.has_fewer_than_promised(allocation) || planner_.has_arrived_siblings(allocation);
    (goes_first ? first : lacking).push_back(key);
  }
  for (const std::vector<placement::ContainerKey>& keys : {first, lacking, sharing}) {
    for (const placement::ContainerKey& key : keys) regain(key);
  }
}

void Rebalancer::regain(const placement::ContainerKey& key) {
  const Allocation* allocation = deps_.committer.ledger().find(key);
  if (has_ended_ || allocation == nullptr || !may_be_moved(*allocation) || !planner_.may_regain(*allocation)) return;
  deps_.mover.move(key, ContainerQueues::Needs::kConverged, [this, key](const Allocation& before) {
    deps_.committer.commit(event::Evaluated{key});
    return planner_.plan_regain(before);
  });
}

void Rebalancer::catch_up(const placement::ContainerKey& key) {
  vacate_unavailable_cpus(key);
  regain(key);
}

void Rebalancer::change_machine(Machine machine) {
  retries_.clear();
  const Ledger& ledger = deps_.committer.ledger();
  const CpuSet allowed_before = ledger.inventory().allowed;
  std::vector<placement::ContainerKey> restricted = planner_.restricted(allowed_before, deps_.placer.candidates());
  const std::vector<placement::Candidate> candidates_before =
      deps_.placer.set_machine(std::move(machine.topology), std::move(machine.candidates));
  auto widened = planner_.widened(allowed_before, candidates_before, restricted);
  deps_.committer.commit(event::MachineChanged{std::move(machine.cpus), std::move(restricted), std::move(widened),
                                               deps_.placer.topology()});
  vacate_unavailable_cpus();
  regain();
}

void Rebalancer::heal(bool is_dry, OnHealed then) {
  if (!has_begun_) return then(Error{Code::kUnavailable, "topoletd does not know yet which containers run; try again"});
  if (has_ended_) {
    return then(Error{Code::kFailedPrecondition,
                      "everybody was given all CPUs (topolet release --cpusets), and nobody is moved before topoletd "
                      "starts again; topolet restart does that"});
  }
  HealPass::run({deps_.loop, deps_.committer, deps_.placer, deps_.mover, deps_.clock}, is_dry, std::move(then));
}

void Rebalancer::move_as_requested(const plugin::MoveRequest& request) {
  const Allocation* moved = deps_.committer.ledger().find(request.key);
  if (has_ended_) return;
  if (moved == nullptr || !may_be_moved(*moved)) {
    return deps_.log.debug("plugin {} requested a move of container {}, which cannot be moved now", request.plugin,
                           request.key.name);
  }
  const auto needs = request.now ? ContainerQueues::Needs::kTurn : ContainerQueues::Needs::kConverged;
  deps_.mover.move(request.key, needs, [this, request](const Allocation& before) -> std::optional<Plan> {
    if (was_just_moved(before, deps_.clock.wall())) {
      deps_.log.debug("plugin {} requested a move of container {}, which was moved not long ago", request.plugin,
                      request.key.name);
      return std::nullopt;
    }
    const std::string why = "plugin " + request.plugin + " requested a move: " + request.reason;
    if (request.move_nodes) return planner_.plan_requested_move(before, nullptr, why);
    NodeSet nodes;
    for (const topology::Node& node : deps_.placer.topology()->nodes) {
      if (node.cpus.intersects(before.home_cpus())) nodes.insert(node.os_index);
    }
    return planner_.plan_requested_move(before, &nodes, why);
  });
}

}  // namespace topolet::engine
