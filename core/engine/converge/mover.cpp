#include "core/engine/converge/mover.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/log.hpp"
#include "core/base/text.hpp"

namespace topolet::engine {
namespace {

/// The time until neighbours are checked again whose queues have converged, but which the ledger still has on the CPUs.
constexpr std::chrono::milliseconds kRecheckDelay{20};
/// The time after the start in which an update of an earlier run of the daemon may come into effect. Shorter than
/// anybody waits for neighbours.
constexpr std::chrono::seconds kLateUpdates{2};
static_assert(kLateUpdates < kNeighboursTimeoutInTurn);

bool has_all(const SharedStringMap& files, const SharedStringMap& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&files](const auto& file) {
    const auto known = files.find(file.first);
    return known != files.end() && known->second == file.second;
  });
}

}  // namespace

Mover::Mover(Deps deps)
    : deps_(std::move(deps)),
      queues_(
          {.apply = [this](const std::string& id, const ContainerCpuset& target,
                           std::function<void(ApplyResult)> done) { apply(id, target, std::move(done)); },
           .sendable = [this](const std::string& id, const ContainerCpuset& desired) { return sendable(id, desired); },
           .converged = [this](const std::string& id, const ContainerCpuset& applied) { on_converged(id, applied); },
           .ended = [this](const std::string& id) { footprints_.forget(id); },
           .after = [loop = &deps_.loop](std::chrono::milliseconds delay,
                                         std::function<void()> then) { loop->after(delay, std::move(then)); }}) {
  deps_.committer.subscribe(*this);
  // Everything loaded from the store is durable.
  for (const auto& [key, allocation] : deps_.committer.ledger().allocations()) {
    if (allocation.is_managed()) desired_[allocation.container_id] = desired_cpuset_of(allocation);
  }
}

void Mover::open_queue(const std::string& container_id, std::optional<ContainerCpuset> applied) {
  const auto wanted = desired_.find(container_id);
  if (wanted == desired_.end()) return;
  const ContainerCpuset desired = wanted->second;
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  if (queues_.is_closing(container_id)) applied.reset();
  if (applied) footprints_.set(container_id, applied->cpus);
  if (applied) overrule_watch_.note_sent(container_id, applied->cpus);
  if (!applied && allocation != nullptr) {
    footprints_.assume(container_id, allocation->placement.cpus | allocation->vacating);
  }
  if (!applied || allocation == nullptr) return queues_.open(container_id, std::move(applied), desired);
  deps_.committer.commit(event::Converged{allocation->workload.key, applied->cpus}, Urgency::kSoon);
  queues_.open(container_id, std::move(applied), desired);
}

void Mover::open_created(const std::string& container_id, const ContainerCpuset& sent) {
  if (has_queue(container_id)) return;
  desired_.try_emplace(container_id, sent);
  open_queue(container_id, sent);
}

std::optional<ContainerCpuset> Mover::sendable(const std::string& container_id) const {
  const auto wanted = desired_.find(container_id);
  std::optional<ContainerCpuset> set = wanted == desired_.end() ? std::nullopt : sendable(container_id, wanted->second);
  if (set && deps_.cpusets.refuses_files()) set->unified = {};
  return set;
}

std::optional<ContainerCpuset> Mover::sendable(const std::string& container_id, const ContainerCpuset& durable) const {
  const Allocation* now = deps_.committer.ledger().find_by_container(container_id);
  return now == nullptr ? std::nullopt : agreed_cpuset(durable, *now);
}

void Mover::note_sent(const std::string& container_id, const ContainerCpuset& set) {
  footprints_.add(container_id, set.cpus);
  overrule_watch_.note_sent(container_id, set.cpus);
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  if (allocation != nullptr) mark_memory_high(*allocation, set);
}

