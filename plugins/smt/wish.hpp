// What a container wants of the siblings of its CPUs, and by whose word.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace topolet::smt {

enum class Isolate : std::uint8_t { kOff, kAnnotated, kExclusive };

struct PolicyOptions {
  Isolate isolate = Isolate::kAnnotated;
  bool pair = false;
  /// numa.full-pcpus-only: exclusive CPUs come in whole cores.
  bool whole_cores = false;
  /// What does not fill the last of them stays idle; otherwise the numa plugin has denied it.
  bool rounds_up = true;
  /// numa.distribute-cpus-across-cores: CPUs of different cores are taken first.
  bool spreads_over_cores = false;
  /// numa.scope = pod: where a pod's first container is placed, the others have to find room too.
  bool places_pods = false;
  /// placement.min-shared-cpus: so many CPUs stay in the pool whoever asks.
  std::size_t min_shared_cpus = 1;
};

PolicyOptions read_options(const sdk::Options& options);

/// How much a container strains the cores it runs on, by its own word (topolet.io/cpu-profile).
enum class Profile : std::uint8_t { kUnknown, kHeavy, kLight };

Profile profile_of(topolet_kvs settings);

struct Wish {
  std::string bad_annotation;  ///< why the container cannot be placed; empty: it can
  std::string without_effect;  ///< an annotation that changes nothing, and why
  std::size_t cpus = 0;        ///< of its own; 0: it shares
  bool isolated = false;
  std::string isolated_by;  ///< the annotation or the option, for people
  bool whole_cores = false;
  std::size_t rest_of_pod = 0;  ///< CPUs that its pod's containers after it ask for, if they are placed where it is
  Profile profile = Profile::kUnknown;  ///< as far as it counts

  bool nothing() const { return !isolated && !whole_cores && profile == Profile::kUnknown; }
};

Wish wish_of(const topolet_request& request, const PolicyOptions& options);

}  // namespace topolet::smt
