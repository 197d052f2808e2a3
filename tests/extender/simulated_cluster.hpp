// A cluster in virtual time: an API server that is slow, loses answers and does things twice; nodes whose objects come
// late, in another order, several times or never; schedulers; and replicas of the extender that are killed, or stopped
// and woken later. What binds is the program's own code. The same seed gives the same history.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "cluster/api/api.hpp"
#include "cluster/api/leader_election.hpp"
#include "cluster/extender/binder.hpp"
#include "cluster/extender/rank.hpp"
#include "cluster/extender/shared_book.hpp"
#include "core/base/log_fwd.hpp"
#include "tests/extender/virtual_clock.hpp"

namespace topolet::extender {

class SimulatedCluster {
 public:
  struct Options {
    std::uint32_t seed = 1;
    std::size_t nodes = 24;
    std::size_t pods = 1000;   ///< to be bound
    std::size_t at_once = 40;  ///< pods that wait or are being scheduled
    bool kills = true;
    bool loses_objects = true;
  };
  struct Result {
    std::size_t bound = 0;
    std::size_t double_promises = 0;
    std::size_t without_zone = 0;  ///< bound and without an annotation, though it is for zones
    std::size_t refused_binds = 0;
    std::size_t kills = 0;
    std::size_t pauses = 0;
    std::size_t terms = 0;
    std::size_t lost_answers = 0;
    std::size_t repeated = 0;
    std::size_t left_promises = 0;  ///< of the leader, long after the last pod has gone
    std::string first_double = {};
  };

  explicit SimulatedCluster(Options options);
  ~SimulatedCluster();
  Result run();

 private:
  struct Pod;
  struct Node;
  class Replica;
  class ReplicaApi;
  using Json = nlohmann::json;

  // The API server.
  std::uint64_t shown_version(const std::string& path);
  api::ApiAnswer serve(const api::ApiRequest& request);
  api::ApiAnswer serve_binding(Pod& pod, const Json& body);
  api::ApiAnswer serve_lease(const api::ApiRequest& request);
  Json pod_json(const Pod& pod) const;

  // Nodes.
  void note_bound(Pod& pod);
  void publish(Node& node);
  void write(Node& node, std::shared_ptr<NodeZones> object);
  void deliver(const std::shared_ptr<const NodeZones>& object);
  void end_pod(const std::string& name);

  // The scheduler.
  void make_pods();
  void schedule(const std::string& name);
  void retry(const std::string& name);

  // Faults.
  void disturb();
  void end_in_order(Replica* replica);
  void replace(Replica* ended);
  void list_nodes(Replica& replica);

  int pick(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  bool happens(double probability) { return std::bernoulli_distribution(probability)(random_); }
  Milliseconds delay(int least, int most) { return Milliseconds(pick(least, most)); }
  bool is_slow() const { return clock_.now() < slow_until_; }
  bool is_over() const { return result_.bound >= options_.pods; }

  const Options options_;
  std::mt19937 random_;
  VirtualClock clock_;
  std::shared_ptr<Log> log_ = make_silent_log();
  std::map<std::string, std::unique_ptr<Pod>> pods_;  ///< by name
  std::map<std::string, std::unique_ptr<Node>> nodes_;
  Json lease_;
  VirtualClock::Time slow_until_{};
  std::uint64_t version_ = 1;
  std::uint64_t made_pods_ = 0;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<std::unique_ptr<Replica>> graveyard_;  ///< killed ones, whose calls are still somewhere
  Result result_;
};

}  // namespace topolet::extender
