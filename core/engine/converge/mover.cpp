#include "core/engine/converge/mover.hpp"

#include <fmt/format.h>

#include <utility>

namespace topolet::engine {
namespace {

/// Short, as the container's own queue is taken meanwhile.
constexpr std::chrono::seconds kNeighboursTimeout{3};
/// How soon those are looked at again who have left as far as their queue says, and not as far as the ledger does.
constexpr std::chrono::milliseconds kLookAgain{20};

}  // namespace

Mover::Mover(Deps deps)
    : deps_(std::move(deps)),
      queues_({.apply = [this](const std::string& id, const CpusetTarget& target,
                               std::function<void(Applied)> done) { apply(id, target, std::move(done)); },
               .converged = [this](const std::string& id, const CpusetTarget& applied) { converged(id, applied); },
               .after = [loop = &deps_.loop](std::chrono::milliseconds delay,
                                             std::function<void()> then) { loop->after(delay, std::move(then)); }}) {
  deps_.committer.subscribe(*this);
  // What was loaded from the store is durable.
  for (const auto& [key, allocation] : deps_.committer.ledger().allocations()) {
    if (allocation.is_managed()) desired_[allocation.container_id] = target_of(allocation);
  }
}

void Mover::open(const std::string& container_id, std::optional<CpusetTarget> applied) {
  const auto wanted = desired_.find(container_id);
  if (wanted == desired_.end()) return;
  const CpusetTarget desired = wanted->second;
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  if (queues_.is_ending(container_id)) applied.reset();
  if (!applied || allocation == nullptr) return queues_.open(container_id, std::move(applied), desired);
  deps_.committer.commit(event::Converged{allocation->workload.key, applied->cpus});
  queues_.open(container_id, std::move(applied), desired);
}

std::optional<CpusetTarget> Mover::desired(const std::string& container_id) const {
  const auto wanted = desired_.find(container_id);
  if (wanted == desired_.end()) return std::nullopt;
  return wanted->second;
}

void Mover::committed(const Transition& transition) {
  for (const Change& change : transition.changes) {
    const bool was = change.before && change.before->is_managed();
    const bool is = change.after && change.after->is_managed();
    if (was && (!is || change.before->container_id != change.after->container_id)) leave(*change.before);
    if (!is) continue;
    desired_[change.after->container_id] = target_of(*change.after);
    queues_.set_desired(change.after->container_id, target_of(*change.after));
  }
  poke_blocked();
}

void Mover::leave(const Allocation& allocation) {
  desired_.erase(allocation.container_id);
  blocked_.erase(allocation.container_id);
  deps_.cpusets.forget(allocation.container_id);
  queues_.close(allocation.container_id);
}

void Mover::poke_blocked() {
  const std::set<std::string> blocked = blocked_;
  for (const std::string& id : blocked) {
    const Allocation* allocation = deps_.committer.ledger().find_by_container(id);
    if (allocation != nullptr && !deps_.committer.ledger().to_be_awaited_by(allocation->workload.key).empty()) continue;
    blocked_.erase(id);
    queues_.poke(id);
  }
}

void Mover::apply(const std::string& container_id, const CpusetTarget& target, std::function<void(Applied)> done) {
  const Ledger& ledger = deps_.committer.ledger();
  const Allocation* allocation = ledger.find_by_container(container_id);
  if (allocation == nullptr) return done({});
  if (!ledger.to_be_awaited_by(allocation->workload.key).empty()) {
    blocked_.insert(container_id);
    return done({Applied::Kind::kBlocked, {Code::kUnavailable, "others have not left its CPUs yet"}});
  }
  deps_.cpusets.write(container_id, target, [this, container_id, target, done = std::move(done)](const Written& what) {
    written(container_id, target, what, done);
  });
}

void Mover::written(const std::string& container_id, const CpusetTarget& target, const Written& written,
                    const std::function<void(Applied)>& done) {
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  if (allocation == nullptr || !allocation->is_bound()) return done({});
  const ContainerKey key = allocation->workload.key;
  switch (written.kind) {
    case Written::Kind::kFailed: {
      // NOT_FOUND is what operations are told of a container that is no more; this one is there.
      const Code code = written.error.code == Code::kNotFound ? Code::kUnavailable : written.error.code;
      return done({Applied::Kind::kFailed, {code, written.error.message}});
    }
    case Written::Kind::kGone:
      deps_.exits.report(container_id, {Exit::Kind::kGone});
      return done({});
    case Written::Kind::kExited:
      deps_.exits.report(container_id, {});
      return done({});
    case Written::Kind::kNotRun:
      if (may_be_mid_start(*allocation)) {
        return done({Applied::Kind::kUnseen,
                     {Code::kUnavailable, "a start of it may be under way, and where it runs cannot be seen yet"}});
      }
      if (allocation->phase == Phase::kStarting) deps_.committer.commit(event::StartRefused{key});
      break;
    case Written::Kind::kRuns: {
      // The update may have come just before it ran, and be lost: one more tells.
      const bool was_starting = allocation->phase == Phase::kStarting;
      deps_.committer.commit(event::StartConfirmed{key});
      if (was_starting && deps_.cpusets.is_narrower(container_id, target)) {
        return done({Applied::Kind::kUnseen, {Code::kUnavailable, "it started while its CPUs were set"}});
      }
      break;
    }
  }
  deps_.committer.commit(event::Converged{key, target.cpus}, [done] { done({}); });
}

/// What it was to have meanwhile, and was never told, it need not leave.
void Mover::converged(const std::string& container_id, const CpusetTarget& applied) {
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  if (allocation == nullptr || allocation->vacating.is_subset_of(applied.cpus)) return;
  deps_.committer.commit(event::Converged{allocation->workload.key, applied.cpus});
}

bool Mover::may_be_mid_start(const Allocation& allocation) const {
  return allocation.phase == Phase::kStarting && deps_.clock.wall() - allocation.phase_since < deps_.start_grace;
}

void Mover::report_applied(const std::string& container_id, const CpusetTarget& now, std::function<void()> then) {
  queues_.set_applied(container_id, now);
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  if (allocation == nullptr) return then();
  deps_.committer.commit(event::Converged{allocation->workload.key, now.cpus}, std::move(then));
}

void Mover::await_clear(const ContainerKey& key, std::chrono::milliseconds timeout, Done done) {
  await_clear_until(key, deps_.clock.steady() + timeout, std::move(done));
}

void Mover::await_clear_until(const ContainerKey& key, std::chrono::steady_clock::time_point deadline, Done done) {
  const Ledger& ledger = deps_.committer.ledger();
  std::vector<std::string> ids;
  for (const ContainerKey& other : ledger.in_the_way_of(key)) ids.push_back(ledger.find(other)->container_id);
  if (ids.empty()) return done({});
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - deps_.clock.steady());
  if (left.count() <= 0) {
    return done(Error{Code::kUnavailable, fmt::format("container {} has not left in time", ids.front())});
  }
  queues_.when_all_converged(ids, left, [this, key, deadline, done = std::move(done)](const Status& status) {
    if (!status) return done(status);
    const bool clear = deps_.committer.ledger().in_the_way_of(key).empty();
    if (clear) return done({});
    deps_.loop.after(kLookAgain, [this, key, deadline, done] { await_clear_until(key, deadline, done); });
  });
}

