#include "cluster/agent/kubernetes/pending.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/index_set.hpp"

namespace topolet::agent {
namespace {

/// The runtime is told shares and not thousandths of CPUs, which loses up to one thousandth and a minimum of two shares
/// in each container.
constexpr std::int64_t kLostMilli = 2;

/// The kernel tells whole pages only.
constexpr std::int64_t kLostBytes = 64 << 10;

/// No name of a container can be like these.
constexpr const char* kGrowth = "(growth of {})";
constexpr const char* kAgain = "(again {})";
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

/// As the pod's sandbox tells it: all its containers count, also those that have ended. The runtime is told no memory
/// request of a pod that is not Guaranteed, but its limit.
struct WholePod {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
};
WholePod whole_pod(api::Pod pod) {
  for (api::PodContainer& container : pod.containers) container.has_ended = false;
  const api::Amounts requests = pod.effective_requests();
  if (pod.qos == "guaranteed") return {requests.cpu_milli, requests.memory_bytes};
  pod.pod_requests = {};
  for (api::PodContainer& container : pod.containers) container.requests = container.limits;
  return {requests.cpu_milli, pod.effective_requests().memory_bytes};
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

struct Growth {
  api::Amounts requests;
  std::int64_t memory_limit_bytes = 0;

  bool is_of_memory() const {
    api::Amounts memory = requests;
    memory.cpu_milli = 0;
    return memory_limit_bytes > 0 || is_anything(memory);
  }
};

/// Returns `more`, or 0 if it is within `lost`, the rounding error of the amounts that topoletd has.
std::int64_t unless_lost(std::int64_t more, std::int64_t lost) { return more <= lost ? 0 : more; }

/// Returns the amounts by which a container that topoletd has now requests more.
Growth growth_of(const api::Pod& pod, const api::PodContainer& container, const BookedContainer& booked) {
  Growth growth;
  api::Amounts& more = growth.requests;
  more = container.requests;
  more.subtract(booked.amounts);
  more.cpu_milli = unless_lost(more.cpu_milli, kLostMilli);
  more.devices.clear();
  if (pod.qos != "guaranteed") {
    // Outside Guaranteed pods, the memory request that topoletd has is an estimate.
    const bool is_known = container.actual.memory_bytes > 0;
    const std::int64_t missing = is_known ? container.requests.memory_bytes - container.actual.memory_bytes : 0;
    more.memory_bytes = std::clamp<std::int64_t>(missing, 0, more.memory_bytes);
    if (booked.memory_limit_bytes > 0 && container.limits.memory_bytes > booked.memory_limit_bytes)
      growth.memory_limit_bytes = container.limits.memory_bytes - booked.memory_limit_bytes;
  }
  more.memory_bytes = unless_lost(more.memory_bytes, kLostBytes);
  growth.memory_limit_bytes = unless_lost(growth.memory_limit_bytes, kLostBytes);
  return growth;
}

bool is_created_anew(const api::PodContainer& container, const BookedContainer& booked, const Growth& growth) {
  return booked.has_failed || (container.is_created_anew_for_cpus && growth.requests.cpu_milli > 0) ||
         (container.is_created_anew_for_memory && growth.is_of_memory());
}

/// Returns the pod-level request beyond that of its containers, less the part that topoletd has already booked.
api::Amounts pod_level_rest(const api::Pod& pod, const BookedOfPod& booked) {
  api::Amounts rest = pod.effective_requests();
  api::Pod without = pod;
  without.pod_requests = {};
  rest.subtract(without.effective_requests());
  for (const auto& [name, container] : booked) rest.subtract(container.of_pod);
  rest.devices.clear();
  return rest;
}

watch::v1::PendingContainer shared_message_of(api::Pod pod, const char* name, const api::Amounts& amounts) {
  // The annotations apply to containers only.
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
    const bool has_failed = container.phase() == "crashed" || container.phase() == "kept";
    // The older of two attempts is about to end, so the larger amounts count.
    found->second.amounts.raise_to(amounts_of(container));
    found->second.memory_limit_bytes = std::max(found->second.memory_limit_bytes, container.memory_limit_bytes());
    if (container.cpu_request_certainty() == "pod") found->second.of_pod.raise_to(amounts_of(container));
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
    if (ending.contains(container.name()) && container.grows().empty()) {
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

namespace {

/// Puts together what one pod will ask for.
class PendingOfPod {
 public:
  PendingOfPod(const api::Pod& pod, const BookedOfPod& booked, const NodesOfDevices& devices)
      : pod_(pod), booked_(booked), devices_(devices), whole_pod_(whole_pod(pod)) {}

  std::vector<watch::v1::PendingContainer> all() && {
    for (std::size_t i = 0; i < pod_.containers.size(); ++i) add(i);
    pending_.insert(pending_.end(), growing_.begin(), growing_.end());
    if (const api::Amounts rest = pod_level_rest(pod_, booked_); is_anything(rest))
      pending_.push_back(shared_message_of(pod_, kPod, rest));
    return std::move(pending_);
  }

 private:
  void add(std::size_t position) {
    const api::PodContainer& container = pod_.containers[position];
    const auto found = booked_.find(container.name);
    const bool is_booked = found != booked_.end();
    const bool is_init = container.kind == Kind::kInit;
    const bool is_done = container.has_ended || (is_init && is_over(pod_, position, booked_));
    if (!is_done && !is_booked) pending_.push_back(whole(container, container.name));
    if (is_init && (is_booked || !is_done)) ended_before_.push_back(container.name);
    if (is_done || !is_booked) return;
    const std::optional<watch::v1::PendingContainer> growth = growth_message(container, found->second);
    if (!growth) return;
    (is_init ? pending_ : growing_).push_back(*growth);
    if (is_init) ended_before_.push_back(growth->name());
  }

  watch::v1::PendingContainer whole(const api::PodContainer& container, const std::string& name) const {
    watch::v1::PendingContainer message = message_of(pod_, name, container.requests, container.limits);
    message.set_pod_cpu_request_milli(whole_pod_.cpu_milli);
    message.set_pod_memory_bytes(whole_pod_.memory_bytes);
    message.mutable_after()->Assign(ended_before_.begin(), ended_before_.end());
    if (const auto near = devices_.find(container.name); near != devices_.end()) {
      NodeSet nodes;
      for (const std::uint32_t node : near->second) nodes.insert(node);
      message.set_device_nodes(nodes.to_string());
    }
    return message;
  }

  /// The last of `after` is the container itself where it is created anew.
  std::optional<watch::v1::PendingContainer> growth_message(const api::PodContainer& container,
                                                            const BookedContainer& booked) const {
    const Growth growth = growth_of(pod_, container, booked);
    if (growth.requests.cpu_milli == 0 && !growth.is_of_memory()) return std::nullopt;
    watch::v1::PendingContainer message;
    if (is_created_anew(container, booked, growth)) {
      message = whole(container, fmt::format(kAgain, container.name));
      if (message.after().empty() || *message.after().rbegin() != container.name) message.add_after(container.name);
    } else {
      api::Amounts limits = growth.requests;
      limits.memory_bytes = growth.memory_limit_bytes;
      message = message_of(pod_, fmt::format(kGrowth, container.name), growth.requests, limits);
    }
    message.set_grows(container.name);
    return message;
  }

  const api::Pod& pod_;
  const BookedOfPod& booked_;
  const NodesOfDevices& devices_;
  const WholePod whole_pod_;
  std::vector<watch::v1::PendingContainer> pending_;
  std::vector<watch::v1::PendingContainer> growing_;  ///< of those that go on beside the others
  std::vector<std::string> ended_before_;
};

}  // namespace

std::vector<watch::v1::PendingContainer> pending_containers(const api::Pod& pod, const BookedContainers& booked,
                                                            const NodesOfDevices& devices) {
  if (pod.is_terminal()) return {};
  static const BookedOfPod kNone;
  const auto found = booked.find(pod.runtime_uid);
  return PendingOfPod(pod, found == booked.end() ? kNone : found->second, devices).all();
}

}  // namespace topolet::agent
