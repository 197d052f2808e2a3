#include "plugins/load/classes.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace topolet::load_policy {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"BE", "LS", "LSR", "LSE"};
constexpr std::string_view kPrefix = "topolet.io/";

std::optional<Class> class_from(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Class>(found - kNames.begin());
}

/// `*` is any text, also none.
bool matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (name.substr(0, star) != pattern.substr(0, star)) return false;
  for (std::size_t skipped = star; skipped <= name.size(); ++skipped) {
    if (matches(pattern.substr(star + 1), name.substr(skipped))) return true;
  }
  return false;
}

bool may_take(std::string_view pod_namespace, const std::vector<std::string>& taking_namespaces) {
  return std::any_of(taking_namespaces.begin(), taking_namespaces.end(),
                     [pod_namespace](const std::string& pattern) { return matches(pattern, pod_namespace); });
}

struct Word {
  std::string where;
  std::string_view value;
};

/// The host leaves an annotation out of the settings of pods that may not have what it takes; the pod's own word is
/// still there.
std::optional<Word> word_of(const ClassSource& source) {
  const std::string annotation = std::string(kPrefix) + std::string(kClassAnnotation);
  if (const auto set = sdk::find_value(source.settings, kClassAnnotation)) return Word{annotation, *set};
  if (const auto said = sdk::find_value(source.pod_annotations, annotation)) {
    if (*said == "LSE" || *said == "LSR") return Word{annotation, *said};
  }
  if (const auto label = sdk::find_value(source.pod_labels, kKoordinatorLabel)) {
    if (*label != "SYSTEM") return Word{std::string(kKoordinatorLabel), *label};
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Class which) { return kNames[static_cast<std::size_t>(which)]; }

ClassSource source_of(const topolet_workload& workload) {
  return {workload.qos, workload.pod_namespace, workload.settings, workload.pod_labels, workload.pod_annotations};
}

ClassSource source_of(const topolet_ledger_entry& entry) {
  return {entry.qos, entry.pod_namespace, entry.settings, entry.pod_labels, entry.pod_annotations};
}

ClassWord class_of(const ClassSource& source, const std::vector<std::string>& taking_namespaces) {
  const ClassWord by_default{source.qos == TOPOLET_QOS_BESTEFFORT ? Class::kBe : Class::kLs};
  const std::optional<Word> word = word_of(source);
  if (!word) return by_default;
  const std::optional<Class> said = class_from(word->value);
  const std::string shown = word->where + " = '" + sdk::printable(word->value) + "'";
  if (!said) return {by_default.which, {}, shown + ": it must be one of 'LSE', 'LSR', 'LS', 'BE'"};
  const bool takes = *said == Class::kLse || *said == Class::kLsr;
  if (!takes || may_take(sdk::text(source.pod_namespace), taking_namespaces)) return {*said};
  return {Class::kLs, shown + " reads as LS: namespace " + sdk::printable(sdk::text(source.pod_namespace)) +
                          " is none of placement.exclusive-namespaces"};
}

}  // namespace topolet::load_policy
