#include "core/engine/converge/shown_quotas.hpp"

#include <optional>

#include "core/cri/messages/shown_status.hpp"
#include "core/engine/state/cfs_quota.hpp"
#include "core/engine/state/ledger.hpp"

namespace topolet::engine {
namespace {

std::optional<cri::CfsQuota> shown_for(const Allocation& allocation) {
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

std::optional<std::string> ShownQuotas::rewrite(const cri::ObservedMessage& answer) const {
  {
    MutexLock lock(mutex_);
    if (by_container_.empty()) return std::nullopt;
  }
  return cri::with_shown_quotas(answer, [this](const std::string& container_id) {
    MutexLock lock(mutex_);
    const auto quota = by_container_.find(container_id);
    return quota == by_container_.end() ? std::optional<cri::CfsQuota>() : quota->second;
  });
}

}  // namespace topolet::engine
