#include "cluster/extender/node_zones.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "cluster/api/json_fields.hpp"
#include "cluster/api/quantity.hpp"

namespace topolet::extender {
namespace {

using api::list_field;
using api::text_field;
using nlohmann::json;

/// How the uids of acknowledged pods are cut off.
constexpr std::size_t kAcknowledgedDigits = 8;
constexpr std::uint16_t kLocal = 10;
constexpr std::uint16_t kRemote = 20;
constexpr std::int64_t kFarthest = 1000;
constexpr std::int64_t kMilliOfCpu = 1000;

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::uint32_t> os_index_in(std::string_view zone_name) {
  constexpr std::string_view kPrefix = "node-";
  if (!zone_name.starts_with(kPrefix)) return std::nullopt;
  return number_in<std::uint32_t>(zone_name.substr(kPrefix.size()));
}

std::optional<std::int64_t> amount_of(const json& resource, const char* field, bool is_cpu) {
  const json& value = api::field(resource, field);
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  const auto amount = is_cpu ? api::parse_milli(text) : api::parse_units(text);
  return amount ? std::optional(std::min(*amount, kMostOfAnything)) : std::nullopt;
}

bool has_cpus(const json& zone) {
  const json& resources = list_field(zone, "resources");
  return std::any_of(resources.begin(), resources.end(),
                     [](const json& resource) { return text_field(resource, "name") == "cpu"; });
}

bool is_memory(std::string_view resource) { return resource == "memory" || resource.starts_with("hugepages-"); }

struct CountedCpus {
  std::int64_t available = 0;
  std::int64_t all = 0;
};

/// "3/8": what is available of how many there are; in thousandths.
std::optional<CountedCpus> counted_cpus(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto available = number_in<std::uint32_t>(text.substr(0, slash));
  const auto all = number_in<std::uint32_t>(slash == std::string_view::npos ? "" : text.substr(slash + 1));
  if (!available || !all) return std::nullopt;
  return CountedCpus{std::int64_t{*available} * kMilliOfCpu, std::int64_t{*all} * kMilliOfCpu};
}

/// Returns the CPUs available to a container without annotations.
std::int64_t available_by(NodeRules::Isolated rule, std::int64_t pool, std::int64_t isolated) {
  if (rule == NodeRules::Isolated::kAlways) return isolated;
  return rule == NodeRules::Isolated::kPrefer ? std::max(pool, isolated) : pool;
}

/// A zone's CPUs by where they come from. An older agent keeps what a newer one has written of them: then they do not
/// add up, and do not count.
void divide_cpus(const json& object, NodeRules::Isolated rule, Zone& zone) {
  std::optional<CountedCpus> pool;
  std::optional<CountedCpus> isolated;
  for (const json& attribute : list_field(object, "attributes")) {
    const std::string name = text_field(attribute, "name");
    if (name == "topolet.io/pool-cpus") pool = counted_cpus(text_field(attribute, "value"));
    if (name == "topolet.io/isolated-cpus") isolated = counted_cpus(text_field(attribute, "value"));
  }
  if (!pool || !isolated || rule == NodeRules::Isolated::kUntold) return;
  if (available_by(rule, pool->available, isolated->available) != zone.available.get(kCpu)) return;
  zone.available.set(kCpu, pool->available);
  zone.allocatable.set(kCpu, pool->all);
  zone.available.set(kIsolatedCpu, isolated->available);
  zone.allocatable.set(kIsolatedCpu, isolated->all);
}

Zone read_zone(const json& object, std::uint32_t os_index, NodeRules::Isolated isolated, ResourceNames& names) {
  Zone zone;
  zone.os_index = os_index;
  const bool is_of_cpus = has_cpus(object);
  for (const json& resource : list_field(object, "resources")) {
    const std::string name = text_field(resource, "name");
    if (name.empty() || (!is_of_cpus && is_memory(name))) continue;
    const std::optional<ResourceId> id = names.add(name);
    if (!id) continue;
    const auto available = amount_of(resource, "available", *id == kCpu);
    if (!available) continue;
    zone.available.set(*id, *available);
    zone.allocatable.set(*id, amount_of(resource, "allocatable", *id == kCpu).value_or(*available));
  }
  for (const json& attribute : list_field(object, "attributes")) {
    if (text_field(attribute, "name") == "topolet.io/effective-cpu-milli")
      zone.effective_cpu_milli = number_in<std::int64_t>(text_field(attribute, "value"));
  }
  divide_cpus(object, isolated, zone);
  return zone;
}

/// A node where all get isolated CPUs tells of them in each zone. Where it does not, or they do not count, its CPUs are
/// alike: its agent is an older one than the one before, which left the word there.
void forget_rule_without_numbers(NodeZones& node) {
  const bool is_untold = std::any_of(node.zones.begin(), node.zones.end(), [](const Zone& zone) {
    return zone.available.has(kCpu) && !zone.available.has(kIsolatedCpu);
  });
  if (is_untold && node.rules.isolated == NodeRules::Isolated::kAlways)
    node.rules.isolated = NodeRules::Isolated::kUntold;
}

NodePolicy policy_of(std::string_view text) {
  if (text == "single-numa-node") return NodePolicy::kSingleNumaNode;
  if (text == "restricted") return NodePolicy::kRestricted;
  if (text == "best-effort") return NodePolicy::kBestEffort;
  return NodePolicy::kNone;
}

/// Reads the policies from the field that came before attributes; some writers still use it.
void read_old_policies(const json& object, NodeZones& node) {
  for (const json& policy : list_field(object, "topologyPolicies")) {
    const std::string text = policy.is_string() ? policy.get<std::string>() : "";
    if (text.starts_with("SingleNUMANode")) node.policy = NodePolicy::kSingleNumaNode;
    if (text.starts_with("Restricted")) node.policy = NodePolicy::kRestricted;
    node.is_pod_scope = text.ends_with("PodLevel");
  }
}

std::vector<std::string> names_in(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    if (end > 0) names.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(list.size(), end + 1));
  }
  std::sort(names.begin(), names.end());
  return names;
}

