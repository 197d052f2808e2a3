// All that the agent does in the cluster: follows the pods of this node, and publishes its topology.
#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cluster/agent/kubernetes/bound_pods.hpp"
#include "cluster/agent/kubernetes/capacity_relay.hpp"
#include "cluster/agent/kubernetes/device_inventory.hpp"
#include "cluster/agent/kubernetes/pod_events.hpp"
#include "cluster/agent/kubernetes/publisher.hpp"
#include "cluster/agent/kubernetes/token_renewal.hpp"
#include "cluster/agent/node.hpp"
#include "cluster/agent/watch_client.hpp"
#include "cluster/api/access_review.hpp"
#include "cluster/api/api_client.hpp"
#include "cluster/api/reflector.hpp"
#include "core/base/clock.hpp"
#include "core/base/log.hpp"
#include "core/base/mutex.hpp"

namespace topolet::agent {

/// Works from start() to stop() on a thread of its own.
class Reporter {
 public:
  struct Options {
    std::string node_name = {};
    std::string pod_resources;  ///< the path of the kubelet's socket; empty: no devices
    std::chrono::milliseconds scheduler_resync{5000};
    std::vector<std::string> scheduler_names = {};  ///< whose pods are woken when a zone has grown
    std::string lease_namespace = {};               ///< of the Lease of topolet-extender; empty: there is none
    std::string lease_name = {};
    std::string control_socket = {};  ///< topoletd's: a path; empty: what others say of the capacity stays unread
    std::string token_file = {};      ///< of the API server's client; empty: it has none
    Clock clock = {};
  };
  /// For metrics.
  struct Counts {
    api::ApiClient::Counts requests;
    Publisher::Counts topology;
    PodEvents::Counts events;
    std::optional<CapacityRelay::Counts> capacity = {};  ///< none without a control socket
    std::size_t bound_pods = 0;
    bool knows_pods = false;
    bool knows_devices = false;
  };

  /// `node` and `watch` must outlive it.
  Reporter(Options options, api::ApiServer server, Node& node, WatchClient& watch, Log& log);
  ~Reporter();
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  void start();
  void stop();
  Counts counts() const TOPOLET_EXCLUDES(mutex_);
  /// Its thread, for what has to be done between two things that it does.
  api::HttpLoop& loop() { return loop_; }

 private:
  void hear(const watch::v1::Delta* delta);
  bool is_remote(const watch::v1::Delta& delta, const watch::v1::Event& event) const;
  void forget_devices_of(const nlohmann::json& pod);
  void take_pods_changed();
  void take_object(const nlohmann::json& object);
  void copy_counts() TOPOLET_EXCLUDES(mutex_);
  void tell_illnesses();

  const Options options_;
  Node& node_;
  WatchClient& watch_;
  Log& log_;
  api::HttpLoop loop_;
  api::ApiClient client_;
  BoundPods pods_;
  std::optional<DeviceInventory> devices_;
  const DeviceInventory::State no_devices_;
  PodEvents events_;
  Publisher publisher_;
  std::optional<CapacityRelay> capacity_;
  std::optional<TokenRenewal> token_renewal_;
  api::Reflector pod_reflector_;
  api::Reflector object_reflector_;
  api::AccessReview rights_;
  std::chrono::steady_clock::time_point started_{};
  mutable Mutex mutex_;
  Counts counts_ TOPOLET_GUARDED_BY(mutex_);
};

}  // namespace topolet::agent
