#include "tests/extender/preemption_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cluster/api/json_fields.hpp"
#include "cluster/extender/rank.hpp"
#include "tests/extender/support.hpp"

namespace topolet::extender {
namespace {

using api::ApiAnswer;
using api::ApiRequest;
using api::text_field;

constexpr const char* kZoneAnnotation = "topolet.io/zone";
/// Others have the preemption policy Never, so that nobody is evicted who has evicted others.
constexpr int kEvictsFrom = 100;

ApiAnswer reply(int status, json body = nullptr) {
  ApiAnswer answer;
  answer.status = status;
  answer.body = std::move(body);
  if (!answer.ok()) answer.error = fmt::format("the API server answered {}", status);
  return answer;
}

}  // namespace

struct PreemptionCluster::Pod {
  Spec spec;
  std::string uid;
  std::string annotation;
  std::string nominated;
  bool is_ending = false;
  std::uint64_t version = 0;
  std::map<std::size_t, int> holds;  ///< CPUs by zone, in truth
  VirtualClock::Time started{};
};

struct PreemptionCluster::Node {
  std::string name;
  std::vector<int> capacity;
  bool is_writing = false;
};

/// Answers a little later, and at once where the test does not let time pass.
class PreemptionCluster::ClusterApi final : public api::Api {
 public:
  explicit ClusterApi(PreemptionCluster& cluster) : cluster_(cluster) {}
  void request(ApiRequest request, OnAnswer on_answer) override {
    if (answers_at_once) return on_answer(cluster_.serve(request));
    after(Milliseconds(cluster_.pick(1, 30)), [this, request = std::move(request), on_answer = std::move(on_answer)] {
      const ApiAnswer answer = cluster_.serve(request);
      after(Milliseconds(cluster_.pick(1, 30)), [answer, on_answer] { on_answer(answer); });
    });
  }
  void after(Milliseconds delay, std::function<void()> task) override { cluster_.clock_.after(delay, std::move(task)); }
  Clock::time_point now() const override { return cluster_.clock_.now(); }

  bool answers_at_once = false;

