#include "core/engine/converge/reconciler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/base/log.hpp"
#include "core/placement/reason_codes.hpp"

namespace topolet::engine {
namespace {

constexpr const char* kNoReadyPod = "no-ready-pod";  // as in the table `ended`
constexpr std::uint32_t kInspectTries = 4;
constexpr std::chrono::milliseconds kInspectRetryDelay{250};

}  // namespace

// A client may name a sandbox by the beginning of its id.
bool Reconciler::ReconcilePass::has_ready_pod(const std::string& sandbox_id) const {
  return std::any_of(listed_sandboxes.begin(), listed_sandboxes.end(),
                     [&sandbox_id](const operations::Sandbox& sandbox) {
                       return sandbox.ready && sandbox.id.rfind(sandbox_id, 0) == 0;
                     }) ||
         sandbox_id.empty();
}

// Returns true if the container is among those listed. A sandbox that is gone has no known pod uid any more.
bool Reconciler::ReconcilePass::may_run(const placement::ContainerKey& key) const {
  const auto is_it = [&key](const operations::ContainerInfo& container) {
    return container.sandbox_id == key.sandbox_id && container.name == key.name && container.attempt == key.attempt;
  };
  return std::any_of(undescribed.begin(), undescribed.end(), is_it) ||
         std::any_of(found.begin(), found.end(), [&is_it](const operations::ContainerDetail& detail) {
           return detail.info.state == operations::ContainerState::kRunning && is_it(detail.info);
         });
}

void Reconciler::run(Done done) {
  next_callbacks_.push_back(std::move(done));
  if (!running_) begin();
}

void Reconciler::begin() {
  running_ = true;
  current_callbacks_.swap(next_callbacks_);
  auto pass = std::make_shared<ReconcilePass>();
  const Ledger& ledger = deps_.committer.ledger();
  for (const auto& [key, allocation] : ledger.allocations()) {
    if (allocation.is_bound()) pass->bound.insert(allocation.container_id);
    if (allocation.phase == Phase::kInDoubt) pass->in_doubt.insert(key);
  }
  pass->kept = ledger.kept();
  for (const auto& [id, pod] : ledger.pods()) pass->sandboxes.push_back(id);
  deps_.cpusets.list([this, pass](Result<std::vector<operations::Sandbox>> sandboxes,
                                  Result<std::vector<operations::ContainerInfo>> containers) {
    if (!sandboxes) return end(sandboxes.error());
    if (!containers) return end(containers.error());
    pass->listed_sandboxes = *std::move(sandboxes);
    pass->listed = *std::move(containers);
    pass->is_first = !std::exchange(has_compared_, true);
    compare_sandboxes(pass);
    compare_containers(pass);
  });
}

void Reconciler::end(const Status& status) {
  running_ = false;
  std::vector<Done> done;
  done.swap(current_callbacks_);
  for (const Done& callback : done) callback(status);
  if (!next_callbacks_.empty() && !running_) begin();
}

void Reconciler::compare_sandboxes(const PassPtr& pass) {
  std::unordered_set<std::string> listed_ids;
  for (const operations::Sandbox& sandbox : pass->listed_sandboxes) {
    listed_ids.insert(sandbox.id);
    deps_.committer.commit(event::PodSeen{sandbox});
  }
  for (const std::string& id : pass->sandboxes) {
    if (listed_ids.count(id) == 0) deps_.committer.commit(event::PodForgotten{id});
  }
}

void Reconciler::compare_containers(const PassPtr& pass) {
  std::unordered_set<std::string> listed_ids;
  for (const operations::ContainerInfo& container : pass->listed) listed_ids.insert(container.id);
  ++pass->waiting;  // held until every container was visited
  for (const std::string& id : pass->bound) {
    if (listed_ids.count(id) == 0) report_exit(pass, id, {Exit::Kind::kGone});
  }
  std::erase_if(told_without_pod_, [&listed_ids](const std::string& id) { return listed_ids.count(id) == 0; });
  for (const operations::ContainerInfo& container : pass->listed) reconcile_container(pass, container);
  finish_one(pass);
}

void Reconciler::finish_one(const PassPtr& pass) {
  if (--pass->waiting == 0) adopt_all(pass);
}

/// The pass does not end before the exit code is known: whoever waits for the pass may create the next attempt.
void Reconciler::report_exit(const PassPtr& pass, const std::string& container_id, const Exit& exit) {
  ++pass->waiting;
  deps_.exits.report(container_id, exit, [this, pass] { finish_one(pass); });
}

void Reconciler::reconcile_container(const PassPtr& pass, const operations::ContainerInfo& container) {
  const Ledger& ledger = deps_.committer.ledger();
  if (const Allocation* own = ledger.find_by_container(container.id); own != nullptr) {
    return reconcile_known(pass, container, *own);
  }
  const bool exited = container.state == operations::ContainerState::kExited;
  const placement::ContainerKey key = identify(container).key;
  if (const Allocation* allocation = ledger.find(key); allocation != nullptr && !allocation->is_bound()) {
    // One whose create is still under way is bound by its answer.
    if (pass->in_doubt.count(key) == 0 || allocation->phase != Phase::kInDoubt) return;
    if (!exited) return inspect_unbound(pass, container, kInspectTries);
    deps_.committer.commit(event::CreateDiscovered{key, container});
    return report_exit(pass, container.id, {});
  }
  if (!exited) inspect_unbound(pass, container, kInspectTries);
}

/// Returns true if it can never run: it does not, and had no ready sandbox after that. A start of it that has gone out
/// counts until it is known what became of it.
bool Reconciler::holds_nothing(const PassPtr& pass, const operations::ContainerInfo& container,
                               operations::ContainerState state) {
  if (state == operations::ContainerState::kRunning || pass->has_ready_pod(container.sandbox_id)) return false;
  const Allocation* own = deps_.committer.ledger().find_by_container(container.id);
  if (own != nullptr) return own->phase == Phase::kCreated || own->placement.mode == placement::Mode::kForeign;
  if (told_without_pod_.insert(container.id).second) {
    deps_.log.info(
        "container {} ({}) was created, and its pod {} is not ready or gone: it cannot run, and gets no CPUs",
        container.id, container.name, container.sandbox_id);
  }
  return true;
}

/// Releases allocations that nobody runs in: creates in doubt, and CPUs kept for the next attempts of containers. One
/// that has ended since the pass began was there when the sandboxes were listed.
void Reconciler::release_without_pod(const PassPtr& pass) {
  std::vector<placement::ContainerKey> idle(pass->in_doubt.begin(), pass->in_doubt.end());
  idle.insert(idle.end(), pass->kept.begin(), pass->kept.end());
  for (const placement::ContainerKey& key : deps_.committer.ledger().kept()) {
    if (pass->bound.count(deps_.committer.ledger().find(key)->container_id) != 0) idle.push_back(key);
  }
  for (const placement::ContainerKey& key : idle) {
    const Allocation* own = deps_.committer.ledger().find(key);
    const bool is_idle = own != nullptr && (own->phase == Phase::kInDoubt || own->is_kept());
    if (!is_idle || pass->has_ready_pod(key.sandbox_id) || pass->may_run(key)) continue;
    deps_.committer.commit(event::Ended{key, kNoReadyPod});
  }
}

void Reconciler::reconcile_known(const PassPtr& pass, const operations::ContainerInfo& container,
                                 const Allocation& own) {
  if (own.is_kept()) return;
  if (container.state == operations::ContainerState::kExited) return report_exit(pass, container.id, {});
  if (holds_nothing(pass, container, container.state)) return inspect_known(pass, container);
  if (own.placement.mode == placement::Mode::kForeign) return inspect_foreign(pass, container);
  if (!deps_.mover.has_queue(container.id)) return inspect_known(pass, container);
  if (is_unknown(own.workload) && container.state == operations::ContainerState::kRunning)
    return inspect_unknown(pass, container);
  // An update of the last topoletd may come into effect late.
  if (own.phase == Phase::kRunning && !is_in_startup_window()) return deps_.mover.verify_in_kernel(container.id);
  if (container.state == operations::ContainerState::kRunning) deps_.mover.verify(container.id);
}

/// A look at where it runs comes with it.
void Reconciler::inspect_unknown(const PassPtr& pass, const operations::ContainerInfo& container) {
  ++pass->waiting;
  deps_.cpusets.inspect(container.id, [this, pass, container](const Result<operations::ContainerDetail>& detail) {
    const Allocation* own = deps_.committer.ledger().find_by_container(container.id);
    const bool runs = detail && detail->info.state == operations::ContainerState::kRunning;
    if (runs && own != nullptr && own->is_managed()) learn(*detail, *own);
    deps_.mover.verify(container.id);
    finish_one(pass);
  });
}

void Reconciler::inspect_known(const PassPtr& pass, const operations::ContainerInfo& container) {
  ++pass->waiting;
  deps_.cpusets.inspect(container.id, [this, pass, container](const Result<operations::ContainerDetail>& detail) {
    if (detail && detail->info.state == operations::ContainerState::kExited) {
      report_exit(pass, container.id, {Exit::Kind::kExited, detail->info.exit_code});
    } else if (const Allocation* own = deps_.committer.ledger().find_by_container(container.id);
               detail && own != nullptr && holds_nothing(pass, container, detail->info.state)) {
      deps_.committer.commit(event::Ended{own->workload.key, kNoReadyPod});
    } else {
      on_known_inspected(pass, container, detail);
    }
    finish_one(pass);
  });
}

/// One that was foreign when it was created need not be so any more: another configuration may place its handler.
void Reconciler::inspect_foreign(const PassPtr& pass, const operations::ContainerInfo& container) {
  const Allocation* known = deps_.committer.ledger().find_by_container(container.id);
  if (!deps_.placed_handlers.obstacle(known->workload.runtime_handler).empty()) return;
  ++pass->waiting;
  deps_.cpusets.inspect(container.id, [this, pass, container](const Result<operations::ContainerDetail>& detail) {
    const Allocation* own = deps_.committer.ledger().find_by_container(container.id);
    const bool is_foreign = own != nullptr && own->placement.mode == placement::Mode::kForeign;
    if (detail && is_foreign && detail->info.state != operations::ContainerState::kExited) {
      if (runs_in_cgroup_of_pod(deps_.cpusets.cgroups_of(container.id), container.id, own->workload.key)) {
        deps_.placed_handlers.note_without_cgroup(own->workload.runtime_handler, container.id);
      } else {
        place_foreign(pass, *detail, Allocation(*own));
      }
    }
    finish_one(pass);
  });
}

/// Asks the runtime several times, because the next decision must not give the container's CPUs to another.
void Reconciler::inspect_unbound(const PassPtr& pass, const operations::ContainerInfo& container, std::uint32_t tries) {
  ++pass->waiting;
  deps_.cpusets.inspect(
      container.id, [this, pass, container, tries](const Result<operations::ContainerDetail>& detail) {
        if (!detail && detail.error().code != Code::kNotFound) {
          if (tries > 1 && detail.error().code != Code::kDeadlineExceeded) {
            deps_.loop.after(kInspectRetryDelay, [this, pass, container, tries] {
              inspect_unbound(pass, container, tries - 1);
              finish_one(pass);
            });
            return;
          }
          deps_.log.error("container {} was not created through topolet, and the runtime cannot describe it: {}",
                          container.id, detail.error().message);
          pass->undescribed.push_back(container);
          if (pass->is_first) there_at_start_.insert(container.id);
        }
        const bool is_there = detail && detail->info.state != operations::ContainerState::kExited;
        if (is_there && !holds_nothing(pass, container, detail->info.state)) {
          // Only the list knows these; the state is as new as the detail.
          operations::ContainerDetail found = *detail;
          found.info.sandbox_id = container.sandbox_id;
          found.info.name = container.name;
          found.info.attempt = container.attempt;
          pass->found.push_back(std::move(found));
        }
        finish_one(pass);
      });
}

CpuSet Reconciler::observed_cpus(const operations::ContainerDetail& detail) const {
  CpuSet cpus = deps_.cpusets.kernel_cpus(detail.info.id).value_or(detail.spec_cpus);
  const bool may_be_anywhere = cpus.empty() && detail.info.state == operations::ContainerState::kRunning;
  return may_be_anywhere ? deps_.committer.ledger().inventory().allowed : cpus;
}

/// A container of an earlier run of the daemon: where it is by now is not known.
void Reconciler::on_known_inspected(const PassPtr& pass, const operations::ContainerInfo& container,
                                    const Result<operations::ContainerDetail>& detail) {
  const Allocation* own = deps_.committer.ledger().find_by_container(container.id);
  if (own == nullptr || !own->is_managed() || deps_.mover.has_queue(container.id)) return;
  const placement::ContainerKey key = own->workload.key;
  if (detail) return open_known(pass, *detail, *own);
  // It may be anywhere.
  deps_.committer.commit(
      event::Drifted{key, deps_.committer.ledger().inventory().allowed,
                     "after a restart of topoletd its CPUs cannot be read: " + detail.error().message});
  pass->open_queues.emplace_back([this, id = container.id] { deps_.mover.open_queue(id, std::nullopt); });
}

// By value: the ledger's own changes with the first commit.
void Reconciler::open_known(const PassPtr& pass, const operations::ContainerDetail& detail, Allocation own) {
  const placement::ContainerKey key = own.workload.key;
  const ContainerCpuset desired = desired_cpuset_of(own);
  const std::string& container_id = detail.info.id;
  const auto open_unverified = [this, id = container_id] { deps_.mover.open_queue(id, std::nullopt); };
  const bool runs = detail.info.state == operations::ContainerState::kRunning;
  const CpuSet runs_on = observed_cpus(detail);
  if (deps_.store_regressed && runs && runs_on != desired.cpus &&
      may_keep_exclusively(pass, detail, own.workload, runs_on)) {
    return adopt_exclusively(pass, detail, own.workload, runs_on);
  }
  if (runs) deps_.committer.commit(event::StartConfirmed{key});
  take_over_memory_high(key, container_id);
  if (own.squeeze == Squeeze::kLeftToKernel) return pass->open_queues.push_back(open_unverified);
  const CpuSet observed = runs_on | detail.spec_cpus;
  const Recorded recorded(detail);
  if (!is_applied(recorded, desired)) {
    deps_.mover.note_late_update(container_id, (desired.cpus | own.vacating) - observed);
  }
  if (!is_recorded_elsewhere(recorded, desired) && deps_.cpusets.check_kernel(container_id, desired)) {
    // It may be back on CPUs that the ledger has it vacate, since an update or a start that the previous topoletd sent
    // may still be under way. In that case one more update is sent.
    // Nobody reads back which files of its cgroup it was told.
    const bool applied = own.vacating.empty() && desired.unified.empty() && is_applied(recorded, desired) &&
                         !deps_.cpusets.is_narrower(container_id, desired);
    return pass->open_queues.push_back([this, id = container_id, applied, desired] {
      deps_.mover.open_queue(id, applied ? std::optional(desired) : std::nullopt);
    });
  }
  // A move of it was under way.
  if (observed.intersects(own.vacating) && observed.is_subset_of(desired.cpus | own.vacating)) {
    return pass->open_queues.push_back(open_unverified);
  }
  const std::string why =
      fmt::format("after a restart of topoletd the runtime reports CPUs '{}', and the ledger says '{}'",
                  detail.spec_cpus.to_string(), desired.cpus.to_string());
  // A start was under way when the last topoletd ended: this is the first check after it.
  const bool is_first = own.phase == Phase::kStarting && runs;
  const auto seen = deps_.cpusets.kernel_cpus(container_id);
  const bool is_put = seen && is_first && deps_.mover.note_first_check(container_id, *seen);
  // An overruled container was reported before.
  deps_.committer.commit(event::Drifted{key, observed.empty() ? deps_.committer.ledger().inventory().allowed : observed,
                                        own.overruled || is_put ? "" : why});
  if (!is_first) deps_.mover.check_in_kernel(container_id);
  pass->open_queues.push_back(open_unverified);
}

/// A topoletd whose database is lost, or older, does not know of the memory.high that an earlier one has set.
void Reconciler::take_over_memory_high(const placement::ContainerKey& key, const std::string& container_id) {
  const Allocation* known = deps_.committer.ledger().find(key);
  if (known == nullptr || known->memory_high != 0) return;
  const auto bytes = deps_.cpusets.marked_memory_high(container_id);
  if (!bytes) return;
  deps_.committer.commit(event::BestEffortMemoryShared{{{key, *bytes}},
                                                       fmt::format("an earlier topoletd has set its memory.high to {} "
                                                                   "bytes",
                                                                   *bytes),
                                                       placement::reason_code::kBestEffortMemory});
}

/// Returns true if the container was told `desired`, as far as can be seen. If the runtime does not tell its record,
/// the kernel's view counts.
bool Reconciler::is_applied(const Recorded& recorded, const ContainerCpuset& desired) const {
  // The runtime alone is asked about a quota: it writes its record with every update.
  if (desired.quota && recorded.quota_us != desired.quota->quota_us) return false;
  return recorded.cpus.value_or(deps_.cpusets.kernel_cpus(recorded.id).value_or(CpuSet())) == desired.cpus;
}

/// Returns true if the runtime says that it was told other CPUs. False while the kernel has it where it should be: a
/// runtime that was restarted may have an older record.
bool Reconciler::is_recorded_elsewhere(const Recorded& recorded, const ContainerCpuset& desired) const {
  if (!recorded.cpus || *recorded.cpus == desired.cpus) return false;
  return deps_.cpusets.kernel_cpus(recorded.id) != desired.cpus;
}

/// A start that went out before the store lost its newest changes.
bool Reconciler::may_be_starting(const operations::ContainerDetail& detail) const {
  return deps_.store_regressed && is_in_startup_window() && detail.info.state == operations::ContainerState::kCreated;
}

void Reconciler::expire() {
  expire_doubts();
  expire_waiting();
  expire_kept();
}

void Reconciler::expire_doubts() {
  std::vector<placement::ContainerKey> late;
  const Ledger& ledger = deps_.committer.ledger();
  for (const auto& [key, allocation] : ledger.allocations()) {
    const bool waits = allocation.phase == Phase::kInDoubt;
    if (waits && deps_.clock.wall() - allocation.doubt_since >= deps_.doubt_timeout) late.push_back(key);
  }
  for (const placement::ContainerKey& key : late) deps_.committer.commit(event::DoubtExpired{key});
}

void Reconciler::expire_waiting() {
  std::vector<event::WaitingExpired> expired;
  for (const auto& [id, pod] : deps_.committer.ledger().pods()) {
    for (const auto& [name, waiting] : pod.waiting) {
      if (deps_.clock.wall() - waiting.since >= deps_.placer.rules().crash_hold) expired.push_back({id, name});
    }
  }
  for (const event::WaitingExpired& each : expired) deps_.committer.commit(each);
}

void Reconciler::expire_kept() {
  const Ledger& ledger = deps_.committer.ledger();
  // The oldest come first: as soon as one may still keep its CPUs, so may all that follow.
  for (const placement::ContainerKey& key : ledger.kept()) {
    const Allocation* kept = ledger.find(key);
    if (deps_.clock.wall() - kept->phase_since < deps_.placer.rules().crash_hold) return;
    deps_.committer.commit(event::CrashHoldExpired{key});
  }
}

bool Reconciler::has_creates_in_doubt() const {
  const auto& allocations = deps_.committer.ledger().allocations();
  return std::any_of(allocations.begin(), allocations.end(),
                     [](const auto& entry) { return entry.second.phase == Phase::kInDoubt; });
}

}  // namespace topolet::engine
