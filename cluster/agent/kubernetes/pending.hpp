// The containers that pods bound to this node have yet to create.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cluster/api/pod.hpp"
#include "core/watch/watch.pb.h"

namespace topolet::agent {

struct BookedContainer {
  api::Amounts amounts;
  std::int64_t memory_limit_bytes = 0;  ///< 0: it has none
  api::Amounts of_pod = {};             ///< the part of it that is not its own request, but its pod's
  bool has_failed = false;              ///< it does not run: its CPUs are kept for its next attempt
};
/// Containers that topoletd has booked, by the pod's uid at the runtime and then by the container's name.
using BookedContainers = std::map<std::string, std::map<std::string, BookedContainer>>;
BookedContainers booked_containers(const watch::v1::Snapshot& node);

/// On which nodes the devices of a pod's containers are, by the container's name.
using NodesOfDevices = std::map<std::string, std::set<std::uint32_t>>;

/// Returns true if topoletd places containers by their devices.
bool places_by_devices(const watch::v1::Snapshot& node);

/// Returns the pod's remaining requests, in the order in which they will come: each container that topoletd does not
/// have, with all that it requests, whatever other containers of the pod hold now. topoletd lets it reuse the CPUs and
/// memory of init containers that end before it begins, if it is on the same nodes. Then the growth of containers that
/// are being resized in place, or the whole request of those that are created anew for it; and the pod-level request
/// beyond the containers, which shares CPUs. Empty for a pod that has ended. The pod's overhead is in no zone, and is
/// not included.
std::vector<watch::v1::PendingContainer> pending_containers(const api::Pod& pod, const BookedContainers& booked,
                                                            const NodesOfDevices& devices = {});

/// How many CPUs a kubelet that hands them out will give those of a pod, beyond what its init containers have.
std::int64_t whole_cpus_of(const std::vector<watch::v1::PendingContainer>& pending, const api::Pod& pod,
                           const BookedContainers& booked);

}  // namespace topolet::agent
