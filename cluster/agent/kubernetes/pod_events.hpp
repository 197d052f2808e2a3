// Events on pods, so that `kubectl describe pod` tells what topoletd has decided, and why.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <tuple>

#include "cluster/agent/kubernetes/bound_pods.hpp"
#include "cluster/api/api.hpp"
#include "cluster/api/trouble_log.hpp"
#include "core/base/log.hpp"
#include "core/watch/watch.pb.h"

namespace topolet::agent {

/// On the loop's thread. The same event of the same pod again is counted in the one that is there, at most every
/// `update_period`. Beyond the limits, events are counted and not written.
class PodEvents {
 public:
  struct Options {
    std::string node_name = {};
    std::chrono::milliseconds update_period{10'000};
    /// After that long without it, the same is a new event.
    std::chrono::milliseconds memory{600'000};
    int most_of_pod = 10;   ///< new ones within `memory`
    int most_at_once = 50;  ///< new ones of all pods, and then one each `period`
    std::chrono::milliseconds period{1000};
  };
  struct Counts {
    std::map<std::string, std::uint64_t> written;  ///< by reason: new ones and updates
    std::uint64_t dropped = 0;                     ///< beyond the limits
    std::uint64_t failed = 0;
  };

  /// `pods`: null while they are not known.
  PodEvents(Options options, api::Api& api, std::function<const BoundPods*()> pods, Log& log);
  PodEvents(const PodEvents&) = delete;
  PodEvents& operator=(const PodEvents&) = delete;

  /// An event of topoletd's, where the pod's owner should know it: a denial, a move, and a placement on several nodes
  /// or away from a device (`is_remote`).
  void take(const watch::v1::Event& event, bool is_remote);
  const Counts& counts() const { return counts_; }

 private:
  using Time = api::Api::Clock::time_point;
  using Key = std::tuple<std::string, std::string, std::string>;  ///< the pod's uid, the reason, the message
  struct Told {
    std::string name_space;
    std::string name;  ///< of the Event object; empty: it could not be made
    int count = 1;
    int written_count = 0;
    Time last_written{};
    Time last_seen{};
    bool is_update_due = false;
  };

  bool may_begin(const std::string& pod_uid);
  void create(const Key& key, const watch::v1::Event& event, const std::string& type);
  void update_later(const Key& key);
  void update(const Key& key);
  void forget_old();

  const Options options_;
  api::Api& api_;
  const std::function<const BoundPods*()> pods_;
  api::TroubleLog trouble_;
  Counts counts_;
  std::map<Key, Told> told_;
  double tokens_;
  Time tokens_counted_;
  std::uint64_t last_number_ = 0;
};

/// Returns true if the container uses a device of the machine that is on none of its nodes.
bool uses_remote_device(const watch::v1::Machine& machine, const watch::v1::Container& container);

}  // namespace topolet::agent
