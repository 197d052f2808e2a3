#include "cluster/api/pod.hpp"

#include <algorithm>
#include <string_view>

#include "cluster/api/json_fields.hpp"
#include "cluster/api/quantity.hpp"

namespace topolet::api {
namespace {

using nlohmann::json;

constexpr std::string_view kHugePages = "hugepages-";

/// Returns true for a name with a vendor's domain. Names without a domain, or with Kubernetes' own, are not devices.
bool is_device(std::string_view resource) {
  const std::size_t slash = resource.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view domain = resource.substr(0, slash);
  return domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io");
}

Amounts read_amounts(const json& list) {
  Amounts amounts;
  if (!list.is_object()) return amounts;
  for (const auto& [resource, value] : list.items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (resource == "cpu") {
      amounts.cpu_milli = parse_milli(text).value_or(0);
    } else if (resource == "memory") {
      amounts.memory_bytes = parse_units(text).value_or(0);
    } else if (resource.starts_with(kHugePages)) {
      amounts.huge_page_bytes[resource.substr(kHugePages.size())] = parse_units(text).value_or(0);
    } else if (is_device(resource)) {
      amounts.devices[resource] = parse_units(text).value_or(0);
    }
  }
  return amounts;
}

template <class Map, class Combine>
void combine_maps(Map& into, const Map& other, Combine combine) {
  for (const auto& [key, amount] : other) into[key] = combine(into[key], amount);
}

std::int64_t larger(std::int64_t a, std::int64_t b) { return std::max(a, b); }
std::int64_t sum(std::int64_t a, std::int64_t b) { return a + b; }
std::int64_t difference(std::int64_t a, std::int64_t b) { return std::max<std::int64_t>(0, a - b); }

template <class Combine>
void combine(Amounts& into, const Amounts& other, Combine with) {
  into.cpu_milli = with(into.cpu_milli, other.cpu_milli);
  into.memory_bytes = with(into.memory_bytes, other.memory_bytes);
  combine_maps(into.huge_page_bytes, other.huge_page_bytes, with);
  combine_maps(into.devices, other.devices, with);
}

const json& status_of(const json& statuses, const std::string& name) {
  static const json kNone;
  if (!statuses.is_array()) return kNone;
  for (const json& status : statuses) {
    if (text_field(status, "name") == name) return status;
  }
  return kNone;
}

bool is_resize_infeasible(const json& object) {
  for (const json& condition : list_field(object, "status", "conditions")) {
    if (text_field(condition, "type") == "PodResizePending" && text_field(condition, "reason") == "Infeasible")
      return true;
  }
  return false;
}

class PodReader {
 public:
  explicit PodReader(const json& object)
      : object_(object),
        restart_policy_(text_field(object, "spec", "restartPolicy")),
        is_deleted_(!text_field(object, "metadata", "deletionTimestamp").empty()),
        resize_is_infeasible_(is_resize_infeasible(object)) {}

  Pod read() const {
    Pod pod;
    pod.uid = text_field(object_, "metadata", "uid");
    pod.name = text_field(object_, "metadata", "name");
    pod.name_space = text_field(object_, "metadata", "namespace");
    pod.created_at = text_field(object_, "metadata", "creationTimestamp");
    pod.phase = text_field(object_, "status", "phase");
    for (const auto& [key, value] : map_field(object_, "metadata", "annotations")) {
      // A copy of the whole manifest, which no policy reads.
      if (value.is_string() && key != "kubectl.kubernetes.io/last-applied-configuration")
        pod.annotations[key] = value.get<std::string>();
    }
    const auto mirror = pod.annotations.find("kubernetes.io/config.mirror");
    pod.runtime_uid = mirror == pod.annotations.end() ? pod.uid : mirror->second;
    read_containers("initContainers", "initContainerStatuses", pod);
    read_containers("containers", "containerStatuses", pod);
    pod.pod_requests = read_amounts(field(object_, "spec", "resources", "requests"));
    pod.qos = qos(pod);
    return pod;
  }

 private:
  void read_containers(const std::string& list, const std::string& statuses, Pod& pod) const {
    for (const json& spec : list_field(object_, "spec", list)) {
      PodContainer container;
      container.name = text_field(spec, "name");
      if (list == "initContainers") {
        const bool goes_on = text_field(spec, "restartPolicy") == "Always";
        container.kind = goes_on ? PodContainer::Kind::kSidecar : PodContainer::Kind::kInit;
      }
      const json& status = status_of(field(object_, "status", statuses), container.name);
      container.requests = requests(spec, status);
      container.limits = limits(spec, status);
      container.actual = read_amounts(field(status, "resources", "requests"));
      container.is_created_anew_for_cpus = is_created_anew_for("cpu", spec);
      container.is_created_anew_for_memory = is_created_anew_for("memory", spec);
      container.has_ended = has_ended(container.kind, spec, status);
      pod.containers.push_back(std::move(container));
    }
  }

