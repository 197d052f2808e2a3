#include "core/plugin/host/check_annotations.hpp"

#include <set>
#include <string>
#include <utility>

#include "core/placement/settings.hpp"

namespace topolet::plugin {
namespace {

/// `message` with the place where the name is permitted.
config::ConfigMistake at_name(const config::RawConfig& raw, const std::string& name, std::string message) {
  for (const config::ConfigEntry& entry : raw.entries) {
    if (entry.section == "placement" && entry.key == "annotations" && entry.value == name)
      return {entry.file, entry.line, std::move(message)};
  }
  return {raw.file.string(), 0, std::move(message)};
}

std::string describe(const std::string& name, const placement::KnownAnnotations& known) {
  const std::string what = "placement.annotations: ";
  const std::string bare(placement::without_annotation_prefix(name));
  if (bare != name && known.has(bare)) {
    return what + "'" + name + "' is to be written without " + placement::kAnnotationPrefix + "; did you mean " + bare +
           "?";
  }
  return what + describe_unknown_annotation(bare, known);
}

}  // namespace

Status AnnotationFindings::status() const {
  if (mistakes.empty()) return {};
  std::string text;
  for (const config::ConfigMistake& mistake : mistakes) text += (text.empty() ? "" : "; ") + mistake.to_string();
  return Error{Code::kInvalidArgument, text};
}

AnnotationFindings check_permitted_annotations(const config::RawConfig& raw, const config::Options& options,
                                               const placement::KnownAnnotations& known) {
  AnnotationFindings found;
  if (!options.placement.rules.annotations) return found;
  std::set<std::string> checked;
  for (const std::string& name : *options.placement.rules.annotations) {
    if (known.has(name) || !checked.insert(name).second) continue;
    auto& findings = known.silent_plugins.empty() ? found.mistakes : found.warnings;
    findings.push_back(at_name(raw, name, describe(name, known)));
  }
  return found;
}

}  // namespace topolet::plugin