void Mover::recall(const ContainerKey& key, Recalled recalled) {
  const Allocation* known = deps_.committer.ledger().find(key);
  if (known == nullptr) return recalled(std::nullopt);
  deps_.cpusets.inspect(known->container_id, [this, key, recalled](const Result<ContainerDetail>& detail) {
    const Allocation* now = deps_.committer.ledger().find(key);
    const bool has_exited = detail && detail->info.state == ContainerState::kExited;
    // Meanwhile it may have ended, or failed and left its CPUs to its next attempt.
    if (now == nullptr || !now->is_bound() || has_exited) return recalled(std::nullopt);
    Allocation allocation = *now;
    if (detail && detail->workload) {
      Workload& workload = allocation.workload;
      workload.env = detail->workload->env;
      if (workload.devices.empty()) workload.devices = detail->workload->devices;
      if (workload.cdi_devices.empty()) workload.cdi_devices = detail->workload->cdi_devices;
      if (workload.annotations.empty()) workload.annotations = detail->workload->annotations;
    }
    recalled(std::move(allocation));
  });
}

void Mover::move(const ContainerKey& key, ContainerQueues::Needs needs, PlanAnew plan) {
  const Allocation* moved = deps_.committer.ledger().find(key);
  if (moved == nullptr) return;
  queues_.run(moved->container_id, needs,
              [this, key, plan = std::move(plan)](const Status& status, const ContainerQueues::OperationDone& done) {
                if (!status) return done(false);
                begin_move(key, plan, done);
              });
}

