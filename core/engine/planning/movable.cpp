#include "core/engine/planning/movable.hpp"

#include "core/placement/settings.hpp"

namespace topolet::engine {

bool is_movable(const Allocation& allocation, const placement::PlacementRules& rules) {
  // Whoever does not leave CPUs, or whose CPUs another hand sets, would not be where it was moved to.
  if (!allocation.is_managed() || allocation.conflict || allocation.stopping) return false;
  if (allocation.stays_within() || allocation.stuck || allocation.overruled) return false;
  switch (placement::move_annotation(allocation.workload)) {
    case placement::MoveAnnotation::kAllow:
      return true;
    case placement::MoveAnnotation::kNever:
      return false;
    case placement::MoveAnnotation::kAbsent:
      break;
  }
  if (rules.heal == placement::HealRule::kShared) return !allocation.is_exclusive();
  return rules.heal == placement::HealRule::kAll;
}

bool may_leave_its_nodes(const Allocation& allocation, const placement::PlacementRules& rules) {
  if (rules.memory_migrate) return true;
  const placement::Demand& demand = allocation.workload.demand;
  const std::int64_t booked = demand.memory_request_bytes > 0 ? demand.memory_request_bytes : demand.memory_limit_bytes;
  if (booked > 0) return static_cast<std::uint64_t>(booked) < rules.move_memory_bytes;
  const placement::Qos qos = allocation.workload.qos;
  return qos == placement::Qos::kGuaranteed || qos == placement::Qos::kBestEffort;
}

}  // namespace topolet::engine