 private:
  PreemptionCluster& cluster_;
};

PreemptionCluster::PreemptionCluster(Options options)
    : random_(options.seed), log_(make_silent_log()), api_(std::make_unique<ClusterApi>(*this)) {
  change_leader();
}

PreemptionCluster::~PreemptionCluster() = default;

void PreemptionCluster::change_leader(bool knows_nodes) {
  {
    MutexLock lock(shared_.mutex);
    shared_.book.begin_term();
    shared_.is_synced = knows_nodes;
  }
  api_->answers_at_once = true;
  preemptor_ = std::make_unique<Preemptor>(*api_, shared_, Preemptor::Options{}, *log_);
  preemptor_->begin();
  api_->answers_at_once = false;
}

void PreemptionCluster::learn_nodes() {
  MutexLock lock(shared_.mutex);
  shared_.is_synced = true;
}

void PreemptionCluster::silence(const std::string& node) {
  MutexLock lock(shared_.mutex);
  shared_.book.set_silent(node, true);
}

void PreemptionCluster::add_node(const std::string& name, const std::vector<int>& zones) {
  nodes_[name] = std::make_unique<Node>(Node{name, zones, false});
  publish(*nodes_[name]);
}

PreemptionCluster::Pod& PreemptionCluster::make(const Spec& spec) {
  auto pod = std::make_unique<Pod>();
  pod->spec = spec;
  pod->uid = fmt::format("{:08x}-0000", ++made_);
  pod->version = ++version_;
  pod->started = clock_.now();
  const std::string uid = pod->uid;
  return *(pods_[uid] = std::move(pod));
}

std::string PreemptionCluster::add_bound(Spec spec) {
  Pod& pod = make(spec);
  const auto zone = static_cast<std::size_t>(spec.zone);
  pod.holds[zone] = spec.cpus;
  pod.annotation =
      json{{"v", 1}, {"node", spec.node}, {"zones", {zone}}, {"containers", {{"main", {zone}}}}, {"by", "test"}}.dump();
  return pod.uid;
}

void PreemptionCluster::add_waiting(const Spec& spec) {
  make(spec);
  clock_.after(Milliseconds(pick(0, 500)), [this, name = spec.name] { schedule(name); });
}

void PreemptionCluster::add_budget(const std::string& label, const std::string& value, int allowed) {
  budgets_.push_back({{"metadata", {{"namespace", "default"}, {"name", label + value}}},
                      {"spec", {{"selector", {{"matchLabels", {{label, value}}}}}}},
                      {"status", {{"disruptionsAllowed", allowed}}}});
}

void PreemptionCluster::publish_now() {
  for (const auto& [name, node] : nodes_) publish(*node);
}

void PreemptionCluster::forget_zone(const std::string& uid) { find(uid)->annotation.clear(); }
void PreemptionCluster::begin_end(const std::string& uid) { find(uid)->is_ending = true; }
void PreemptionCluster::remove(const std::string& uid) { pods_.erase(uid); }

void PreemptionCluster::nominate(const std::string& name, const std::string& node) {
  for (const auto& [uid, pod] : pods_) {
    if (pod->spec.name != name) continue;
    pod->nominated = node;
    pod->version = ++version_;
  }
}

PreemptionCluster::Pod* PreemptionCluster::find(const std::string& uid) {
  const auto found = pods_.find(uid);
  return found == pods_.end() ? nullptr : found->second.get();
}

const PreemptionCluster::Pod* PreemptionCluster::find_named(const std::string& name) const {
  for (const auto& [uid, pod] : pods_) {
    if (pod->spec.name == name) return pod.get();
  }
  return nullptr;
}

json PreemptionCluster::pod_json(const Pod& pod) const {
  const std::string cpu = pod.spec.cpus == 0 ? "500m" : std::to_string(pod.spec.cpus);
  json annotations = {{"topolet.io/zone-policy", pod.spec.policy}};
  if (!pod.annotation.empty()) annotations[kZoneAnnotation] = pod.annotation;
  json object = pod_object(pod.spec.name, {{.cpu = cpu}}, annotations);
  object["metadata"]["uid"] = pod.uid;
  object["metadata"]["resourceVersion"] = std::to_string(pod.version);
  object["metadata"]["labels"] = {{"zone", std::to_string(pod.spec.zone)}};
  if (pod.is_ending) object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  object["spec"]["priority"] = pod.spec.priority;
  object["spec"]["nodeName"] = pod.spec.node;
  if (pod.spec.host_port != 0) object["spec"]["containers"][0]["ports"] = {{{"hostPort", pod.spec.host_port}}};
  object["status"]["phase"] = pod.spec.node.empty() ? "Pending" : "Running";
  object["status"]["nominatedNodeName"] = pod.nominated;
  object["status"]["startTime"] = fmt::format("{:020}", pod.started.time_since_epoch() / Milliseconds(1));
  return object;
}

ApiAnswer PreemptionCluster::serve(const ApiRequest& request) {
  if (request.path.starts_with("/apis/policy/")) return hides_budgets ? reply(403) : reply(200, {{"items", budgets_}});
  if (hides_pods) return reply(500);
  const std::string one = "/api/v1/namespaces/default/pods/";
  if (request.path.starts_with(one)) {
    const Pod* pod = find_named(request.path.substr(one.size()));
    return pod == nullptr ? reply(404) : reply(200, pod_json(*pod));
  }
  const std::string of_node = "fieldSelector=spec.nodeName%3D";
  std::string node = request.path.substr(request.path.find(of_node) + of_node.size());
  node = node.substr(0, node.find('%'));
  json items = json::array();
  for (const auto& [uid, pod] : pods_) {
    const bool matches = node.empty() ? pod->spec.node.empty() && !pod->nominated.empty() : pod->spec.node == node;
    if (matches) items.push_back(pod_json(*pod));
  }
  return reply(200, {{"items", std::move(items)}});
}

RecentDemands::Read PreemptionCluster::demand_of(const Pod& pod) { return read_demand_of(pod_json(pod), {}, shared_); }

void PreemptionCluster::publish_soon(Node& node) {
  if (std::exchange(node.is_writing, true)) return;
  clock_.after(Milliseconds(pick(50, 1500)), [this, &node] {
    node.is_writing = false;
    publish(node);
  });
}

void PreemptionCluster::publish(Node& node) {
  NodeSpec spec{.name = node.name, .policy = "none", .version = ++version_};
  for (const int cpus : node.capacity) spec.zones.push_back({.available = cpus, .allocatable = cpus});
  for (const auto& [uid, pod] : pods_) {
    if (pod->spec.node != node.name) continue;
    for (const auto& [zone, cpus] : pod->holds) spec.zones[zone].available -= cpus;
    spec.acknowledged += (spec.acknowledged.empty() ? "" : ",") + uid.substr(0, 8);
  }
  json object = topology_object(spec);
  if (ignores_zones_)
    object["attributes"].push_back({{"name", "topolet.io/ignores-zones"}, {"value", "kubelet-static"}});
  MutexLock lock(shared_.mutex);
  shared_.book.set_node(read_node_zones(object, shared_.book.names()));
}

std::vector<NodeVictims> PreemptionCluster::ask(const Spec& spec, const std::vector<NodeVictims>& offered) {
  const Pod* known = find_named(spec.name);
  const Pod& pod = known != nullptr ? *known : make(spec);
  PreemptionArgs args;
  args.pod_json = pod_json(pod).dump();
  args.nodes = offered;
  std::vector<NodeVictims> planned;
  bool is_answered = false;
  api_->answers_at_once = true;
  preemptor_->preempt(std::move(args), demand_of(pod), [&](const auto& nodes) {
    planned = nodes;
    is_answered = true;
  });
  api_->answers_at_once = false;
  if (!is_answered) throw std::runtime_error("there is no answer");
  return planned;
}

bool PreemptionCluster::fits(const Spec& spec, const std::string& node) {
  const Pod* known = find_named(spec.name);
  const RecentDemands::Read demand = demand_of(known != nullptr ? *known : make(spec));
  MutexLock lock(shared_.mutex);
  return shared_.book.check(node, **demand).has_value();
}

int PreemptionCluster::zone_of(const std::string& uid) const { return pods_.at(uid)->spec.zone; }

std::string PreemptionCluster::node_of(const std::string& name) const {
  const Pod* pod = find_named(name);
  return pod == nullptr ? "" : pod->spec.node;
}

std::size_t PreemptionCluster::bound() const {
  return static_cast<std::size_t>(
      std::count_if(pods_.begin(), pods_.end(), [](const auto& entry) { return !entry.second->spec.node.empty(); }));
}

void PreemptionCluster::fill_at_random() {
  int all = 0;
  for (int i = 0; i < pick(1, 4); ++i) {
    std::vector<int> zones;
    for (int zone = pick(1, 4); zone > 0; --zone) zones.push_back(pick(4, 12));
    for (const int cpus : zones) all += cpus;
    add_node(fmt::format("n{}", i), zones);
  }
  for (int i = 0; all > 0; ++i) {
    const int cpus = pick(0, 4);
    all -= std::max(1, cpus);
    add_waiting({.name = fmt::format("low-{}", i),
                 .cpus = cpus,
                 .priority = pick(0, 2),
                 .policy = pick(0, 1) == 0 ? "single" : "fewest"});
  }
}

std::size_t PreemptionCluster::add_high_at_random() {
  const int count = pick(1, 4);
  for (int i = 0; i < count; ++i) {
    clock_.after(Milliseconds(pick(0, 60'000)), [this, i] {
      add_waiting({.name = fmt::format("high-{}", i),
                   .cpus = pick(2, 12),
                   .priority = 100,
                   .policy = pick(0, 2) > 0 ? "single" : "fewest"});
    });
  }
  return static_cast<std::size_t>(count);
}

std::size_t PreemptionCluster::evicted_in_vain() const {
  std::size_t count = 0;
  for (const auto& [name, evicted] : evicted_for_) count += node_of(name).empty() ? evicted : 0;
  return count;
}

std::string PreemptionCluster::first_in_vain() const {
  for (const auto& [name, evicted] : evicted_for_) {
    if (node_of(name).empty()) return fmt::format("{} for {}", evicted, name);
  }
  return "";
}

/// By whole CPUs, with pods of at least its priority that are nominated there.
bool PreemptionCluster::has_room(const Node& node, const Pod& pod, const std::vector<const Pod*>& without) const {
  int left = 0;
  for (const int cpus : node.capacity) left += 2 * cpus;
  const auto halves = [](const Pod& each) { return each.spec.cpus == 0 ? 1 : 2 * each.spec.cpus; };
  for (const auto& [uid, other] : pods_) {
    const bool is_there = other->spec.node == node.name;
    const bool will_be = other->spec.node.empty() && other->nominated == node.name && other.get() != &pod &&
                         other->spec.priority >= pod.spec.priority;
    const bool is_without = std::find(without.begin(), without.end(), other.get()) != without.end();
    if ((is_there || will_be) && !is_without) left -= halves(*other);
  }
  return left >= halves(pod);
}

void PreemptionCluster::schedule(const std::string& name) {
  const Pod* known = find_named(name);
  if (known == nullptr || !known->spec.node.empty()) return;
  Pod& pod = *find(known->uid);
  const auto again = [this, name] { clock_.after(Milliseconds(pick(1000, 10'000)), [this, name] { schedule(name); }); };
  std::vector<std::string_view> names;
  for (const auto& [node_name, node] : nodes_) {
    if (has_room(*node, pod, {})) names.push_back(node_name);
  }
  const RecentDemands::Read demand = demand_of(pod);
  std::string chosen;
  {
    MutexLock lock(shared_.mutex);
    FilterResult result;
    result.node_names = names;
    if ((*demand)->is_for_zones()) result = filter_nodes(shared_.book, **demand, names);
    for (const std::string_view node : result.node_names) {
      if (chosen.empty() || node == pod.nominated || pick(0, 1) == 0) chosen = node;
    }
  }
  if (!chosen.empty()) {
    bind(pod, chosen);
    if (pod.spec.node.empty()) again();
    return;
  }
  // It waits while those end that it has evicted.
  const bool waits = std::any_of(pods_.begin(), pods_.end(), [&](const auto& entry) {
    return entry.second->is_ending && !pod.nominated.empty() && entry.second->spec.node == pod.nominated &&
           entry.second->spec.priority < pod.spec.priority;
  });
  const bool evicts = !waits && pod.spec.priority >= kEvictsFrom;
  const std::vector<NodeVictims> offered = evicts ? dry_run(pod) : std::vector<NodeVictims>();
  again();
  if (offered.empty()) return;
  PreemptionArgs args;
  args.pod_json = pod_json(pod).dump();
  args.nodes = offered;
  preemptor_->preempt(std::move(args), demand, [this, uid = pod.uid](const std::vector<NodeVictims>& planned) {
    if (Pod* preemptor = find(uid); preemptor != nullptr && preemptor->spec.node.empty()) evict(*preemptor, planned);
  });
}

std::vector<NodeVictims> PreemptionCluster::dry_run(const Pod& pod) {
  std::vector<NodeVictims> offered;
  for (const auto& [name, node] : nodes_) {
    if (has_room(*node, pod, {})) continue;
    std::vector<const Pod*> victims;
    for (const auto& [uid, other] : pods_) {
      if (other->spec.node == name && other->spec.priority < pod.spec.priority) victims.push_back(other.get());
    }
    if (victims.empty() || !has_room(*node, pod, victims)) continue;
    std::stable_sort(victims.begin(), victims.end(), [](const Pod* a, const Pod* b) {
      return std::pair(-a->spec.priority, a->started) < std::pair(-b->spec.priority, b->started);
    });
    for (const Pod* victim : std::vector(victims)) {
      std::vector<const Pod*> fewer = victims;
      std::erase(fewer, victim);
      if (has_room(*node, pod, fewer)) victims = std::move(fewer);
    }
    NodeVictims entry{name, {}, 0};
    for (const Pod* victim : victims) entry.uids.push_back(victim->uid);
    offered.push_back(std::move(entry));
  }
  return offered;
}

void PreemptionCluster::evict(Pod& preemptor, const std::vector<NodeVictims>& planned) {
  if (planned.empty()) return;
  const NodeVictims& chosen = planned[static_cast<std::size_t>(pick(0, static_cast<int>(planned.size()) - 1))];
  preemptor.nominated = chosen.node;
  preemptor.version = ++version_;
  ++rounds_;
  for (const std::string& uid : chosen.uids) {
    Pod* victim = find(uid);
    if (victim == nullptr || victim->is_ending) continue;
    victim->is_ending = true;
    ++evictions_;
    ++evicted_for_[preemptor.spec.name];
    // A controller makes another one at once.
    Spec again = victim->spec;
    again.node.clear();
    again.name = fmt::format("{}-{}", again.name.substr(0, again.name.find('+')), "+" + std::to_string(made_));
    add_waiting(again);
    clock_.after(Milliseconds(pick(100, 30'000)), [this, uid, node = chosen.node] {
      pods_.erase(uid);
      publish_soon(*nodes_.at(node));
    });
  }
}

void PreemptionCluster::bind(Pod& pod, const std::string& node) {
  const RecentDemands::Read demand = demand_of(pod);
  if ((*demand)->is_for_zones()) {
    MutexLock lock(shared_.mutex);
    const auto reserved = shared_.book.reserve(node, **demand, clock_.now());
    if (!reserved) return;
    pod.annotation = reserved->annotation;
    shared_.book.confirm(reserved->promise, clock_.now());
  }
  pod.spec.node = node;
  pod.started = clock_.now();
  if (!pod.annotation.empty()) {
    int wanted = pod.spec.cpus;
    const auto free = [&](std::size_t zone) {
      int left = nodes_.at(node)->capacity[zone];
      for (const auto& [uid, other] : pods_) {
        const auto held = other->holds.find(zone);
        if (other->spec.node == node && held != other->holds.end()) left -= held->second;
      }
      return left;
    };
    const ZoneAnnotation given = *read_zone_annotation(pod.annotation);
    for (const std::uint32_t zone : given.containers.at(0).second) {
      const int taken = std::min(wanted, free(zone));
      if (taken > 0) pod.holds[zone] = taken;
      wanted -= std::max(0, taken);
      pod.spec.zone = static_cast<int>(zone);
    }
    if (wanted > 0) throw std::runtime_error("a zone was promised twice");
  }
  publish_soon(*nodes_.at(node));
}

}  // namespace topolet::extender
