// A scheduler chooses a container's nodes before anybody knows which devices it gets; the kubelet chooses these by
// itself.
#pragma once

#include <functional>
#include <vector>

#include "core/engine/planning/device_nodes.hpp"
#include "core/engine/planning/placer.hpp"

namespace topolet::engine {

/// Plans with the zone of `constraints`, and without it where its devices are nearer then: where policies place the
/// container by devices that are not near to its zone, the zone yields. The reason and its code say so. Devices whose
/// nodes the machine does not tell count for nothing. `plan` is called once or twice.
Plan plan_by_zone_and_devices(const topology::Topology& topology, const placement::Workload& workload,
                              const Placer::Constraints& constraints,
                              const std::function<Plan(const Placer::Constraints&)>& plan);

}  // namespace topolet::engine
