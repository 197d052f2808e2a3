#include "core/replay/operations.hpp"

#include <chrono>
#include <optional>
#include <utility>

#include "core/engine/state/ledger.hpp"
#include "core/replay/record_format.hpp"
#include "core/replay/recorded_fields.hpp"

namespace topolet::replay {
namespace {

Json about(const char* operation, const placement::ContainerKey& key) {
  return {{"op", operation}, {"pod", key.pod_uid}, {"container", key.name}};
}

/// As `topolet simulate` reads it; a limit or request that is not there is left out.
void add_demand(const placement::Demand& demand, Json& line) {
  const auto add = [&line](const char* name, std::int64_t amount) {
    if (amount > 0) line[name] = amount;
  };
  add("cpu_request_milli", demand.cpu_request_milli);
  add("cpu_limit_milli", demand.cpu_limit_milli);
  add("memory_request", demand.memory_request_bytes);
  add("memory_limit", demand.memory_limit_bytes);
  if (!demand.hugepage_limit_bytes.empty()) line["hugepages"] = to_json(demand.hugepage_limit_bytes);
}

Json create_line(const placement::Workload& workload) {
  Json line = about("create", workload.key);
  line["attempt"] = workload.key.attempt;
  add_demand(workload.demand, line);
  if (!workload.devices.empty()) line["devices"] = workload.devices;
  if (!workload.cdi_devices.empty()) line["cdi_devices"] = workload.cdi_devices;
  if (!workload.annotations.empty()) line["annotations"] = to_json(workload.annotations);
  if (!workload.kubelet_cpus.empty()) line["cpuset_cpus"] = workload.kubelet_cpus.to_string();
  if (!workload.kubelet_mems.empty()) line["cpuset_mems"] = workload.kubelet_mems.to_string();
  return line;
}

Json update_line(const placement::Workload& workload) {
  Json line = about("update", workload.key);
  add_demand(workload.demand, line);
  return line;
}

Json capacity_line(const engine::CapacityChange& change, std::chrono::milliseconds now) {
  Json line{{"op", "capacity"}, {"node", change.node}};
  if (!change.after) return line;
  line["milli"] = change.after->milli;
  line["for_s"] = std::chrono::duration_cast<std::chrono::seconds>(change.after->until - now).count();
  line["source"] = change.after->source;
  return line;
}

}  // namespace

void OperationRecorder::on_loaded(const engine::Ledger& ledger) { recorder_->add_ledger(ledger.snapshot()); }

void OperationRecorder::on_durable(const engine::Transition& transition) {
  for (const engine::PodChange& change : transition.pods) add_pod(change);
  for (const engine::Change& change : transition.changes) add_change(change);
  for (const engine::RecordedEvent& recorded : transition.recorded_events) add_denial(recorded);
  for (const engine::CapacityChange& change : transition.capacities) {
    recorder_->add_operation({}, [change, now = transition.wall_time] { return capacity_line(change, now); });
  }
}

void OperationRecorder::add_pod(const engine::PodChange& change) {
  if (!change.after) {
    const auto known = pods_.find(change.sandbox_id);
    if (known == pods_.end()) return;
    recorder_->add_operation({}, [pod = known->second] { return Json{{"op", "remove_pod"}, {"pod", pod}}; });
    pods_.erase(known);
    return;
  }
  const auto& sandbox = change.after->sandbox;
  if (!pods_.try_emplace(change.sandbox_id, sandbox.pod_uid).second) return;
  recorder_->add_operation({}, [sandbox] {
    Json line{
        {"op", "run_pod"}, {"pod", sandbox.pod_uid}, {"name", sandbox.pod_name}, {"namespace", sandbox.pod_namespace}};
    if (!sandbox.runtime_handler.empty()) line["runtime_handler"] = sandbox.runtime_handler;
    line["annotations"] = to_json(sandbox.annotations);
    return line;
  });
}

void OperationRecorder::add_change(const engine::Change& change) {
  if (!change.before && change.after && change.after->phase == engine::Phase::kPending)
    add_create(change.after->workload);
  if (change.outcome) add_outcome(change);
  switch (change.kind) {
    case engine::ChangeKind::kStarted:
      recorder_->add_operation({}, [key = change.after->workload.key] { return about("start", key); });
      break;
    case engine::ChangeKind::kResized:
      add_update(change.after->workload);
      break;
    case engine::ChangeKind::kReleased:
      add_end(change);
      break;
    case engine::ChangeKind::kInternal:
    case engine::ChangeKind::kPlaced:
    case engine::ChangeKind::kMoved:
      break;
  }
}

void OperationRecorder::add_create(const placement::Workload& workload) {
  recorder_->add_operation(workload.key, [workload] { return create_line(workload); });
}

void OperationRecorder::add_update(const placement::Workload& workload) {
  recorder_->add_operation({}, [workload] { return update_line(workload); });
}

void OperationRecorder::add_outcome(const engine::Change& change) {
  const engine::Allocation& subject = change.after ? *change.after : *change.before;
  recorder_->add_operation({}, [key = subject.workload.key, outcome = *change.outcome, id = subject.container_id] {
    Json line = about(op::kOutcome, key);
    line["attempt"] = key.attempt;
    line["outcome"] = outcome.state;
    if (outcome.code != Code::kOk) line["code"] = static_cast<int>(outcome.code);
    if (!id.empty()) line["id"] = id;
    return line;
  });
}

/// One that failed has told so by its outcome.
void OperationRecorder::add_end(const engine::Change& change) {
  const bool is_stopped = change.before && change.before->stopping;
  const char* operation = is_stopped ? "stop" : "exit";
  const bool has_failed = change.after && change.after->phase == engine::Phase::kCrashed;
  recorder_->add_operation({}, [operation, key = change.before->workload.key, has_failed, cause = change.cause] {
    Json line = about(operation, key);
    if (has_failed) line["exit_code"] = 1;
    if (!cause.empty()) line["cause"] = cause;
    return line;
  });
}

void OperationRecorder::add_denial(const engine::RecordedEvent& recorded) {
  if (recorded.audit.event != engine::AuditEvent::kDenied || !recorded.subject) return;
  const engine::Allocation& subject = *recorded.subject;
  const bool is_resize = !subject.container_id.empty();
  is_resize ? add_update(subject.workload) : add_create(subject.workload);
  recorder_->add_operation({}, [key = subject.workload.key, code = recorded.audit.reason_code] {
    Json line = about(op::kOutcome, key);
    line["attempt"] = key.attempt;
    line["outcome"] = "denied";
    line["reason_code"] = code;
    return line;
  });
}

}  // namespace topolet::replay
