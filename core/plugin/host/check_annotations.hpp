// Checks that somebody reads the annotations that the configuration permits.
#pragma once

#include <vector>

#include "core/config/options.hpp"
#include "core/placement/annotation_names.hpp"

namespace topolet::plugin {

struct AnnotationFindings {
  std::vector<config::ConfigMistake> mistakes;
  std::vector<config::ConfigMistake> warnings;

  /// INVALID_ARGUMENT with all mistakes, if there are any.
  Status status() const;
};

/// The names in placement.annotations that `known` does not have: mistakes, or warnings while some plugin does not say
/// what it reads. `options` are those of `raw`.
AnnotationFindings check_permitted_annotations(const config::RawConfig& raw, const config::Options& options,
                                               const placement::KnownAnnotations& known);

}  // namespace topolet::plugin
