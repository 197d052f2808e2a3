// Allocations, pods, told capacities and transitions as the store keeps them.
#pragma once

#include "core/base/result.hpp"
#include "core/engine/state/allocation.hpp"
#include "core/engine/state/transition.hpp"
#include "store/store.hpp"

namespace topolet::engine {

/// Every field of an allocation, as columns of the table `allocation`, by name.
store::Columns encode(const Allocation& allocation);
/// Only those in which it differs from `before`.
store::Columns encode_changes(const Allocation& before, const Allocation& after);
/// DATA_LOSS names the column that cannot be read. Columns that are missing leave the field as it is by default.
Result<Allocation> decode_allocation(const store::AllocationRow& row);

store::Columns encode(const Pod& pod);
Result<Pod> decode_pod(const store::PodRow& row);

store::Columns encode(const ToldCapacity& told);
Result<ToldCapacity> decode_capacity(const store::CapacityRow& row);

/// Writes a transition's rows: all or, with an error, none if `store` is in a savepoint of its own.
Status write(store::Store& store, const Transition& transition);

}  // namespace topolet::engine
