// A cluster in virtual time in which a scheduler evicts pods as kube-scheduler does: its dry run knows of whole nodes
// only, it asks the extender, nominates a node, and waits; a controller replaces whoever is evicted. What answers is
// the program's own code. The same seed gives the same history.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "cluster/extender/preemptor.hpp"
#include "cluster/extender/shared_book.hpp"
#include "core/base/log_fwd.hpp"
#include "tests/extender/virtual_clock.hpp"

namespace topolet::extender {

class PreemptionCluster {
 public:
  struct Options {
    std::uint32_t seed = 1;
  };
  struct Spec {
    std::string name;
    int cpus = 1;  ///< 0: half a CPU, which is for no zone
    int priority = 0;
    std::string policy = "fewest";
    std::string node = {};
    int zone = 0;
    int host_port = 0;
  };

  explicit PreemptionCluster(Options options);
  ~PreemptionCluster();

  void add_node(const std::string& name, const std::vector<int>& zones);
  /// All of its pods; the uid.
  std::string add_bound(Spec spec);
  void add_waiting(const Spec& spec);
  void add_budget(const std::string& label, const std::string& value, int allowed);
  /// Publishes the present state of each node at once.
  void publish_now();
  void forget_zone(const std::string& uid);
  void begin_end(const std::string& uid);
  void remove(const std::string& uid);
  void nominate(const std::string& name, const std::string& node);
  /// `knows_nodes`: or it learns of them later.
  void change_leader(bool knows_nodes = true);
  void learn_nodes();
  bool knows_what_is_kept() const { return shared_.is_kept_known; }
  /// Its agent is not heard of.
  void silence(const std::string& node);
  /// It heeds no zones that others choose, as it tells.
  void ignore_zones() { ignores_zones_ = true; }
  void pass(Milliseconds time) { clock_.run_until(clock_.now() + time); }

  /// One call, without a scheduler.
  std::vector<NodeVictims> ask(const Spec& preemptor, const std::vector<NodeVictims>& offered);
  bool fits(const Spec& spec, const std::string& node);
  int zone_of(const std::string& uid) const;
  std::string node_of(const std::string& name) const;
  std::size_t bound() const;

  void fill_at_random();
  /// How many.
  std::size_t add_high_at_random();
  std::size_t evictions() const { return evictions_; }
  /// Times that a scheduler has evicted.
  std::size_t rounds() const { return rounds_; }
  /// Pods evicted for one that is not bound.
  std::size_t evicted_in_vain() const;
  std::string first_in_vain() const;

  bool hides_budgets = false;
  bool hides_pods = false;

 private:
  struct Pod;
  struct Node;
  class ClusterApi;
  using Json = nlohmann::json;

  Json pod_json(const Pod& pod) const;
  Pod& make(const Spec& spec);
  Pod* find(const std::string& uid);
  const Pod* find_named(const std::string& name) const;
  api::ApiAnswer serve(const api::ApiRequest& request);
  RecentDemands::Read demand_of(const Pod& pod);
  void publish_soon(Node& node);
  void publish(Node& node);

  void schedule(const std::string& name);
  bool has_room(const Node& node, const Pod& pod, const std::vector<const Pod*>& without) const;
  std::vector<NodeVictims> dry_run(const Pod& pod);
  void evict(Pod& preemptor, const std::vector<NodeVictims>& planned);
  void bind(Pod& pod, const std::string& node);

  int pick(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  std::mt19937 random_;
  VirtualClock clock_;
  std::shared_ptr<Log> log_;
  std::map<std::string, std::unique_ptr<Pod>> pods_;  ///< by uid
  std::map<std::string, std::unique_ptr<Node>> nodes_;
  std::vector<Json> budgets_;
  bool ignores_zones_ = false;
  SharedBook shared_;
  std::unique_ptr<ClusterApi> api_;
  std::unique_ptr<Preemptor> preemptor_;
  std::uint64_t made_ = 0;
  std::uint64_t version_ = 1;
  std::size_t evictions_ = 0;
  std::size_t rounds_ = 0;
  std::map<std::string, std::size_t> evicted_for_;  ///< by the preemptor's name
};

}  // namespace topolet::extender