  Amounts requests(const json& spec, const json& status) const {
    const json& resources = field(spec, "resources");
    Amounts wished = read_amounts(field(resources, "requests"));
    // A limit alone counts as the request; the API server fills that in, but not for pods that are made elsewhere.
    if (field(resources, "requests").is_null()) wished = read_amounts(field(resources, "limits"));
    Amounts had = read_amounts(field(status, "allocatedResources"));
    had.raise_to(read_amounts(field(status, "resources", "requests")));
    if (had == Amounts()) return wished;
    // A resize that the node can never do counts for nothing. Devices are not resized.
    if (resize_is_infeasible_) {
      had.devices = wished.devices;
      return had;
    }
    wished.raise_to(had);
    return wished;
  }

  Amounts limits(const json& spec, const json& status) const {
    const json& actual = field(status, "resources", "limits");
    return read_amounts(resize_is_infeasible_ && actual.is_object() ? actual : field(spec, "resources", "limits"));
  }

  static bool is_created_anew_for(const std::string& resource, const json& spec) {
    const auto& policies = list_field(spec, "resizePolicy");
    return std::any_of(policies.begin(), policies.end(), [&resource](const json& policy) {
      return text_field(policy, "resourceName") == resource &&
             text_field(policy, "restartPolicy") == "RestartContainer";
    });
  }

  bool has_ended(PodContainer::Kind kind, const json& spec, const json& status) const {
    const json& terminated = field(status, "state", "terminated");
    if (!terminated.is_object()) return false;
    const bool succeeded = field(terminated, "exitCode") == 0;
    if (kind == PodContainer::Kind::kInit && succeeded) return true;
    if (is_deleted_) return true;
    // Some exits may start it again, whatever its policy says.
    if (!list_field(spec, "restartPolicyRules").empty()) return false;
    const std::string own_policy = text_field(spec, "restartPolicy");
    const std::string& policy = own_policy.empty() ? restart_policy_ : own_policy;
    return policy == "Never" || (policy == "OnFailure" && succeeded);
  }

  std::string qos(const Pod& pod) const {
    std::string told = text_field(object_, "status", "qosClass");
    if (!told.empty()) {
      std::transform(told.begin(), told.end(), told.begin(),
                     [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
      return told;
    }
    bool any = false;
    bool all = true;
    for (const PodContainer& container : pod.containers) {
      const Amounts& asks = container.requests;
      const Amounts& most = container.limits;
      any = any || asks.cpu_milli > 0 || asks.memory_bytes > 0 || most.cpu_milli > 0 || most.memory_bytes > 0;
      all = all && asks.cpu_milli > 0 && asks.memory_bytes > 0 && asks.cpu_milli == most.cpu_milli &&
            asks.memory_bytes == most.memory_bytes;
    }
    if (!any) return "besteffort";
    return all ? "guaranteed" : "burstable";
  }

  const json& object_;
  const std::string restart_policy_;
  const bool is_deleted_;
  const bool resize_is_infeasible_;
};

}  // namespace

void Amounts::raise_to(const Amounts& other) { combine(*this, other, larger); }
void Amounts::add(const Amounts& other) { combine(*this, other, sum); }
void Amounts::subtract(const Amounts& other) { combine(*this, other, difference); }

Amounts Pod::effective_requests() const {
  Amounts running;  // sidecars so far, and at last the main ones
  Amounts peak;
  for (const PodContainer& container : containers) {
    if (container.has_ended) continue;
    if (container.kind == PodContainer::Kind::kInit) {
      Amounts meanwhile = running;
      meanwhile.add(container.requests);
      peak.raise_to(meanwhile);
    } else {
      running.add(container.requests);
    }
  }
  peak.raise_to(running);
  // The pod as a whole may say of CPUs and memory; of what it does not say, its containers count.
  if (pod_requests.cpu_milli > 0) peak.cpu_milli = pod_requests.cpu_milli;
  if (pod_requests.memory_bytes > 0) peak.memory_bytes = pod_requests.memory_bytes;
  for (const auto& [size, bytes] : pod_requests.huge_page_bytes) peak.huge_page_bytes[size] = bytes;
  return peak;
}

Pod read_pod(const json& object) { return PodReader(object).read(); }

}  // namespace topolet::api
