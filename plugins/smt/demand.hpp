// A container's demand on the sibling threads of its CPUs, by its annotations and the options.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#include "plugins/smt/options.hpp"
#include "plugins/smt/profiles.hpp"

namespace topolet::smt {

struct Demand {
  std::string annotation_error;        ///< why an annotation cannot be obeyed; empty if all can
  std::string ineffective_annotation;  ///< an annotation that changes nothing, and why
  std::size_t exclusive_cpus = 0;      ///< 0 for a container that shares CPUs
  bool isolated = false;
  std::string isolated_by;  ///< the annotation or the option that asks for it, for reasons
  bool whole_cores = false;
  std::size_t rest_of_pod_cpus = 0;     ///< requested by the containers of its pod that are placed after it
  Profile profile = Profile::kUnknown;  ///< unknown, too, with pair = false
  Hours busy_hours = kAllHours;  ///< of a heavy container: others that are heavy in other hours do not disturb it
  std::string profile_reason;    ///< why it counts as heavy or light; empty if its annotation says so
  bool avoids_heavy = false;     ///< it requests CPUs without a profile, and there are heavy containers

  bool is_empty() const { return !isolated && !whole_cores && profile == Profile::kUnknown && !avoids_heavy; }
};

/// `profiles` are those of the containers in the request.
Demand demand_of(const topolet_request& request, const PolicyOptions& options, const Profiles& profiles);

}  // namespace topolet::smt
