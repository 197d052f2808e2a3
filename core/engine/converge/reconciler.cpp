#include "core/engine/converge/reconciler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/placement/settings.hpp"

namespace topolet::engine {
namespace {

constexpr std::uint32_t kInspectTries = 4;
constexpr std::chrono::milliseconds kInspectRetryDelay{250};

bool is_placed(const std::vector<std::string>& handlers, const std::string& handler) {
  return std::find(handlers.begin(), handlers.end(), handler) != handlers.end();
}

}  // namespace

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
  for (const auto& [id, pod] : ledger.pods()) pass->sandboxes.push_back(id);
  deps_.cpusets.list(
      [this, pass](Result<std::vector<cri::Sandbox>> sandboxes, Result<std::vector<cri::ContainerInfo>> containers) {
        if (!sandboxes) return end(sandboxes.error());
        if (!containers) return end(containers.error());
        pass->listed_sandboxes = *std::move(sandboxes);
        pass->listed = *std::move(containers);
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
  for (const cri::Sandbox& sandbox : pass->listed_sandboxes) {
    listed_ids.insert(sandbox.id);
    deps_.committer.commit(event::PodSeen{sandbox});
  }
  for (const std::string& id : pass->sandboxes) {
    if (listed_ids.count(id) == 0) deps_.committer.commit(event::PodForgotten{id});
  }
}

void Reconciler::compare_containers(const PassPtr& pass) {
  std::unordered_set<std::string> listed_ids;
  for (const cri::ContainerInfo& container : pass->listed) listed_ids.insert(container.id);
  ++pass->waiting;  // held until every container was visited
  for (const std::string& id : pass->bound) {
    if (listed_ids.count(id) == 0) report_exit(pass, id, {Exit::Kind::kGone});
  }
  for (const cri::ContainerInfo& container : pass->listed) reconcile_container(pass, container);
  finish_one(pass);
}

void Reconciler::finish_one(const PassPtr& pass) {
  if (--pass->waiting == 0) adopt_all(pass);
}

/// How it ended is asked before the pass ends: who waits for that may want to start it again.
void Reconciler::report_exit(const PassPtr& pass, const std::string& container_id, const Exit& exit) {
  ++pass->waiting;
  deps_.exits.report(container_id, exit, [this, pass] { finish_one(pass); });
}

void Reconciler::reconcile_container(const PassPtr& pass, const cri::ContainerInfo& container) {
  const Ledger& ledger = deps_.committer.ledger();
  if (const Allocation* own = ledger.find_by_container(container.id); own != nullptr) {
    return reconcile_known(pass, container, *own);
  }
  const bool exited = container.state == cri::ContainerState::kExited;
  const placement::ContainerKey key = identify(container).key;
  if (const Allocation* allocation = ledger.find(key); allocation != nullptr && !allocation->is_bound()) {
    // One whose create is still under way is bound by its answer.
    if (pass->in_doubt.count(key) == 0 || allocation->phase != Phase::kInDoubt) return;
    if (!exited) return inspect_unbound(pass, container, kInspectTries);
    deps_.committer.commit(event::CreateDiscovered{key, container});
    return report_exit(pass, container.id, {});
  }
  if (exited) return;
  const Pod* pod = ledger.find_pod(container.sandbox_id);
  const bool can_run = pod == nullptr || pod->sandbox.ready;
  if (container.state != cri::ContainerState::kRunning && !can_run) return;
  inspect_unbound(pass, container, kInspectTries);
}

void Reconciler::reconcile_known(const PassPtr& pass, const cri::ContainerInfo& container, const Allocation& own) {
  if (own.phase == Phase::kCrashed) return;
  if (container.state == cri::ContainerState::kExited) return report_exit(pass, container.id, {});
  if (own.placement.mode == placement::Mode::kForeign) return;
  if (!deps_.mover.has_queue(container.id)) return inspect_known(pass, container);
  // What the last topoletd had sent may come into effect late.
  if (own.phase == Phase::kRunning && !is_in_startup_window()) return deps_.mover.verify_in_kernel(container.id);
  if (container.state == cri::ContainerState::kRunning) deps_.mover.verify(container.id);
}

void Reconciler::inspect_known(const PassPtr& pass, const cri::ContainerInfo& container) {
  ++pass->waiting;
  deps_.cpusets.inspect(container.id, [this, pass, container](const Result<cri::ContainerDetail>& detail) {
    if (detail && detail->info.state == cri::ContainerState::kExited) {
      report_exit(pass, container.id, {Exit::Kind::kExited, detail->info.exit_code});
    } else {
      on_known_inspected(pass, container, detail);
    }
    finish_one(pass);
  });
}

/// Whoever is decided next must not be given what this one has: the runtime is asked more than once.
void Reconciler::inspect_unbound(const PassPtr& pass, const cri::ContainerInfo& container, std::uint32_t tries) {
  ++pass->waiting;
  deps_.cpusets.inspect(container.id, [this, pass, container, tries](const Result<cri::ContainerDetail>& detail) {
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
    }
    if (detail && detail->info.state != cri::ContainerState::kExited) {
      // What only the list knows; the state is as new as the detail.
      cri::ContainerDetail found = *detail;
      found.info.sandbox_id = container.sandbox_id;
      found.info.name = container.name;
      found.info.attempt = container.attempt;
      pass->found.push_back(std::move(found));
    }
    finish_one(pass);
  });
}

CpuSet Reconciler::observed_cpus(const cri::ContainerDetail& detail) const {
  CpuSet cpus = deps_.cpusets.kernel_cpus(detail.info.id).value_or(detail.spec_cpus);
  const bool may_be_anywhere = cpus.empty() && detail.info.state == cri::ContainerState::kRunning;
  return may_be_anywhere ? deps_.committer.ledger().inventory().allowed : cpus;
}

/// A container of an earlier run of the daemon: where it is by now is not known.
void Reconciler::on_known_inspected(const PassPtr& pass, const cri::ContainerInfo& container,
                                    const Result<cri::ContainerDetail>& detail) {
  const Allocation* own = deps_.committer.ledger().find_by_container(container.id);
  if (own == nullptr || !own->is_managed() || deps_.mover.has_queue(container.id)) return;
  const placement::ContainerKey key = own->workload.key;
  if (detail) return open_known(pass, *detail, *own);
  // It may be anywhere.
  deps_.committer.commit(
      event::Drifted{key, deps_.committer.ledger().inventory().allowed,
                     "after a restart of topoletd its CPUs cannot be read: " + detail.error().message},
      [this, id = container.id] { deps_.mover.open_queue(id, std::nullopt); });
}

// By value: the ledger's own changes with the first commit.
void Reconciler::open_known(const PassPtr& pass, const cri::ContainerDetail& detail, Allocation own) {
  const placement::ContainerKey key = own.workload.key;
  const ContainerCpuset desired = desired_cpuset_of(own);
  const std::string& container_id = detail.info.id;
  const auto open_unverified = [this, id = container_id] { deps_.mover.open_queue(id, std::nullopt); };
  const bool runs = detail.info.state == cri::ContainerState::kRunning;
  const CpuSet runs_on = observed_cpus(detail);
  if (deps_.store_regressed && runs && runs_on != desired.cpus && may_keep_exclusively(pass, own.workload, runs_on)) {
    return adopt_exclusively(pass, detail, own.workload, runs_on);
  }
  if (runs) deps_.committer.commit(event::StartConfirmed{key});
  const CpuSet observed = runs_on | detail.spec_cpus;
  if (detail.spec_cpus == desired.cpus && deps_.cpusets.check_kernel(container_id, desired)) {
    // What it is leaving by the ledger it may be on again: an update or a start that the last topoletd sent may still
    // be under way. One more update comes after that.
    const bool applied = own.vacating.empty() && !deps_.cpusets.is_narrower(container_id, desired);
    return deps_.committer.when_durable([this, id = container_id, applied, desired] {
      deps_.mover.open_queue(id, applied ? std::optional(desired) : std::nullopt);
    });
  }
  // A move of it was under way.
  if (observed.intersects(own.vacating) && observed.is_subset_of(desired.cpus | own.vacating)) {
    return deps_.committer.when_durable(open_unverified);
  }
  deps_.committer.commit(
      event::Drifted{key, observed.empty() ? deps_.committer.ledger().inventory().allowed : observed,
                     fmt::format("after a restart of topoletd the runtime reports CPUs '{}', and the ledger says '{}'",
                                 detail.spec_cpus.to_string(), desired.cpus.to_string())},
      open_unverified);
}

/// A start that went out before the store lost its newest changes.
bool Reconciler::may_be_starting(const cri::ContainerDetail& detail) const {
  return deps_.store_regressed && is_in_startup_window() && detail.info.state == cri::ContainerState::kCreated;
}

/// Who a listed container is, as far as the list and its sandbox tell.
placement::Workload Reconciler::identify(const cri::ContainerInfo& container) const {
  placement::Workload workload;
  workload.key.name = container.name;
  workload.key.attempt = container.attempt;
  workload.key.sandbox_id = container.sandbox_id;
  if (const Pod* pod = deps_.committer.ledger().find_pod(container.sandbox_id); pod != nullptr) {
    workload.key.pod_uid = pod->sandbox.pod_uid;
    workload.pod_name = pod->sandbox.pod_name;
    workload.pod_namespace = pod->sandbox.pod_namespace;
    workload.runtime_handler = pod->sandbox.runtime_handler;
    workload.pod_annotations = pod->sandbox.annotations;
  }
  return workload;
}

placement::Workload Reconciler::workload_of(const cri::ContainerDetail& detail) const {
  placement::Workload workload = detail.workload.value_or(placement::Workload());
  placement::Workload identity = identify(detail.info);
  workload.key = std::move(identity.key);
  workload.pod_name = std::move(identity.pod_name);
  workload.pod_namespace = std::move(identity.pod_namespace);
  workload.runtime_handler = std::move(identity.runtime_handler);
  workload.pod_annotations = std::move(identity.pod_annotations);
  // It runs whatever its annotations say.
  if (Result<placement::Settings> settings = read_settings(workload, deps_.placer.rules().annotations); settings) {
    workload.settings = std::move(settings->values);
  }
  // The runtime's record may carry a cpuset of an earlier topolet as well as one of the kubelet's, which will say it
  // again.
  workload.kubelet_cpus = {};
  return workload;
}

void Reconciler::adopt_all(const PassPtr& pass) {
  // Those that run on CPUs of their own first: what runs wins over what was only decided, and the shared ones find the
  // pool as it will be.
  const auto rank = [](const cri::ContainerDetail& detail) {
    const bool running = detail.info.state == cri::ContainerState::kRunning;
    return (detail.workload && whole_cpus(*detail.workload) > 0 ? 2 : 0) + (running ? 1 : 0);
  };
  std::stable_sort(pass->found.begin(), pass->found.end(),
                   [&rank](const cri::ContainerDetail& a, const cri::ContainerDetail& b) { return rank(a) > rank(b); });
  for (const cri::ContainerDetail& detail : pass->found) {
    const Ledger& ledger = deps_.committer.ledger();
    if (ledger.find_by_container(detail.info.id) != nullptr) continue;
    const Allocation* allocation = ledger.find(identify(detail.info).key);
    if (allocation == nullptr) {
      adopt(pass, detail);
    } else if (allocation->phase == Phase::kInDoubt) {
      bind_discovered(pass, detail);
    }
  }
  deps_.committer.when_durable([this] { end({}); });
}

/// Who holds some of `cpus` and runs nowhere: creates in doubt, and containers that failed.
std::vector<placement::ContainerKey> Reconciler::overruled_by(const PassPtr& pass, const placement::ContainerKey& key,
                                                              const CpuSet& cpus) const {
  std::vector<placement::ContainerKey> keys;
  for (const placement::ContainerKey& doubtful : pass->in_doubt) {
    const Allocation* allocation = deps_.committer.ledger().find(doubtful);
    if (allocation == nullptr || allocation->phase != Phase::kInDoubt || doubtful == key) continue;
    if (allocation->dedicated_cpus().intersects(cpus)) keys.push_back(doubtful);
  }
  for (const placement::ContainerKey& crashed : deps_.committer.ledger().crashed()) {
    const bool is_its_own = crashed.pod_uid == key.pod_uid && crashed.name == key.name;
    const bool intersects = deps_.committer.ledger().find(crashed)->dedicated_cpus().intersects(cpus);
    if (intersects && !is_its_own) keys.push_back(crashed);
  }
  return keys;
}

/// Whether the container would have got just so many CPUs for itself, and those are nobody's but of creates in doubt.
bool Reconciler::may_keep_exclusively(const PassPtr& pass, const placement::Workload& workload,
                                      const CpuSet& cpus) const {
  std::optional<Ledger> trial;
  const Ledger& ledger = ledger_without(deps_.committer.ledger(), overruled_by(pass, workload.key, cpus), trial);
  return deps_.placer.may_keep_exclusively(ledger, workload, cpus);
}

/// A create in doubt was made. It stays where it was decided, unless it runs alone elsewhere.
void Reconciler::bind_discovered(const PassPtr& pass, const cri::ContainerDetail& detail) {
  const Ledger& ledger = deps_.committer.ledger();
  const placement::Workload workload = workload_of(detail);
  const Allocation& allocation = *ledger.find(workload.key);
  const CpuSet runs_on = observed_cpus(detail);
  const bool runs = detail.info.state == cri::ContainerState::kRunning;
  if (runs && runs_on != allocation.placement.cpus && may_keep_exclusively(pass, workload, runs_on)) {
    return adopt_exclusively(pass, detail, workload, runs_on);
  }
  deps_.committer.commit(event::CreateDiscovered{workload.key, detail.info, runs_on, may_be_starting(detail)},
                         [this, id = detail.info.id, key = workload.key] {
                           deps_.mover.open_queue(id, std::nullopt);
                           deps_.rebalancer.catch_up(key);
                         });
}

void Reconciler::adopt(const PassPtr& pass, const cri::ContainerDetail& detail) {
  event::Adopted adopted{workload_of(detail),    {}, detail.info, AuditEvent::kAdopted, observed_cpus(detail), {},
                         may_be_starting(detail)};
  const placement::Workload& workload = adopted.workload;
  placement::Decision& decision = adopted.plan.decision;
  if (!is_placed(deps_.placed_runtime_handlers, workload.runtime_handler)) {
    decision.placement.mode = placement::Mode::kForeign;
    decision.reason = reason_not_placed(workload);
    adopted.audit_event = AuditEvent::kForeign;
    return deps_.committer.commit(std::move(adopted));
  }
  // A set of just as many CPUs as would be given exclusively was so given, whoever did it.
  if (may_keep_exclusively(pass, workload, adopted.observed_cpus))
    return adopt_exclusively(pass, detail, workload, adopted.observed_cpus);
  Placer::Constraints constraints;
  constraints.only_shared = true;
  adopted.plan = deps_.placer.plan(deps_.committer.ledger(), workload, constraints);
  if (decision.denied) {
    return deps_.log.error("container {} was not created through topolet and cannot be placed: {}", detail.info.id,
                           decision.reason);
  }
  decision.reason = "found in the runtime, not created through topolet; " + decision.reason;
  commit_adopted(std::move(adopted), detail);
}

void Reconciler::adopt_exclusively(const PassPtr& pass, const cri::ContainerDetail& detail,
                                   const placement::Workload& workload, const CpuSet& cpus) {
  event::Adopted adopted{workload, {}, detail.info, AuditEvent::kAdopted, cpus, overruled_by(pass, workload.key, cpus)};
  placement::Decision& decision = adopted.plan.decision;
  decision.placement = {placement::Mode::kExclusive, cpus, {}, {}};
  decision.nodes = deps_.placer.topology()->nodes_of(cpus);
  decision.reason = "found in the runtime; it keeps the CPUs that it runs on exclusively";
  commit_adopted(std::move(adopted), detail);
}

void Reconciler::commit_adopted(event::Adopted adopted, const cri::ContainerDetail& detail) {
  const placement::ContainerKey key = adopted.workload.key;
  deps_.committer.commit(std::move(adopted), [this, key, id = detail.info.id, spec_cpus = detail.spec_cpus] {
    const Allocation* now = deps_.committer.ledger().find(key);
    if (now == nullptr) return;
    const ContainerCpuset desired = desired_cpuset_of(*now);
    const bool is_there = spec_cpus == desired.cpus && deps_.cpusets.check_kernel(id, desired).has_value();
    deps_.mover.open_queue(id, is_there ? std::optional(desired) : std::nullopt);
  });
}

void Reconciler::expire() {
  expire_doubts();
  expire_crash_holds();
}

void Reconciler::expire_doubts() {
  std::vector<placement::ContainerKey> late;
  const Ledger& ledger = deps_.committer.ledger();
  for (const auto& [key, allocation] : ledger.allocations()) {
    const bool waits = allocation.phase == Phase::kInDoubt;
    if (waits && deps_.clock.wall() - allocation.doubt_since >= deps_.doubt_timeout) late.push_back(key);
  }
  for (const placement::ContainerKey& key : late) deps_.committer.commit(event::CreateExpired{key});
}

void Reconciler::expire_crash_holds() {
  const Ledger& ledger = deps_.committer.ledger();
  // Longest ago first: those behind one that may keep its CPUs may keep theirs.
  for (const placement::ContainerKey& key : ledger.crashed()) {
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
