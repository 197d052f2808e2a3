// Checks a placement against the ledger's contracts, which leave shared containers their CPUs.
#pragma once

#include <cstddef>
#include <string>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "core/placement/placement.hpp"
#include "core/placement/placement_rules.hpp"
#include "core/placement/policy.hpp"

namespace topolet::placement {

/// Why `placement` breaks a contract of the ledger in `view`, or OK: not empty, allowed, disjoint from every exclusive
/// and withheld CPU, enough CPUs left for the pool, no shared container left without any.
Status validate(const Placement& placement, const LedgerSnapshot& view, const PlacementRules& rules);

/// The CPUs of a shared or reserved container that may use `within`, for a pool: those of `within` that are in the
/// pool, and in reserved mode all free reserved ones. Where nothing is left, the whole pool. With `keep_within` no
/// others than those of `within`. Empty only if the pool (and for reserved mode the reserved set) is, or with
/// `keep_within`.
CpuSet shared_cpus(Mode mode, const CpuSet& within, const CpuSet& pool, const CpuSet& free_reserved, bool keep_within);

/// Who stays on which of the CPUs, for people; empty if nobody does.
std::string describe_unmovable(const LedgerSnapshot& view, const CpuSet& cpus);

/// How many CPUs of the pool may be taken out of it: the others are kept by min-shared-cpus.
std::size_t spare_cpus(const CpuSet& pool, const PlacementRules& rules);

}  // namespace topolet::placement
