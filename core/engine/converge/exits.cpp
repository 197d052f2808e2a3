#include "core/engine/converge/exits.hpp"

#include <utility>

#include "core/engine/state/end_transitions.hpp"

namespace topolet::engine {
namespace {

const char* cause_of(Exit::Kind kind) {
  switch (kind) {
    case Exit::Kind::kExited:
      return "exited";
    case Exit::Kind::kStopped:
      return "stopped";
    case Exit::Kind::kRemoved:
      return "removed";
    case Exit::Kind::kGone:
      return "gone";
  }
  return "";
}

}  // namespace

void Exits::report(const std::string& container_id, const Exit& exit, std::function<void()> then) {
  const Allocation* allocation = committer_.ledger().find_by_container(container_id);
  // CPUs kept for the next attempt of a container stay without the container.
  if (allocation == nullptr || !allocation->is_bound()) {
    if (then) then();
    return;
  }
  const placement::PlacementRules& rules = committer_.rules();
  const bool matters =
      !allocation->stopping && (keeps_cpus_at_end(*allocation, rules) || waits_for_cpus(*allocation, rules));
  const bool is_wanted = allocation->may_run() && wants_exit_codes_ && wants_exit_codes_();
  if (exit.kind == Exit::Kind::kExited && !exit.code && (matters || is_wanted))
    return ask_exit_code(container_id, matters, std::move(then));
  commit(container_id, exit, std::move(then));
}

void Exits::commit(const std::string& container_id, const Exit& exit, std::function<void()> then) {
  const Urgency urgency = then ? Urgency::kNow : Urgency::kSoon;
  if (!then) then = [] {};
  const Allocation* allocation = committer_.ledger().find_by_container(container_id);
  if (allocation == nullptr || !allocation->is_bound()) return then();
  const placement::ContainerKey key = allocation->workload.key;
  committer_.commit(event::Exited{key, exit.code, cause_of(exit.kind)}, urgency, std::move(then));
}

/// Asks the runtime for the exit code. If it does not answer and the code decides what becomes of the CPUs, the next
/// reconciliation asks again; otherwise the code stays unknown.
void Exits::ask_exit_code(const std::string& container_id, bool matters, std::function<void()> then) {
  cpusets_.inspect(container_id, [this, container_id, matters,
                                  then = std::move(then)](const Result<operations::ContainerDetail>& detail) {
    if (!detail && detail.error().code == Code::kNotFound) return commit(container_id, {Exit::Kind::kGone}, then);
    if (detail && detail->info.state == operations::ContainerState::kExited)
      return commit(container_id, {Exit::Kind::kExited, detail->info.exit_code}, then);
    if (!matters) return commit(container_id, {Exit::Kind::kExited}, then);
    if (then) then();
  });
}

void Exits::pod_stopped(const std::string& sandbox_id, std::function<void()> then) {
  committer_.commit(event::PodStopped{sandbox_id}, std::move(then));
}

void Exits::pod_removed(const std::string& sandbox_id, std::function<void()> then) {
  committer_.commit(event::PodRemoved{sandbox_id}, std::move(then));
}

}  // namespace topolet::engine
