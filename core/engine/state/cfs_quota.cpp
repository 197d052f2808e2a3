#include "core/engine/state/cfs_quota.hpp"

namespace topolet::engine {
namespace {

/// The period stays the kubelet's: it is what a quota would be meant with.
operations::CfsQuota no_quota(const Allocation& allocation) {
  const auto asked = operations::quota_of(allocation.workload.demand);
  return {-1, asked ? asked->period_us : 0};
}

}  // namespace

void settle_quota(Allocation& allocation, bool drops) {
  const bool is_dropped = allocation.quota == QuotaState::kDropped;
  const bool has_any = allocation.workload.demand.cpu_limit_milli > 0;
  if (drops && allocation.is_exclusive()) {
    if (has_any) allocation.quota = QuotaState::kDropped;
  } else if (is_dropped) {
    allocation.quota = QuotaState::kGivenBack;
  }
}

std::optional<operations::CfsQuota> quota_to_tell(const Allocation& allocation) {
  if (allocation.quota == QuotaState::kAsAsked) return std::nullopt;
  if (allocation.quota == QuotaState::kDropped) return no_quota(allocation);
  return operations::quota_of(allocation.workload.demand).value_or(no_quota(allocation));
}

std::optional<operations::CfsQuota> quota_to_show(const Allocation& allocation) {
  if (allocation.quota == QuotaState::kAsAsked) return std::nullopt;
  return operations::quota_of(allocation.workload.demand);
}

}  // namespace topolet::engine
