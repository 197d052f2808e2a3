// The CFS quota of a container that has CPUs of its own (placement.exclusive-quota). Pure functions.
#pragma once

#include <optional>

#include "core/engine/state/allocation.hpp"
#include "core/operations/demand.hpp"

namespace topolet::engine {

/// Decides who sets the quota from now on, by the mode that the container has. `drops`: exclusive ones have none.
void settle_quota(Allocation& allocation, bool drops);

/// Returns the quota that topolet tells the runtime; none where the kubelet's word stays as it came.
std::optional<operations::CfsQuota> quota_to_tell(const Allocation& allocation);

/// Returns the quota that the kubelet is to be shown in place of the one that the runtime was told; none where that is
/// the same.
std::optional<operations::CfsQuota> quota_to_show(const Allocation& allocation);

}  // namespace topolet::engine
