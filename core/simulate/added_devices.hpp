// Devices that a machine has besides those that its topology names.
#pragma once

#include <memory>
#include <vector>

#include "core/base/result.hpp"
#include "core/simulate/operation.hpp"
#include "core/topology/topology.hpp"

namespace topolet::simulate {

/// The same machine with the devices of these operations. INVALID_ARGUMENT for one that is nowhere on it.
Result<std::shared_ptr<const topology::Topology>> with_devices(std::shared_ptr<const topology::Topology> machine,
                                                               const std::vector<Operation>& devices);

}  // namespace topolet::simulate
