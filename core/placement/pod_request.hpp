// Containers without a request of their own, whose pod has one (pod-level resources, Kubernetes 1.34).
#pragma once

#include <cstdint>
#include <string>

#include "core/placement/workload.hpp"

namespace topolet::placement {

/// What other containers of a pod request that run beside one.
struct RequestedBeside {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
};

/// The workload with what counts as its request, if it has none of its own: what its pod requests beyond `beside`,
/// which is then Certainty::kOfPod.
///
/// The kubelet tells the runtime of a container without limits of its own those of the pod, and without a request the
/// limit: so it is told as much as the pod requests, although others run beside it that request something; or more. Of
/// one that is alone so far nobody can tell whether the request is its own. A container of a Guaranteed pod that is
/// told none has none.
Workload with_request_of_pod(Workload workload, const RequestedBeside& beside);

/// "; its pod requests 4 CPUs as a whole", for a container without a CPU request of its own; empty for all others.
std::string describe_request_of_pod(const Workload& workload);

}  // namespace topolet::placement
