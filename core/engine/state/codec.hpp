// Allocations, pods and reported capacities as the store keeps them.
#pragma once

#include <vector>

#include "core/base/result.hpp"
#include "core/engine/state/allocation.hpp"
#include "core/engine/state/recent_sizes.hpp"
#include "core/engine/state/reported_capacity.hpp"
#include "store/store.hpp"

namespace topolet::engine {

/// Gives every field of an allocation as a column of `allocation`, by name.
store::Columns encode(const Allocation& allocation);
/// Gives only the fields in which it differs from `before`, as they are stored: nothing for one that has followed the
/// whole pool, which is stored once for all.
store::Columns encode_changes(const Allocation& before, const Allocation& after);
/// Reads what encode() has given. DATA_LOSS names the column that is missing or cannot be read.
Result<Allocation> decode_allocation(const store::AllocationRow& row);

store::Columns encode(const Pod& pod);
Result<Pod> decode_pod(const store::PodRow& row);

store::Columns encode(const ReportedCapacity& capacity);
Result<ReportedCapacity> decode_capacity(const store::CapacityRow& row);

std::vector<store::RecentSizeRow> encode(const RecentSizes& sizes);
RecentSizes decode_recent_sizes(const std::vector<store::RecentSizeRow>& rows);

}  // namespace topolet::engine
