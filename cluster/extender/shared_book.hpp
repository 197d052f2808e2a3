// The zone book, and what was read of pods lately, for the threads that need them.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cluster/extender/demand.hpp"
#include "cluster/extender/heartbeats.hpp"
#include "cluster/extender/waiting_pods.hpp"
#include "cluster/extender/zone_book.hpp"
#include "core/base/mutex.hpp"

namespace topolet::extender {

struct SharedBook {
  Mutex mutex;
  ZoneBook book TOPOLET_GUARDED_BY(mutex);
  Heartbeats heartbeats TOPOLET_GUARDED_BY(mutex);
  WaitingPods waiting TOPOLET_GUARDED_BY(mutex);
  bool is_synced TOPOLET_GUARDED_BY(mutex) = false;  ///< all nodes' objects were read once
  /// For whom zones are kept, since pods were evicted for them, is known, or could not be found out in time.
  std::atomic<bool> is_kept_known = true;
  std::atomic<bool> has_waiting_binds = false;  ///< more than the API server is given at once
};

/// Demands of pods, as read when a scheduler filtered nodes for them: the same pod is ranked and bound right after
/// that. Keeps the latest ones only. Any thread.
class RecentDemands {
 public:
  explicit RecentDemands(std::size_t most = 4096) : most_(most) {}

  using Read = std::shared_ptr<const Result<Demand>>;
  /// Null if it is not known. `version`: as in ExtenderArgs.
  Read find(const std::string& version) const TOPOLET_EXCLUDES(mutex_);
  Read find_by_uid(const std::string& uid) const TOPOLET_EXCLUDES(mutex_);
  void add(const std::string& version, const std::string& uid, Read demand) TOPOLET_EXCLUDES(mutex_);

 private:
  struct Entry {
    std::string version;
    Read demand;
  };
  const std::size_t most_;
  mutable Mutex mutex_;
  std::map<std::string, Entry> by_uid_ TOPOLET_GUARDED_BY(mutex_);
  std::deque<std::string> order_ TOPOLET_GUARDED_BY(mutex_);  ///< uids, the oldest first
};

/// Reads a Pod object.
RecentDemands::Read read_demand_of(const nlohmann::json& pod, const ZoneDefaults& defaults, SharedBook& shared);

}  // namespace topolet::extender
