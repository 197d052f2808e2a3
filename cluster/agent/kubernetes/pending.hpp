// What pods that are bound to this node will still ask of topoletd.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cluster/api/pod.hpp"
#include "core/watch/watch.pb.h"

namespace topolet::agent {

/// What topoletd has booked, by the pod's uid at the runtime and then by the container's name.
using BookedContainers = std::map<std::string, std::map<std::string, api::Amounts>>;
BookedContainers booked_containers(const watch::v1::Snapshot& node);

/// What the scheduler counts for the pod, less what is booked for it: as containers that topoletd does not have yet.
/// Those it has in truth come first; what is left over, such as the growth of a container that is being resized or a
/// large init container, is one more. Nothing of a pod that has ended.
std::vector<watch::v1::PendingContainer> pending_containers(const api::Pod& pod, const BookedContainers& booked);

}  // namespace topolet::agent
