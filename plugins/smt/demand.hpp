// A container's demand on the sibling threads of its CPUs, by its annotations and the options.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#include "plugins/smt/options.hpp"

namespace topolet::smt {

/// How much load a container puts on its cores, as its annotation topolet.io/cpu-profile says.
enum class Profile : std::uint8_t { kUnknown, kHeavy, kLight };

Profile profile_of(topolet_kvs settings);

struct Demand {
  std::string annotation_error;        ///< why an annotation cannot be obeyed; empty if all can
  std::string ineffective_annotation;  ///< an annotation that changes nothing, and why
  std::size_t exclusive_cpus = 0;      ///< 0 for a container that shares CPUs
  bool isolated = false;
  std::string isolated_by;  ///< the annotation or the option that asks for it, for reasons
  bool whole_cores = false;
  std::size_t rest_of_pod_cpus = 0;     ///< requested by the containers of its pod that are placed after it
  Profile profile = Profile::kUnknown;  ///< unknown, too, with pair = false
  bool avoids_heavy = false;            ///< it requests CPUs without a profile, and there are heavy containers

  bool is_empty() const { return !isolated && !whole_cores && profile == Profile::kUnknown && !avoids_heavy; }
};

Demand demand_of(const topolet_request& request, const PolicyOptions& options);

}  // namespace topolet::smt
