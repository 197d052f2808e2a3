#include "cluster/agent/kubernetes/zones.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/agent/kubernetes/setup_warnings.hpp"
#include "cluster/api/json_fields.hpp"
#include "cluster/api/quantity.hpp"
#include "core/base/index_set.hpp"

namespace topolet::agent {
namespace {

using api::field;
using api::list_field;
using api::page_size_text;
using api::parse_units;
using api::text_field;
using nlohmann::json;

constexpr const char* kGeneration = "topolet.io/generation";
constexpr const char* kTouched = "topolet.io/touched";
constexpr const char* kHeartbeat = "topolet.io/heartbeat";
constexpr const char* kIgnoresZones = "topolet.io/ignores-zones";
constexpr const char* kIsolated = "topolet.io/isolated";
constexpr const char* kReservedNamespaces = "topolet.io/reserved-namespaces";
constexpr const char* kExclusiveNamespaces = "topolet.io/exclusive-namespaces";
constexpr std::array<const char*, 13> kOurAttributes = {"topologyManagerPolicy",
                                                        "topologyManagerScope",
                                                        "topologyManagerMaxNUMANodes",
                                                        "nodeTopologyPodsFingerprint",
                                                        "nodeTopologyPodsFingerprintMethod",
                                                        "topolet.io/acked",
                                                        kIsolated,
                                                        kReservedNamespaces,
                                                        kExclusiveNamespaces,
                                                        kGeneration,
                                                        kTouched,
                                                        kHeartbeat,
                                                        kIgnoresZones};
constexpr const char* kCpus = "topolet.io/cpus";
constexpr const char* kEffectiveCapacity = "topolet.io/effective-cpu-milli";
constexpr const char* kPoolCpus = "topolet.io/pool-cpus";
constexpr const char* kIsolatedCpus = "topolet.io/isolated-cpus";
constexpr std::array<const char*, 4> kOurZoneAttributes = {kCpus, kEffectiveCapacity, kPoolCpus, kIsolatedCpus};
/// The name that hwloc gives to memory of a GPU.
constexpr const char* kGpuMemory = "GPUMemory";
/// The kubelet's own limit, which schedulers take where nothing is said.
constexpr int kUsualMaxNodes = 8;

json attribute(const std::string& name, const std::string& value) { return {{"name", name}, {"value", value}}; }

json resource(const std::string& name, std::int64_t capacity, std::int64_t allocatable, std::int64_t available) {
  allocatable = std::clamp<std::int64_t>(allocatable, 0, std::max<std::int64_t>(0, capacity));
  return {{"name", name},
          {"capacity", std::to_string(capacity)},
          {"allocatable", std::to_string(allocatable)},
          {"available", std::to_string(std::clamp<std::int64_t>(available, 0, allocatable))}};
}

std::string zone_name(std::uint32_t os_index) { return fmt::format("node-{}", os_index); }

/// A set of CPUs as topoletd writes it.
CpuSet cpus_in(const std::string& list) { return CpuSet::parse(list).value_or(CpuSet()); }

/// The alignment that topoletd enforces; "none" unless the numa plugin is required.
struct EnforcedPolicy {
  std::string policy = "none";
  std::string scope = "container";
};

const watch::v1::Plugin* numa_plugin(const watch::v1::Snapshot& node) {
  for (const watch::v1::Plugin& plugin : node.plugins()) {
    if (plugin.id() == "numa") return &plugin;
  }
  return nullptr;
}

std::string option_of(const watch::v1::Plugin* plugin, const std::string& name, const std::string& otherwise) {
  if (plugin == nullptr) return otherwise;
  const auto found = plugin->options().find(name);
  return found == plugin->options().end() ? otherwise : found->second;
}

EnforcedPolicy enforced_policy(const watch::v1::Snapshot& node, const watch::v1::FitsResponse& fits) {
  const watch::v1::Plugin* numa = numa_plugin(node);
  if (numa == nullptr || !numa->required() || !fits.gives_exclusive_cpus()) return {};
  return {option_of(numa, "policy", "best-effort"), option_of(numa, "scope", "container")};
}

std::string list_of(const google::protobuf::RepeatedPtrField<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ","));
}

