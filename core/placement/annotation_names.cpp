#include "core/placement/annotation_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/suggestion.hpp"
#include "core/base/text.hpp"
#include "core/placement/settings.hpp"

namespace topolet::placement {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLongestName = 100;
/// Pods may have thousands of annotations.
constexpr std::size_t kMostTold = 8;

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Names are in lower case nearly everywhere, so that one in another case is near.
std::string in_lower_case(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower;
}

/// The place and kind of the difference between two texts.
struct Difference {
  std::size_t begin = 0;    ///< how many characters they have in common before
  std::size_t end = 0;      ///< and behind
  std::string_view of_one;  ///< what is between, which may be empty
  std::string_view of_other;
};

Difference difference_of(std::string_view one, std::string_view other) {
  const std::size_t shorter = std::min(one.size(), other.size());
  Difference found;
  while (found.begin < shorter && one[found.begin] == other[found.begin]) ++found.begin;
  while (found.end < shorter - found.begin && one[one.size() - 1 - found.end] == other[other.size() - 1 - found.end]) {
    ++found.end;
  }
  found.of_one = one.substr(found.begin, one.size() - found.begin - found.end);
  found.of_other = other.substr(found.begin, other.size() - found.begin - found.end);
  return found;
}

bool is_number(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// worker-1 and worker-2, worker and worker2, shard-a and shard-b.
bool are_in_a_row(std::string_view one, std::string_view other) {
  const Difference difference = difference_of(one, other);
  if (is_number(difference.of_one) && is_number(difference.of_other)) return true;
  const bool stands_alone = (difference.begin == 0 || one[difference.begin - 1] == '-') &&
                            (difference.end == 0 || one[one.size() - difference.end] == '-');
  return stands_alone && difference.of_one.size() == 1 && difference.of_other.size() == 1;
}

/// The two parts of a key.
struct NearKey {
  std::string_view domain;
  std::string_view name;
};

/// Behind the slash, or, where somebody has written another character there, before a name that is known, or behind the
/// last such character.
std::optional<NearKey> split_key(std::string_view key, const KnownAnnotations& known) {
  constexpr std::string_view kWrittenInstead = ".-_:";
  if (const std::size_t slash = key.find('/'); slash != std::string_view::npos)
    return NearKey{key.substr(0, slash), key.substr(slash + 1)};
  for (const std::string& name : known.names) {
    if (key.size() <= name.size() + 1 || !key.ends_with(name)) continue;
    const std::string_view before = key.substr(0, key.size() - name.size());
    if (kWrittenInstead.find(before.back()) == std::string_view::npos) continue;
    return NearKey{before.substr(0, before.size() - 1), key.substr(before.size())};
  }
  const std::size_t last = key.find_last_of(kWrittenInstead);
  if (last == std::string_view::npos) return std::nullopt;
  return NearKey{key.substr(0, last), key.substr(last + 1)};
}

/// "topolet.io/cpus" for topolet.com/cpus and topolet.io.cpus; empty for a key that is nothing like it.
std::string nearest_key(const std::string& key, const KnownAnnotations& known) {
  constexpr std::size_t kLongest = 80;
  const std::string_view prefix = kAnnotationPrefix;
  if (key.size() > kLongest || key.starts_with(prefix)) return "";
  const std::string lower = in_lower_case(key);
  const std::optional<NearKey> parts = split_key(lower, known);
  const std::string_view domain = prefix.substr(0, prefix.size() - 1);
  if (!parts || !near_distance(parts->domain, domain)) return "";
  if (known.has(parts->name)) return std::string(prefix) + std::string(parts->name);
  const std::string* const name =
      nearest_of(known.names, [&parts](const std::string& each) { return near_distance(parts->name, each); });
  return name == nullptr ? "" : std::string(prefix) + *name;
}

std::string shown(std::string_view name) { return printable(name, kLongestName); }

/// `label`: the name and where it is. `prefix` is written before the name that may be meant.
std::string describe_unknown(std::string_view name, const std::string& label, const KnownAnnotations& known,
                             const std::string& prefix) {
  const bool all_say = known.silent_plugins.empty();
  std::string text = "unknown annotation " + label;
  if (const std::string near = suggestion(in_lower_case(name), known.names, prefix); !near.empty()) {
    text += near;
  } else {
    text += fmt::format(": neither topolet nor an enabled plugin {} it", all_say ? "reads" : "is known to read");
  }
  if (all_say) return text;
  return fmt::format("{} (plugins that do not say what they read: {})", text, fmt::join(known.silent_plugins, ", "));
}

/// Clears unread values inside topolet.io/containers. If that cannot be read, it stays as it is: its pod gets no
/// container.
std::string without_unread_inside(const std::string& json, const KnownAnnotations& known) {
  Json all = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!all.is_object()) return json;
  bool has_unread = false;
  for (Json& own : all) {
    if (!own.is_object()) return json;
    for (const auto& [key, value] : own.items()) {
      if (known.has(without_annotation_prefix(key))) continue;
      value = "";
      has_unread = true;
    }
  }
  return has_unread ? all.dump() : json;
}

/// Collects what is to be told of one container.
class Misspellings {
 public:
  Misspellings(const Workload& workload, const std::set<std::string>& pod_containers, const KnownAnnotations& known)
      : workload_(workload), pod_containers_(pod_containers), known_(known) {}

