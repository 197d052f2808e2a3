// The messages of the watch socket, made from the engine's state.
#pragma once

#include <string>
#include <vector>

#include "core/engine/planning/fits.hpp"
#include "core/engine/state/ledger.hpp"
#include "core/engine/state/transition.hpp"
#include "core/topology/topology.hpp"
#include "core/watch/watch.pb.h"

namespace topolet::watch {

v1::Container container_of(const engine::Allocation& allocation);
v1::ContainerKey key_of(const placement::ContainerKey& key);
v1::Capacity capacity_of(const engine::ReportedCapacity& told);
v1::Machine machine_of(const topology::Topology& topology);
v1::Cpus cpus_of(const engine::CpuInventory& inventory, const CpuSet& pool, const CpuSet& free_isolated);

/// Returns the changes of a transition. `inventory`: the one in force after it.
v1::Delta delta_of(const engine::Transition& transition, const engine::CpuInventory& inventory);

/// A container that the kubelet will ask for, as far as `pending` tells; what its annotations say is not read.
/// INVALID_ARGUMENT names what cannot be.
Result<placement::Workload> workload_of(const v1::PendingContainer& pending);

/// More than a node ever waits for at a time: what they take grows with the square of their number.
inline constexpr int kMaxPendingContainers = 1000;

/// Each as workload_of(), in their order. RESOURCE_EXHAUSTED beyond kMaxPendingContainers.
Result<std::vector<engine::PendingContainer>> pending_of(const v1::FitsRequest& request);

/// CANCELLED.
Error nobody_waits();

/// But for the instance, and whether topoletd has compared itself with the runtime. UNAVAILABLE where a policy was not
/// heard, as the numbers may be wrong then.
Result<v1::FitsResponse> answer_of(const engine::Fits& fits);

}  // namespace topolet::watch