class ZonesBuilder {
 public:
  explicit ZonesBuilder(const TopologyFacts& facts)
      : facts_(facts),
        machine_(facts.node.machine()),
        allowed_(cpus_in(facts.node.cpus().allowed())),
        reserved_(cpus_in(facts.node.cpus().reserved())),
        isolated_(cpus_in(facts.node.cpus().all_isolated())),
        reserved_memory_(option_of(numa_plugin(facts.node), "reserved-memory", "")),
        binds_memory_(option_of(numa_plugin(facts.node), "memory", "none") == "bind") {
    for (const watch::v1::NodeFit& fit : facts.fits.nodes()) fits_[fit.os_index()] = &fit;
    for (int i = 0; i < machine_.nodes_size(); ++i) booked_memory_.push_back(0);
    for (int i = 0; i < machine_.nodes_size(); ++i) {
      if (const watch::v1::NodeFit* fit = fit_of(i)) booked_memory_[memory_node_of(i)] += fit->booked_memory_bytes();
    }
  }

  json zones() const {
    std::map<int, json> filled;
    for (int i = 0; i < machine_.nodes_size(); ++i) {
      if (json here = resources(i); !here.empty()) filled.emplace(i, std::move(here));
    }
    json zones = json::array();
    for (const auto& [position, here] : filled) zones.push_back(zone(position, here, filled));
    return zones;
  }

 private:
  const watch::v1::Node& node(int position) const { return machine_.nodes(position); }
  const watch::v1::NodeFit* fit_of(int position) const {
    const auto found = fits_.find(node(position).os_index());
    return found == fits_.end() ? nullptr : found->second;
  }

  /// `others`: the zones that there are, by position.
  json zone(int position, const json& resources, const std::map<int, json>& others) const {
    const watch::v1::Node& here = node(position);
    json zone = {{"name", zone_name(here.os_index())}, {"type", "Node"}, {"resources", resources}};
    zone["attributes"] = json::array();
    if (!here.memory_only()) zone["attributes"].push_back(attribute(kCpus, here.cpus()));
    add_cpus_by_source(position, zone["attributes"]);
    for (const watch::v1::Capacity& told : facts_.node.capacities()) {
      if (told.node() == here.os_index())
        zone["attributes"].push_back(attribute(kEffectiveCapacity, std::to_string(told.effective_cpu_milli())));
    }
    if (machine_.distances_known()) {
      for (int to = 0; to < machine_.nodes_size(); ++to) {
        const int index = position * machine_.nodes_size() + to;
        if (index >= machine_.distances_size()) break;
        if (!others.contains(to)) continue;
        zone["costs"].push_back({{"name", zone_name(node(to).os_index())}, {"value", machine_.distances(index)}});
      }
    }
    return zone;
  }

  json resources(int position) const {
    const watch::v1::Node& here = node(position);
    json list = json::array();
    const watch::v1::NodeFit* fit = fit_of(position);
    if (!here.memory_only()) {
      const auto capacity = static_cast<std::int64_t>(cpus_in(here.cpus()).size());
      const std::int64_t allocatable = allocatable_cpus(here);
      const CpuSet free_isolated = cpus_in(facts_.node.cpus().isolated()) & usable_cpus(here);
      list.push_back(resource("cpu", capacity, allocatable,
                              available_cpus(fit, allocatable, static_cast<std::int64_t>(free_isolated.size()))));
    }
    add_memory(position, list);
    for (const auto& [resource_name, by_node] : facts_.devices) {
      const auto found = by_node.find(here.os_index());
      if (found == by_node.end()) continue;
      const DeviceCount& count = found->second;
      const auto pending = facts_.pending_devices.find(resource_name);
      const std::int64_t promised = pending == facts_.pending_devices.end() ? 0 : pending->second;
      list.push_back(
          resource(resource_name, count.allocatable, count.allocatable, count.allocatable - count.used - promised));
    }
    return list;
  }

