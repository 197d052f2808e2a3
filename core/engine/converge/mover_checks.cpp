// The part of the mover that reads back where containers run, and acts on the result.
#include <fmt/format.h>

#include "core/engine/converge/mover.hpp"

namespace topolet::engine {

std::string Mover::narrowed_text(const std::string& container_id, const ContainerCpuset& target) const {
  const CpuSet configured = deps_.cpusets.configured_cpus(container_id).value_or(CpuSet());
  return fmt::format("its cgroup is set to CPUs {} instead of {}", configured.to_string(), target.cpus.to_string());
}

void Mover::check_for_overlap(const std::string& container_id, const CpuSet& observed) {
  const bool overlaps = overlap_watch_.check(container_id, observed);
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  if (!overlaps || allocation == nullptr) return;
  footprints_.add(container_id, observed);
  deps_.committer.commit(event::Drifted{allocation->workload.key, observed, ""});
}

void Mover::verify(const std::string& container_id, OverruleWatch::Check check, const std::function<void()>& seen) {
  const auto asked_with = queues_.applied(container_id);
  deps_.cpusets.inspect(container_id, [=, this](const Result<operations::ContainerDetail>& detail) {
    if (!detail) return;
    if (seen) seen();
    if (detail->info.state == operations::ContainerState::kExited) {
      return deps_.exits.report(container_id, {Exit::Kind::kExited, detail->info.exit_code});
    }
    on_inspected(container_id, *detail, asked_with == queues_.applied(container_id), check);
  });
}

/// `is_newest`: the container has not been set to other CPUs since the runtime was asked.
void Mover::on_inspected(const std::string& container_id, const operations::ContainerDetail& detail, bool is_newest,
                         OverruleWatch::Check check) {
  const auto applied = queues_.applied(container_id);
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  if (!applied || allocation == nullptr) return;
  const placement::ContainerKey key = allocation->workload.key;
  const bool is_left_to_kernel = allocation->squeeze == Squeeze::kLeftToKernel;
  if (detail.info.state == operations::ContainerState::kRunning) {
    deps_.committer.commit(event::StartConfirmed{key}, Urgency::kSoon);
  }
  if (is_left_to_kernel) return;
  if (Status matches = deps_.cpusets.check_kernel(container_id, *applied); !matches) {
    const CpuSet observed = deps_.cpusets.kernel_cpus(container_id).value_or(CpuSet());
    return note_drift(container_id, observed, matches.error().message, check);
  }
  check_in_kernel(container_id);
  if (is_newest && !detail.spec_cpus.empty() && detail.spec_cpus != applied->cpus) {
    // A runtime that was restarted may have an older record, while the container is where it should be.
    const bool is_old_record = deps_.cpusets.kernel_cpus(container_id) == applied->cpus;
    const std::string why = fmt::format("the runtime reports CPUs {} instead of {}", detail.spec_cpus.to_string(),
                                        applied->cpus.to_string());
    footprints_.add(container_id, detail.spec_cpus);
    deps_.committer.commit(event::Drifted{key, detail.spec_cpus, is_old_record ? "" : why});
    if (!is_old_record) check_for_overlap(container_id, detail.spec_cpus);
    return queues_.invalidate(container_id);
  }
  if (overrule_watch_.is_narrowed(container_id, *applied)) {
    const CpuSet observed = deps_.cpusets.kernel_cpus(container_id).value_or(CpuSet());
    return note_drift(container_id, observed, narrowed_text(container_id, *applied), check);
  }
  // An update that came during a start may be lost.
  if (deps_.cpusets.is_narrower(container_id, *applied)) return queues_.invalidate(container_id);
  check_for_overlap(container_id, applied->cpus);
}

/// The kernel has it on `observed`, where it should not be. The first time that is a drift, which is audited; where
/// another hand does it, that is said once for all times.
void Mover::note_drift(const std::string& container_id, const CpuSet& observed, const std::string& why,
                       OverruleWatch::Check check) {
  const placement::ContainerKey key = deps_.committer.ledger().find_by_container(container_id)->workload.key;
  const bool is_overruled = overrule_watch_.note_stray(container_id, observed, check);
  footprints_.add(container_id, observed);
  deps_.committer.commit(event::Drifted{key, observed, is_overruled ? "" : why});
  check_for_overlap(container_id, observed);
  queues_.invalidate(container_id);
}

void Mover::check_in_kernel(const std::string& container_id) {
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  if (allocation == nullptr || allocation->squeeze == Squeeze::kLeftToKernel) return;
  const std::optional<CpuSet> observed = deps_.cpusets.kernel_cpus(container_id);
  if (!observed) return;
  const auto applied = queues_.applied(container_id);
  overrule_watch_.note_seen(container_id, *observed, applied ? applied->cpus : allocation->placement.cpus);
}

void Mover::verify_in_kernel(const std::string& container_id) {
  const auto applied = queues_.applied(container_id);
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  if (allocation == nullptr || allocation->squeeze == Squeeze::kLeftToKernel) return;
  if (applied && !deps_.cpusets.check_kernel(container_id, *applied)) return verify(container_id);
  if (applied && overrule_watch_.is_narrowed(container_id, *applied)) return verify(container_id);
  // Reading it once more is for what is not as always.
  if (!applied || !allocation->seen_on.empty() || allocation->overruled) check_in_kernel(container_id);
  check_for_stuck(container_id);
}

void Mover::check_for_stuck(const std::string& container_id) {
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  if (allocation == nullptr || !allocation->stuck) return;
  const auto observed = deps_.cpusets.container_cpus(container_id);
  if (observed && !observed->intersects(allocation->stuck->cpus)) stuck_watch_.note_is_on(container_id, *observed);
}

void Mover::verify_all_in_kernel() {
  std::vector<std::string> ids;
  for (const auto& [key, allocation] : deps_.committer.ledger().allocations()) {
    if (allocation.phase == Phase::kRunning && allocation.is_managed()) ids.push_back(allocation.container_id);
  }
  for (const std::string& id : ids) {
    const auto applied = queues_.applied(id);
    if (applied && deps_.cpusets.is_narrower(id, *applied)) {
      queues_.invalidate(id);
    } else {
      verify_in_kernel(id);
    }
  }
}

void Mover::resolve_unfinished_starts() {
  std::vector<std::string> ids;
  for (const auto& [key, allocation] : deps_.committer.ledger().allocations()) {
    if (allocation.phase == Phase::kStarting && allocation.is_managed()) ids.push_back(allocation.container_id);
  }
  for (const std::string& id : ids) {
    // A start that still waits for its answer settles it.
    if (!queues_.is_busy(id)) resolve_unfinished_start(id);
  }
}

void Mover::resolve_unfinished_start(const std::string& container_id) {
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  if (allocation == nullptr || allocation->phase != Phase::kStarting) return;
  deps_.cpusets.inspect(container_id, [this, container_id](const Result<operations::ContainerDetail>& detail) {
    const Allocation* now = deps_.committer.ledger().find_by_container(container_id);
    if (!detail || now == nullptr || now->phase != Phase::kStarting) return;
    if (detail->info.state == operations::ContainerState::kRunning) {
      return on_inspected(container_id, *detail, true, OverruleWatch::Check::kFirst);
    }
    if (detail->info.state == operations::ContainerState::kExited) {
      return deps_.exits.report(container_id, {Exit::Kind::kExited, detail->info.exit_code});
    }
    // Meanwhile it may have been started once more.
    if (may_still_be_starting(*now) || queues_.is_busy(container_id)) return;
    deps_.committer.commit(event::StartRefused{now->workload.key});
  });
}

bool Mover::may_still_be_starting(const Allocation& allocation) const {
  return allocation.phase == Phase::kStarting && deps_.clock.wall() - allocation.phase_since < deps_.start_grace;
}

}  // namespace topolet::engine