void Mover::on_durable(const Transition& transition) {
  for (const Change& change : transition.changes) {
    const bool was = change.before && change.before->is_managed();
    const bool is = change.after && change.after->is_managed();
    if (was && (!is || change.before->container_id != change.after->container_id)) drop_container(*change.before);
    if (!is) continue;
    desired_[change.after->container_id] = desired_cpuset_of(*change.after);
    queues_.set_desired(change.after->container_id, desired_cpuset_of(*change.after));
    if (was && change.before->squeeze != change.after->squeeze) on_squeezed(*change.before, *change.after);
    if (was && change.before->overruled && !change.after->overruled) {
      overlap_watch_.check(change.after->container_id, change.after->placement.cpus);
    }
  }
  unblock_ready();
}

void Mover::on_squeezed(const Allocation& before, const Allocation& after) {
  const std::string name = display_name(after.workload);
  if (after.squeeze != Squeeze::kNone) {
    deps_.log.warn("container {} is squeezed: {}", name, after.reason);
  } else {
    deps_.log.info("container {} is not squeezed any more: {}", name, after.reason);
  }
  // Meanwhile the kernel may have taken its CPUs out of its cgroup.
  if (before.squeeze == Squeeze::kLeftToKernel) queues_.invalidate(after.container_id);
}

void Mover::drop_container(const Allocation& allocation) {
  desired_.erase(allocation.container_id);
  blocked_.erase(allocation.container_id);
  told_in_answer_.erase(allocation.container_id);
  coming_.erase(allocation.container_id);
  late_updates_.erase(allocation.container_id);
  overlap_watch_.forget(allocation.container_id);
  overrule_watch_.forget(allocation.container_id);
  stuck_watch_.forget(allocation.container_id);
  deps_.cpusets.forget(allocation.container_id);
  queues_.close(allocation.container_id);
  // A set that was sent may come into effect where the container is found once more.
  if (!queues_.is_closing(allocation.container_id)) footprints_.forget(allocation.container_id);
}

void Mover::unblock_ready() {
  const std::set<std::string> blocked = blocked_;
  for (const std::string& id : blocked) {
    const Allocation* allocation = deps_.committer.ledger().find_by_container(id);
    if (allocation != nullptr && is_blocked(allocation->workload.key)) continue;
    blocked_.erase(id);
    queues_.unblock(id);
  }
}

/// Compares Footprints with the ledger before somebody is given CPUs alone: where the ledger has overlooked that
/// another one may still be there, that one is told its CPUs once more, and waited for.
void Mover::note_unnoticed(const placement::ContainerKey& key) {
  const Ledger& ledger = deps_.committer.ledger();
  for (const placement::ContainerKey& other : footprints_.unnoticed_on_cpus_of(key, ledger)) {
    const Allocation& overlooked = *ledger.find(other);
    const std::string id = overlooked.container_id;
    const CpuSet cpus = footprints_.of(id);
    deps_.log.error(
        "fault in topoletd, please report it: container {} may still run on {}, of which {} is to have some alone; it "
        "is made to leave them first",
        display_name(overlooked.workload), named("CPU", cpus), display_name(ledger.find(key)->workload));
    deps_.committer.commit(event::Drifted{other, cpus, ""});
    queues_.invalidate(id);
  }
}

bool Mover::is_blocked(placement::ContainerKey key) {
  note_unnoticed(key);
  if (is_told_in_answer(key)) return true;
  return !deps_.committer.ledger().neighbours_blocking_outside_cycles(key).empty();
}

