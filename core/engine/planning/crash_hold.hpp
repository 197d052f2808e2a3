// CPUs that are kept for containers that failed.
#pragma once

#include "core/engine/planning/placer.hpp"

namespace topolet::engine {

/// Plans; where the workload would lack CPUs, failed containers give up what is kept for them: those whose CPUs it
/// cannot do without, the oldest rather than the newest, and nobody if that is of no use.
Plan reclaim_and_plan(const Placer& placer, const Ledger& ledger, const placement::Workload& workload,
                      const Placer::Constraints& constraints);

}  // namespace topolet::engine