  void look_through(const std::map<std::string, std::string>& annotations) {
    const std::string_view prefix = kAnnotationPrefix;
    for (auto it = annotations.lower_bound(kAnnotationPrefix); it != annotations.end(); ++it) {
      if (it->first.compare(0, prefix.size(), prefix) != 0) return;
      const std::string_view name = std::string_view(it->first).substr(prefix.size());
      if (!known_.has(name)) tell(describe_unknown_annotation(name, known_, kAnnotationPrefix));
    }
  }

  /// The annotation of the pod that says something of its containers.
  void look_into_containers(const std::string& json) {
    const Json all = Json::parse(json, nullptr, /*allow_exceptions=*/false);
    if (!all.is_object()) return;
    const auto own = all.find(workload_.key.name);
    if (own == all.end()) return look_at_names_of_containers(all);
    if (!own->is_object()) return;
    KnownAnnotations inside = known_;
    std::erase_if(inside.names, counts_on_pods_only);
    for (const auto& [key, value] : own->items()) {
      const std::string_view name = without_annotation_prefix(key);
      if (inside.has(name)) continue;
      const std::string where =
          fmt::format(" in {}{} for container {}", kAnnotationPrefix, kContainersAnnotation, shown(workload_.key.name));
      tell(describe_unknown(name, shown(name) + where, inside, ""));
    }
  }

  /// Reports keys that seem to be misspelt ones of topolet's.
  void look_for_near_keys(const std::map<std::string, std::string>& annotations) {
    for (const auto& [key, value] : annotations) {
      if (const std::string meant = nearest_key(key, known_); !meant.empty())
        tell(fmt::format("annotation {} is none of topolet's; did you mean {}?", shown(key), meant));
    }
  }

  /// Labels are read by nobody.
  void look_for_labels() {
    const std::string_view prefix = kAnnotationPrefix;
    for (const auto& [key, value] : workload_.pod_labels) {
      if (!key.starts_with(prefix) || !known_.has(std::string_view(key).substr(prefix.size()))) continue;
      tell(fmt::format("label {} has no effect: write it as an annotation", shown(key)));
    }
  }

  /// Some have their place on the pod.
  void look_for_names_out_of_place() {
    for (const auto& [name, value] : workload_.annotations) {
      const std::string_view bare = without_annotation_prefix(name);
      if (bare.size() == name.size() || !counts_on_pods_only(bare)) continue;
      if (workload_.pod_annotations.find(name) != workload_.pod_annotations.end()) continue;
      tell(fmt::format("annotation {} has no effect on a container: write it on the pod", name));
    }
  }

