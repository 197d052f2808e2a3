#include "core/engine/converge/heal_pass.hpp"

#include <algorithm>
#include <utility>

namespace topolet::engine {
namespace {

/// Policies take their time, and the loop waits for them; the next pass goes on.
constexpr std::size_t kMostTried = 256;

}  // namespace

HealPass::HealPass(const Deps& deps, bool is_dry, OnHealed then)
    : deps_(deps),
      trial_(is_dry ? std::optional<Ledger>(deps.committer.ledger()) : std::nullopt),
      planner_(ledger(), deps.placer),
      then_(std::move(then)) {}

void HealPass::run(const Deps& deps, bool is_dry, OnHealed then) {
  std::shared_ptr<HealPass>(new HealPass(deps, is_dry, std::move(then)))->go_on();
}

void HealPass::go_on() {
  ++step_;
  if (tried_ >= kMostTried) return finish();
  for (const placement::ContainerKey& key : planner_.healable()) {
    if (settled_.count(key) != 0 || in_vain_.count(key) != 0 || !may_be_tried(key)) continue;
    ++tried_;
    return trial_ ? try_dry(key) : try_one(key);
  }
  finish();
}

bool HealPass::may_be_tried(const placement::ContainerKey& key) {
  const Allocation& allocation = *ledger().find(key);
  const auto leave = [&](const char* why) {
    left_[display_name(allocation.workload)] = why;
    settled_.insert(key);
    return false;
  };
  if (was_just_moved(allocation, deps_.clock.wall())) return leave("it was moved less than ten minutes ago");
  const std::string& id = allocation.container_id;
  if (!deps_.mover.has_queue(id) || deps_.mover.is_busy(id)) return leave("something else is under way for it");
  return true;
}

std::optional<Plan> HealPass::plan(const Allocation& before) {
  const placement::ContainerKey& key = before.workload.key;
  const std::string name = display_name(before.workload);
  BetterPlace found = planner_.plan_heal(before);
  if (!found.plan) {
    left_[name] = found.lacks_votes ? "a plugin lost its vote" : "no place is better for it by all plugins";
    in_vain_.insert(key);
    return std::nullopt;
  }
  const placement::Decision& decision = found.plan->decision;
  report_.moved.push_back({name, before.placement.cpus, decision.placement.cpus,
                           nodes_of(before, *deps_.placer.topology()), decision.nodes, decision.reason});
  left_.erase(name);
  settled_.insert(key);
  in_vain_.clear();
  return std::move(found.plan);
}

void HealPass::try_dry(const placement::ContainerKey& key) {
  const Allocation before = *ledger().find(key);
  if (const std::optional<Plan> found = plan(before)) {
    Allocation after = before;
    after.placement = found->decision.placement;
    after.within = found->decision.within;
    after.nodes = found->decision.nodes;
    trial_->assume(std::move(after));
  }
  deps_.loop.post([self = shared_from_this()] { self->go_on(); });
}

void HealPass::try_one(const placement::ContainerKey& key) {
  const std::string id = ledger().find(key)->container_id;
  const std::string name = display_name(ledger().find(key)->workload);
  // Its turn may not come.
  deps_.loop.after(kNeighboursTimeout, [self = shared_from_this(), step = step_, key] {
    if (self->step_ != step) return;
    self->settled_.insert(key);
    self->go_on();
  });
  deps_.mover.move(key, ContainerQueues::Needs::kConverged,
                   [self = shared_from_this(), step = step_, id, name](const Allocation& before) {
                     if (self->step_ != step) return std::optional<Plan>();
                     std::optional<Plan> found = self->plan(before);
                     self->deps_.loop.post([self, id, name, moves = found.has_value()] {
                       moves ? self->wait_for(id, name) : self->go_on();
                     });
                     return found;
                   });
}

void HealPass::wait_for(const std::string& container_id, const std::string& name) {
  ++step_;
  deps_.mover.when_converged(container_id, kNeighboursTimeout, [self = shared_from_this(), name](const Status& taken) {
    if (!taken) {
      self->report_.moved.pop_back();
      self->left_[name] = "it could not be moved: " + taken.error().message;
    }
    self->deps_.loop.post([self] { self->go_on(); });
  });
}

void HealPass::finish() {
  for (const auto& [name, why] : left_) report_.left.push_back({name, why});
  then_(report_);
}

}  // namespace topolet::engine
