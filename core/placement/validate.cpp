#include <fmt/format.h>

#include "core/placement/decide.hpp"

namespace topolet {
namespace {

/// Whoever loses all CPUs of `within` can be placed anew on the rest of the pool, unless the kubelet said where it is.
Status check_shared_stay(const Placement& placement, const LedgerView& view, const CpuSet& pool_after) {
  for (const LedgerEntry& entry : view.entries) {
    const Mode mode = entry.placement.mode;
    if ((mode != Mode::kShared && mode != Mode::kReserved) || !entry.placement.cpus.intersects(view.pool)) continue;
    const CpuSet left = shared_cpus(mode, entry.within, pool_after, view.free_reserved(), entry.bound);
    if (left.empty()) {
      return Error{Code::kResourceExhausted, fmt::format("taking {} would leave container {} without CPUs",
                                                         placement.cpus.to_string(), entry.key.name)};
    }
  }
  return {};
}

}  // namespace

CpuSet shared_cpus(Mode mode, const CpuSet& within, const CpuSet& pool, const CpuSet& reserved, bool keep_within) {
  const CpuSet open = mode == Mode::kReserved ? pool | reserved : pool;
  const CpuSet inside = within & open;
  return inside.empty() && !keep_within ? open : inside;
}

Status validate(const Placement& placement, const LedgerView& view, const DecideRules& rules) {
  if (placement.cpus.empty()) return Error{Code::kResourceExhausted, "no CPU is left"};
  const CpuSet touched = placement.cpus | placement.withheld;
  if (!touched.is_subset_of(view.allowed)) {
    return Error{Code::kInvalidArgument, fmt::format("CPUs {} are not among the allowed {}",
                                                     (touched - view.allowed).to_string(), view.allowed.to_string())};
  }
  if (const CpuSet taken = touched & (view.exclusive | view.withheld); !taken.empty()) {
    return Error{Code::kAlreadyExists, fmt::format("CPUs {} are held by another container", taken.to_string())};
  }
  if (placement.cpus.intersects(placement.withheld)) {
    return Error{Code::kInvalidArgument, "a CPU cannot be used and withheld at once"};
  }
  CpuSet gone = placement.withheld;
  if (placement.mode == Mode::kExclusive) gone |= placement.cpus;
  if (gone.intersects(view.reserved)) {
    return Error{Code::kInvalidArgument, fmt::format("CPUs {} are reserved", (gone & view.reserved).to_string())};
  }
  // What comes from the isolated CPUs leaves the pool as it is.
  if (!gone.intersects(view.pool)) return {};
  const CpuSet pool_after = view.pool - gone;
  if (pool_after.size() < rules.min_shared_cpus) {
    return Error{Code::kResourceExhausted, fmt::format("the pool would keep {} CPUs, min-shared-cpus is {}",
                                                       pool_after.size(), rules.min_shared_cpus)};
  }
  return check_shared_stay(placement, view, pool_after);
}

}  // namespace topolet
