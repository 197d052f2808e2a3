#include "core/plugin/call/request_facts.hpp"

#include "core/placement/candidates.hpp"

namespace topolet::plugin {

static_assert(static_cast<int>(placement::Occasion::kCreate) == TOPOLET_OCCASION_CREATE);
static_assert(static_cast<int>(placement::Occasion::kRestart) == TOPOLET_OCCASION_RESTART);
static_assert(static_cast<int>(placement::Occasion::kResize) == TOPOLET_OCCASION_RESIZE);
static_assert(static_cast<int>(placement::Occasion::kMove) == TOPOLET_OCCASION_MOVE);
static_assert(static_cast<int>(placement::Occasion::kRepair) == TOPOLET_OCCASION_REPAIR);
static_assert(static_cast<int>(placement::Occasion::kAdopt) == TOPOLET_OCCASION_ADOPT);
static_assert(static_cast<int>(placement::CpuSource::kPool) == TOPOLET_CPUS_FROM_POOL);
static_assert(static_cast<int>(placement::CpuSource::kPreferIsolated) == TOPOLET_CPUS_PREFER_ISOLATED);
static_assert(static_cast<int>(placement::CpuSource::kIsolated) == TOPOLET_CPUS_FROM_ISOLATED);

std::int32_t why_shared_of(const placement::PolicyRequest& request) {
  using placement::NotExclusive;
  if (request.exclusive) return TOPOLET_SHARED_NOT;
  if (!request.why_not_exclusive) return TOPOLET_SHARED_OTHER;
  switch (*request.why_not_exclusive) {
    case NotExclusive::kAnnotatedNone:
      return TOPOLET_SHARED_ANNOTATED_NONE;
    case NotExclusive::kAnnotatedShared:
      return TOPOLET_SHARED_ANNOTATED_SHARED;
    case NotExclusive::kBurstable:
      return TOPOLET_SHARED_BURSTABLE;
    case NotExclusive::kBestEffort:
      return TOPOLET_SHARED_BESTEFFORT;
    case NotExclusive::kUnknownDemand:
      return TOPOLET_SHARED_UNKNOWN_DEMAND;
    case NotExclusive::kFractionalRequest:
      return TOPOLET_SHARED_FRACTIONAL_REQUEST;
    case NotExclusive::kNoRequest:
      return TOPOLET_SHARED_NO_REQUEST;
    case NotExclusive::kUnknownRequest:
      return TOPOLET_SHARED_UNKNOWN_REQUEST;
    case NotExclusive::kNothingRequested:
      return TOPOLET_SHARED_NOTHING_REQUESTED;
    case NotExclusive::kNoOwnRequest:
      return TOPOLET_SHARED_NO_OWN_REQUEST;
    case NotExclusive::kOnlyWholeCpus:
      return TOPOLET_SHARED_ONLY_WHOLE_CPUS;
    case NotExclusive::kReservedNamespace:
      return TOPOLET_SHARED_RESERVED_NAMESPACE;
    case NotExclusive::kRuleNever:
      return TOPOLET_SHARED_RULE_NEVER;
    case NotExclusive::kRuleAnnotated:
      return TOPOLET_SHARED_RULE_ANNOTATED;
    case NotExclusive::kKubeletHandsOutCpus:
      return TOPOLET_SHARED_KUBELET_HANDS_OUT_CPUS;
    case NotExclusive::kOnlyAtCreation:
      return TOPOLET_SHARED_ONLY_AT_CREATION;
    case NotExclusive::kNodeFull:
      return TOPOLET_SHARED_NODE_FULL;
  }
  return TOPOLET_SHARED_OTHER;
}

std::uint32_t flags_of(const placement::PolicyRequest& request) {
  const bool is_partial = request.candidates_are_cut || omits_node_sets(request.candidates);
  std::uint32_t flags = 0;
  const auto set = [&flags](std::uint32_t flag, bool is_set) { flags |= is_set ? flag : 0; };
  set(TOPOLET_REQUEST_MUST_KEEP, request.must_retain && !request.keep.empty());
  set(TOPOLET_REQUEST_STAYS, request.stay_near.has_value());
  set(TOPOLET_REQUEST_PARTIAL, is_partial);
  set(TOPOLET_REQUEST_WHOLE_CORES, request.common_options.whole_cores);
  set(TOPOLET_REQUEST_KUBELET_CPUS, request.kubelet_hands_out_cpusets);
  set(TOPOLET_REQUEST_POD_SCOPE, request.common_options.pod_scope);
  set(TOPOLET_REQUEST_SPREAD_CORES, request.common_options.spread_cores);
  return flags;
}

}  // namespace topolet::plugin
