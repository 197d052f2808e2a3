#include "core/placement/why_shared.hpp"

namespace topolet::placement {

WhyShared why_shared(NotExclusive why) {
  switch (why) {
    case NotExclusive::kAnnotatedNone:
      return {"annotation topolet.io/cpus = none", true};
    case NotExclusive::kAnnotatedShared:
      return {"annotation topolet.io/cpus = shared", true};
    case NotExclusive::kBurstable:
      return {"its QoS class is Burstable", false};
    case NotExclusive::kBestEffort:
      return {"its QoS class is BestEffort", false};
    case NotExclusive::kUnknownDemand:
      return {"neither the runtime nor the kernel tells exactly what it requests", false};
    case NotExclusive::kFractionalRequest:
      return {"its CPU request is not a whole number", false};
    case NotExclusive::kNoRequest:
      return {"annotation topolet.io/cpus = exclusive needs a CPU request", true};
    case NotExclusive::kUnknownRequest:
      return {"it requests 256 CPUs or more and has no CPU limit, so that the runtime is not told how many", true};
    case NotExclusive::kNothingRequested:
      return {"it requests no CPU", true};
    case NotExclusive::kNoOwnRequest:
      return {"it has no CPU request of its own", true};
    case NotExclusive::kOnlyWholeCpus:
      return {
          "annotation topolet.io/cpus = exclusive is ignored for a CPU request that is not a whole number: "
          "placement.exclusive-namespaces does not list its namespace",
          true};
    case NotExclusive::kReservedNamespace:
      return {"its namespace is one of placement.reserved-namespaces", true};
    case NotExclusive::kRuleNever:
      return {"placement.exclusive = never", true};
    case NotExclusive::kRuleAnnotated:
      return {"placement.exclusive = annotated, and it has no annotation topolet.io/cpus = exclusive", true};
    case NotExclusive::kKubeletHandsOutCpus:
      return {"the kubelet assigns CPUs on this node; while it does, topolet gives no container exclusive CPUs", true};
    case NotExclusive::kOnlyAtCreation:
      return {"exclusive CPUs are given only when a container is created", true};
    case NotExclusive::kNodeFull:
      break;
  }
  return {"", false};
}

}  // namespace topolet::placement
