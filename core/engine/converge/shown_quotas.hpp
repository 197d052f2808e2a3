// The CFS quotas that clients are shown of containers that have none by topolet's hand: those that they asked for.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "core/base/mutex.hpp"
#include "core/engine/state/observer.hpp"
#include "core/operations/demand.hpp"

namespace topolet::engine {

/// The kubelet reads a container's CPU limit in the status that the runtime tells of it. Where that has no quota, the
/// status of the pod goes on to show the limit of before a resize. Any thread may ask; the rest is the loop's.
class ShownQuotas final : public Observer {
 public:
  void on_loaded(const Ledger& ledger) override;
  void on_durable(const Transition& transition) override;

  /// True if every container is shown as the runtime tells it.
  bool empty() const;
  /// None where a container is to be shown as the runtime tells it.
  std::optional<operations::CfsQuota> quota_of(const std::string& container_id) const;

 private:
  mutable Mutex mutex_;
  std::unordered_map<std::string, operations::CfsQuota> by_container_ TOPOLET_GUARDED_BY(mutex_);
};

}  // namespace topolet::engine
