// Containers without a request of their own, whose pod has one (pod-level resources, Kubernetes 1.34).
#pragma once

#include <cstdint>
#include <string>

#include "core/placement/workload.hpp"

namespace topolet::placement {

/// The requests of other containers of a pod that run beside one.
struct RequestedBeside {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
};

/// Returns the workload with an assumed request, if it has none of its own: its pod's request beyond `beside`, which is
/// then Certainty::kOfPod.
///
/// For a container without limits of its own, the kubelet passes the pod's limits to the runtime, and without a request
/// the limit: so the request that arrives is the pod's or more, although others that request something run beside it.
/// While a container is alone, nobody can tell whether the request is its own. A container of a Guaranteed pod for
/// which
/// no request arrives has none.
Workload with_request_of_pod(Workload workload, const RequestedBeside& beside);

/// "; its pod requests 4 CPUs as a whole", for a container without a CPU request of its own; empty for all others.
std::string describe_request_of_pod(const Workload& workload);

}  // namespace topolet::placement