  CpuSet usable_cpus(const watch::v1::Node& node) const { return (cpus_in(node.cpus()) & allowed_) - reserved_; }

  /// Isolated CPUs count where containers without an annotation get them. The kubelet knows nothing of isolcpus.
  std::int64_t allocatable_cpus(const watch::v1::Node& node) const {
    CpuSet cpus = usable_cpus(node);
    const std::string& rule = facts_.fits.isolated();
    const bool nobody_gets_any =
        facts_.fits.gives_exclusive_cpus() ? rule == "annotated" : !facts_.fits.kubelet_hands_out_cpus();
    if (!rule.empty() && nobody_gets_any) cpus -= isolated_;
    if (facts_.fits.gives_exclusive_cpus() && rule == "always") cpus &= isolated_;
    return static_cast<std::int64_t>(cpus.size());
  }

  /// On a machine with isolated CPUs: what one container may have of them and of the others, and how many there are.
  void add_cpus_by_source(int position, json& attributes) const {
    const CpuSet isolated = usable_cpus(node(position)) & isolated_;
    const watch::v1::NodeFit* fit = fit_of(position);
    const bool are_told = !isolated_.empty() || facts_.fits.isolated() == "always";
    if (!are_told || fit == nullptr || node(position).memory_only() || !facts_.fits.gives_exclusive_cpus()) return;
    const std::size_t others = (usable_cpus(node(position)) - isolated).size();
    attributes.push_back(attribute(kPoolCpus, fmt::format("{}/{}", fit->pool_cpus(), others)));
    attributes.push_back(attribute(kIsolatedCpus, fmt::format("{}/{}", fit->isolated_cpus(), isolated.size())));
  }

  /// Returns the CPUs available to containers with CPUs of their own. If topoletd gives none, the kubelet may, on a
  /// node that is not known beforehand: pending ones count on every node.
  std::int64_t available_cpus(const watch::v1::NodeFit* fit, std::int64_t allocatable,
                              std::int64_t free_isolated) const {
    if (facts_.fits.gives_exclusive_cpus()) return fit == nullptr ? 0 : fit->exclusive_cpus();
    const std::int64_t shared = fit != nullptr && fit->has_shared_cpus() ? fit->shared_cpus() : allocatable;
    if (!facts_.fits.kubelet_hands_out_cpus()) return shared;
    return std::min(allocatable, shared + free_isolated) - facts_.pending_cpus;
  }

  void add_memory(int position, json& list) const {
    const auto from = static_cast<std::size_t>(position);
    const watch::v1::Node& has = node(position);
    if (has.memory_bytes() <= 0 || is_memory_unused(has)) return;
    std::int64_t allocatable = has.memory_bytes() - reserved_memory_of(reserved_memory_, has.os_index());
    // protobuf's maps have no order.
    const std::map<std::int64_t, std::int64_t> pages(has.huge_pages().begin(), has.huge_pages().end());
    for (const auto& [page_bytes, count] : pages) allocatable -= page_bytes * count;
    list.push_back(resource("memory", has.memory_bytes(), allocatable, allocatable - booked_memory_[from]));
    for (const auto& [page_bytes, count] : pages) {
      const std::string size = page_size_text(page_bytes);
      const std::int64_t all = page_bytes * count;
      list.push_back(resource("hugepages-" + size, all, all, all - booked_huge_pages(from, size)));
    }
  }

  std::int64_t booked_huge_pages(std::size_t position, const std::string& size) const {
    std::int64_t booked = 0;
    for (int i = 0; i < machine_.nodes_size(); ++i) {
      const watch::v1::NodeFit* fit = fit_of(i);
      if (fit == nullptr || memory_node_of(i) != position) continue;
      for (const auto& [runtime_size, bytes] : fit->booked_huge_page_bytes()) {
        const auto page = parse_units(std::string(runtime_size.substr(0, runtime_size.size() - 1)) + 'i');
        if (page && page_size_text(*page) == size) booked += bytes;
      }
    }
    return booked;
  }