void Mover::apply(const std::string& container_id, const ContainerCpuset& target,
                  std::function<void(ApplyResult)> done) {
  const Ledger& ledger = deps_.committer.ledger();
  const Allocation* allocation = ledger.find_by_container(container_id);
  if (allocation == nullptr) return done({});
  if (allocation->squeeze == Squeeze::kLeftToKernel) return done(leave_to_kernel(*allocation, target));
  if (is_blocked(allocation->workload.key)) {
    blocked_.insert(container_id);
    return done({ApplyResult::Kind::kBlocked, {Code::kUnavailable, "other containers have not left its CPUs yet"}});
  }
  if (const auto wait = overrule_watch_.wait_before_repair(*allocation, target)) {
    return done({ApplyResult::Kind::kPostponed,
                 {Code::kUnavailable, "something else than topolet sets its CPUs; they are set again later"},
                 wait});
  }
  const bool was_told = told_in_answer_.erase(container_id) != 0;
  if (was_told && deps_.cpusets.is_where(container_id, target))
    return on_cpuset_written(container_id, target, {WriteResult::Kind::kVerified}, done);
  overrule_watch_.note_told(*allocation, target);
  stuck_watch_.note_told(container_id, target);
  footprints_.add(container_id, target.cpus);
  mark_memory_high(*allocation, target);
  deps_.cpusets.write(container_id, target,
                      [this, container_id, target, done = std::move(done)](const WriteResult& result) {
                        on_cpuset_written(container_id, target, result, done);
                      });
}

/// The container is told its part of the memory that is left over.
void Mover::mark_memory_high(const Allocation& allocation, const ContainerCpuset& told) const {
  const std::string file(placement::kMemoryHigh);
  const auto high = told.unified.find(file);
  if (high == told.unified.end() || allocation.memory_high == 0 || allocation.unified.count(file) != 0) return;
  if (const auto bytes = placement::parse_bytes(high->second))
    deps_.cpusets.mark_memory_high(allocation.container_id, *bytes);
}

/// None of the CPUs that it is to have may be used. One that is still to be started must not start with others.
ApplyResult Mover::leave_to_kernel(const Allocation& allocation, const ContainerCpuset& target) const {
  const CpuSet may_have = footprints_.of(allocation.container_id);
  if (allocation.phase != Phase::kCreated || may_have.is_subset_of(target.cpus)) return {};
  return {ApplyResult::Kind::kPostponed,
          {Code::kUnavailable, "none of its CPUs may be used, and it may have been told others before"},
          kPauseBetweenRepairs};
}

void Mover::on_cpuset_written(const std::string& container_id, const ContainerCpuset& target, const WriteResult& result,
                              const std::function<void(ApplyResult)>& done) {
  const auto told = coming_.find(container_id);
  const bool was_told_nothing = told != coming_.end() && told->second.cpus.empty();
  note_arrived(container_id);
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  if (allocation == nullptr || !allocation->is_bound()) return done({});
  if (was_told_nothing && result.kind == WriteResult::Kind::kElsewhere)
    return done({ApplyResult::Kind::kUnverified, {Code::kUnavailable, "it is to have other CPUs by now"}});
  const placement::ContainerKey key = allocation->workload.key;
  if (result.kind != WriteResult::Kind::kFailed) stuck_watch_.note_taken(container_id);
  switch (result.kind) {
    case WriteResult::Kind::kFailed:
      return done(note_failed(*allocation, target, result.error));
    case WriteResult::Kind::kElsewhere:
      return done(note_elsewhere(container_id, target, result.error));
    case WriteResult::Kind::kGone:
      deps_.exits.report(container_id, {Exit::Kind::kGone});
      return done({});
    case WriteResult::Kind::kExited:
      deps_.exits.report(container_id, {});
      return done({});
    case WriteResult::Kind::kNotStarted:
      if (may_still_be_starting(*allocation)) {
        return done({ApplyResult::Kind::kUnverified,
                     {Code::kUnavailable, "it may be starting, and the CPUs that it runs on cannot be read yet"}});
      }
      if (allocation->phase == Phase::kStarting) deps_.committer.commit(event::StartRefused{key});
      break;
    case WriteResult::Kind::kVerified: {
      mark_memory_high(*allocation, target);  // its cgroup may not have been known before
      if (const auto left = late_update_time(container_id, target.cpus); left.count() > 0) {
        return done({ApplyResult::Kind::kUnverified,
                     {Code::kUnavailable, "an update that was sent before topoletd was restarted may still come"},
                     left});
      }
      if (allocation->phase == Phase::kRunning && overrule_watch_.is_narrowed(container_id, target)) {
        return done(note_elsewhere(container_id, target, {Code::kInternal, narrowed_text(container_id, target)}));
      }
      // An update that came while the container started may be lost: one more makes sure.
      const bool was_starting = allocation->phase == Phase::kStarting;
      deps_.committer.commit(event::StartConfirmed{key}, Urgency::kSoon);
      if (was_starting && deps_.cpusets.is_narrower(container_id, target)) {
        return done({ApplyResult::Kind::kUnverified, {Code::kUnavailable, "it started while its CPUs were being set"}});
      }
      break;
    }
  }
  confirm_cpus(container_id, key, target.cpus);
  const std::optional<CpuSet> observed = deps_.cpusets.kernel_cpus(container_id);
  overrule_watch_.note_in_force(container_id, target);
  stuck_watch_.note_is_on(container_id, target.cpus);
  if (observed) overrule_watch_.note_seen(container_id, *observed, target.cpus);
  done({});
  check_for_overlap(container_id, observed.value_or(target.cpus));
}

