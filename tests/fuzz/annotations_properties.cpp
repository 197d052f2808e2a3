#include "tests/fuzz/annotations_properties.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "core/placement/annotation_names.hpp"
#include "core/placement/settings.hpp"
#include "core/placement/zone.hpp"

namespace topolet {
namespace {

using Json = nlohmann::json;
using Annotations = std::map<std::string, std::string>;

const std::string kPrefix = placement::kAnnotationPrefix;
const std::string kContainers = kPrefix + "containers";
const std::string kZone = kPrefix + "zone";
/// They are not settings.
const std::set<std::string> kOnPodsOnly = {"containers", "zone", "zone-policy", "zone-strategy"};

placement::Workload workload_of(const std::string& text) {
  placement::Workload workload;
  workload.key.name = "web";
  Annotations pod_annotations;
  Annotations annotations;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto space = line.find(' ');
    const auto equals = line.find('=', space);
    if (space == std::string::npos || equals == std::string::npos) continue;
    const std::string name = line.substr(space + 1, equals - space - 1);
    const std::string owner = line.substr(0, space);
    if (owner == "pod") pod_annotations[name] = line.substr(equals + 1);
    if (owner == "container") annotations[name] = line.substr(equals + 1);
  }
  workload.pod_annotations = std::move(pod_annotations);
  workload.annotations = std::move(annotations);
  return workload;
}

std::string without_prefix(const std::string& name) {
  return name.rfind(kPrefix, 0) == 0 ? name.substr(kPrefix.size()) : name;
}

void take_all(const Annotations& annotations, Annotations& settings) {
  for (const auto& [name, value] : annotations) {
    const std::string bare = without_prefix(name);
    if (bare != name && kOnPodsOnly.count(bare) == 0) settings[bare] = value;
  }
}

bool is_object_of_objects_of_strings(const Json& json) {
  const auto is_settings = [](const Json& settings) {
    return settings.is_object() &&
           std::all_of(settings.begin(), settings.end(), [](const Json& value) { return value.is_string(); });
  };
  return json.is_object() && std::all_of(json.begin(), json.end(), is_settings);
}

bool is_one_of(const Annotations& settings, const std::string& name, const std::set<std::string>& allowed) {
  const auto found = settings.find(name);
  return found == settings.end() || allowed.count(found->second) > 0;
}

/// The settings where everything is permitted; nothing if the annotations are to be refused.
std::optional<Annotations> expected_settings(const placement::Workload& workload) {
  Annotations settings;
  take_all(workload.pod_annotations, settings);
  if (const auto containers = workload.pod_annotations.find(kContainers);
      containers != workload.pod_annotations.end()) {
    const Json json = Json::parse(containers->second, nullptr, false);
    if (!is_object_of_objects_of_strings(json)) return std::nullopt;
    if (json.contains("web")) {
      for (const auto& [name, value] : json["web"].items()) {
        if (kOnPodsOnly.count(without_prefix(name)) == 0) settings[without_prefix(name)] = value;
      }
    }
  }
  take_all(workload.annotations, settings);
  const bool right = is_one_of(settings, "cpus", {"exclusive", "shared", "none"}) &&
                     is_one_of(settings, "isolated", {"prefer", "require"});
  return right ? std::optional(settings) : std::nullopt;
}

bool is_list_of_nodes(const Json& json) {
  const auto is_node = [](const Json& number) { return number.is_number_unsigned() && number <= 65535; };
  return json.is_array() && std::all_of(json.begin(), json.end(), is_node);
}

/// Returns the meaning of topolet.io/zone on the node n1: "ignored", "refused", or a list of nodes, which may be empty.
std::string expected_zone(const placement::Workload& workload) {
  const auto found = workload.pod_annotations.find(kZone);
  if (found == workload.pod_annotations.end()) return "";
  const Json zone = Json::parse(found->second, nullptr, false);
  if (!zone.is_object() || !zone.value("v", Json()).is_number_integer()) return "refused";
  if (zone["v"] != 1) return "ignored";
  if (!zone.value("node", Json()).is_string()) return "refused";
  if (zone["node"] != "n1") return "ignored";
  if (!zone.contains("zones") && !zone.contains("containers")) return "refused";
  if (zone.contains("zones") && !is_list_of_nodes(zone["zones"])) return "refused";
  Json nodes = zone.value("zones", Json::array());
  if (zone.contains("containers")) {
    const Json& containers = zone["containers"];
    if (!containers.is_object() || !std::all_of(containers.begin(), containers.end(), is_list_of_nodes))
      return "refused";
    nodes = containers.value("web", Json::array());
  }
  NodeSet set;
  for (const Json& node : nodes) set.insert(node.get<std::uint32_t>());
  return set.to_string();
}

bool is_printable_ascii(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::string error_violation(const Error& error) {
  constexpr std::size_t kLongest = 1000;
  if (error.code != Code::kInvalidArgument) return "refused with another code than INVALID_ARGUMENT";
  if (error.message.find("annotation " + kPrefix) == std::string::npos) return "no annotation in: " + error.message;
  if (!is_printable_ascii(error.message)) return "an error that is not printable";
  return error.message.size() > kLongest ? "an error of more than 1000 bytes" : "";
}

/// Where only some names are permitted.
std::string permission_violation(const placement::Workload& workload, const std::vector<std::string>& permitted) {
  const auto read = placement::read_settings(workload, permitted);
  if (!read) return error_violation(read.error());
  const auto is_permitted = [&permitted](const std::string& name) {
    return std::find(permitted.begin(), permitted.end(), name) != permitted.end();
  };
  for (const auto& [name, value] : read->values) {
    if (!is_permitted(name)) return name + " counts and is not permitted";
  }
  for (const std::string& name : read->not_permitted) {
    if (is_permitted(name)) return name + " is left out and is permitted";
  }
  const std::set<std::string> once(read->not_permitted.begin(), read->not_permitted.end());
  return once.size() == read->not_permitted.size() ? "" : "an annotation is named twice";
}

std::string zone_violation(placement::Workload workload) {
  placement::PlacementRules rules;
  rules.node_name = "n1";
  const std::string expected = expected_zone(workload);
  const auto read = read_zone(workload, rules);
  if (read.has_value() != (expected != "refused")) return "a zone is refused or accepted against the rules";
  if (!read) return error_violation(read.error());
  if (read->ignored.empty() != (expected != "ignored")) return "a zone is ignored, or counts, against the rules";
  if (read->ignored.size() > 400 || !is_printable_ascii(read->ignored)) return "nobody can read why it is ignored";
  const std::string nodes = read->nodes ? read->nodes->to_string() : "";
  if (expected != "ignored" && nodes != expected) return "another zone is read: " + nodes;
  if (read->nodes && (read->nodes->empty() || zone_of(with_zone(workload, *read->nodes)) != read->nodes))
    return "the zone does not become a wish";
  workload.key.attempt = 1;
  const auto again = read_zone(workload, rules);
  if (!again || again->nodes || !again->ignored.empty()) return "the zone counts for a second attempt";
  workload.key.attempt = 0;
  rules.annotations = {"cpus"};
  const auto not_permitted = read_zone(workload, rules);
  return not_permitted && !not_permitted->nodes ? "" : "the zone counts and is not permitted";
}

/// Returns a violation in the warnings about names that nobody reads.
std::string misspelling_violation(const placement::Workload& workload) {
  constexpr std::size_t kMostLines = 9;
  constexpr std::size_t kLongest = 400;
  const auto lines = describe_misspelt_names(workload, {}, std::nullopt, placement::core_annotations());
  if (lines.size() > kMostLines) return "more lines than anybody reads";
  if (std::set<std::string>(lines.begin(), lines.end()).size() != lines.size()) return "the same is told twice";
  for (const std::string& line : lines) {
    if (line.size() > kLongest) return "a line of more than 400 bytes";
    if (!is_printable_ascii(line)) return "a line that is not printable";
  }
  return "";
}

}  // namespace

TextJudgement judge_annotations(const std::string& text) {
  placement::Workload workload = workload_of(text);
  const auto expected = expected_settings(workload);
  const auto read = placement::read_settings(workload, std::nullopt);
  TextJudgement result{.accepted = read.has_value(), .violation = misspelling_violation(workload)};
  if (result.violation.empty()) result.violation = zone_violation(workload);
  if (!result.violation.empty()) return result;
  if (!read) result.violation = error_violation(read.error());
  if (read.has_value() != expected.has_value()) result.violation = "refused or accepted against the rules";
  if (!result.violation.empty()) return result;

  if (read && (read->values != *expected || !read->not_permitted.empty())) result.violation = "other settings are read";
  const std::vector<std::vector<std::string>> permissions = {{}, {"cpus"}, {"containers", "isolated"}};
  for (const auto& permitted : permissions) {
    if (result.violation.empty()) result.violation = permission_violation(workload, permitted);
  }
  return result;
}

}  // namespace topolet
