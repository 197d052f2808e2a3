// CPUs that are kept for the next attempts of containers that have ended.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/engine/planning/placer.hpp"

namespace topolet::engine {

/// The ended containers that have to give up what is kept for them until what remains of the ledger `suffices`: those
/// without which it cannot, the newest rather than the oldest, and never an earlier attempt of `key` itself. Nothing if
/// that is of no use. It does not suffice as it is.
std::optional<std::vector<placement::ContainerKey>> yielding_until(const Ledger& ledger,
                                                                   const placement::ContainerKey& key,
                                                                   const std::function<bool(const Ledger&)>& suffices);

/// Plans; where the workload would lack CPUs, miss its zone or be on more nodes than it must, ended containers give up
/// what is kept for them.
Plan reclaim_and_plan(const Placer& placer, const Ledger& ledger, const placement::Workload& workload,
                      const Placer::Constraints& constraints);

/// The ledger as it is for newcomers: nobody keeps anything.
void release_kept(Ledger& ledger);

}  // namespace topolet::engine
