// A container's demand on the nodes it is placed on, and how strict it is.
#pragma once

#include <topolet/policy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "plugins/numa/memory.hpp"
#include "plugins/numa/options.hpp"

namespace topolet::numa {

struct Demand {
  Alignment alignment = Alignment::kBestEffort;  ///< from the annotation, else from the option
  std::string annotation_error;                  ///< why the annotation cannot be obeyed; empty if it can

  bool exclusive = false;
  std::size_t exclusive_cpus = 0;
  std::int64_t shared_milli = 0;  ///< thousandths of shared CPUs
  std::int64_t memory_bytes = 0;
  HugePages huge_pages = {};
  bool binds_memory = false;  ///< its memory must be on the nodes that it runs on
  std::size_t pod_exclusive_cpus =
      0;  ///< of the whole pod, where that is more than the container's; as are the next two
  std::int64_t pod_shared_milli = 0;
  std::int64_t pod_memory_bytes = 0;
  bool pod_is_placed = false;  ///< never with scope = container
  /// The pod's requests beyond this container and those that are placed; 0 if not known, or with scope = pod.
  std::int64_t rest_of_pod_milli = 0;
  std::int64_t rest_of_pod_bytes = 0;
  bool pod_takes_isolated = false;  ///< exclusive containers of its pod may have isolated CPUs
  bool stands_for_pod = false;      ///< the container requests nothing; what its pod requests beyond the others counts
  topolet_set pod_nodes = {};       ///< where it was placed; none: on the CPUs outside any node
  sdk::Set zone = {};               ///< the nodes that a scheduler has chosen; empty: none
  std::string note;                 ///< added to each reason

  /// It requests nothing that can be counted, so any nodes will do.
  bool is_empty() const { return !exclusive && shared_milli == 0 && memory_bytes == 0 && huge_pages.empty(); }
  /// Returns true if the container is denied rather than placed on more nodes than the policy allows.
  bool is_strict() const { return alignment >= Alignment::kRestricted && (exclusive || binds_memory); }

  /// Returns the CPUs that must be available: for the whole pod if the policy is strict, since the pod is then admitted
  /// as a whole.
  std::size_t required_cpus() const {
    return is_strict() ? std::max(exclusive_cpus, pod_exclusive_cpus) : exclusive_cpus;
  }
  std::int64_t required_memory() const { return is_strict() ? std::max(memory_bytes, pod_memory_bytes) : memory_bytes; }
};

/// The nodes that a scheduler has chosen for the container; none if it has not.
sdk::Set zone_of(const topolet_workload& workload);

Demand demand_of(const topolet_request& request, const PolicyOptions& options);

/// The alignment policy for one container: its annotation's, else the option's.
Alignment alignment_of(const topolet_workload& workload, const PolicyOptions& options);

}  // namespace topolet::numa