  std::vector<std::string> take() && {
    if (count_ > kMostTold) {
      told_.push_back(fmt::format("and {} more such {}", count_ - kMostTold, plural("name", count_ - kMostTold)));
    }
    return std::move(told_);
  }

 private:
  void look_at_names_of_containers(const Json& all) {
    const std::string& container = workload_.key.name;
    for (const auto& [name, settings] : all.items()) {
      if (pod_containers_.count(name) > 0 || name.size() > kLongestName || are_in_a_row(name, container)) continue;
      const std::string near = suggestion(in_lower_case(name), {container});
      if (near.empty()) continue;
      tell(fmt::format("annotation {}{} names container '{}', which the pod does not have so far{}", kAnnotationPrefix,
                       kContainersAnnotation, shown(name), near));
    }
  }

  void tell(std::string what) {
    if (contains(told_, what)) return;
    if (++count_ <= kMostTold) told_.push_back(std::move(what));
  }

  const Workload& workload_;
  const std::set<std::string>& pod_containers_;
  const KnownAnnotations& known_;
  std::vector<std::string> told_;
  std::size_t count_ = 0;
};

}  // namespace

bool KnownAnnotations::has(std::string_view name) const { return contains(names, name); }

const TakingAnnotation* KnownAnnotations::find_taking(std::string_view name, std::string_view value) const {
  const auto found = std::find_if(taking.begin(), taking.end(), [&](const TakingAnnotation& mark) {
    return mark.name == name && (mark.value.empty() || mark.value == value);
  });
  return found == taking.end() ? nullptr : &*found;
}

void KnownAnnotations::add_plugin(const std::string& plugin, const std::optional<std::vector<std::string>>& read,
                                  const std::vector<TakingAnnotation>& taking_more) {
  taking.insert(taking.end(), taking_more.begin(), taking_more.end());
  if (!read) return silent_plugins.push_back(plugin);
  for (const std::string& name : *read) {
    if (!has(name)) names.push_back(name);
  }
}

SharedStringMap without_unread_values(const SharedStringMap& annotations, const KnownAnnotations& known) {
  if (!known.silent_plugins.empty()) return annotations;
  const std::string_view prefix = kAnnotationPrefix;
  SharedStringMap::Map kept = annotations;
  for (auto it = kept.lower_bound(kAnnotationPrefix); it != kept.end() && it->first.starts_with(prefix); ++it) {
    const std::string_view name = std::string_view(it->first).substr(prefix.size());
    if (!known.has(name)) it->second.clear();
    if (name == kContainersAnnotation) it->second = without_unread_inside(it->second, known);
  }
  return kept == static_cast<const SharedStringMap::Map&>(annotations) ? annotations : SharedStringMap(std::move(kept));
}

std::string describe_unknown_annotation(std::string_view name, const KnownAnnotations& known,
                                        const std::string& prefix) {
  return describe_unknown(name, prefix + shown(name), known, prefix);
}

KnownAnnotations core_annotations() { return {core_annotation_names(), {{kIsolatedAnnotation, ""}}, {}}; }

std::vector<std::string> describe_misspelt_names(const Workload& workload, const std::set<std::string>& pod_containers,
                                                 const std::optional<std::vector<std::string>>& permitted,
                                                 KnownAnnotations known) {
  // Whoever lists a name by hand knows who reads it.
  if (permitted && !known.silent_plugins.empty()) {
    known.names.insert(known.names.end(), permitted->begin(), permitted->end());
  }
  Misspellings found(workload, pod_containers, known);
  found.look_through(workload.pod_annotations);
  const bool reads_containers = !permitted || contains(*permitted, kContainersAnnotation);
  const auto containers = workload.pod_annotations.find(kAnnotationPrefix + std::string(kContainersAnnotation));
  if (reads_containers && containers != workload.pod_annotations.end()) found.look_into_containers(containers->second);
  found.look_through(workload.annotations);
  found.look_for_names_out_of_place();
  found.look_for_near_keys(workload.pod_annotations);
  found.look_for_near_keys(workload.annotations);
  found.look_for_labels();
  return std::move(found).take();
}

}  // namespace topolet::placement
