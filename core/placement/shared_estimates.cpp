#include "core/placement/shared_estimates.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace topolet::placement {
namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

std::int64_t limit_of(const Demand& demand) {
  return demand.memory_limit_bytes > 0 ? demand.memory_limit_bytes : kUnlimited;
}

/// Rows of an older topolet do not have the value, but what was made of it.
bool is_of_one_value(const Demand& a, const Demand& b) {
  if (!a.memory_request_estimated || !b.memory_request_estimated) return false;
  if (a.oom_score_adj != 0 && b.oom_score_adj != 0) return a.oom_score_adj == b.oom_score_adj;
  return a.memory_request_bytes == b.memory_request_bytes;
}

/// Nor is the limit counted in the place of a request that is not known.
void book_nothing(Demand& demand) { demand.memory_request_bytes = demand.memory_limit_bytes = 0; }

bool has_estimate_of(const std::vector<const Workload*>& containers, std::size_t position) {
  const Demand& own = containers[position]->demand;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const Demand& other = containers[i]->demand;
    if (i == position || !is_of_one_value(own, other)) continue;
    if (i < position ? limit_of(other) > limit_of(own) : limit_of(other) >= limit_of(own)) return false;
  }
  return true;
}

/// The sandbox's limit; 0 where it has none, or one that does not bound its containers.
std::int64_t bound_of(const std::vector<const Workload*>& containers) {
  std::int64_t bound = 0;
  std::int64_t limits = 0;
  bool all_limited = true;
  for (const Workload* container : containers) {
    if (container->pod_demand) bound = container->pod_demand->memory_limit_bytes;
    limits += std::min(container->demand.memory_limit_bytes, kUnlimited - limits);
    all_limited = all_limited && container->demand.memory_limit_bytes > 0;
  }
  return !all_limited && limits == bound ? 0 : bound;
}

}  // namespace

std::vector<Demand> booked_demands(const std::vector<const Workload*>& containers) {
  std::vector<Demand> booked;
  booked.reserve(containers.size());
  for (std::size_t i = 0; i < containers.size(); ++i) {
    booked.push_back(containers[i]->demand);
    if (booked.back().memory_request_estimated && !has_estimate_of(containers, i)) book_nothing(booked.back());
  }
  std::int64_t left = bound_of(containers);
  if (left <= 0) return booked;
  for (auto demand = booked.rbegin(); demand != booked.rend(); ++demand) {
    if (!demand->memory_request_estimated) continue;
    demand->memory_request_bytes = std::min(demand->memory_request_bytes, left);
    if (demand->memory_request_bytes == 0) book_nothing(*demand);
    left -= demand->memory_request_bytes;
  }
  return booked;
}

}  // namespace topolet::placement
