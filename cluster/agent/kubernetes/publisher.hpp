// Writes this node's NodeResourceTopology: when something has changed, once, and never what is only half known.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "cluster/agent/kubernetes/bound_pods.hpp"
#include "cluster/agent/kubernetes/device_inventory.hpp"
#include "cluster/agent/kubernetes/node_owner.hpp"
#include "cluster/agent/kubernetes/setup_warnings.hpp"
#include "cluster/agent/kubernetes/waker.hpp"
#include "cluster/api/api.hpp"
#include "cluster/api/trouble_log.hpp"
#include "core/base/log.hpp"
#include "core/base/result.hpp"
#include "core/watch/watch.pb.h"

namespace topolet::agent {

/// Publishes the node's object. On the loop's thread. Notifications are hints: each attempt reads everything anew.
class Publisher {
 public:
  struct Options {
    std::string node_name = {};
    /// How often schedulers look for changes (cacheResyncPeriodSeconds of NodeResourceTopologyMatch).
    std::chrono::milliseconds scheduler_resync{5000};
    /// The longest time between two writes, and up to a tenth less: by the field that each of them changes, readers
    /// know that the object is kept up.
    std::chrono::milliseconds heartbeat{45'000};
    /// As those of Waker.
    std::vector<std::string> scheduler_names = {};
    std::string lease_namespace = {};
    std::string lease_name = {};
  };
  struct Deps {
    api::Api& api;
    /// Returns the node's state; nothing while it is not known for certain.
    std::function<std::optional<watch::v1::Snapshot>()> node_state;
    /// Answers later, on the loop's thread.
    std::function<void(watch::v1::FitsRequest, std::function<void(Result<watch::v1::FitsResponse>)>)> ask_what_fits;
    /// Null while it is not known.
    std::function<const BoundPods*()> pods;
    /// Null while it is not known.
    std::function<const DeviceInventory::State*()> devices;
    Log& log;
  };
  /// For metrics.
  struct Counts {
    std::uint64_t writes = 0;
    std::uint64_t failed_writes = 0;
    std::uint64_t touches = 0;
    std::uint64_t heartbeats = 0;
    std::uint64_t deletions = 0;      ///< of the object, by anybody
    std::uint64_t other_writers = 0;  ///< versions that somebody else wrote over ours
    std::uint64_t wake_ups = 0;       ///< events made for schedulers
    std::uint64_t generation = 0;     ///< of the newest object written
    std::uint64_t unplaced_containers = 0;
    std::optional<bool> has_node = {};  ///< the API server has a Node of this name, as it said last
    std::string other_writer = {};      ///< who wrote over ours, if that was not long ago
    std::map<std::string, std::string> setup_warnings = {};  ///< as setup_warnings() tells them
    std::string trouble = {};                                ///< why the last attempt failed; empty: it did not
    bool is_refused = false;                                 ///< the same: by the API server, for lack of a right
  };

  Publisher(Options options, Deps deps);
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  /// Something that the object depends on may have changed.
  void something_changed() { schedule(Urgency::kUsual); }
  void pod_was_bound() { schedule(Urgency::kUrgent); }
  /// A container is on other nodes than a scheduler knows, and so is the room.
  void container_was_moved() { schedule(Urgency::kUrgent); }
  /// The object as the API server has it; null: there is none. The first call lets publishing begin.
  void take_object(const nlohmann::json& object);
  Counts counts() const;

 private:
  using Time = api::Api::Clock::time_point;
  /// The inputs of one attempt, which stay the same until it ends.
  struct Attempt {
    std::string instance;
    std::string fingerprint;
    std::string acknowledged;
    DeviceInventory::State devices;
    std::map<std::string, std::int64_t> pending_devices;
    std::int64_t pending_cpus = 0;  ///< whole ones of containers that are to have them alone
  };

  enum class Urgency { kUsual, kUrgent };

  void schedule(Urgency urgency);
  void schedule_at(Time due);
  Time next_urgent_write();
  void attempt();
  void take_fits(const Attempt& attempt, const Result<watch::v1::FitsResponse>& fits);
  void write(nlohmann::json object);
  void take_write(const nlohmann::json& before, const nlohmann::json& object, const api::ApiAnswer& answer);
  void resolve_conflict();
  void written(const nlohmann::json& before, nlohmann::json object);
  void touch_later();
  void beat_later();
  void failed(const std::string& why);
  void succeeded();
  void end_attempt();
  bool judge(const nlohmann::json& object);
  void note_deletion();
  void look_for_node();
  std::string object_path() const;
  std::chrono::milliseconds jittered(std::chrono::milliseconds duration);

  const Options options_;
  const Deps deps_;
  api::TroubleLog trouble_;
  Waker waker_;
  std::minstd_rand random_{std::random_device{}()};
  Counts counts_;

  bool is_object_known_ = false;
  nlohmann::json current_;                        ///< as the API server has it; null: there is none
  nlohmann::json last_written_;                   ///< by this process; null: nothing yet
  nlohmann::json last_sent_;                      ///< whether it was written or not
  std::deque<std::string> own_versions_;          ///< resourceVersions of the newest writes
  std::optional<nlohmann::json> seen_meanwhile_;  ///< while a write was under way
  NodeOwner owner_;
  SetupWarnings setup_warnings_;

  bool is_busy_ = false;       ///< an attempt is under way
  bool is_changed_ = false;    ///< since it began
  bool is_urgent_ = false;     ///< the same, by a pod that was bound
  bool is_touch_due_ = false;  ///< the next write is the second touch
  bool is_beat_due_ = true;    ///< it is to be written though nothing in it has changed
  int deletions_in_a_row_ = 0;
  int conflicts_ = 0;  ///< one after the other
  std::chrono::milliseconds retry_{0};
  std::optional<Time> due_;        ///< of the next attempt
  std::optional<Time> touch_due_;  ///< of the second touch
  Time beat_due_{};                ///< of the next heartbeat
  Time last_deletion_{};
  Time last_contest_{};
  Time next_write_{};     ///< not before, unless it is urgent
  Time not_before_{};     ///< after failures, and while another program writes
  double urgent_writes_;  ///< that may be made now
  Time urgent_counted_;
};

/// The devices of pods that are bound and have not been given out yet, by resource.
std::map<std::string, std::int64_t> pending_devices(const BoundPods& pods, const DeviceInventory::State& devices);

}  // namespace topolet::agent