  /// Returns true for memory that no container is bound to: with memory = bind, memory without CPUs beside it, unless
  /// there is no other; and always the memory of GPUs.
  bool is_memory_unused(const watch::v1::Node& node) const {
    if (!node.memory_only()) return false;
    if (node.subtype() == kGpuMemory) return true;
    return binds_memory_ && std::any_of(machine_.nodes().begin(), machine_.nodes().end(), [](const auto& other) {
             return !other.memory_only() && other.memory_bytes() > 0;
           });
  }

  /// The node whose memory the CPUs of a node use: itself, or the nearest one with memory.
  std::size_t memory_node_of(int position) const {
    if (node(position).memory_only() || node(position).memory_bytes() > 0) return static_cast<std::size_t>(position);
    std::optional<std::pair<std::uint32_t, int>> nearest;
    for (int other = 0; other < machine_.nodes_size(); ++other) {
      if (node(other).memory_only() || node(other).memory_bytes() <= 0) continue;
      const int index = position * machine_.nodes_size() + other;
      const std::uint32_t distance = index < machine_.distances_size() ? machine_.distances(index) : 0;
      if (!nearest || distance < nearest->first) nearest = {distance, other};
    }
    return static_cast<std::size_t>(nearest ? nearest->second : position);
  }

  const TopologyFacts& facts_;
  const watch::v1::Machine& machine_;
  const CpuSet allowed_;
  const CpuSet reserved_;
  const CpuSet isolated_;
  const std::string reserved_memory_;
  const bool binds_memory_;
  std::map<std::uint32_t, const watch::v1::NodeFit*> fits_;
  std::vector<std::int64_t> booked_memory_;  ///< by position
};

template <std::size_t count>
bool is_among(const std::string& name, const std::array<const char*, count>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

template <std::size_t count>
void add_attributes_of_others(json& attributes, const json& current, const std::array<const char*, count>& ours) {
  for (const json& other : list_field(current, "attributes")) {
    if (!is_among(text_field(other, "name"), ours)) attributes.push_back(other);
  }
}

const json* zone_in(const json& object, const std::string& name) {
  for (const json& zone : list_field(object, "zones")) {
    if (text_field(zone, "name") == name) return &zone;
  }
  return nullptr;
}

void set_attribute(json& object, const char* name, const std::string& value) {
  json& attributes = object["attributes"];
  for (json& other : attributes) {
    if (text_field(other, "name") == name) {
      other["value"] = value;
      return;
    }
  }
  attributes.push_back(attribute(name, value));
}

/// By resource; CPUs also by where they come from.
std::map<std::string, std::int64_t> available_in(const json& zone) {
  std::map<std::string, std::int64_t> available;
  for (const json& resource : list_field(zone, "resources"))
    available[text_field(resource, "name")] = parse_units(text_field(resource, "available")).value_or(0);
  for (const json& attribute : list_field(zone, "attributes")) {
    const std::string name = text_field(attribute, "name");
    if (name != kPoolCpus && name != kIsolatedCpus) continue;
    const std::string value = text_field(attribute, "value");
    available[name] = parse_units(value.substr(0, value.find('/'))).value_or(0);
  }
  return available;
}

/// Returns our part of an object, without the attributes that change all the time.
json essence(const json& object) {
  json essence = {{"attributes", json::array()}, {"zones", json::array()}};
  for (const json& attribute : list_field(object, "attributes")) {
    const std::string name = text_field(attribute, "name");
    if (is_among(name, kOurAttributes) && name != kGeneration && name != kTouched && name != kHeartbeat)
      essence["attributes"].push_back(attribute);
  }
  for (const json& zone : list_field(object, "zones")) {
    if (text_field(zone, "type") != "Node") continue;
    json ours = zone;
    ours["attributes"] = json::array();
    for (const json& attribute : list_field(zone, "attributes")) {
      if (is_among(text_field(attribute, "name"), kOurZoneAttributes)) ours["attributes"].push_back(attribute);
    }
    essence["zones"].push_back(std::move(ours));
  }
  essence["owners"] = field(object, "metadata", "ownerReferences");
  return essence;
}

}  // namespace