/// Returns how much longer an update of an earlier run of the daemon may bring the container to CPUs other than `cpus`;
/// not above 0: it cannot.
std::chrono::milliseconds Mover::late_update_time(const std::string& container_id, const CpuSet& cpus) const {
  const auto sent = late_updates_.find(container_id);
  if (sent == late_updates_.end() || sent->second.is_subset_of(cpus)) return {};
  return std::chrono::ceil<std::chrono::milliseconds>(started_at_ + kLateUpdates - deps_.clock.steady());
}

void Mover::confirm_whereabouts(const std::string& container_id) {
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  const std::optional<CpuSet> observed = deps_.cpusets.container_cpus(container_id);
  if (allocation == nullptr || !observed || late_update_time(container_id).count() > 0) return;
  confirm_cpus(container_id, placement::ContainerKey(allocation->workload.key),
               *observed | footprints_.told(container_id));
}

std::chrono::milliseconds Mover::late_update_time(const std::string& container_id) const {
  return late_update_time(container_id, deps_.cpusets.container_cpus(container_id).value_or(CpuSet()));
}

ApplyResult Mover::note_failed(const Allocation& allocation, const ContainerCpuset& target, const Error& error) {
  const std::string container_id = allocation.container_id;
  const placement::ContainerKey key = allocation.workload.key;
  stuck_watch_.note_failed(container_id, target, error);
  const auto observed = deps_.cpusets.container_cpus(container_id);
  // A refused update does not come into effect.
  if (observed && stuck_watch_.is_refused(container_id)) confirm_cpus(container_id, key, *observed);
  if (observed) check_for_overlap(container_id, *observed);
  // NOT_FOUND is what operations are told of a container that is no more; this one is there.
  const Code code = error.code == Code::kNotFound ? Code::kUnavailable : error.code;
  return {ApplyResult::Kind::kFailed, {code, error.message}, stuck_watch_.wait_before_retry(container_id)};
}

/// The runtime has taken `target`, and the kernel shows something else.
ApplyResult Mover::note_elsewhere(const std::string& container_id, const ContainerCpuset& target, const Error& error) {
  const auto observed = deps_.cpusets.kernel_cpus(container_id);
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  // The outcome of a start that is under way is not known yet.
  const bool runs = observed && allocation->phase == Phase::kRunning;
  const placement::ContainerKey key = allocation->workload.key;
  if (runs) {
    overrule_watch_.note_elsewhere(container_id, target, *observed);
    // Nothing else is under way: on what is neither of both it does not run.
    const CpuSet own = deps_.cpusets.container_cpus(container_id).value_or(*observed);
    confirm_cpus(container_id, key, target.cpus | *observed | own);
  }
  if (observed) check_for_overlap(container_id, *observed);
  allocation = deps_.committer.ledger().find_by_container(container_id);
  if (allocation != nullptr && allocation->overruled) {
    return {ApplyResult::Kind::kFailed, error, kPauseBetweenRepairs};
  }
  // It is not known yet whose doing it is. Whoever waits for it goes on waiting.
  return {runs ? ApplyResult::Kind::kUnverified : ApplyResult::Kind::kFailed, error};
}

