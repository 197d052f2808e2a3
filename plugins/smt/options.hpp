// The plugin's options as the policy uses them.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace topolet::smt {

/// The annotations that are read, without topolet.io/.
inline constexpr std::string_view kSmtAnnotation = "smt";
inline constexpr std::string_view kIsolate = "isolate";  ///< its value that keeps threads idle
inline constexpr std::string_view kCpuProfileAnnotation = "cpu-profile";

/// Whose sibling threads nobody else may use.
enum class IsolateSiblings : std::uint8_t {
  kOff,
  kAnnotated,  ///< those of containers with the annotation topolet.io/smt = isolate
  kExclusive   ///< those of all containers with exclusive CPUs, unless annotated topolet.io/smt = share
};

struct PolicyOptions {
  IsolateSiblings isolate_siblings = IsolateSiblings::kAnnotated;
  bool pair = false;
  /// numa.full-pcpus-only: exclusive CPUs are whole cores.
  bool whole_cores = false;
  /// True if the CPUs of the last core beyond the request stay idle. If false, the numa plugin has denied such a
  /// request.
  bool rounds_up = true;
  /// numa.distribute-cpus-across-cores: CPUs of different cores are taken first.
  bool spreads_over_cores = false;
  /// numa.scope = pod: where the first container of a pod is placed, the others must fit, too.
  bool places_pods = false;
  /// placement.min-shared-cpus: how many CPUs always stay in the pool.
  std::size_t min_shared_cpus = 1;
};

PolicyOptions read_options(const sdk::Options& options);

}  // namespace topolet::smt