std::int64_t reserved_memory_of(const std::string& option, std::uint32_t os_index) {
  if (option.find(':') == std::string::npos) return parse_units(option).value_or(0);
  std::string_view rest = option;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t colon = part.find(':');
    std::uint32_t node = 0;
    if (colon == std::string_view::npos) continue;
    if (std::from_chars(part.data(), part.data() + colon, node).ec != std::errc() || node != os_index) continue;
    return parse_units(part.substr(colon + 1)).value_or(0);
  }
  return 0;
}

json make_topology_object(const TopologyFacts& facts) {
  const EnforcedPolicy enforced = enforced_policy(facts.node, facts.fits);
  const int nodes = facts.node.machine().nodes_size();
  json object = {{"apiVersion", kTopologyApi},
                 {"kind", "NodeResourceTopology"},
                 {"metadata", {{"name", facts.node_name}}},
                 {"zones", ZonesBuilder(facts).zones()}};
  if (!facts.node_uid.empty()) {
    object["metadata"]["ownerReferences"] =
        json::array({{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", facts.node_name}, {"uid", facts.node_uid}}});
  }
  object["attributes"] = json::array(
      {attribute("topologyManagerPolicy", enforced.policy), attribute("topologyManagerScope", enforced.scope),
       attribute("topologyManagerMaxNUMANodes", std::to_string(std::max(nodes, kUsualMaxNodes))),
       attribute("nodeTopologyPodsFingerprint", facts.fingerprint),
       attribute("nodeTopologyPodsFingerprintMethod", "all"),
       attribute(kGeneration, std::to_string(facts.fits.generation())),
       attribute("topolet.io/acked", facts.acknowledged)});
  std::string why_ignored;
  for (const auto& [word, text] : setup_warnings(facts.node_name, facts.fits))
    why_ignored += (why_ignored.empty() ? "" : ",") + word;
  if (!why_ignored.empty()) object["attributes"].push_back(attribute(kIgnoresZones, why_ignored));
  if (!facts.fits.isolated().empty()) {
    // If no container gets CPUs of its own, all CPUs are alike.
    if (facts.fits.gives_exclusive_cpus()) object["attributes"].push_back(attribute(kIsolated, facts.fits.isolated()));
    object["attributes"].push_back(attribute(kReservedNamespaces, list_of(facts.fits.reserved_namespaces())));
    object["attributes"].push_back(attribute(kExclusiveNamespaces, list_of(facts.fits.exclusive_namespaces())));
  }
  return object;
}

json with_what_others_wrote(json ours, const json& current) {
  if (!current.is_object()) return ours;
  json metadata = field(current, "metadata");
  if (!metadata.is_object()) metadata = ours["metadata"];
  if (ours["metadata"].contains("ownerReferences")) metadata["ownerReferences"] = ours["metadata"]["ownerReferences"];
  metadata.erase("managedFields");
  ours["metadata"] = std::move(metadata);
  add_attributes_of_others(ours["attributes"], current, kOurAttributes);
  for (json& zone : ours["zones"]) {
    if (const json* old = zone_in(current, text_field(zone, "name")))
      add_attributes_of_others(zone["attributes"], *old, kOurZoneAttributes);
  }
  for (const json& zone : list_field(current, "zones")) {
    if (text_field(zone, "type") != "Node") ours["zones"].push_back(zone);
  }
  return ours;
}

bool tell_the_same(const json& a, const json& b) {
  if (!a.is_object() || !b.is_object()) return false;
  return essence(a) == essence(b);
}

bool has_grown(const json& before, const json& now) {
  for (const json& zone : list_field(now, "zones")) {
    const json* old = zone_in(before, text_field(zone, "name"));
    if (old == nullptr) return true;
    std::map<std::string, std::int64_t> had = available_in(*old);
    for (const auto& [name, amount] : available_in(zone)) {
      if (amount > had[name]) return true;
    }
  }
  return false;
}

void touch(json& object, const std::string& time) { set_attribute(object, kTouched, time); }

void set_heartbeat(json& object, const std::string& time) { set_attribute(object, kHeartbeat, time); }

}  // namespace topolet::agent