/// Commits that the container has these CPUs, as was read back while nothing sent to it was under way. Later sets are
/// bounded by the ledger of then: so it cannot come back to any other CPU that it was to vacate.
void Mover::confirm_cpus(const std::string& container_id, const placement::ContainerKey& key, const CpuSet& cpus) {
  footprints_.set(container_id, cpus);
  deps_.committer.commit(event::Converged{key, cpus}, Urgency::kSoon);
}

/// A set that was desired for a while but never sent to the runtime need not be vacated.
void Mover::on_converged(const std::string& container_id, const ContainerCpuset& applied) {
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  // One that is left to the kernel was not told.
  if (allocation == nullptr || allocation->squeeze == Squeeze::kLeftToKernel) return;
  footprints_.set(container_id, applied.cpus);
  if (allocation->vacating.is_subset_of(applied.cpus) && !allocation->moved_from) return;
  confirm_cpus(container_id, placement::ContainerKey(allocation->workload.key), applied.cpus);
}

void Mover::report_applied(const std::string& container_id, const ContainerCpuset& now, std::function<void()> then) {
  queues_.set_applied(container_id, now);
  footprints_.set(container_id, now.cpus);
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  if (allocation == nullptr) return then();
  deps_.committer.commit(event::Converged{allocation->workload.key, now.cpus}, std::move(then));
}

void Mover::await_neighbours(const placement::ContainerKey& key, std::chrono::milliseconds timeout, Done done) {
  await_neighbours_until(key, {deps_.clock.steady() + timeout, timeout >= kNeighboursTimeout}, std::move(done));
}

/// `key` is a value, as that of an allocation may not last as long as this.
void Mover::await_neighbours_until(placement::ContainerKey key, Patience patience, Done done) {
  note_unnoticed(key);
  const Ledger& ledger = deps_.committer.ledger();
  std::vector<std::string> ids;
  for (const placement::ContainerKey& other : ledger.neighbours_blocking(key))
    ids.push_back(ledger.find(other)->container_id);
  if (ids.empty()) return done({});
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(patience.deadline - deps_.clock.steady());
  if (left.count() <= 0) {
    give_up_on_neighbours(key, patience);
    return done(Error{Code::kUnavailable, fmt::format("container {} did not leave the CPUs in time", ids.front())});
  }
  queues_.when_all_converged(ids, left, [this, key, patience, done = std::move(done)](const Status& status) {
    note_unnoticed(key);
    // A container that refuses every update may have none of these CPUs.
    const bool clear = deps_.committer.ledger().neighbours_blocking(key).empty();
    if (clear) return done({});
    if (!status) give_up_on_neighbours(key, patience);
    if (!status) return done(status);
    deps_.loop.after(kRecheckDelay, [this, key, patience, done] { await_neighbours_until(key, patience, done); });
  });
}

void Mover::give_up_on_neighbours(const placement::ContainerKey& key, const Patience& patience) {
  stuck_watch_.note_waited_in_vain(key, patience.is_long && deps_.clock.steady() >= patience.deadline);
}

void Mover::try_stuck() {
  for (const placement::ContainerKey& key : stuck_watch_.due()) {
    const std::string id = deps_.committer.ledger().find(key)->container_id;
    if (queues_.is_busy(id)) continue;
    queues_.run(id, ContainerQueues::Needs::kTurn,
                [this, id](const Status&, const ContainerQueues::OperationDone& done) { try_stuck(id, done); });
  }
}

