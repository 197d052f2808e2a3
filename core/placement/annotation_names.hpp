// The topolet.io annotations that somebody reads, and those of a pod that nobody does. Only names are examined, not
// values, except for the names inside topolet.io/containers.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/placement/workload.hpp"

namespace topolet::placement {

/// An annotation by which a container gets more from others than it requests.
struct TakingAnnotation {
  std::string name;   ///< without topolet.io/
  std::string value;  ///< the value that does; empty: any

  friend bool operator==(const TakingAnnotation&, const TakingAnnotation&) = default;
};

/// The annotations that are read, by name without topolet.io/.
struct KnownAnnotations {
  std::vector<std::string> names;
  std::vector<TakingAnnotation> taking = {};
  std::vector<std::string> silent_plugins;  ///< enabled plugins that do not say what they read

  bool has(std::string_view name) const;
  /// `read`: what the plugin says it reads; absent if it does not say.
  void add_plugin(const std::string& plugin, const std::optional<std::vector<std::string>>& read,
                  const std::vector<TakingAnnotation>& taking_more = {});
  /// The mark that this value of the annotation bears; null if it has none.
  const TakingAnnotation* find_taking(std::string_view name, std::string_view value) const;

  friend bool operator==(const KnownAnnotations&, const KnownAnnotations&) = default;
};

/// Returns the annotations that the core itself reads.
KnownAnnotations core_annotations();

/// One line about a name that `known` does not have, with the nearest that it has. `prefix` is written before both.
std::string describe_unknown_annotation(std::string_view name, const KnownAnnotations& known,
                                        const std::string& prefix = "");

/// Returns the annotations to be kept: those of topolet.io that nobody reads have no value, also inside
/// topolet.io/containers. While some plugin does not say which ones it reads, all of them keep theirs.
SharedStringMap without_unread_values(const SharedStringMap& annotations, const KnownAnnotations& known);

/// Suggests the intended names for misspelt ones in the annotations of a container's pod and in its own; a line each, a
/// few at
/// most. Annotations that are not topolet.io's are reported if their key is near one that is, such as topolet.com/cpus
/// or
/// topolet.io.cpus, and labels if they are meant to be annotations.
///
/// `pod_containers`: the containers that the pod has had so far. A container named in topolet.io/containers may still
/// come. So its name is reported only if it is near the name of this container, which the annotation does not name,
/// unless the two are names in a row, such as worker-1 and worker-2.
///
/// `permitted`: as for read_settings(). While some plugin does not say what it reads, the names listed there count as
/// known.
std::vector<std::string> describe_misspelt_names(const Workload& workload, const std::set<std::string>& pod_containers,
                                                 const std::optional<std::vector<std::string>>& permitted,
                                                 KnownAnnotations known);

}  // namespace topolet::placement
