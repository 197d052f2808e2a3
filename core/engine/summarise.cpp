#include "core/engine/summarise.hpp"

#include <string>
#include <vector>

#include "core/engine/state/ledger.hpp"

namespace topolet::engine {
namespace {

void add_foreign(const placement::Workload& workload, const PlacedHandlers& handlers, EngineSummary& summary) {
  ForeignContainers& foreign = summary.foreign[placement::handler_name(workload.runtime_handler)];
  if (foreign.containers++ == 0) foreign.obstacle = handlers.obstacle(workload.runtime_handler);
}

/// By name, what is the matter with one container alone.
void add_trouble(const Allocation& allocation, std::chrono::milliseconds now, EngineSummary& summary) {
  const std::string name = display_name(allocation.workload);
  if (allocation.overruled) {
    summary.overruled.push_back({name, allocation.placement.cpus, allocation.seen_on, now - allocation.overruled->since,
                                 allocation.overruled->plugin});
  }
  if (allocation.stuck) {
    summary.stuck.push_back({name, allocation.stuck->cpus, allocation.stuck->why, now - allocation.stuck->since});
  }
  if (allocation.squeeze != Squeeze::kNone) {
    const bool is_left_to_kernel = allocation.squeeze == Squeeze::kLeftToKernel;
    ++summary.squeezed;
    summary.left_to_kernel += is_left_to_kernel ? 1 : 0;
    summary.squeezed_containers.push_back({name, allocation.placement.cpus, is_left_to_kernel});
  }
  if (!allocation.seen_on.empty() && !allocation.overruled) summary.drifted.push_back({name, allocation.seen_on});
  if (allocation.conflict) summary.conflicts.push_back({name, allocation.placement.cpus});
  if (allocation.phase == Phase::kInDoubt) summary.in_doubt.push_back({name, allocation.doubt_since});
}

/// Nobody waits where nobody leaves CPUs, which is nearly always.
void add_waiting(const Ledger& ledger, EngineSummary& summary) {
  CpuSet vacating;
  for (const auto& [key, allocation] : ledger.allocations()) vacating |= allocation.vacating;
  if (vacating.empty()) return;
  for (const auto& [key, allocation] : ledger.allocations()) {
    if (allocation.is_kept() || !vacating.intersects(allocation.dedicated_cpus())) continue;
    const std::vector<placement::ContainerKey> blocking = ledger.neighbours_blocking(key);
    if (blocking.empty()) continue;
    const Allocation& first = *ledger.find(blocking.front());
    summary.waiting.push_back({display_name(allocation.workload), display_name(first.workload),
                               first.vacating & allocation.dedicated_cpus(), allocation.may_run(),
                               allocation.phase_since});
  }
}

}  // namespace

EngineSummary summarise(const SummarySources& sources) {
  const Ledger& ledger = sources.committer.ledger();
  const placement::LedgerSnapshot view = ledger.snapshot();
  EngineSummary summary{.containers = {},
                        .generation = view.generation,
                        .allowed = view.allowed,
                        .pool = view.pool,
                        .reserved = view.reserved,
                        .exclusive = view.exclusive,
                        .withheld = view.withheld,
                        .reconciled = sources.reconciled,
                        .store_degraded = sources.committer.degraded(),
                        .store_degraded_because = sources.committer.degraded_because(),
                        .overlaps = sources.mover.overlaps(),
                        .confines_foreign = sources.confines_foreign,
                        .unconfined = sources.confiner.failures(),
                        .kept_quotas = sources.pod_quotas.failures(),
                        .store_reopened_because = sources.committer.reopened_because(),
                        .released = sources.releaser.released(),
                        .files_refused_because = sources.cpusets.why_files_are_refused()};
  for (const auto& [key, allocation] : ledger.allocations()) {
    if (allocation.is_kept()) continue;
    ++summary.containers[std::string(seen_mode(allocation))];
    if (allocation.placement.mode == placement::Mode::kForeign)
      add_foreign(allocation.workload, sources.placed_handlers, summary);
    add_trouble(allocation, sources.now, summary);
  }
  add_waiting(ledger, summary);
  for (const auto& [node, told] : ledger.reported_capacities())
    summary.capacities.push_back({told, nominal_milli(sources.placer.topology().get(), node)});
  return summary;
}

}  // namespace topolet::engine
