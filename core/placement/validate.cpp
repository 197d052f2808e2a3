#include "core/placement/validate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.hpp"

namespace topolet::placement {
namespace {

/// Whoever loses all CPUs of `within` can be placed anew on the rest of the pool, unless the kubelet said where it is.
Status check_shared_stay(const Placement& placement, const LedgerSnapshot& view, const CpuSet& pool_after) {
  for (const LedgerEntry& entry : view.entries) {
    const Mode mode = entry.placement.mode;
    if (entry.within.intersects(pool_after)) continue;
    if (!follows_pool(mode) || !entry.placement.cpus.intersects(view.pool)) continue;
    const CpuSet left = shared_cpus(mode, entry.within, pool_after, view.free_reserved(), entry.bound);
    if (left.empty()) {
      return Error{Code::kResourceExhausted,
                   fmt::format("taking {} would leave {} without CPUs", named("CPU", placement.cpus), entry.name)};
    }
  }
  return {};
}

}  // namespace

CpuSet shared_cpus(Mode mode, const CpuSet& within, const CpuSet& pool, const CpuSet& free_reserved, bool keep_within) {
  CpuSet inside = within & pool;
  if (mode == Mode::kReserved) inside |= within & free_reserved;
  return inside.empty() && !keep_within ? pool_for(mode, pool, free_reserved) : inside;
}

std::string describe_unmovable(const LedgerSnapshot& view, const CpuSet& cpus) {
  std::string text;
  for (const Unmovable& one : view.unmovable) {
    const CpuSet here = one.cpus & cpus;
    if (here.empty()) continue;
    text += fmt::format("{}{} runs on {} and {}", text.empty() ? "" : "; ", one.name, named("CPU", here), one.why);
  }
  return text;
}

std::size_t spare_cpus(const CpuSet& pool, const PlacementRules& rules) {
  return pool.size() - std::min<std::size_t>(pool.size(), rules.min_shared_cpus);
}

Status validate(const Placement& placement, const LedgerSnapshot& view, const PlacementRules& rules) {
  if (placement.cpus.empty()) return Error{Code::kResourceExhausted, "no CPU is left"};
  const CpuSet touched = placement.cpus | placement.withheld;
  if (!touched.is_subset_of(view.allowed)) {
    return Error{Code::kInvalidArgument, fmt::format("{} may not be used; allowed are {}",
                                                     named("CPU", touched - view.allowed), named("CPU", view.allowed))};
  }
  if (const CpuSet taken = touched & (view.exclusive | view.withheld); !taken.empty()) {
    return Error{Code::kAlreadyExists, fmt::format("another container holds {}", named("CPU", taken))};
  }
  const CpuSet alone = placement.mode == Mode::kExclusive ? touched : placement.withheld;
  if (alone.intersects(view.barred)) return Error{Code::kResourceExhausted, describe_unmovable(view, alone)};
  if (placement.cpus.intersects(placement.withheld)) {
    return Error{Code::kInvalidArgument, "a CPU cannot be both used and withheld"};
  }
  CpuSet gone = placement.withheld;
  if (placement.mode == Mode::kExclusive) gone |= placement.cpus;
  if (gone.intersects(view.reserved)) {
    return Error{Code::kInvalidArgument,
                 fmt::format("placement.reserved-cpus reserves {}", named("CPU", gone & view.reserved))};
  }
  // CPUs that come from the isolated ones leave the pool as it is.
  if (!gone.intersects(view.pool)) return {};
  const CpuSet pool_after = view.pool - gone;
  if (view.pool.size() - pool_after.size() > spare_cpus(view.pool, rules)) {
    return Error{Code::kResourceExhausted,
                 fmt::format("the pool would keep {}, fewer than placement.min-shared-cpus = {}",
                             counted(pool_after.size(), "CPU"), rules.min_shared_cpus)};
  }
  return check_shared_stay(placement, view, pool_after);
}

}  // namespace topolet::placement
