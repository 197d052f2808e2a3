#include "core/operations/container.hpp"

#include <algorithm>
#include <utility>

namespace topolet::operations {

void complete(ContainerDetail& detail, const ToldResources& kernel, std::size_t seen_cpus, const DemandRules& rules) {
  ToldResources told = detail.told;
  if (!detail.keeps_updates) told.correct(kernel);
  told.fill_in(kernel);
  KnownDemand known = demand_of(told, seen_cpus, rules.memory_total_bytes);
  detail.mems = kernel.mems && !detail.keeps_updates ? *kernel.mems : detail.spec_mems;
  detail.workload.qos = known.qos;
  detail.workload.demand = std::move(known.demand);
}

namespace {

/// A request that was read from the limit follows it; an estimated one cannot be more than it.
void apply_memory_limit(std::int64_t limit_bytes, placement::Demand& demand) {
  const bool follows = !demand.memory_request_estimated && demand.memory_request_bytes == demand.memory_limit_bytes;
  demand.memory_limit_bytes = std::max<std::int64_t>(limit_bytes, 0);
  if (follows && demand.memory_request_bytes != 0) demand.memory_request_bytes = demand.memory_limit_bytes;
  if (demand.memory_limit_bytes > 0) {
    demand.memory_request_bytes = std::min(demand.memory_request_bytes, demand.memory_limit_bytes);
  }
}

/// Only a Burstable container's tells a request; see demand.hpp.
void apply_oom_score_adj(std::int64_t oom_score_adj, const DemandRules& rules, placement::Demand& demand) {
  const bool is_burstable = qos_of_oom_score_adj(oom_score_adj) == placement::Qos::kBurstable;
  if (oom_score_adj == 0 || !is_burstable || rules.memory_total_bytes <= 0) return;
  const MemoryRequest memory =
      memory_request(placement::Qos::kBurstable, oom_score_adj, demand.memory_limit_bytes, rules.memory_total_bytes);
  // At the ends of the scale it may be anything, and so it is unknown, as at a create.
  demand.memory_request_bytes = memory.bytes;
  demand.memory_request_estimated = memory.estimated;
}

}  // namespace

placement::Demand apply_update(const placement::Demand& before, const ResourceUpdate& update,
                               const DemandRules& rules) {
  placement::Demand after = before;
  if (update.cpu_quota_us != 0) {
    after.cpu_limit_milli = cpu_limit_milli(update.cpu_quota_us, update.cpu_period_us);
    after.cpu_period_us = cpu_period_us(update.cpu_quota_us, update.cpu_period_us);
  }
  // A container that has no request of its own is told its pod's.
  if (update.cpu_shares != 0 && before.cpu_request_certainty != placement::Certainty::kOfPod) {
    after.cpu_request_milli = cpu_request_milli(update.cpu_shares, after.cpu_limit_milli);
    after.cpu_request_certainty = placement::Certainty::kTold;
  }
  for (const auto& [page_size, bytes] : update.hugepage_limit_bytes) after.hugepage_limit_bytes[page_size] = bytes;
  if (update.memory_limit_bytes != 0) apply_memory_limit(update.memory_limit_bytes, after);
  apply_oom_score_adj(update.oom_score_adj, rules, after);
  return after;
}

}  // namespace topolet::operations
