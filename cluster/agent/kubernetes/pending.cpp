#include "cluster/agent/kubernetes/pending.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/index_set.hpp"

namespace topolet::agent {
namespace {

/// The runtime is told shares and not thousandths of CPUs, which loses up to one thousandth and a minimum of two shares
/// in each container.
constexpr std::int64_t kLostMilli = 2;

/// No name of a container can be like these.
constexpr const char* kGrowth = "(growth)";
constexpr const char* kPod = "(pod)";

/// "2Mi" as the container runtime writes it.
std::string runtime_page_size(std::string size) {
  if (size.ends_with('i')) size.back() = 'B';
  return size;
}

/// "2MB" as Kubernetes writes it.
std::string kubernetes_page_size(std::string size) {
  if (size.ends_with('B')) size.back() = 'i';
  if (size.size() >= 2 && size[size.size() - 2] == 'k') size[size.size() - 2] = 'K';
  return size;
}

api::Amounts amounts_of(const watch::v1::Container& container) {
  api::Amounts amounts;
  amounts.cpu_milli = container.cpu_request_milli();
  amounts.memory_bytes =
      container.memory_request_bytes() > 0 ? container.memory_request_bytes() : container.memory_limit_bytes();
  // The limit is the request where the request is only an estimate that was rounded.
  if (container.memory_request_estimated() && container.qos() == "guaranteed")
    amounts.memory_bytes = container.memory_limit_bytes();
  for (const auto& [size, bytes] : container.hugepage_limit_bytes())
    amounts.huge_page_bytes[kubernetes_page_size(size)] = bytes;
  return amounts;
}

watch::v1::PendingContainer message_of(const api::Pod& pod, const std::string& name, const api::Amounts& requests,
                                       const api::Amounts& limits) {
  watch::v1::PendingContainer message;
  message.set_pod_uid(pod.runtime_uid);
  message.set_pod_name(pod.name);
  message.set_pod_namespace(pod.name_space);
  message.set_name(name);
  message.set_qos(pod.qos);
  const bool is_guaranteed = pod.qos == "guaranteed";
  message.set_cpu_request_milli(requests.cpu_milli);
  message.set_cpu_limit_milli(is_guaranteed ? requests.cpu_milli : limits.cpu_milli);
  message.set_memory_request_bytes(requests.memory_bytes);
  message.set_memory_limit_bytes(is_guaranteed ? requests.memory_bytes : limits.memory_bytes);
  for (const auto& [size, bytes] : requests.huge_page_bytes) {
    if (bytes > 0) (*message.mutable_hugepage_limit_bytes())[runtime_page_size(size)] = bytes;
  }
  for (const auto& [key, value] : pod.annotations) (*message.mutable_annotations())[key] = value;
  return message;
}

bool is_anything(const api::Amounts& amounts) {
  return amounts.cpu_milli > 0 || amounts.memory_bytes > 0 ||
         std::any_of(amounts.huge_page_bytes.begin(), amounts.huge_page_bytes.end(),
                     [](const auto& pages) { return pages.second > 0; });
}

using Kind = api::PodContainer::Kind;
using BookedOfPod = BookedContainers::mapped_type;

/// The init containers that have yet to end: of those before a container that topoletd has, nothing is left to do, even
/// if the API server does not know that yet. One that has failed may be there from before the pod began anew.
bool is_over(const api::Pod& pod, std::size_t position, const BookedOfPod& booked) {
  return std::any_of(pod.containers.begin() + static_cast<std::ptrdiff_t>(position) + 1, pod.containers.end(),
                     [&booked](const api::PodContainer& later) {
                       const auto found = booked.find(later.name);
                       return found != booked.end() && !found->second.has_failed;
                     });
}

/// By how much the containers that topoletd has request more than they had.
api::Amounts growth_of(const api::Pod& pod, const BookedOfPod& booked) {
  api::Amounts growth;
  for (const api::PodContainer& container : pod.containers) {
    const auto found = booked.find(container.name);
    if (container.has_ended || container.kind == Kind::kInit || found == booked.end()) continue;
    api::Amounts more = container.requests;
    more.subtract(found->second.amounts);
    if (more.cpu_milli <= kLostMilli) more.cpu_milli = 0;
    // Of Burstable containers the runtime is told no memory request.
    if (pod.qos != "guaranteed") more.memory_bytes = 0;
    growth.add(more);
  }
  growth.devices.clear();
  return growth;
}

/// What the pod requests as a whole, beyond all that its containers do.
api::Amounts pod_level_rest(const api::Pod& pod) {
  api::Amounts rest = pod.effective_requests();
  api::Pod without = pod;
  without.pod_requests = {};
  rest.subtract(without.effective_requests());
  rest.devices.clear();
  return rest;
}

watch::v1::PendingContainer shared_message_of(api::Pod pod, const char* name, const api::Amounts& amounts) {
  // What the annotations say is said of containers.
  pod.annotations.clear();
  pod.qos = "burstable";
  return message_of(pod, name, amounts, amounts);
}

}  // namespace

BookedContainers booked_containers(const watch::v1::Snapshot& node) {
  BookedContainers booked;
  for (const watch::v1::Container& container : node.containers()) {
    auto& of_pod = booked[container.key().pod_uid()];
    const auto [found, is_new] = of_pod.try_emplace(container.key().name());
    const bool has_failed = container.phase() == "crashed";
    // Of two attempts the larger one: the older is about to end.
    found->second.amounts.raise_to(amounts_of(container));
    found->second.has_failed = has_failed && (is_new || found->second.has_failed);
  }
  return booked;
}

bool places_by_devices(const watch::v1::Snapshot& node) {
  return std::any_of(node.plugins().begin(), node.plugins().end(),
                     [](const watch::v1::Plugin& plugin) { return plugin.id() == "gpu"; });
}

std::int64_t whole_cpus_of(const std::vector<watch::v1::PendingContainer>& pending, const api::Pod& pod,
                           const BookedContainers& booked) {
  std::set<std::string> ending;
  for (const watch::v1::PendingContainer& container : pending)
    ending.insert(container.after().begin(), container.after().end());
  std::int64_t largest_init = 0;
  std::int64_t others = 0;
  for (const watch::v1::PendingContainer& container : pending) {
    const std::int64_t milli = container.cpu_request_milli();
    if (container.qos() != "guaranteed" || milli % 1000 != 0) continue;
    if (ending.contains(container.name())) {
      largest_init = std::max(largest_init, milli / 1000);
    } else {
      others += milli / 1000;
    }
  }
  std::int64_t held = 0;
  if (const auto found = booked.find(pod.runtime_uid); found != booked.end()) {
    for (const auto& [name, container] : found->second) {
      if (ending.contains(name)) held = std::max(held, container.amounts.cpu_milli / 1000);
    }
  }
  return std::max<std::int64_t>(0, std::max(largest_init, others) - held);
}

std::vector<watch::v1::PendingContainer> pending_containers(const api::Pod& pod, const BookedContainers& booked,
                                                            const NodesOfDevices& devices) {
  std::vector<watch::v1::PendingContainer> pending;
  if (pod.is_terminal()) return pending;
  static const BookedOfPod kNone;
  const auto found = booked.find(pod.runtime_uid);
  const BookedOfPod& mine = found == booked.end() ? kNone : found->second;
  std::vector<std::string> ended_before;
  for (std::size_t i = 0; i < pod.containers.size(); ++i) {
    const api::PodContainer& container = pod.containers[i];
    const bool is_init = container.kind == Kind::kInit;
    const bool is_pending =
        !container.has_ended && !mine.contains(container.name) && !(is_init && is_over(pod, i, mine));
    if (is_pending) {
      pending.push_back(message_of(pod, container.name, container.requests, container.limits));
      pending.back().mutable_after()->Assign(ended_before.begin(), ended_before.end());
      if (const auto near = devices.find(container.name); near != devices.end()) {
        NodeSet nodes;
        for (const std::uint32_t node : near->second) nodes.insert(node);
        pending.back().set_device_nodes(nodes.to_string());
      }
    }
    if (is_init && (is_pending || mine.contains(container.name))) ended_before.push_back(container.name);
  }
  if (const api::Amounts growth = growth_of(pod, mine); is_anything(growth))
    pending.push_back(message_of(pod, kGrowth, growth, growth));
  if (const api::Amounts rest = pod_level_rest(pod); is_anything(rest))
    pending.push_back(shared_message_of(pod, kPod, rest));
  return pending;
}

}  // namespace topolet::agent