/// It gets all its CPUs back at once, in its own queue.
void Mover::try_stuck(const std::string& container_id, const ContainerQueues::OperationDone& done) {
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  const auto agreed = sendable(container_id);
  if (allocation == nullptr || !allocation->stuck || !agreed) return done(false);
  const ContainerCpuset trial = StuckWatch::trial_of(*allocation, *agreed);
  if (is_blocked(allocation->workload.key)) return done(false);
  note_sent(container_id, trial);
  deps_.cpusets.write(container_id, trial, [this, container_id, trial, done](const WriteResult& result) {
    stuck_watch_.note_tried(container_id, trial, result);
    done(true);
  });
}

void Mover::recover_workload(const placement::ContainerKey& key, WorkloadRecovered done) {
  const Allocation* known = deps_.committer.ledger().find(key);
  if (known == nullptr) return done(std::nullopt);
  deps_.cpusets.inspect(known->container_id, [this, key, done](const Result<operations::ContainerDetail>& detail) {
    const Allocation* now = deps_.committer.ledger().find(key);
    const bool has_exited = detail && detail->info.state == operations::ContainerState::kExited;
    // Meanwhile it may have ended, or failed and left its CPUs to its next attempt.
    if (now == nullptr || !now->is_bound() || has_exited) return done(std::nullopt);
    Allocation allocation = *now;
    if (detail) {
      placement::Workload& workload = allocation.workload;
      const placement::Workload& told = detail->workload;
      workload.env = told.env;
      if (workload.devices.empty()) workload.devices = told.devices;
      if (workload.cdi_devices.empty()) workload.cdi_devices = told.cdi_devices;
      if (workload.annotations.empty()) workload.annotations = told.annotations;
    }
    done(std::move(allocation));
  });
}

void Mover::move(const placement::ContainerKey& key, ContainerQueues::Needs needs, PlanMove plan) {
  const Allocation* moved = deps_.committer.ledger().find(key);
  if (moved == nullptr) return;
  queues_.run(moved->container_id, needs,
              [this, key, plan = std::move(plan)](const Status& status, const ContainerQueues::OperationDone& done) {
                if (!status) return done(false);
                begin_move(key, plan, done);
              });
}

void Mover::begin_move(const placement::ContainerKey& key, const PlanMove& plan,
                       const ContainerQueues::OperationDone& done) {
  recover_workload(key, [this, plan, done](const std::optional<Allocation>& known) {
    if (known && may_be_moved(*known)) return commit_move(*known, plan, done);
    done(false);
  });
}

void Mover::commit_move(const Allocation& before, const PlanMove& plan_move,
                        const ContainerQueues::OperationDone& done) {
  std::optional<Plan> plan = plan_move(before);
  if (!plan || plan->decision.placement.cpus.empty()) return done(false);
  placement::Placement& placement = plan->decision.placement;
  retain_memory_nodes(before, deps_.committer.rules(), placement);
  placement.added = {};  // counts at its creation only
  placement::Placement has = before.placement;
  has.mems = before.intended_mems();
  const bool stays =
      placement == has && plan->decision.within == before.within && has_all(before.unified, plan->decision.unified);
  if (stays && plan->squeeze == before.squeeze) return done(false);
  const placement::ContainerKey key = before.workload.key;
  const Allocation before_move = *deps_.committer.ledger().find(key);
  const AuditEvent audit_event = plan->audit_event;
  deps_.committer.commit(event::Moved{before.workload, *std::move(plan), audit_event}, [this, key, before_move, done] {
    await_neighbours(key, kNeighboursTimeoutInTurn, [this, before_move, done](const Status& neighbours_gone) {
      if (neighbours_gone) return done(false);
      deps_.committer.commit(event::ChangeReverted{before_move, "other containers could not be moved off its CPUs: " +
                                                                    neighbours_gone.error().message},
                             [this, done, id = before_move.container_id] {
                               done(false);
                               // Nobody has checked meanwhile.
                               verify(id);
                             });
    });
  });
}

bool may_be_moved(const Allocation& allocation) {
  return allocation.is_managed() && !allocation.conflict && allocation.workload.kubelet_cpus.empty();
}

}  // namespace topolet::engine
