// The resources of a candidate, in the numbers that matter to this policy.
#pragma once

#include <topolet/policy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plugins/numa/cache_groups.hpp"
#include "plugins/numa/demand.hpp"
#include "plugins/numa/memory.hpp"

namespace topolet::numa {

struct CandidateResources {
  topolet_set nodes{};
  bool has_cpus_outside_nodes = false;  ///< CPUs that belong to no node
  std::size_t node_count = 0;           ///< at least 1; CPUs outside any node count as one more node
  std::size_t package_count = 0;
  std::size_t allowed_cpus = 0;
  std::size_t free_cpus = 0;                ///< of the allowed ones, those that it may have
  std::size_t shared_cpus = 0;              ///< those in the pool, which exclusive CPUs are mostly taken from
  std::size_t unshared_cpus = 0;            ///< free ones that are not in the pool: isolated ones, or its own
  std::size_t isolated_cpus = 0;            ///< isolated ones that nobody has, for exclusive containers of its pod
  std::int64_t shared_milli_requested = 0;  ///< by shared containers that run here
  std::uint32_t distance = 0;               ///< the sum of all distances between its nodes
  std::size_t nodes_without_memory = 0;     ///< of its own
  MemoryAmount memory = {};
  bool huge_pages_fit = true;
  std::size_t nodes_outside_pod = 0;     ///< nodes that the pod was not placed on
  std::uint32_t pod_distance = 0;        ///< see PodPlace
  bool in_zone = true;                   ///< on no nodes but those that a scheduler has chosen, if it has
  bool whole_cores_fit = true;           ///< free whole cores add up to the exclusive CPUs, or need not
  bool whole_cores_fit_if_empty = true;  ///< the same of all allowed cores
  bool needs_whole_cores = false;        ///< false: parts of cores will do if there is nothing better
  CacheFit caches = {};                  ///< for the exclusive CPUs; none where caches do not matter
  /// Exclusive CPUs that would be on cores beside others for want of whole ones; with distribute-cpus-across-cores
  /// those that would be on a core with another of them.
  std::size_t crowded_cpus = 0;
  std::size_t beside_strangers = 0;  ///< with distribute-cpus-across-cores, those on a core that others use
  /// Of an exclusive container that could be better off elsewhere, the CPUs that it has and that are not of this
  /// candidate: its memory is near to them.
  std::size_t left_behind = 0;

  bool is_busy = false;      ///< shared containers use more than half of the shared CPUs; measured where it matters
  std::size_t siblings = 0;  ///< containers of other pods of its workload; counted where they matter

  /// Thousandths of its free CPUs that no shared container requests; negative if they request more than there is.
  std::int64_t uncommitted_milli() const {
    return static_cast<std::int64_t>(free_cpus) * 1000 - shared_milli_requested;
  }
  /// Shared CPUs that would be left if a container had so many of the free ones alone.
  std::size_t shared_cpus_beside(std::size_t exclusive) const {
    return shared_cpus - std::min(shared_cpus, exclusive - std::min(exclusive, unshared_cpus));
  }
  /// "node 0", "nodes 0-1", "the CPUs outside any node".
  std::string name() const;
};

/// One for each candidate of the request. `cpus_in_caches`: for how many CPUs to count caches; 0 = none.
std::vector<CandidateResources> candidate_resources(const topolet_request& request, const Demand& demand,
                                                    const NodeMemory& memory, std::size_t cpus_in_caches);

}  // namespace topolet::numa
