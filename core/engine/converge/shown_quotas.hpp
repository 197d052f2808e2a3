// What the kubelet is shown of the CFS quota of a container that has none by topolet's hand: what it asked for.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "core/base/mutex.hpp"
#include "core/cri/call.hpp"
#include "core/cri/messages/demand.hpp"
#include "core/engine/state/observer.hpp"

namespace topolet::engine {

/// The kubelet reads a container's CPU limit in the status that the runtime tells of it (cri::kStatusMethods): where
/// that has no quota, the status of the pod goes on to show the limit of before a resize. Any thread may ask; the rest
/// is the loop's.
class ShownQuotas final : public Observer {
 public:
  void on_loaded(const Ledger& ledger) override;
  void on_durable(const Transition& transition) override;

  /// The answer as the kubelet is to have it; none where it stays as it came.
  std::optional<std::string> rewrite(const cri::ObservedMessage& answer) const;

 private:
  mutable Mutex mutex_;
  std::unordered_map<std::string, cri::CfsQuota> by_container_ TOPOLET_GUARDED_BY(mutex_);
};

}  // namespace topolet::engine
