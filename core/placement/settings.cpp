#include "core/placement/settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/base/text.hpp"
#include "core/placement/namespaces.hpp"
#include "core/placement/zone.hpp"

namespace topolet::placement {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLongestQuoted = 100;
constexpr const char* kCpusAnnotation = "cpus";
constexpr const char* kExclusiveWord = "exclusive";
constexpr const char* kIfWholeWord = "exclusive-if-whole";
constexpr const char* kPreferWord = "prefer";
constexpr const char* kRequireWord = "require";
constexpr const char* kAllowWord = "allow";
constexpr const char* kNeverWord = "never";

struct KnownValues {
  std::string_view name;
  std::vector<std::string_view> values;
};

/// The annotations that the core reads itself, with the values they may have.
const std::vector<KnownValues>& allowed_values() {
  static const std::vector<KnownValues> kKnown = {{kCpusAnnotation, {kExclusiveWord, "shared", "none"}},
                                                  {kIsolatedAnnotation, {kPreferWord, kRequireWord}},
                                                  {kMoveAnnotation, {kAllowWord, kNeverWord}}};
  return kKnown;
}

/// The annotations that count on pods only. The scheduler extender reads the last two, the daemon does not.
constexpr std::array<std::string_view, 4> kOnPodsOnly = {kContainersAnnotation, kZoneAnnotation, "zone-policy",
                                                         "zone-strategy"};

/// Puts the settings of one container together, source by source.
class SettingsReader {
 public:
  explicit SettingsReader(const std::optional<std::vector<std::string>>& permitted) : permitted_(permitted) {}

  void read_all(const std::map<std::string, std::string>& annotations) {
    const std::string_view prefix = kAnnotationPrefix;
    for (auto it = annotations.lower_bound(kAnnotationPrefix); it != annotations.end(); ++it) {
      if (it->first.compare(0, prefix.size(), prefix) != 0) return;
      take(it->first.substr(prefix.size()), it->second);
    }
  }

  /// Reads the settings of `container` from topolet.io/containers, a JSON object of objects of strings.
  Status read_containers_annotation(const std::string& json, const std::string& container) {
    const std::string annotation(kContainersAnnotation);
    if (!permits(annotation)) return {};
    const std::string shape = R"(it must be JSON such as {"CONTAINER": {"cpus": "shared"}})";
    const Json all = Json::parse(json, nullptr, /*allow_exceptions=*/false);
    if (all.is_discarded()) return invalid_annotation(annotation, json, "it is not valid JSON; " + shape);
    if (!all.is_object()) return invalid_annotation(annotation, json, shape);
    for (const auto& [name, settings] : all.items()) {
      if (!settings.is_object())
        return invalid_annotation(annotation, json, fmt::format("'{}': {}", printable(name, kLongestQuoted), shape));
      for (const auto& [key, value] : settings.items()) {
        if (!value.is_string()) {
          return invalid_annotation(annotation, json,
                                    fmt::format("'{}' of '{}' is not a string; {}", printable(key, kLongestQuoted),
                                                printable(name, kLongestQuoted), shape));
        }
        if (name == container) take(std::string(without_annotation_prefix(key)), value.get<std::string>());
      }
    }
    return {};
  }

  Status check() const {
    for (const KnownValues& known : allowed_values()) {
      const auto set = settings_.values.find(std::string(known.name));
      if (set == settings_.values.end()) continue;
      if (std::find(known.values.begin(), known.values.end(), set->second) != known.values.end()) continue;
      return invalid_annotation(set->first, set->second,
                                fmt::format("it must be one of '{}'", fmt::join(known.values, "', '")));
    }
    return {};
  }

  Settings settings() && { return std::move(settings_); }

 private:
  bool permits(const std::string& name) {
    if (!permitted_ || std::find(permitted_->begin(), permitted_->end(), name) != permitted_->end()) return true;
    auto& refused = settings_.not_permitted;
    if (std::find(refused.begin(), refused.end(), name) == refused.end()) refused.push_back(name);
    return false;
  }

  void take(const std::string& name, const std::string& value) {
    if (!counts_on_pods_only(name) && permits(name)) settings_.values[name] = value;
  }

