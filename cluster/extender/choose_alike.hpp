// The choice of zones where all CPUs are alike, which choose.hpp makes for each kind of CPUs.
#pragma once

#include "cluster/extender/choose.hpp"

namespace topolet::extender {

/// As choose_zones(), fit_zones() and check_zones(), for containers that all have CPUs of their own there.
Result<Choice> choose_among_alike(const FreeZones& zones, const Demand& demand);
Result<Fit> fit_among_alike(const FreeZones& zones, const Demand& demand);
Status check_among_alike(const FreeZones& zones, const Demand& demand);

}  // namespace topolet::extender
