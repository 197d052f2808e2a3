#include "tests/extender/simulated_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cluster/api/json_fields.hpp"
#include "cluster/api/pod.hpp"
#include "tests/extender/support.hpp"

namespace topolet::extender {
namespace {

using api::ApiAnswer;
using api::ApiRequest;
using api::text_field;

constexpr const char* kZone = "topolet.io/zone";
/// The time for which a scheduler waits for an extender.
constexpr Milliseconds kSchedulerPatience{5000};

ApiAnswer answered(int status, json body = nullptr) {
  ApiAnswer answer;
  answer.status = status;
  if (answer.ok()) {
    answer.body = std::move(body);
  } else {
    answer.error = fmt::format("the API server answered {}", status);
  }
  return answer;
}

ApiAnswer unanswered(bool was_sent) {
  ApiAnswer answer;
  answer.error = "no answer";
  answer.was_sent = was_sent;
  return answer;
}

}  // namespace

struct SimulatedCluster::Pod {
  std::string name;
  std::string uid;
  int cpus = 1;
  json annotations = json::object();
  std::string node;
  std::uint64_t bound_version = 0;
  bool is_pending = true;
  VirtualClock::Time made{};
  std::vector<std::pair<std::size_t, int>> holds;  ///< zone and CPUs, in truth
};

struct SimulatedCluster::Node {
  std::string name;
  std::vector<int> capacity;
  std::vector<int> free;                                                 ///< in truth
  std::map<std::string, std::vector<std::pair<std::size_t, int>>> seen;  ///< by its agent: the pods and what they hold
  std::map<std::string, std::string> uids;                               ///< of those
  VirtualClock::Time silent_until{};                                     ///< its agent is dead
  bool is_writing = false;
  std::shared_ptr<const NodeZones> published;
};

/// The API server, the timers and the clock that a replica's code sees.
class SimulatedCluster::ReplicaApi final : public api::Api {
 public:
  ReplicaApi(SimulatedCluster& cluster, Replica& replica) : cluster_(cluster), replica_(replica) {}
  void request(ApiRequest request, OnAnswer on_answer) override;
  void after(Milliseconds delay, std::function<void()> task) override;
  Clock::time_point now() const override { return cluster_.clock_.now(); }

 private:
  SimulatedCluster& cluster_;
  Replica& replica_;
};

class SimulatedCluster::Replica {
 public:
  Replica(SimulatedCluster& cluster, std::string name)
      : identity(std::move(name)), api(cluster, *this), log_(*cluster.log_) {}

  void begin() {
    binder = std::make_unique<Binder>(
        api, shared, recent, Binder::Options{}, [this] { return election ? election->time_left() : Milliseconds(0); },
        log_);
    election = std::make_unique<api::LeaderElection>(
        api, api::LeaderElection::Options{.name_space = "s", .name = "l", .identity = identity, .address = identity},
        api::LeaderElection::Handlers{[this] {
                                        ++terms;
                                        binder->begin();
                                      },
                                      [this] { binder->end(); }},
        log_);
    election->start();
  }
  /// Runs a task of the process: later while it is stopped, never once it is dead.
  void run(std::function<void()> task) {
    if (is_dead) return;
    if (is_stopped) {
      waiting.push_back(std::move(task));
    } else {
      task();
    }
  }
  void wake() {
    is_stopped = false;
    for (auto& task : std::exchange(waiting, {})) run(std::move(task));
  }

  const std::string identity;
  ReplicaApi api;
  SharedBook shared;
  RecentDemands recent;
  std::unique_ptr<Binder> binder;
  std::unique_ptr<api::LeaderElection> election;
  bool is_dead = false;
  bool is_stopped = false;
  std::size_t terms = 0;
  std::deque<std::function<void()>> waiting;

