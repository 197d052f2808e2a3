#include "core/engine/converge/shown_quotas.hpp"

#include <optional>

#include "core/engine/state/cfs_quota.hpp"
#include "core/engine/state/ledger.hpp"

namespace topolet::engine {
namespace {

std::optional<operations::CfsQuota> shown_for(const Allocation& allocation) {
  return allocation.is_bound() ? quota_to_show(allocation) : std::nullopt;
}

}  // namespace

void ShownQuotas::on_loaded(const Ledger& ledger) {
  MutexLock lock(mutex_);
  for (const auto& [key, allocation] : ledger.allocations()) {
    if (const auto quota = shown_for(allocation)) by_container_[allocation.container_id] = *quota;
  }
}

void ShownQuotas::on_durable(const Transition& transition) {
  MutexLock lock(mutex_);
  for (const Change& change : transition.changes) {
    if (change.before && !by_container_.empty()) by_container_.erase(change.before->container_id);
    if (!change.after) continue;
    if (const auto quota = shown_for(*change.after)) by_container_[change.after->container_id] = *quota;
  }
}

bool ShownQuotas::empty() const {
  MutexLock lock(mutex_);
  return by_container_.empty();
}

std::optional<operations::CfsQuota> ShownQuotas::quota_of(const std::string& container_id) const {
  MutexLock lock(mutex_);
  const auto quota = by_container_.find(container_id);
  if (quota == by_container_.end()) return std::nullopt;
  return quota->second;
}

}  // namespace topolet::engine
