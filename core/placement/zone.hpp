// The annotation topolet.io/zone: on which NUMA nodes a scheduler has reserved room for the containers of a pod.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "core/placement/placement_rules.hpp"
#include "core/placement/workload.hpp"

namespace topolet::placement {

/// The annotation without its prefix, and the setting that policies see: a list of nodes, "0-1".
inline constexpr const char* kZoneAnnotation = "zone";

/// The annotation of a pod, read for one of its containers.
struct ZoneOfContainer {
  std::optional<NodeSet> nodes;  ///< never an empty set; absent: the scheduler has chosen none for it
  std::string ignored;           ///< why the annotation does not count, for the reason of the decision; empty: it does
  bool is_of_pool = false;       ///< it has counted on CPUs of the pool, not on isolated ones
};

/// Reads {"v":1,"node":"n1","zones":[1],"containers":{"main":[1]}}. `containers` gives the zone of each container; one
/// that is not named there has no zone. Without `containers`, `zones` is that of every container. `pool` lists those
/// for which CPUs of the pool were counted on where isolated ones might do as well. Other members are ignored.
///
/// An annotation meant for somebody else is ignored: another version, the name of another node (pods are copied with
/// their annotations), and an annotation that `rules` do not permit. INVALID_ARGUMENT for any other shape.
///
/// It counts only at the container's first attempt; later the ledger knows better where the container is.
Result<ZoneOfContainer> read_zone(const Workload& workload, const PlacementRules& rules);

/// Returns the nodes that the annotation of a pod names, for whichever of its containers; none if it does not count.
NodeSet zone_of_pod(const SharedStringMap& pod_annotations, const PlacementRules& rules);

/// The workload with a wish for these nodes.
Workload with_zone(Workload workload, const NodeSet& nodes);

/// Returns the end of the reason of a placement outside that zone: "; outside the zone …".
std::string describe_outside_zone(const NodeSet& zone);

/// Returns the nodes on which the workload is wished; absent without a wish.
std::optional<NodeSet> zone_of(const Workload& workload);

}  // namespace topolet::placement
