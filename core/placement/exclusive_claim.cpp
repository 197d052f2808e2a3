#include "core/placement/exclusive_claim.hpp"

#include "core/placement/namespaces.hpp"
#include "core/placement/settings.hpp"

namespace topolet::placement {

std::uint32_t whole_cpus(const Workload& workload) {
  const std::int64_t milli = workload.demand.cpu_request_milli;
  if (workload.qos != Qos::kGuaranteed || milli <= 0 || milli % 1000 != 0) return 0;
  if (workload.demand.cpu_request_certainty != Certainty::kTold) return 0;
  return static_cast<std::uint32_t>(milli / 1000);
}

bool is_kubelet_cpuset_exclusive(const Workload& workload) {
  const std::uint32_t whole = whole_cpus(workload);
  // The kubelet knows how much more than its shares tell.
  if (whole > 0 && is_cpu_request_unknown(workload.demand)) return workload.kubelet_cpus.size() >= whole;
  return !workload.kubelet_cpus.empty() && whole == workload.kubelet_cpus.size();
}

ExclusiveClaim exclusive_claim(const Workload& workload, const PlacementRules& rules) {
  const CpusAnnotation annotation = cpus_annotation(workload);
  if (annotation == CpusAnnotation::kNone) return {0, NotExclusive::kAnnotatedNone};
  if (annotation == CpusAnnotation::kShared) return {0, NotExclusive::kAnnotatedShared};
  if (workload.qos == Qos::kUnknown) return {0, NotExclusive::kUnknownDemand};
  if (workload.demand.cpu_request_certainty == Certainty::kOfPod) return {0, NotExclusive::kNoOwnRequest};
  if (workload.qos != Qos::kBestEffort && workload.demand.cpu_request_certainty != Certainty::kTold)
    return {0, NotExclusive::kUnknownDemand};
  if (annotation != CpusAnnotation::kAbsent) {
    const std::int64_t milli = workload.demand.cpu_request_milli;
    if (milli <= 0) return {0, NotExclusive::kNoRequest};
    if (is_cpu_request_unknown(workload.demand)) return {0, NotExclusive::kUnknownRequest};
    if (rules.exclusive == ExclusiveRule::kNever) return {0, NotExclusive::kRuleNever};
    if (annotation == CpusAnnotation::kExclusiveIfWhole && milli % 1000 != 0) return {0, NotExclusive::kOnlyWholeCpus};
    return {static_cast<std::uint32_t>((milli + 999) / 1000), std::nullopt};
  }
  if (workload.qos == Qos::kBurstable)
    return {0, workload.demand.cpu_request_milli > 0 ? NotExclusive::kBurstable : NotExclusive::kNothingRequested};
  if (workload.qos == Qos::kBestEffort) return {0, NotExclusive::kBestEffort};
  if (workload.demand.cpu_request_milli == 0) return {0, NotExclusive::kNothingRequested};
  if (is_cpu_request_unknown(workload.demand)) return {0, NotExclusive::kUnknownRequest};
  const std::uint32_t whole = whole_cpus(workload);
  if (whole == 0) return {0, NotExclusive::kFractionalRequest};
  if (is_in_reserved_namespace(workload, rules)) return {0, NotExclusive::kReservedNamespace};
  if (rules.exclusive == ExclusiveRule::kNever) return {0, NotExclusive::kRuleNever};
  if (rules.exclusive == ExclusiveRule::kAnnotated) return {0, NotExclusive::kRuleAnnotated};
  return {whole, std::nullopt};
}

std::uint32_t exclusive_cpus_for(const Workload& workload, const PlacementRules& rules) {
  return exclusive_claim(workload, rules).cpus;
}

Mode shared_mode(const Workload& workload, const PlacementRules& rules) {
  return is_in_reserved_namespace(workload, rules) ? Mode::kReserved : Mode::kShared;
}

}  // namespace topolet::placement