NodeRules::Isolated isolated_rule(std::string_view text) {
  if (text == "annotated") return NodeRules::Isolated::kAnnotated;
  if (text == "prefer") return NodeRules::Isolated::kPrefer;
  return text == "always" ? NodeRules::Isolated::kAlways : NodeRules::Isolated::kUntold;
}

void read_attributes(const json& object, NodeZones& node) {
  for (const json& attribute : list_field(object, "attributes")) {
    const std::string name = text_field(attribute, "name");
    const std::string value = text_field(attribute, "value");
    if (name == "topologyManagerPolicy") {
      node.policy = policy_of(value);
    } else if (name == "topologyManagerScope") {
      node.is_pod_scope = value == "pod";
    } else if (name == "topolet.io/generation") {
      node.generation = number_in<std::uint64_t>(value).value_or(0);
    } else if (name == "topolet.io/acked") {
      node.has_acknowledgements = true;
      node.acknowledged = names_in(value);
    } else if (name == "topolet.io/ignores-zones") {
      node.ignores_zones = true;
    } else if (name == "topolet.io/isolated") {
      node.rules.isolated = isolated_rule(value);
    } else if (name == "topolet.io/reserved-namespaces") {
      node.rules.reserved_namespaces = names_in(value);
    } else if (name == "topolet.io/exclusive-namespaces") {
      node.rules.exclusive_namespaces = names_in(value);
    } else if (name == "topolet.io/heartbeat") {
      node.heartbeat = value;
    }
  }
}

/// Reads the distances between zones. A pair that no zone publishes is taken for as far as different nodes usually are.
void read_distances(const std::vector<std::pair<std::uint32_t, const json*>>& zones, NodeZones& node) {
  const std::size_t count = zones.size();
  bool any = false;
  std::vector<std::uint16_t> distances(count * count, kRemote);
  for (std::size_t from = 0; from < count; ++from) {
    distances[from * count + from] = kLocal;
    for (const json& cost : list_field(*zones[from].second, "costs")) {
      const auto to_index = os_index_in(text_field(cost, "name"));
      const json& value = api::field(cost, "value");
      const std::int64_t distance = value.is_number_integer() ? value.get<std::int64_t>() : -1;
      if (!to_index || distance < 0 || distance > kFarthest) continue;
      const auto to =
          std::find_if(zones.begin(), zones.end(), [&](const auto& zone) { return zone.first == to_index; });
      if (to == zones.end()) continue;
      distances[from * count + static_cast<std::size_t>(to - zones.begin())] = static_cast<std::uint16_t>(distance);
      any = true;
    }
  }
  if (any) node.distances = std::move(distances);
}

}  // namespace

bool NodeZones::acknowledges(const std::string& uid) const {
  return std::binary_search(acknowledged.begin(), acknowledged.end(), uid.substr(0, kAcknowledgedDigits));
}

std::uint16_t NodeZones::distance(std::size_t from, std::size_t to) const {
  if (distances.empty()) return from == to ? kLocal : kRemote;
  return distances[from * zones.size() + to];
}

bool NodeZones::publishes(ResourceId resource) const {
  return std::any_of(zones.begin(), zones.end(), [resource](const Zone& zone) { return zone.available.has(resource); });
}

NodeZones read_node_zones(const json& object, ResourceNames& names) {
  NodeZones node;
  node.name = text_field(object, "metadata", "name");
  node.version = number_in<std::uint64_t>(text_field(object, "metadata", "resourceVersion")).value_or(0);
  read_old_policies(object, node);
  read_attributes(object, node);
  std::vector<std::pair<std::uint32_t, const json*>> zones;
  for (const json& zone : list_field(object, "zones")) {
    const auto os_index = os_index_in(text_field(zone, "name"));
    if (os_index && text_field(zone, "type") == "Node") zones.emplace_back(*os_index, &zone);
  }
  const auto by_index = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::stable_sort(zones.begin(), zones.end(), by_index);
  zones.erase(std::unique(zones.begin(), zones.end(), [](const auto& a, const auto& b) { return a.first == b.first; }),
              zones.end());
  // No machine has more, and the work for each pair of zones would take long.
  if (zones.size() > kMostZones) zones.resize(kMostZones);
  for (const auto& [os_index, zone] : zones)
    node.zones.push_back(read_zone(*zone, os_index, node.rules.isolated, names));
  forget_rule_without_numbers(node);
  read_distances(zones, node);
  return node;
}

}  // namespace topolet::extender
