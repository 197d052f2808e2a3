#include "cluster/agent/kubernetes/pending.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace topolet::agent {
namespace {

/// The runtime is told shares and not thousandths of CPUs, which loses up to one thousandth and a minimum of two shares
/// in each container.
constexpr std::int64_t kLostMilli = 2;

/// No name of a container can be like it.
constexpr const char* kRest = "(rest)";

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

/// Of each resource the smaller one.
api::Amounts at_most(const api::Amounts& wanted, const api::Amounts& limit) {
  api::Amounts beyond = wanted;
  beyond.subtract(limit);
  api::Amounts result = wanted;
  result.subtract(beyond);
  return result;
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

}  // namespace

BookedContainers booked_containers(const watch::v1::Snapshot& node) {
  BookedContainers booked;
  for (const watch::v1::Container& container : node.containers()) {
    // Of two attempts the larger one: the older is about to end.
    booked[container.key().pod_uid()][container.key().name()].raise_to(amounts_of(container));
  }
  return booked;
}

std::vector<watch::v1::PendingContainer> pending_containers(const api::Pod& pod, const BookedContainers& booked) {
  std::vector<watch::v1::PendingContainer> pending;
  if (pod.is_terminal()) return pending;
  static const BookedContainers::mapped_type kNone;
  const auto found = booked.find(pod.runtime_uid);
  const auto& mine = found == booked.end() ? kNone : found->second;
  api::Amounts left = pod.effective_requests();
  bool memory_is_known = true;
  for (const auto& [name, amounts] : mine) {
    left.subtract(amounts);
    // Of Burstable containers the runtime is told no memory request.
    memory_is_known = pod.qos == "guaranteed";
  }
  for (const api::PodContainer& container : pod.containers) {
    if (container.has_ended || container.kind == api::PodContainer::Kind::kInit || mine.contains(container.name))
      continue;
    const api::Amounts requests = at_most(container.requests, left);
    // Its pod has all that it will ask for, by an init container for example.
    if (is_anything(container.requests) && !is_anything(requests)) continue;
    left.subtract(requests);
    pending.push_back(message_of(pod, container.name, requests, container.limits));
  }
  left.devices.clear();
  if (!memory_is_known) left.memory_bytes = 0;
  if (left.cpu_milli <= kLostMilli * static_cast<std::int64_t>(mine.size())) left.cpu_milli = 0;
  if (is_anything(left)) pending.push_back(message_of(pod, kRest, left, left));
  return pending;
}

}  // namespace topolet::agent