 private:
  Log& log_;
};

void SimulatedCluster::ReplicaApi::after(Milliseconds delay, std::function<void()> task) {
  cluster_.clock_.after(delay, [this, task = std::move(task)] { replica_.run(task); });
}

void SimulatedCluster::ReplicaApi::request(ApiRequest request, OnAnswer on_answer) {
  if (request.is_still_wanted && !request.is_still_wanted()) return on_answer(unanswered(false));
  SimulatedCluster& cluster = cluster_;
  const auto is_answered = std::make_shared<bool>(false);
  const auto give = [this, is_answered, on_answer = std::move(on_answer)](const ApiAnswer& answer) {
    replica_.run([is_answered, on_answer, answer] {
      if (!std::exchange(*is_answered, true)) on_answer(answer);
    });
  };
  if (cluster.happens(0.005)) {
    cluster.clock_.after(cluster.delay(1, 20), [give] { give(unanswered(false)); });
    return;
  }
  cluster.clock_.after(request.timeout, [give] { give(unanswered(true)); });
  if (cluster.happens(0.005)) return;
  const int times = cluster.happens(0.01) ? 2 : 1;
  if (times > 1) ++cluster.result_.repeated;
  const auto on_way = cluster.delay(1, cluster.happens(0.05) ? 200 : 20);
  const bool is_bounded = request.path.find("?timeout=") != std::string::npos;
  for (int i = 0; i < times; ++i) {
    const auto in_queue = cluster.delay(0, cluster.happens(cluster.is_slow() ? 0.3 : 0.02) ? 8000 : 20);
    if (is_bounded && in_queue >= request.timeout) continue;
    cluster.clock_.after(on_way + in_queue, [&cluster, give, request] {
      const ApiAnswer answer = cluster.serve(request);
      const bool is_lost = cluster.happens(cluster.is_slow() ? 0.2 : 0.01);
      if (is_lost) ++cluster.result_.lost_answers;
      cluster.clock_.after(cluster.delay(1, 20),
                           [give, answer, is_lost] { give(is_lost ? unanswered(true) : answer); });
    });
  }
}

SimulatedCluster::SimulatedCluster(Options options) : options_(options), random_(options.seed) {
  for (std::size_t i = 0; i < options_.nodes; ++i) {
    auto node = std::make_unique<Node>();
    node->name = fmt::format("n{}", i);
    const int zones = pick(1, 8);
    for (int zone = 0; zone < zones; ++zone) node->capacity.push_back(pick(2, 12));
    node->free = node->capacity;
    nodes_[node->name] = std::move(node);
  }
}

SimulatedCluster::~SimulatedCluster() = default;

json SimulatedCluster::pod_json(const Pod& pod) const {
  json object = pod_object(pod.name, {{.cpu = std::to_string(pod.cpus)}}, pod.annotations);
  object["metadata"]["uid"] = pod.uid;
  object["spec"]["nodeName"] = pod.node;
  object["status"]["phase"] = pod.is_pending ? "Pending" : "Running";
  return object;
}

/// Returns the version that a list shows, which may be as old as its reader allows.
std::uint64_t SimulatedCluster::shown_version(const std::string& path) {
  const std::string not_older = "&resourceVersionMatch=NotOlderThan&resourceVersion=";
  const std::size_t at = path.find(not_older);
  return at == std::string::npos || happens(0.5) ? version_ : std::stoull(path.substr(at + not_older.size()));
}

ApiAnswer SimulatedCluster::serve(const ApiRequest& request) {
  const std::string path = request.path.substr(0, request.path.find('?'));
  if (path.starts_with("/apis/coordination.k8s.io/")) return serve_lease(request);
  if (path == "/api/v1/pods") {
    const std::string of_node = "fieldSelector=spec.nodeName%3D";
    const std::size_t at = request.path.find(of_node);
    const std::string rest = at == std::string::npos ? "" : request.path.substr(at + of_node.size());
    const std::string node = rest.substr(0, rest.find('%'));
    const std::uint64_t shown = shown_version(request.path);
    json items = json::array();
    for (const auto& [name, pod] : pods_) {
      const bool matches = at == std::string::npos ? !pod->node.empty() && pod->is_pending : pod->node == node;
      if (matches && pod->bound_version <= shown) items.push_back(pod_json(*pod));
    }
    const json metadata = {{"resourceVersion", std::to_string(version_)}};
    return answered(200, {{"metadata", metadata}, {"items", std::move(items)}});
  }
  std::string name = path.substr(std::string("/api/v1/namespaces/default/pods/").size());
  const bool is_binding = name.ends_with("/binding");
  if (is_binding) name.resize(name.size() - std::string("/binding").size());
  const auto found = pods_.find(name);
  if (found == pods_.end()) return answered(404);
  return is_binding ? serve_binding(*found->second, request.body) : answered(200, pod_json(*found->second));
}

ApiAnswer SimulatedCluster::serve_binding(Pod& pod, const Json& body) {
  if (text_field(body, "metadata", "uid") != pod.uid || !pod.node.empty()) return answered(409);
  pod.node = text_field(body, "target", "name");
  pod.bound_version = ++version_;
  pod.annotations[kZone] = text_field(body, "metadata", "annotations", kZone);
  note_bound(pod);
  return answered(201, json::object());
}

ApiAnswer SimulatedCluster::serve_lease(const ApiRequest& request) {
  if (request.method == "GET") return lease_.is_null() ? answered(404) : answered(200, lease_);
  const bool is_new = request.method == "POST";
  if (is_new != lease_.is_null()) return answered(409);
  if (!is_new &&
      text_field(request.body, "metadata", "resourceVersion") != text_field(lease_, "metadata", "resourceVersion"))
    return answered(409);
  lease_ = request.body;
  lease_["metadata"]["resourceVersion"] = std::to_string(++version_);
  return answered(200, lease_);
}

/// The node takes CPUs at once, of the zones that the pod was given: what is not there was promised twice.
void SimulatedCluster::note_bound(Pod& pod) {
  ++result_.bound;
  Node& node = *nodes_.at(pod.node);
  const auto annotation = read_zone_annotation(pod.annotations[kZone].get<std::string>());
  if (!annotation) {
    ++result_.without_zone;
  } else {
    int wanted = pod.cpus;
    for (const std::uint32_t zone : annotation->containers.at(0).second) {
      const int taken = std::min(wanted, node.free.at(zone));
      node.free[zone] -= taken;
      wanted -= taken;
      if (taken > 0) pod.holds.emplace_back(zone, taken);
    }
    if (wanted > 0 && result_.double_promises++ == 0)
      result_.first_double = fmt::format("{} on {} after {} ms: {}", pod.name, pod.node,
                                         (clock_.now().time_since_epoch() / Milliseconds(1)) % 3'600'000,
                                         pod.annotations[kZone].get<std::string>());
  }
  const std::string name = pod.name;
  clock_.after(delay(0, happens(0.05) ? 20'000 : 1500), [this, &node, name] {
    const auto found = pods_.find(name);
    if (found == pods_.end()) return;
    node.seen[name] = found->second->holds;
    node.uids[name] = found->second->uid;
    publish(node);
  });
  clock_.after(delay(300, 4000), [this, name] {
    if (const auto found = pods_.find(name); found != pods_.end()) found->second->is_pending = false;
  });
  clock_.after(delay(2000, 60'000), [this, name] { end_pod(name); });
}

void SimulatedCluster::end_pod(const std::string& name) {
  const auto found = pods_.find(name);
  if (found == pods_.end()) return;
  Node& node = *nodes_.at(found->second->node);
  for (const auto& [zone, cpus] : found->second->holds) node.free[zone] += cpus;
  pods_.erase(found);
  clock_.after(delay(0, 3000), [this, &node, name] {
    node.seen.erase(name);
    node.uids.erase(name);
    publish(node);
  });
  make_pods();
}

void SimulatedCluster::publish(Node& node) {
  if (std::exchange(node.is_writing, true)) return;
  if (happens(0.002)) node.silent_until = clock_.now() + delay(1000, 120'000);
  clock_.at(std::max(clock_.now() + delay(10, 300), node.silent_until), [this, &node] {
    node.is_writing = false;
    auto object = std::make_shared<NodeZones>();
    object->name = node.name;
    for (const int cpus : node.capacity) {
      Zone zone;
      zone.os_index = static_cast<std::uint32_t>(object->zones.size());
      zone.available = zone.allocatable = {{kCpu, cpus * 1000}, {kMemory, std::int64_t{64} << 30U}};
      object->zones.push_back(std::move(zone));
    }
    for (const auto& [name, holds] : node.seen) {
      for (const auto& [zone, cpus] : holds) object->zones[zone].available.add(kCpu, -cpus * 1000);
      object->acknowledged.push_back(node.uids[name].substr(0, 8));
    }
    std::sort(object->acknowledged.begin(), object->acknowledged.end());
    write(node, std::move(object));
  });
}

void SimulatedCluster::write(Node& node, std::shared_ptr<NodeZones> object) {
  object->version = ++version_;
  node.published = std::move(object);
  deliver(node.published);
  // Written again, as an agent does for those that have missed it.
  clock_.after(std::chrono::seconds(7), [this, &node, before = node.published] {
    if (node.published != before || is_over()) return;
    write(node, std::make_shared<NodeZones>(*before));
  });
}

void SimulatedCluster::deliver(const std::shared_ptr<const NodeZones>& object) {
  for (const auto& replica : replicas_) {
    if (options_.loses_objects && happens(0.05)) continue;
    const int times = happens(0.1) ? 2 : 1;
    for (int i = 0; i < times; ++i) {
      const auto late = delay(1, happens(0.02) ? 30'000 : (happens(0.1) ? 3000 : 200));
      clock_.after(late, [to = replica.get(), object] {
        to->run([to, object] {
          MutexLock lock(to->shared.mutex);
          to->shared.book.set_node(*object);
        });
      });
    }
  }
}

void SimulatedCluster::make_pods() {
  std::size_t waiting = 0;
  for (const auto& [name, pod] : pods_) waiting += pod->node.empty() ? 1 : 0;
  for (; waiting < options_.at_once && !is_over(); ++waiting) {
    auto pod = std::make_unique<Pod>();
    const std::uint64_t number = ++made_pods_;
    pod->name = fmt::format("p{}", number);
    pod->made = clock_.now();
    pod->uid = fmt::format("{:08x}-0000", number);
    pod->cpus = happens(0.1) ? pick(8, 20) : pick(1, 6);
    static const std::vector<std::string> kPolicies = {"single", "fewest", "any"};
    static const std::vector<std::string> kStrategies = {"packed", "spread", "balanced"};
    pod->annotations = {{"topolet.io/zone-policy", kPolicies[static_cast<std::size_t>(pick(0, 2))]},
                        {"topolet.io/zone-strategy", kStrategies[static_cast<std::size_t>(pick(0, 2))]}};
    const std::string name = pod->name;
    pods_[name] = std::move(pod);
    clock_.after(delay(0, 500), [this, name] { schedule(name); });
  }
}

void SimulatedCluster::retry(const std::string& name) {
  const auto found = pods_.find(name);
  if (found == pods_.end()) return;
  // Its owner loses patience with what fits nowhere.
  if (found->second->node.empty() && clock_.now() - found->second->made > std::chrono::minutes(1)) {
    pods_.erase(found);
    return make_pods();
  }
  clock_.after(delay(200, 4000), [this, name] { schedule(name); });
}

/// As a scheduler does it: filter and prioritize at some replica, which asks the leader, and the binding at some
/// replica a little later.
void SimulatedCluster::schedule(const std::string& name) {
  const auto found = pods_.find(name);
  if (found == pods_.end() || is_over()) return;
  // A scheduler's knowledge of its pods is a little old, too.
  if (!found->second->node.empty() && !happens(0.3)) return;
  const auto route = [this]() -> Replica* {
    Replica* asked = replicas_[static_cast<std::size_t>(pick(0, static_cast<int>(replicas_.size()) - 1))].get();
    if (asked->is_dead || asked->is_stopped) return nullptr;
    const auto leader = asked->election->other_leader();
    if (asked->election->is_leader() || !leader) return asked;
    for (const auto& replica : replicas_) {
      if (replica->identity == leader->identity && !replica->is_dead && !replica->is_stopped) return replica.get();
    }
    return asked;
  };
  Replica* replica = route();
  if (replica == nullptr) return retry(name);
  const json object = pod_json(*found->second);
  const RecentDemands::Read demand = read_demand_of(object, {}, replica->shared);
  replica->recent.add(found->second->uid + " 1", found->second->uid, demand);
  std::vector<std::string_view> names;
  for (const auto& [node, unused] : nodes_) names.push_back(node);
  std::string best;
  {
    MutexLock lock(replica->shared.mutex);
    const FilterResult passing = filter_nodes(replica->shared.book, **demand, names);
    const auto scores = score_nodes(replica->shared.book, **demand, passing.node_names);
    int most = -1;
    for (const auto& [node, score] : scores) {
      if (score < most || (score == most && happens(0.5)) || !replica->shared.book.knows(node)) continue;
      most = score;
      best = node;
    }
  }
  if (best.empty()) return retry(name);
  clock_.after(delay(1, 50), [this, name, best, route, uid = found->second->uid] {
    Replica* binding = route();
    if (binding == nullptr || is_over()) return retry(name);
    const auto is_answered = std::make_shared<bool>(false);
    const auto finish = [this, is_answered, name](bool bound) {
      if (std::exchange(*is_answered, true)) return;
      if (!bound) {
        ++result_.refused_binds;
        retry(name);
      }
    };
    clock_.after(kSchedulerPatience, [finish] { finish(false); });
    binding->binder->bind({name, "default", uid, best}, [finish](const std::string& error) { finish(error.empty()); });
  });
}

void SimulatedCluster::disturb() {
  clock_.after(delay(10'000, 30'000), [this] { disturb(); });
  if (is_over()) return;
  // Troubles come together: replicas lose the Lease because the API server is slow.
  slow_until_ = clock_.now() + delay(0, 15'000);
  auto& chosen = replicas_[static_cast<std::size_t>(pick(0, static_cast<int>(replicas_.size()) - 1))];
  if (chosen->is_dead || chosen->is_stopped) return;
  if (happens(0.4)) {
    ++result_.pauses;
    chosen->is_stopped = true;
    clock_.after(delay(500, 25'000), [replica = chosen.get()] { replica->wake(); });
    return;
  }
  ++result_.kills;
  // Some end in order, and give the Lease up when nothing is underway any more.
  if (happens(0.3)) {
    chosen->election->stand_down();
    return end_in_order(chosen.get());
  }
  replace(chosen.get());
}

void SimulatedCluster::end_in_order(Replica* replica) {
  if (replica->is_dead) return;
  if (replica->binder->has_binds_underway()) {
    clock_.after(Milliseconds(50), [this, replica] { end_in_order(replica); });
    return;
  }
  replica->election->give_up([this, replica] { clock_.after(Milliseconds(1), [this, replica] { replace(replica); }); });
}

/// By a new one, which starts a little later.
void SimulatedCluster::replace(Replica* ended) {
  const auto found =
      std::find_if(replicas_.begin(), replicas_.end(), [ended](const auto& replica) { return replica.get() == ended; });
  if (ended->is_dead || found == replicas_.end()) return;
  std::unique_ptr<Replica>& chosen = *found;
  chosen->is_dead = true;
  result_.terms += chosen->terms;
  const std::string identity = fmt::format("r{}", version_++);
  graveyard_.push_back(std::exchange(chosen, std::make_unique<Replica>(*this, identity)));
  chosen->is_stopped = true;  // until it has started
  clock_.after(delay(200, 5000), [this, replica = chosen.get()] {
    list_nodes(*replica);
    replica->begin();
    replica->wake();
  });
}

void SimulatedCluster::list_nodes(Replica& replica) {
  MutexLock lock(replica.shared.mutex);
  for (const auto& [name, node] : nodes_) replica.shared.book.set_node(*node->published);
  replica.shared.is_synced = true;
}

SimulatedCluster::Result SimulatedCluster::run() {
  // Each node has an object before a pod may be bound there without one.
  for (const auto& [name, node] : nodes_) publish(*node);
  const auto is_published = [](const auto& entry) { return entry.second->published != nullptr; };
  while (!std::all_of(nodes_.begin(), nodes_.end(), is_published)) clock_.step();
  for (int i = 0; i < 2; ++i) {
    replicas_.push_back(std::make_unique<Replica>(*this, fmt::format("first{}", i)));
    list_nodes(*replicas_.back());
    replicas_.back()->begin();
  }
  make_pods();
  if (options_.kills) disturb();
  while (!is_over() && clock_.step()) {
  }
  // Once all pods are gone, and have been asked after, nothing may be promised.
  const auto end = clock_.now() + std::chrono::minutes(6);
  while (clock_.now() < end && clock_.step()) {
  }
  for (const auto& replica : replicas_) {
    result_.terms += replica->terms;
    if (replica->is_dead || !replica->election || !replica->election->is_leader()) continue;
    MutexLock lock(replica->shared.mutex);
    result_.left_promises += replica->shared.book.promise_count();
  }
  return result_;
}

}  // namespace topolet::extender
