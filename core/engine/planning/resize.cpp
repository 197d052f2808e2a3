#include "core/engine/planning/resize.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/planning/memory_growth.hpp"
#include "core/engine/planning/room_planner.hpp"
#include "core/placement/decision.hpp"
#include "core/placement/exclusive_claim.hpp"

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
  event::DemandChanged changed{
      requested.key, requested.demand,
      later ? "new resources; it gets exclusive CPUs when it is next created" : "new resources; it keeps its CPUs"};
  changed.kubelet_unified = requested.kubelet_unified;
  return changed;
}

PlannedResize change_memory(const Placer& placer, const Ledger& ledger, const Allocation& before,
                            const placement::Workload& requested) {
  std::optional<MemoryDecision> decided = decide_on_memory(placer, ledger, before, requested);
  if (!decided) return keep_its_cpus(placer, before, requested);
  if (decided->decision.denied) return std::move(decided->decision);
  const std::string reason = "new resources; it keeps its CPUs; " + decided->decision.reason;
  event::DemandChanged changed{requested.key, requested.demand, reason, std::move(decided->decision),
                               std::move(decided->yielding)};
  changed.kubelet_unified = requested.kubelet_unified;
  return Event(std::move(changed));
}

/// One that has others in place of CPUs that are away goes on waiting for these: for as many as it still has others.
std::optional<Preferred> still_preferred(const Ledger& ledger, const Allocation& before, const Plan& plan) {
  const CpuSet& now = plan.decision.placement.cpus;
  if (!before.is_exclusive() || !before.was_exclusive() || plan.decision.placement.mode != before.placement.mode)
    return std::nullopt;
  const CpuSet& former = before.preferred->placement.cpus;
  const std::size_t others = (before.placement.cpus - former).size();
  std::vector<std::uint32_t> in_place;  // the last ones first, as they were added last
  for (const std::uint32_t cpu : now - former) in_place.insert(in_place.begin(), cpu);
  in_place.resize(std::min(in_place.size(), others));
  Preferred preferred = *before.preferred;
  preferred.placement.cpus = now;
  auto next = in_place.begin();
  for (const std::uint32_t cpu : former - ledger.inventory().allowed) {
    if (next == in_place.end()) break;
    preferred.placement.cpus.erase(*next++);
    preferred.placement.cpus.insert(cpu);
  }
  return preferred.placement.cpus == now ? std::nullopt : std::optional(std::move(preferred));
}

PlannedResize change_size(const Placer& placer, const Ledger& ledger, const Allocation& before,
                          const placement::Workload& requested, MakesRoom makes_room) {
  Placer::Constraints constraints;
  constraints.occasion = placement::Occasion::kResize;
  constraints.only_shared = exclusive_cpus_for(requested, placer.rules()) == 0;
  constraints.keep = before.placement;
  constraints.must_retain = true;
  const auto plan_in = [&](const Ledger& as_it_is) {
    return plan_other_size(placer, as_it_is, before, requested, constraints);
  };
  Plan plan = plan_in(ledger);
  if (makes_room)
    plan =
        with_room_made(ledger, placer, *makes_room, {requested, {}, plan_in, constraints.plan_began}, std::move(plan));
  if (plan.decision.denied) return std::move(plan.decision);
  retain_memory_nodes(before, placer.rules(), plan.decision.placement);
  plan.preferred = still_preferred(ledger, before, plan);
  if (plan.preferred) plan.arrived_cpus = before.arrived_cpus;
  return Event(event::Moved{requested, std::move(plan), AuditEvent::kResized});
}

}  // namespace

bool changes_cpu_count(const Allocation& before, const placement::Workload& requested, std::uint32_t cpus) {
  const bool same = requested.demand.cpu_request_milli == before.workload.demand.cpu_request_milli;
  return is_exclusive_by_topolet(before) && !same && cpus != before.placement.cpus.size();
}

std::variant<Event, placement::Decision> plan_resize(const Placer& placer, const Ledger& ledger,
                                                     const Allocation& before, const placement::Workload& requested,
                                                     MakesRoom makes_room) {
  if (changes_cpu_count(before, requested, exclusive_cpus_for(requested, placer.rules())))
    return change_size(placer, ledger, before, requested, makes_room);
  if (needs_memory_decision(before, requested.demand)) return change_memory(placer, ledger, before, requested);
  return keep_its_cpus(placer, before, requested);
}

}  // namespace topolet::engine