void Mover::begin_move(const ContainerKey& key, const PlanAnew& plan, const ContainerQueues::OperationDone& done) {
  recall(key, [this, plan, done](const std::optional<Allocation>& known) {
    if (known && may_be_moved(*known)) return commit_move(*known, plan, done);
    done(false);
  });
}

void Mover::commit_move(const Allocation& before, const PlanAnew& plan_anew,
                        const ContainerQueues::OperationDone& done) {
  std::optional<Plan> plan = plan_anew(before);
  // With nowhere to go, where the kernel runs it is the kernel's choice.
  if (!plan || plan->decision.placement.cpus.empty()) return done(false);
  Placement& placement = plan->decision.placement;
  keep_memory(before, deps_.committer.rules(), placement);
  if (placement == before.placement && plan->decision.within == before.within) return done(false);
  const ContainerKey key = before.workload.key;
  const Allocation as_it_was = *deps_.committer.ledger().find(key);
  deps_.committer.commit(event::Moved{before.workload, *std::move(plan), "re-placed"}, [this, key, as_it_was, done] {
    await_clear(key, kNeighboursTimeout, [this, as_it_was, done](const Status& clear) {
      if (clear) return done(false);
      deps_.committer.commit(
          event::MoveUndone{as_it_was, "the neighbours could not be moved: " + clear.error().message},
          [this, done, id = as_it_was.container_id] {
            done(false);
            // Nobody has looked meanwhile.
            verify(id);
          });
    });
  });
}

void Mover::verify(const std::string& container_id) {
  deps_.cpusets.inspect(container_id, [this, container_id](const Result<ContainerDetail>& detail) {
    if (!detail) return;
    if (detail->info.state == ContainerState::kExited) {
      return deps_.exits.report(container_id, {Exit::Kind::kExited, detail->info.exit_code});
    }
    verified(container_id, *detail);
  });
}

void Mover::verified(const std::string& container_id, const ContainerDetail& detail) {
  const auto applied = queues_.applied(container_id);
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  if (!applied || allocation == nullptr) return;
  const ContainerKey key = allocation->workload.key;
  if (detail.info.state == ContainerState::kRunning) deps_.committer.commit(event::StartConfirmed{key});
  CpuSet observed;
  Status right = deps_.cpusets.check(container_id, *applied);
  if (!right) observed = deps_.cpusets.kernel_cpus(container_id).value_or(CpuSet());
  if (right && !detail.spec_cpus.empty() && detail.spec_cpus != applied->cpus) {
    right = Error{Code::kInternal, fmt::format("the runtime has it on CPUs {} instead of {}",
                                               detail.spec_cpus.to_string(), applied->cpus.to_string())};
    observed = detail.spec_cpus;
  }
  // An update that came during a start may be lost.
  if (right && deps_.cpusets.is_narrower(container_id, *applied)) return queues_.invalidate(container_id);
  if (right) return;
  deps_.committer.commit(event::Drifted{key, observed, right.error().message});
  queues_.invalidate(container_id);
}

void Mover::glance(const std::string& container_id) {
  const auto applied = queues_.applied(container_id);
  if (applied && !deps_.cpusets.check(container_id, *applied)) verify(container_id);
}

void Mover::settle_starts() {
  std::vector<std::string> ids;
  for (const auto& [key, allocation] : deps_.committer.ledger().allocations()) {
    if (allocation.phase == Phase::kStarting && allocation.is_managed()) ids.push_back(allocation.container_id);
  }
  for (const std::string& id : ids) {
    // Who waits for the answer of a start settles it.
    if (!queues_.is_busy(id)) settle_start(id);
  }
}

void Mover::settle_start(const std::string& container_id) {
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  if (allocation == nullptr || allocation->phase != Phase::kStarting) return;
  deps_.cpusets.inspect(container_id, [this, container_id](const Result<ContainerDetail>& detail) {
    const Allocation* now = deps_.committer.ledger().find_by_container(container_id);
    if (!detail || now == nullptr || now->phase != Phase::kStarting) return;
    if (detail->info.state == ContainerState::kRunning) return verified(container_id, *detail);
    if (detail->info.state == ContainerState::kExited) {
      return deps_.exits.report(container_id, {Exit::Kind::kExited, detail->info.exit_code});
    }
    // Meanwhile it may have been started once more.
    if (may_be_mid_start(*now) || queues_.is_busy(container_id)) return;
    deps_.committer.commit(event::StartRefused{now->workload.key});
  });
}

bool may_be_moved(const Allocation& allocation) {
  return allocation.is_managed() && !allocation.conflict && allocation.workload.kubelet_cpus.empty();
}

}  // namespace topolet::engine
