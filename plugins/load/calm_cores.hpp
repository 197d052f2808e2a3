// CPUs beside which others work: what one thread of a core gets depends on what its siblings do.
#pragma once

#include <topolet/policy.hpp>

#include "plugins/load/measured.hpp"

namespace topolet::load_policy {

/// Returns the CPUs that nobody has alone and on whose core another container does, and keeps at least half of each of
/// its CPUs busy, as far as that is measured.
sdk::Set cpus_beside_busy_ones(const topolet_topology& topology, const topolet_ledger& ledger,
                               const Measured& measured);

}  // namespace topolet::load_policy
