#include "core/engine/planning/resize.hpp"

#include <optional>
#include <string>
#include <utility>

#include "core/engine/planning/memory_growth.hpp"
#include "core/placement/decide.hpp"

namespace topolet::engine {
namespace {

using PlannedResize = std::variant<Event, placement::Decision>;

/// Its CPUs are its own by topolet's choice.
bool is_exclusive_by_topolet(const Allocation& allocation) {
  return allocation.is_exclusive() && allocation.workload.kubelet_cpus.empty();
}

Event keep_its_cpus(const Placer& placer, const Allocation& before, const placement::Workload& requested) {
  const std::uint32_t cpus = exclusive_cpus_for(requested, placer.rules());
  const bool later = !is_exclusive_by_topolet(before) && cpus > 0 && before.workload.kubelet_cpus.empty();
  return event::DemandChanged{
      requested.key, requested.demand,
      later ? "new resources; it gets exclusive CPUs when it is next created" : "new resources; it keeps its CPUs"};
}

PlannedResize change_memory(const Placer& placer, const Ledger& ledger, const Allocation& before,
                            const placement::Workload& requested) {
  std::optional<MemoryDecision> decided = decide_on_memory(placer, ledger, before, requested);
  if (!decided) return keep_its_cpus(placer, before, requested);
  if (decided->decision.denied) return std::move(decided->decision);
  const std::string reason = "new resources; it keeps its CPUs; " + decided->decision.reason;
  return Event(event::DemandChanged{requested.key, requested.demand, reason, std::move(decided->decision),
                                    std::move(decided->yielding)});
}

PlannedResize change_size(const Placer& placer, const Ledger& ledger, const Allocation& before,
                          const placement::Workload& requested) {
  Placer::Constraints constraints;
  constraints.only_shared = exclusive_cpus_for(requested, placer.rules()) == 0;
  constraints.keep = before.placement;
  constraints.must_retain = true;
  Plan plan = plan_other_size(placer, ledger, before, requested, constraints);
  if (plan.decision.denied) return std::move(plan.decision);
  retain_memory_nodes(before, placer.rules(), plan.decision.placement);
  return Event(event::Moved{requested, std::move(plan), AuditEvent::kResized});
}

}  // namespace

bool changes_cpu_count(const Allocation& before, const placement::Workload& requested, std::uint32_t cpus) {
  const bool same = requested.demand.cpu_request_milli == before.workload.demand.cpu_request_milli;
  return is_exclusive_by_topolet(before) && !same && cpus != before.placement.cpus.size();
}

std::variant<Event, placement::Decision> plan_resize(const Placer& placer, const Ledger& ledger,
                                                     const Allocation& before, const placement::Workload& requested) {
  if (changes_cpu_count(before, requested, exclusive_cpus_for(requested, placer.rules())))
    return change_size(placer, ledger, before, requested);
  if (needs_memory_decision(before, requested.demand)) return change_memory(placer, ledger, before, requested);
  return keep_its_cpus(placer, before, requested);
}

}  // namespace topolet::engine
