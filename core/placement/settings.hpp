// The settings that a pod makes in its annotations.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"
#include "core/placement/annotation_names.hpp"
#include "core/placement/placement_rules.hpp"
#include "core/placement/policy.hpp"
#include "core/placement/workload.hpp"

namespace topolet::placement {

inline constexpr const char* kAnnotationPrefix = "topolet.io/";
/// The annotation of a pod that says something of its containers, by name.
inline constexpr std::string_view kContainersAnnotation = "containers";
/// The name of the annotation that asks for CPUs isolated by the kernel (isolcpus), which schedulers do not count.
inline constexpr const char* kIsolatedAnnotation = "isolated";
/// The name of the annotation that says whether topolet may move a container while it runs.
inline constexpr const char* kMoveAnnotation = "move";

/// The annotations that topolet itself reads, without the prefix: the core, and of pods its scheduler extender.
std::vector<std::string> core_annotation_names();
/// Returns true if an annotation, without the prefix, counts on a pod only, and neither for a container in
/// topolet.io/containers nor on the container itself.
bool counts_on_pods_only(std::string_view name);
/// Names inside topolet.io/containers may be written out as well.
std::string_view without_annotation_prefix(std::string_view name);

struct Settings {
  std::map<std::string, std::string> values;  ///< as Workload::settings
  std::vector<std::string> not_permitted;     ///< annotations that were left out, each once
  std::vector<TakingAnnotation> not_taken;    ///< those that were left out because of its namespace
};

/// Returns the annotations that count for a container: the pod's topolet.io/NAME, overridden by this container's entry
/// in the pod's topolet.io/containers ({"CONTAINER": {"NAME": "VALUE"}}), overridden by the container's own. Those that
/// count on pods only are not settings. `permitted`: the names that may be used, absent = all; others are left out.
/// INVALID_ARGUMENT, with annotation, value and what is allowed, for a bad value of an annotation that the core reads
/// itself; plugins judge theirs.
Result<Settings> read_settings(const Workload& workload, const std::optional<std::vector<std::string>>& permitted);

/// The same by the operator's rules, and only what `known` has, unless some plugin does not say what it reads. Outside
/// placement.exclusive-namespaces what would take more from others than the container requests is left out, and
/// topolet.io/cpus = exclusive counts for whole CPUs only: its setting is "exclusive-if-whole", which no pod can write,
/// so that it means the same when the container is resized. topolet.io/isolated counts there as far as
/// placement.isolated gives the same to those without it. The settings of a container stay as they were when it was
/// created.
Result<Settings> read_settings(const Workload& workload, const PlacementRules& rules, const KnownAnnotations& known);

/// For the reason of the decision, why an annotation does not count.
std::string describe_not_taken(const TakingAnnotation& annotation, const Workload& workload);

/// INVALID_ARGUMENT that quotes an annotation, without the prefix, and says what is right.
Error invalid_annotation(const std::string& annotation, std::string_view value, const std::string& expected);

/// topolet.io/cpus.
enum class CpusAnnotation : std::uint8_t {
  kAbsent,
  kExclusive,         ///< CPUs of its own, a fractional request rounded up
  kExclusiveIfWhole,  ///< CPUs of its own if it requests whole ones
  kShared,            ///< none of its own
  kNone,              ///< the whole pool, no preference
};
CpusAnnotation cpus_annotation(const Workload& workload);
/// As if its annotation could have a fractional request rounded up.
Workload with_rounded_request(Workload workload);

/// Where exclusive CPUs come from: as topolet.io/isolated says, or else placement.isolated.
CpuSource cpu_source(const Workload& workload, const PlacementRules& rules);

/// topolet.io/move.
enum class MoveAnnotation : std::uint8_t {
  kAbsent,
  kAllow,  ///< it may be moved, whatever placement.heal says
  kNever,
};
MoveAnnotation move_annotation(const Workload& workload);

}  // namespace topolet::placement