  const std::optional<std::vector<std::string>>& permitted_;
  Settings settings_;
};

/// Returns true if topolet.io/isolated asks for no other CPUs than the operator gives to containers without it.
bool is_given_anyway(std::string_view isolated, IsolatedRule rule) {
  return rule == IsolatedRule::kPrefer || (rule == IsolatedRule::kAlways && isolated == kRequireWord);
}

/// Takes out of the settings what would take more than the container requests.
void limit_to_request(Settings& settings, const KnownAnnotations& known, IsolatedRule isolated) {
  for (auto it = settings.values.begin(); it != settings.values.end();) {
    const TakingAnnotation* mark = known.find_taking(it->first, it->second);
    if (it->first == kIsolatedAnnotation && is_given_anyway(it->second, isolated)) mark = nullptr;
    if (mark != nullptr) settings.not_taken.push_back(*mark);
    it = mark != nullptr ? settings.values.erase(it) : std::next(it);
  }
  const auto cpus = settings.values.find(kCpusAnnotation);
  if (cpus != settings.values.end() && cpus->second == kExclusiveWord) cpus->second = kIfWholeWord;
}

std::string_view setting(const Workload& workload, const char* name) {
  const auto found = workload.settings.find(name);
  return found == workload.settings.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace

std::vector<std::string> core_annotation_names() {
  std::vector<std::string> names(kOnPodsOnly.begin(), kOnPodsOnly.end());
  for (const KnownValues& known : allowed_values()) names.emplace_back(known.name);
  return names;
}

bool counts_on_pods_only(std::string_view name) {
  return std::find(kOnPodsOnly.begin(), kOnPodsOnly.end(), name) != kOnPodsOnly.end();
}

Error invalid_annotation(const std::string& annotation, std::string_view value, const std::string& expected) {
  return {Code::kInvalidArgument, fmt::format("annotation {}{} = '{}': {}", kAnnotationPrefix, annotation,
                                              printable(value, kLongestQuoted), expected)};
}

std::string_view without_annotation_prefix(std::string_view name) {
  const std::string_view prefix = kAnnotationPrefix;
  return name.substr(0, prefix.size()) == prefix ? name.substr(prefix.size()) : name;
}

Result<Settings> read_settings(const Workload& workload, const std::optional<std::vector<std::string>>& permitted) {
  SettingsReader reading(permitted);
  reading.read_all(workload.pod_annotations);
  const auto named = workload.pod_annotations.find(kAnnotationPrefix + std::string(kContainersAnnotation));
  if (named != workload.pod_annotations.end()) {
    if (Status taken = reading.read_containers_annotation(named->second, workload.key.name); !taken)
      return taken.error();
  }
  reading.read_all(workload.annotations);
  if (Status right = reading.check(); !right) return right.error();
  return std::move(reading).settings();
}

Result<Settings> read_settings(const Workload& workload, const PlacementRules& rules, const KnownAnnotations& known) {
  Result<Settings> settings = read_settings(workload, rules.annotations);
  if (!settings) return settings;
  if (known.silent_plugins.empty())
    std::erase_if(settings->values, [&](const auto& of) { return !known.has(of.first); });
  if (!may_take_more_than_requested(workload, rules)) limit_to_request(*settings, known, rules.isolated);
  return settings;
}

std::string describe_not_taken(const TakingAnnotation& annotation, const Workload& workload) {
  return fmt::format("annotation {}{}{}{} is ignored: placement.exclusive-namespaces does not list namespace '{}'",
                     kAnnotationPrefix, annotation.name, annotation.value.empty() ? "" : " = ", annotation.value,
                     printable(workload.pod_namespace, kLongestQuoted));
}

Workload with_rounded_request(Workload workload) {
  if (cpus_annotation(workload) != CpusAnnotation::kExclusiveIfWhole) return workload;
  SharedStringMap::Map settings = workload.settings;
  settings[kCpusAnnotation] = kExclusiveWord;
  workload.settings = std::move(settings);
  return workload;
}

CpusAnnotation cpus_annotation(const Workload& workload) {
  const std::string_view cpus = setting(workload, kCpusAnnotation);
  if (cpus == kExclusiveWord) return CpusAnnotation::kExclusive;
  if (cpus == kIfWholeWord) return CpusAnnotation::kExclusiveIfWhole;
  if (cpus == "shared") return CpusAnnotation::kShared;
  return cpus == "none" ? CpusAnnotation::kNone : CpusAnnotation::kAbsent;
}

MoveAnnotation move_annotation(const Workload& workload) {
  const std::string_view move = setting(workload, kMoveAnnotation);
  if (move == kAllowWord) return MoveAnnotation::kAllow;
  return move == kNeverWord ? MoveAnnotation::kNever : MoveAnnotation::kAbsent;
}

CpuSource cpu_source(const Workload& workload, const PlacementRules& rules) {
  const std::string_view isolated = setting(workload, kIsolatedAnnotation);
  if (isolated == kRequireWord) return CpuSource::kIsolated;
  if (isolated == kPreferWord || rules.isolated == IsolatedRule::kPrefer) return CpuSource::kPreferIsolated;
  return rules.isolated == IsolatedRule::kAlways ? CpuSource::kIsolated : CpuSource::kPool;
}

}  // namespace topolet::placement
