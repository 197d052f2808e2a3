#include "cluster/agent/kubernetes/pod_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/index_set.hpp"
#include "core/base/rfc3339.hpp"

namespace topolet::agent {
namespace {

using nlohmann::json;

/// The API server takes no longer ones.
constexpr std::size_t kLongestMessage = 1024;
constexpr std::size_t kLongestPodName = 220;
constexpr std::size_t kMostTold = 2000;

struct Reason {
  const char* word;
  const char* type;
};

/// Returns the event to write; nothing for decisions that only concern those who look for them.
std::optional<Reason> reason_of(const watch::v1::Event& event, bool is_remote) {
  if (event.event() == "denied") return Reason{"TopologyDenied", "Warning"};
  if (event.event() == "re-placed") return Reason{"Moved", "Normal"};
  const bool is_wide = NodeSet::parse(event.nodes()).value_or(NodeSet()).size() > 1;
  const bool has_missed_zone = event.reason_code() == "zone-missed" || event.reason_code() == "zone-yielded";
  if (event.event() == "placed" && (is_wide || is_remote || has_missed_zone)) return Reason{"Placed", "Normal"};
  return std::nullopt;
}

/// The advice that ends an event; a long reason is cut so that it fits.
constexpr const char* kRemedyOfDenial =
    "; the scheduler does not move the pod: delete it, so that it is scheduled anew, or change what it asks for";
/// Deleting what the API server shows of it changes nothing.
constexpr const char* kRemedyOfStaticPod = "; change what the manifest on the node asks for";

std::string message_of(const watch::v1::Event& event, bool is_static) {
  const std::string remedy = event.event() != "denied" ? "" : is_static ? kRemedyOfStaticPod : kRemedyOfDenial;
  const std::size_t most = kLongestMessage - remedy.size();
  std::string message = fmt::format("container {}: {}", event.key().name(), event.reason());
  if (message.size() > most) message = message.substr(0, most - 3) + "...";
  return message + remedy;
}

}  // namespace

PodEvents::PodEvents(Options options, api::Api& api, std::function<const BoundPods*()> pods, Log& log)
    : options_(std::move(options)),
      api_(api),
      pods_(std::move(pods)),
      trouble_("events cannot be written", log),
      tokens_(options_.most_at_once),
      tokens_counted_(api_.now()) {}

bool uses_remote_device(const watch::v1::Machine& machine, const watch::v1::Container& container) {
  const NodeSet nodes = NodeSet::parse(container.nodes()).value_or(NodeSet());
  for (const std::string& used : container.used_devices()) {
    for (const watch::v1::Device& device : machine.devices()) {
      if (device.address() != used && device.name() != used) continue;
      const NodeSet local = NodeSet::parse(device.nodes()).value_or(NodeSet());
      if (!local.empty() && !local.intersects(nodes)) return true;
    }
  }
  return false;
}

void PodEvents::take(const watch::v1::Event& event, bool is_remote) {
  const std::optional<Reason> reason = reason_of(event, is_remote);
  if (!reason || event.pod_name().empty() || event.pod_namespace().empty()) return;
  forget_old();
  const BoundPods* pods = pods_();
  const api::Pod* pod = pods == nullptr ? nullptr : pods->find(event.key().pod_uid());
  const bool is_static = pod != nullptr && pod->uid != event.key().pod_uid();
  const Key key{event.key().pod_uid(), reason->word, message_of(event, is_static)};
  if (const auto found = told_.find(key); found != told_.end()) {
    ++found->second.count;
    found->second.last_seen = api_.now();
    return update_later(key);
  }
  if (!may_begin(event.key().pod_uid())) {
    ++counts_.dropped;
    return;
  }
  create(key, event, reason->type);
}

bool PodEvents::may_begin(const std::string& pod_uid) {
  const auto first = told_.lower_bound({pod_uid, "", ""});
  int of_pod = 0;
  for (auto i = first; i != told_.end() && std::get<0>(i->first) == pod_uid; ++i) ++of_pod;
  const Time now = api_.now();
  const std::chrono::duration<double, std::milli> passed = now - std::exchange(tokens_counted_, now);
  tokens_ = std::min<double>(options_.most_at_once, tokens_ + passed / options_.period);
  if (of_pod >= options_.most_of_pod || tokens_ < 1 || told_.size() >= kMostTold) return false;
  tokens_ -= 1;
  return true;
}

void PodEvents::create(const Key& key, const watch::v1::Event& event, const std::string& type) {
  const BoundPods* pods = pods_();
  const api::Pod* pod = pods == nullptr ? nullptr : pods->find(event.key().pod_uid());
  // The mirror of a static pod has another uid.
  const std::string uid = pod == nullptr ? event.key().pod_uid() : pod->uid;
  const std::chrono::milliseconds wall_time = api_.wall_time();
  const std::string name =
      fmt::format("{}.{:x}{:02x}", event.pod_name().substr(0, kLongestPodName),
                  std::chrono::duration_cast<std::chrono::microseconds>(wall_time).count(), ++last_number_ & 0xffU);
  const std::string now = rfc3339(wall_time);
  const json object = {{"apiVersion", "v1"},
                       {"kind", "Event"},
                       {"metadata", {{"name", name}, {"namespace", event.pod_namespace()}}},
                       {"involvedObject",
                        {{"apiVersion", "v1"},
                         {"kind", "Pod"},
                         {"name", event.pod_name()},
                         {"namespace", event.pod_namespace()},
                         {"uid", uid},
                         {"fieldPath", fmt::format("spec.containers{{{}}}", event.key().name())}}},
                       {"type", type},
                       {"reason", std::get<1>(key)},
                       {"message", std::get<2>(key)},
                       {"source", {{"component", "topolet-agent"}, {"host", options_.node_name}}},
                       {"firstTimestamp", now},
                       {"lastTimestamp", now},
                       {"count", 1},
                       {"reportingComponent", "topolet-agent"},
                       {"reportingInstance", options_.node_name}};
  Told& told = told_[key];
  told.name_space = event.pod_namespace();
  told.name = name;
  told.written_count = 1;
  told.last_written = told.last_seen = api_.now();
  api_.request({.verb = "create",
                .method = "POST",
                .path = fmt::format("/api/v1/namespaces/{}/events", event.pod_namespace()),
                .body = object},
               [this, key](const api::ApiAnswer& answer) {
                 if (answer.ok()) {
                   trouble_.works();
                   ++counts_.written[std::get<1>(key)];
                   return;
                 }
                 ++counts_.failed;
                 // Expected for a namespace that is being deleted, and the like: no more events of this pod are
                 // written.
                 if (answer.status != 404 && answer.status != 409) trouble_.failed(answer.error);
                 if (const auto found = told_.find(key); found != told_.end()) found->second.name.clear();
               });
}

void PodEvents::update_later(const Key& key) {
  Told& told = told_.at(key);
  if (told.is_update_due) return;
  told.is_update_due = true;
  const auto due = told.last_written + options_.update_period - api_.now();
  api_.after(std::max(std::chrono::milliseconds(0), std::chrono::ceil<std::chrono::milliseconds>(due)),
             [this, key] { update(key); });
}

void PodEvents::update(const Key& key) {
  const auto found = told_.find(key);
  if (found == told_.end()) return;
  Told& told = found->second;
  told.is_update_due = false;
  if (told.name.empty() || told.written_count == told.count) return;
  told.written_count = told.count;
  told.last_written = api_.now();
  api_.request({.verb = "patch",
                .method = "PATCH",
                .path = fmt::format("/api/v1/namespaces/{}/events/{}", told.name_space, told.name),
                .body = {{"count", told.count}, {"lastTimestamp", rfc3339(api_.wall_time())}},
                .content_type = "application/merge-patch+json"},
               [this, key](const api::ApiAnswer& answer) {
                 if (answer.ok()) {
                   ++counts_.written[std::get<1>(key)];
                   return;
                 }
                 ++counts_.failed;
                 // Events expire at the API server: the next one is a new one.
                 if (answer.status == 404) told_.erase(key);
               });
}

void PodEvents::forget_old() {
  const auto too_old = api_.now() - options_.memory;
  std::erase_if(told_, [too_old](const auto& entry) { return entry.second.last_seen < too_old; });
}

}  // namespace topolet::agent
