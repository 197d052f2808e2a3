#include "core/placement/zone.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/text.hpp"
#include "core/placement/candidates.hpp"
#include "core/placement/settings.hpp"

namespace topolet::placement {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;
constexpr std::size_t kLongestNodeName = 100;
constexpr const char* kShape =
    R"(it must be JSON such as {"v": 1, "node": "NODE", "zones": [1], "containers": {"CONTAINER": [1]}})";

Error bad_zone(const std::string& json, const std::string& what) {
  return invalid_annotation(kZoneAnnotation, json, what + "; " + kShape);
}

ZoneOfContainer ignored(const std::string& why) {
  return {std::nullopt, fmt::format("annotation {}{} is ignored: {}", kAnnotationPrefix, kZoneAnnotation, why)};
}

/// Nothing if it is not a list of node numbers.
std::optional<NodeSet> nodes_in(const Json& list) {
  if (!list.is_array()) return std::nullopt;
  NodeSet nodes;
  for (const Json& number : list) {
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() > kMaxOsIndex) return std::nullopt;
    nodes.insert(number.get<std::uint32_t>());
  }
  return nodes;
}

ZoneOfContainer zone_on(NodeSet nodes) {
  if (nodes.empty()) return {};
  return {std::move(nodes), ""};
}

bool is_in_list(const Json& annotation, const char* member, const std::string& name) {
  const auto list = annotation.find(member);
  if (list == annotation.end() || !list->is_array()) return false;
  return std::find(list->begin(), list->end(), Json(name)) != list->end();
}

/// Reads an annotation for this node.
Result<ZoneOfContainer> read_nodes(const std::string& text, const Json& annotation, const std::string& container) {
  const auto zones = annotation.find("zones");
  const auto containers = annotation.find("containers");
  if (zones == annotation.end() && containers == annotation.end())
    return bad_zone(text, "it has neither 'zones' nor 'containers'");
  std::optional<NodeSet> of_pod;
  if (zones != annotation.end() && !(of_pod = nodes_in(*zones)))
    return bad_zone(text, "'zones' is not a list of node numbers");
  if (containers == annotation.end()) return zone_on(*std::move(of_pod));
  if (!containers->is_object()) return bad_zone(text, "'containers' is not an object");
  NodeSet own;
  for (const auto& [name, list] : containers->items()) {
    std::optional<NodeSet> nodes = nodes_in(list);
    if (!nodes) {
      return bad_zone(text, fmt::format("what 'containers' has for '{}' is not a list of node numbers",
                                        printable(name, kLongestNodeName)));
    }
    if (name == container) own = *std::move(nodes);
  }
  return zone_on(std::move(own));
}

}  // namespace

Result<ZoneOfContainer> read_zone(const Workload& workload, const PlacementRules& rules) {
  if (workload.key.attempt > 0) return ZoneOfContainer();
  const auto found = workload.pod_annotations.find(kAnnotationPrefix + std::string(kZoneAnnotation));
  if (found == workload.pod_annotations.end()) return ZoneOfContainer();
  const auto& permitted = rules.annotations;
  if (permitted && std::find(permitted->begin(), permitted->end(), kZoneAnnotation) == permitted->end())
    return ignored("placement.annotations does not list it");
  const std::string& text = found->second;
  const Json annotation = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (annotation.is_discarded()) return bad_zone(text, "it is not valid JSON");
  if (!annotation.is_object()) return bad_zone(text, "it is not an object");
  const auto version = annotation.find("v");
  if (version == annotation.end() || !version->is_number_integer())
    return bad_zone(text, "'v', its version, is not a whole number");
  if (*version != kVersion)
    return ignored(fmt::format("it is of version {}, and topolet reads version {}", version->dump(), kVersion));
  const auto node = annotation.find("node");
  if (node == annotation.end() || !node->is_string()) return bad_zone(text, "'node' is not the name of a node");
  if (const auto& name = node->get_ref<const std::string&>(); name != rules.node_name) {
    return ignored(fmt::format("it is for node {}, and this is node {} (daemon.node-name)",
                               printable(name, kLongestNodeName), printable(rules.node_name, kLongestNodeName)));
  }
  Result<ZoneOfContainer> zone = read_nodes(text, annotation, workload.key.name);
  if (zone && zone->nodes) zone->is_of_pool = is_in_list(annotation, "pool", workload.key.name);
  return zone;
}

NodeSet zone_of_pod(const SharedStringMap& pod_annotations, const PlacementRules& rules) {
  Workload any;
  any.pod_annotations = pod_annotations;
  const Result<ZoneOfContainer> read = read_zone(any, rules);
  const auto found = pod_annotations.find(kAnnotationPrefix + std::string(kZoneAnnotation));
  if (!read || !read->ignored.empty() || found == pod_annotations.end()) return {};
  const Json annotation = Json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  NodeSet nodes = nodes_in(annotation.value("zones", Json::array())).value_or(NodeSet());
  for (const Json& of_container : annotation.value("containers", Json::object()))
    nodes |= nodes_in(of_container).value_or(NodeSet());
  return nodes;
}

Workload with_zone(Workload workload, const NodeSet& nodes) {
  std::map<std::string, std::string> settings = workload.settings;
  settings[kZoneAnnotation] = nodes.to_string();
  workload.settings = std::move(settings);
  return workload;
}

std::string describe_outside_zone(const NodeSet& zone) {
  return fmt::format("; outside the zone that the scheduler has chosen for it, {} ({}{})", node_names(zone),
                     kAnnotationPrefix, kZoneAnnotation);
}

std::optional<NodeSet> zone_of(const Workload& workload) {
  const auto found = workload.settings.find(kZoneAnnotation);
  if (found == workload.settings.end()) return std::nullopt;
  Result<NodeSet> nodes = NodeSet::parse(found->second);
  return nodes && !nodes->empty() ? std::optional(*std::move(nodes)) : std::nullopt;
}

}  // namespace topolet::placement
