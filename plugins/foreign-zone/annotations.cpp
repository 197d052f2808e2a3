#include "plugins/foreign-zone/annotations.hpp"

#include <topolet/policy/lists.hpp>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

namespace topolet::foreign_zone {
namespace {

using Json = nlohmann::json;

constexpr std::uint32_t kHighestNode = 65535;

ForeignZone unreadable(std::string_view annotation, std::string_view value, const std::string& expected) {
  constexpr std::size_t kLongestValue = 100;
  ForeignZone zone;
  zone.annotation = annotation;
  zone.error =
      std::string(annotation) + " = '" + sdk::printable(value, kLongestValue) + "' cannot be read: " + expected;
  return zone;
}

/// The member, where it is there and not null, as writers in Go leave what is empty.
const Json* member(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

bool add_node(const Json& number, sdk::Set& nodes) {
  if (!number.is_number_unsigned() || number.get<std::uint64_t>() > kHighestNode) return false;
  nodes.insert(number.get<std::uint32_t>());
  return true;
}

ForeignZone read_koordinator(std::string_view text) {
  const auto bad = [text](const std::string& expected) { return unreadable(kKoordinator, text, expected); };
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return bad("it is not a JSON object");
  ForeignZone zone;
  zone.annotation = kKoordinator;
  if (const Json* cpuset = member(json, "cpuset")) {
    std::optional<sdk::Set> cpus;
    if (cpuset->is_string()) cpus = sdk::parse_list(cpuset->get_ref<const std::string&>());
    if (!cpus) return bad("'cpuset' is not a list of CPUs");
    zone.cpus = *std::move(cpus);
  }
  const Json* resources = member(json, "numaNodeResources");
  if (resources == nullptr) return zone;
  if (!resources->is_array()) return bad("'numaNodeResources' is not a list");
  for (const Json& entry : *resources) {
    const Json* node = entry.is_object() ? member(entry, "node") : nullptr;
    if (node == nullptr || !add_node(*node, zone.nodes))
      return bad("an entry of 'numaNodeResources' has no node number");
  }
  return zone;
}

/// "node0", or "node-0" as others write it.
bool add_named_node(const std::string& name, sdk::Set& nodes) {
  constexpr std::string_view kPrefix = "node";
  std::string_view number = name;
  if (number.substr(0, kPrefix.size()) != kPrefix) return false;
  number.remove_prefix(kPrefix.size());
  if (!number.empty() && number.front() == '-') number.remove_prefix(1);
  const std::optional<sdk::Set> node = sdk::parse_list(number);
  if (!node || node->size() != 1) return false;
  nodes |= *node;
  return true;
}

ForeignZone read_crane(std::string_view text) {
  const auto bad = [text](const std::string& expected) { return unreadable(kCrane, text, expected); };
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_array()) return bad("it is not a JSON list");
  ForeignZone zone;
  zone.annotation = kCrane;
  for (const Json& entry : json) {
    if (!entry.is_object()) return bad("an entry is not a zone");
    const Json* type = member(entry, "type");
    if (type != nullptr && *type != "Node") continue;
    const Json* name = member(entry, "name");
    if (name == nullptr || !name->is_string() || !add_named_node(name->get_ref<const std::string&>(), zone.nodes))
      return bad("the name of a zone is not 'nodeN'");
  }
  return zone;
}

}  // namespace

ForeignZone read_foreign_zone(topolet_kvs pod_annotations) {
  if (const auto value = sdk::find_value(pod_annotations, kKoordinator)) {
    if (ForeignZone zone = read_koordinator(*value); zone.is_said() || !zone.error.empty()) return zone;
  }
  if (const auto value = sdk::find_value(pod_annotations, kCrane)) return read_crane(*value);
  return {};
}

}  // namespace topolet::foreign_zone
