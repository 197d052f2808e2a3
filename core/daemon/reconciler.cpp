#include "core/daemon/reconciler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/daemon/holds.hpp"
#include "core/placement/settings.hpp"

namespace topolet {

void Reconciler::run(Done done) {
  waiting_.push_back(std::move(done));
  if (!running_) begin();
}

void Reconciler::begin() {
  running_ = true;
  current_.swap(waiting_);
  auto pass = std::make_shared<Pass>();
  for (const auto& [key, holding] : room_.bookings.ledger().holdings()) {
    if (holding.state == HoldingState::kBound) pass->bound.insert(holding.container_id);
    if (holding.state == HoldingState::kInDoubt) pass->in_doubt.insert(key);
  }
  pass->sandboxes = room_.sandboxes.ids();
  room_.effect.list(
      [this, pass](Result<std::vector<Sandbox>> sandboxes, Result<std::vector<ContainerInfo>> containers) {
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
  done.swap(current_);
  for (const Done& tell : done) tell(status);
  if (!waiting_.empty() && !running_) begin();
}

void Reconciler::compare_sandboxes(const PassPtr& pass) {
  std::unordered_set<std::string> there;
  for (const Sandbox& sandbox : pass->listed_sandboxes) {
    there.insert(sandbox.id);
    room_.sandboxes.put(sandbox);
  }
  for (const std::string& id : pass->sandboxes) {
    if (there.count(id) == 0) room_.sandboxes.remove(id);
  }
}

void Reconciler::compare_containers(const PassPtr& pass) {
  std::unordered_set<std::string> there;
  for (const ContainerInfo& container : pass->listed) there.insert(container.id);
  for (const std::string& id : pass->bound) {
    if (there.count(id) == 0) lifecycle_.ended(id, "gone");
  }
  ++pass->inspecting;  // held until every container was visited
  for (const ContainerInfo& container : pass->listed) visit(pass, container);
  if (--pass->inspecting == 0) adopt_all(pass);
}

/// Who a listed container is, as far as the list and its sandbox tell.
Workload Reconciler::identify(const ContainerInfo& container) const {
  Workload workload;
  workload.key.name = container.name;
  workload.key.attempt = container.attempt;
  workload.key.sandbox_id = container.sandbox_id;
  if (const Sandbox* sandbox = room_.sandboxes.find(container.sandbox_id); sandbox != nullptr) {
    workload.key.pod_uid = sandbox->pod_uid;
    workload.pod_name = sandbox->pod_name;
    workload.pod_namespace = sandbox->pod_namespace;
    workload.runtime_handler = sandbox->runtime_handler;
  }
  return workload;
}

void Reconciler::visit(const PassPtr& pass, const ContainerInfo& container) {
  const bool exited = container.state == ContainerState::kExited;
  const Ledger& ledger = room_.bookings.ledger();
  if (const Holding* own = ledger.find_by_container(container.id); own != nullptr) {
    if (own->state == HoldingState::kCrashed) return;
    if (exited) return end_exited(pass, container.id);
    if (own->placement.mode == Mode::kForeign) return;
    if (!room_.lanes.has(container.id)) return inspect(pass, container, false);
    if (own->started) return lifecycle_.glance(container.id);
    if (container.state == ContainerState::kRunning) lifecycle_.verify(container.id);
    return;
  }
  const Workload workload = identify(container);
  if (const Holding* held = ledger.find(workload.key); held != nullptr && held->state != HoldingState::kBound) {
    // One whose create is still under way is bound by its answer.
    if (pass->in_doubt.count(workload.key) == 0 || held->state != HoldingState::kInDoubt) return;
    room_.bookings.found(workload.key, container);
    lifecycle_.catch_up(workload.key);
    if (exited) end_exited(pass, container.id);
    return;
  }
  if (exited) return;
  const Sandbox* sandbox = room_.sandboxes.find(container.sandbox_id);
  const bool can_run = sandbox == nullptr || sandbox->ready;
  if (container.state != ContainerState::kRunning && !can_run) return;
  inspect(pass, container, true);
}

/// How it ended is asked before the pass ends: who waits for that may want to start it again.
void Reconciler::end_exited(const PassPtr& pass, const std::string& container_id) {
  ++pass->inspecting;
  lifecycle_.exited(container_id, [this, pass] {
    if (--pass->inspecting == 0) adopt_all(pass);
  });
}

void Reconciler::inspect(const PassPtr& pass, const ContainerInfo& container, bool stranger) {
  ++pass->inspecting;
  room_.effect.inspect(container.id, [this, pass, container, stranger](const Result<ContainerDetail>& detail) {
    if (!stranger) {
      inspected_own(container, detail);
    } else if (detail) {
      // What only the list knows; the state is as new as the detail.
      ContainerDetail found = *detail;
      found.info.sandbox_id = container.sandbox_id;
      found.info.name = container.name;
      found.info.attempt = container.attempt;
      if (found.info.state != ContainerState::kExited) pass->strangers.push_back(std::move(found));
    }
    if (--pass->inspecting == 0) adopt_all(pass);
  });
}

/// A container of an earlier run of the daemon: what it was told last is not known.
void Reconciler::inspected_own(const ContainerInfo& container, const Result<ContainerDetail>& detail) {
  const Holding* holding = room_.bookings.ledger().find_by_container(container.id);
  if (holding == nullptr || room_.lanes.has(container.id)) return;
  if (detail && detail->info.state == ContainerState::kExited) {
    return lifecycle_.exited_with(container.id, detail->info.exit_code);
  }
  if (container.state == ContainerState::kRunning) room_.bookings.started(holding->workload.key);
  const CpusetTarget target = Bookings::target_of(*holding);
  const bool as_told = detail && detail->spec_cpus == target.cpus && room_.effect.check(container.id, target).ok();
  if (!as_told) {
    const std::string has = detail ? detail->spec_cpus.to_string() : detail.error().message;
    room_.bookings.remark(*holding, "drift",
                          fmt::format("after a restart of topoletd: the runtime has it on '{}', the ledger on '{}'",
                                      has, target.cpus.to_string()));
  }
  room_.lanes.open(container.id, as_told ? std::optional(target) : std::nullopt, target);
}

void Reconciler::adopt_all(const PassPtr& pass) {
  // Those that run on CPUs of their own first, so that the shared ones find the pool as it will be.
  std::stable_sort(pass->strangers.begin(), pass->strangers.end(),
                   [](const ContainerDetail& a, const ContainerDetail& b) {
                     return (a.workload && whole_cpus(*a.workload) > 0) > (b.workload && whole_cpus(*b.workload) > 0);
                   });
  for (const ContainerDetail& detail : pass->strangers) adopt(detail);
  end({});
}

void Reconciler::adopt(const ContainerDetail& detail) {
  const ContainerInfo& container = detail.info;
  const Ledger& ledger = room_.bookings.ledger();
  if (ledger.find_by_container(container.id) != nullptr) return;
  Workload workload = detail.workload.value_or(Workload());
  const Workload identity = identify(container);
  workload.key = identity.key;
  workload.pod_name = identity.pod_name;
  workload.pod_namespace = identity.pod_namespace;
  workload.runtime_handler = identity.runtime_handler;
  if (ledger.find(workload.key) != nullptr) return;
  if (const Sandbox* sandbox = room_.sandboxes.find(container.sandbox_id); sandbox != nullptr) {
    workload.pod_annotations = sandbox->annotations;
  }
  // It runs whatever its annotations say.
  if (Result<Settings> settings = read_settings(workload, room_.placer.rules().annotations); settings) {
    workload.settings = std::move(settings->values);
  }

  Decision decision;
  if (!room_.sandboxes.places(workload.runtime_handler)) {
    decision.placement.mode = Mode::kForeign;
    decision.reason = "runtime handler '" + workload.runtime_handler + "' is not placed";
    room_.bookings.place_bound(workload, decision, "foreign", container);
    return;
  }
  // The runtime's record may carry a cpuset of an earlier topolet as well as one of the kubelet's, which will say it
  // again. A set of just as many CPUs as would be given exclusively was so given, whoever did it.
  workload.kubelet_cpus = {};
  if (room_.placer.may_keep(ledger, workload, detail.spec_cpus)) {
    decision.placement = {Mode::kExclusive, detail.spec_cpus, {}, {}};
    decision.reason = "it has these CPUs for itself";
  } else {
    Placer::Terms terms;
    terms.only_shared = true;
    decision = room_.placer.plan(ledger, workload, terms).decision;
  }
  if (decision.denied) {
    room_.log.error("container {} was made past topolet and cannot be placed: {}", container.id, decision.reason);
    return;
  }
  decision.reason = "found in the runtime, made past topolet; " + decision.reason;
  room_.bookings.place_bound(workload, decision, "adopted", container);
  const CpusetTarget target = Bookings::target_of(*ledger.find(workload.key));
  const bool is_there = detail.spec_cpus == target.cpus && room_.effect.check(container.id, target).ok();
  room_.lanes.open(container.id, is_there ? std::optional(target) : std::nullopt, target);
  room_.log.info("{}/{}/{}: adopted on CPUs {}", workload.pod_namespace, workload.pod_name, workload.key.name,
                 target.cpus.to_string());
}

void Reconciler::expire(std::chrono::milliseconds timeout) {
  std::vector<ContainerKey> late;
  for (const auto& [key, holding] : room_.bookings.ledger().holdings()) {
    if (holding.state == HoldingState::kInDoubt && room_.clock.wall() - holding.doubt_since >= timeout) {
      late.push_back(key);
    }
  }
  for (const ContainerKey& key : late) room_.bookings.time_out(key);
  expire_holds(room_);
}

bool Reconciler::has_doubts() const {
  const auto& holdings = room_.bookings.ledger().holdings();
  return std::any_of(holdings.begin(), holdings.end(),
                     [](const auto& entry) { return entry.second.state == HoldingState::kInDoubt; });
}

}  // namespace topolet
