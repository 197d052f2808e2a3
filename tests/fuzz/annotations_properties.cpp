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

namespace topolet {
namespace {

using Json = nlohmann::json;
using Annotations = std::map<std::string, std::string>;

const std::string kPrefix = placement::kAnnotationPrefix;
const std::string kContainers = kPrefix + "containers";

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
    if (name.rfind(kPrefix, 0) == 0 && name != kContainers) settings[without_prefix(name)] = value;
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
      for (const auto& [name, value] : json["web"].items()) settings[without_prefix(name)] = value;
    }
  }
  take_all(workload.annotations, settings);
  const bool right = is_one_of(settings, "cpus", {"exclusive", "shared", "none"}) &&
                     is_one_of(settings, "isolated", {"prefer", "require"});
  return right ? std::optional(settings) : std::nullopt;
}

std::string error_violation(const Error& error) {
  constexpr std::size_t kLongest = 1000;
  if (error.code != Code::kInvalidArgument) return "refused with another code than INVALID_ARGUMENT";
  if (error.message.find("annotation " + kPrefix) == std::string::npos) return "no annotation in: " + error.message;
  const auto is_printable = [](char c) { return c >= ' ' && c <= '~'; };
  if (!std::all_of(error.message.begin(), error.message.end(), is_printable)) return "an error that is not printable";
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

/// Of what is told about names that nobody reads.
std::string misspelling_violation(const placement::Workload& workload) {
  constexpr std::size_t kMostLines = 9;
  constexpr std::size_t kLongest = 400;
  const auto lines = describe_misspelt_names(workload, {}, std::nullopt, placement::core_annotations());
  if (lines.size() > kMostLines) return "more lines than anybody reads";
  if (std::set<std::string>(lines.begin(), lines.end()).size() != lines.size()) return "the same is told twice";
  const auto is_printable = [](char c) { return c >= ' ' && c <= '~'; };
  for (const std::string& line : lines) {
    if (line.size() > kLongest) return "a line of more than 400 bytes";
    if (!std::all_of(line.begin(), line.end(), is_printable)) return "a line that is not printable";
  }
  return "";
}

}  // namespace

TextJudgement judge_annotations(const std::string& text) {
  placement::Workload workload = workload_of(text);
  const auto expected = expected_settings(workload);
  const auto read = placement::read_settings(workload, std::nullopt);
  TextJudgement result{.accepted = read.has_value(), .violation = misspelling_violation(workload)};
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
