#include "cluster/agent/kubernetes/reporter.hpp"

#include <algorithm>
#include <utility>

#include "cluster/agent/kubernetes/own_illnesses.hpp"
#include "cluster/agent/kubernetes/zones.hpp"
#include "cluster/api/json_fields.hpp"

namespace topolet::agent {
namespace {

using nlohmann::json;

/// Metrics are looked at less often.
constexpr std::chrono::milliseconds kCountsPeriod{2000};
const api::Grants kGrants = {.account = "topolet-agent",
                             .rights = "deploy/kubernetes/rbac.yaml",
                             .pod = "deploy/kubernetes/agent.yaml",
                             .token = "deploy/kubernetes/agent-kubeconfig"};

/// Returns true if a container is moved that could have stayed where it was, to a better place or for another one.
bool moves_by_choice(const watch::v1::Event& event) {
  return event.reason_code() == "room" || event.reason_code() == "healed";
}

/// Thousands of agents ask.
constexpr std::chrono::minutes kAskForRightsAgain{10};
/// After a start all is known by then, or something is the matter.
constexpr std::chrono::minutes kLongestStart{1};

/// Returns the rights that publishing needs.
std::vector<api::Right> rights_to_publish(const std::string& node) {
  constexpr const char* kGroup = "topology.node.k8s.io";
  constexpr const char* kObjects = "noderesourcetopologies";
  return {{.verb = "list", .group = kGroup, .resource = kObjects, .name = node},
          {.verb = "create", .group = kGroup, .resource = kObjects},
          {.verb = "update", .group = kGroup, .resource = kObjects, .name = node},
          {.verb = "list", .group = "", .resource = "pods", .field = "spec.nodeName", .field_value = node}};
}

api::Reflector::Options following(const std::string& name, const std::string& path, const std::string& selector) {
  return {.name = name, .path = path, .field_selector = selector};
}

}  // namespace

Reporter::Reporter(Options options, api::ApiServer server, Node& node, WatchClient& watch, Log& log)
    : options_(std::move(options)),
      node_(node),
      watch_(watch),
      log_(log),
      loop_(options_.clock),
      client_(loop_, std::move(server), kGrants),
      events_(
          {.node_name = options_.node_name}, client_, [this] { return pod_reflector_.has_synced() ? &pods_ : nullptr; },
          log),
      publisher_({.node_name = options_.node_name,
                  .scheduler_resync = options_.scheduler_resync,
                  .scheduler_names = options_.scheduler_names,
                  .lease_namespace = options_.lease_namespace,
                  .lease_name = options_.lease_name},
                 {.api = client_,
                  .node_state = [this] { return node_.reconciled_state(); },
                  .ask_what_fits =
                      [this](watch::v1::FitsRequest request, auto on_answer) {
                        watch_.ask_what_fits(std::move(request), [this, on_answer](const auto& fits) {
                          loop_.post([fits, on_answer] { on_answer(fits); });
                        });
                      },
                  .pods = [this]() -> const BoundPods* { return pod_reflector_.has_synced() ? &pods_ : nullptr; },
                  .devices = [this]() -> const DeviceInventory::State* {
                    if (!devices_) return &no_devices_;
                    return devices_->is_settled() ? &devices_->state() : nullptr;
                  },
                  .log = log}),
      pod_reflector_(
          client_,
          following("the pods of node " + options_.node_name, "/api/v1/pods", "spec.nodeName=" + options_.node_name),
          {.on_list =
               [this](const std::vector<json>& objects) {
                 pods_.begin(objects);
                 take_pods_changed();
               },
           .on_change =
               [this](std::string_view type, const json& object) {
                 pods_.apply(type, object);
                 if (type == "ADDED") forget_devices_of(object);
                 take_pods_changed();
                 if (type == "ADDED") publisher_.pod_was_bound();
               }},
          log),
      object_reflector_(
          client_,
          following("the NodeResourceTopology " + options_.node_name, kTopologyPath,
                    "metadata.name=" + options_.node_name),
          {.on_list =
               [this](const std::vector<json>& objects) { take_object(objects.empty() ? json() : objects.front()); },
           .on_change = [this](std::string_view type,
                               const json& object) { take_object(type == "DELETED" ? json() : object); }},
          log),
      rights_(client_, rights_to_publish(options_.node_name), kAskForRightsAgain, log) {
  if (!options_.control_socket.empty()) {
    capacity_.emplace(
        loop_, options_.control_socket, [this] { return node_.reconciled_state(); }, log);
  }
  if (!options_.token_file.empty()) token_renewal_.emplace(client_, options_.token_file, log);
  if (!options_.pod_resources.empty()) {
    devices_.emplace(
        loop_, options_.pod_resources, [this] { publisher_.something_changed(); }, log);
  }
}

Reporter::~Reporter() { stop(); }

void Reporter::start() {
  node_.set_listener([this](const watch::v1::Delta* delta) { hear(delta); });
  loop_.post([this] {
    if (devices_) devices_->start();
    if (token_renewal_) token_renewal_->start();
    pod_reflector_.start();
    object_reflector_.start();
    started_ = options_.clock.steady();
    rights_.start([this] { tell_illnesses(); });
    copy_counts();
  });
  log_.info("publishing the topology of node {} at {}", options_.node_name, client_.url());
  loop_.start();
}

void Reporter::stop() {
  node_.set_listener({});
  loop_.stop();
}

/// Passes the work on to the loop's thread. Called with the node's lock held.
void Reporter::hear(const watch::v1::Delta* delta) {
  auto heard = std::make_shared<watch::v1::Delta>();
  if (delta != nullptr) *heard = *delta;
  loop_.post([this, heard] {
    for (const watch::v1::Event& event : heard->events()) events_.take(event, is_remote(*heard, event));
    if (devices_ && pods_.want_devices()) devices_->refresh();
    if (capacity_) capacity_->node_changed();
    const auto& events = heard->events();
    if (std::any_of(events.begin(), events.end(), moves_by_choice)) publisher_.container_was_moved();
    publisher_.something_changed();
  });
}

void Reporter::take_object(const json& object) {
  if (capacity_) capacity_->take_object(object);
  publisher_.take_object(object);
}

bool Reporter::is_remote(const watch::v1::Delta& delta, const watch::v1::Event& event) const {
  const auto& changed = delta.changed();
  const auto container = std::find_if(changed.begin(), changed.end(), [&event](const watch::v1::Container& other) {
    return other.key().SerializeAsString() == event.key().SerializeAsString();
  });
  if (container == changed.end() || container->used_devices().empty()) return false;
  const std::optional<watch::v1::Snapshot> node = node_.reconciled_state();
  return node && uses_remote_device(node->machine(), *container);
}

/// The kubelet tells of pods by their names.
void Reporter::forget_devices_of(const json& pod) {
  if (devices_)
    devices_->forget(api::text_field(pod, "metadata", "namespace"), api::text_field(pod, "metadata", "name"));
}

void Reporter::take_pods_changed() {
  if (devices_ && pods_.want_devices()) devices_->refresh();
  publisher_.something_changed();
}

void Reporter::copy_counts() {
  {
    MutexLock lock(mutex_);
    counts_.topology = publisher_.counts();
    counts_.events = events_.counts();
    if (capacity_) counts_.capacity = capacity_->counts();
    counts_.bound_pods = pods_.size();
    counts_.knows_pods = pod_reflector_.has_synced();
    counts_.knows_devices = devices_ && devices_->works();
  }
  tell_illnesses();
  loop_.after(kCountsPeriod, [this] { copy_counts(); });
}

void Reporter::tell_illnesses() {
  OwnFacts facts{.node_name = options_.node_name,
                 .missing_rights = rights_.missing().value_or(std::vector<std::string>{}),
                 .topology = publisher_.counts(),
                 .is_late = options_.clock.steady() - started_ >= kLongestStart,
                 .hears_topoletd = node_.summary().connected,
                 .knows_pods = pod_reflector_.has_synced(),
                 .pods_trouble = pod_reflector_.trouble(),
                 .knows_object = object_reflector_.has_synced(),
                 .object_trouble = object_reflector_.trouble()};
  if (devices_) {
    facts.knows_devices = devices_->is_settled();
    facts.devices_trouble = devices_->trouble();
  }
  if (token_renewal_) facts.token_trouble = token_renewal_->trouble();
  node_.set_own_illnesses(own_illnesses(facts), options_.clock.wall());
}

Reporter::Counts Reporter::counts() const {
  Counts counts;
  {
    MutexLock lock(mutex_);
    counts = counts_;
  }
  counts.requests = client_.counts();
  return counts;
}

}  // namespace topolet::agent
