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

/// "0", "0m", 0: written by whoever lists a resource of which nothing is reserved.
bool is_zero(const Json& quantity) {
  if (quantity.is_number()) return quantity.get<double>() == 0;
  if (!quantity.is_string()) return false;
  const auto& text = quantity.get_ref<const std::string&>();
  const std::size_t other = text.find_first_not_of("0.");
  return !text.empty() && other != 0 && (other == std::string::npos || text.find_first_of("123456789") > other);
}

/// The reserved nodes, by resource.
class ReservedNodes {
 public:
  /// `resources`: amounts by name; null if it is not said what is reserved there.
  void add(const sdk::Set& node, const Json* resources) {
    if (resources == nullptr || !resources->is_object() || resources->empty()) {
      for_cpus_ |= node;
      return;
    }
    for (const auto& [name, quantity] : resources->items()) {
      if (is_zero(quantity)) continue;
      // Koordinator has "kubernetes.io/batch-cpu" beside "cpu", and the same of memory.
      if (name == "cpu" || name.ends_with("-cpu")) for_cpus_ |= node;
      const bool is_memory = name == "memory" || name.ends_with("-memory") || name.starts_with("hugepages-");
      if (is_memory) for_memory_ |= node;
    }
  }

  const sdk::Set& nodes() const { return for_cpus_.empty() ? for_memory_ : for_cpus_; }

 private:
  sdk::Set for_cpus_;
  sdk::Set for_memory_;
};

std::optional<sdk::Set> node_numbered(const Json& number) {
  if (!number.is_number_unsigned() || number.get<std::uint64_t>() > kHighestNode) return std::nullopt;
  sdk::Set node;
  node.insert(number.get<std::uint32_t>());
  return node;
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
  ReservedNodes reserved;
  for (const Json& entry : *resources) {
    const Json* number = entry.is_object() ? member(entry, "node") : nullptr;
    const std::optional<sdk::Set> node = number == nullptr ? std::nullopt : node_numbered(*number);
    if (!node) return bad("an entry of 'numaNodeResources' has no node number");
    reserved.add(*node, member(entry, "resources"));
  }
  zone.nodes = reserved.nodes();
  return zone;
}

/// "node0", or "node-0" as others write it.
std::optional<sdk::Set> node_named(const std::string& name) {
  constexpr std::string_view kPrefix = "node";
  std::string_view number = name;
  if (number.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  number.remove_prefix(kPrefix.size());
  if (!number.empty() && number.front() == '-') number.remove_prefix(1);
  std::optional<sdk::Set> node = sdk::parse_list(number);
  return node && node->size() == 1 ? node : std::nullopt;
}

/// Returns the amounts of a zone: its capacity, or else the allocatable part.
const Json* amounts_of(const Json& zone) {
  const Json* resources = member(zone, "resources");
  if (resources == nullptr || !resources->is_object()) return nullptr;
  for (const char* const name : {"capacity", "allocatable"}) {
    if (const Json* amounts = member(*resources, name)) return amounts;
  }
  return nullptr;
}

ForeignZone read_crane(std::string_view text) {
  const auto bad = [text](const std::string& expected) { return unreadable(kCrane, text, expected); };
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_array()) return bad("it is not a JSON list");
  ForeignZone zone;
  zone.annotation = kCrane;
  ReservedNodes reserved;
  for (const Json& entry : json) {
    if (!entry.is_object()) return bad("an entry is not a zone");
    const Json* type = member(entry, "type");
    if (type != nullptr && *type != "Node") continue;
    const Json* name = member(entry, "name");
    const bool is_text = name != nullptr && name->is_string();
    const std::optional<sdk::Set> node = is_text ? node_named(name->get_ref<const std::string&>()) : std::nullopt;
    if (!node) return bad("the name of a zone is not 'nodeN'");
    reserved.add(*node, amounts_of(entry));
  }
  zone.nodes = reserved.nodes();
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
