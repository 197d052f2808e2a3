// The use of each NUMA node.
#pragma once

#include <cstdint>
#include <vector>

#include "core/audit/history.hpp"
#include "core/audit/machine_record.hpp"
#include "core/base/index_set.hpp"

namespace topolet::audit {

struct NodeUsage {
  std::uint32_t node = 0;
  CpuSet cpus;                            ///< those that topolet may use, reserved ones included
  CpuSet exclusive;                       ///< of one container each
  CpuSet withheld;                        ///< kept idle
  CpuSet reserved;                        ///< the system's
  CpuSet pool;                            ///< shared
  CpuSet isolated;                        ///< isolated ones that are free
  std::size_t largest_exclusive = 0;      ///< how many CPUs of the pool a container could get exclusively there
  std::int64_t shared_request_milli = 0;  ///< requests of containers that share, by the part of their CPUs that is here
  std::int64_t memory_bytes = 0;          ///< 0 = unknown
  std::int64_t memory_request_bytes = 0;  ///< requests of containers whose memory is here, evenly over their nodes
  std::size_t containers = 0;             ///< those that have a CPU here
  /// Of those, the ones with exclusive CPUs that fewer nodes could hold, whoever is there: as
  /// engine::could_be_narrower()
  std::size_t could_be_narrower = 0;
  bool memory_only = false;
};

/// By node. `min_shared_cpus`: the rule placement.min-shared-cpus.
std::vector<NodeUsage> usage_by_node(const MachineRecord& machine, const State& state, std::size_t min_shared_cpus);

/// How many CPUs of a node a container could get exclusively now, whatever the policies say.
std::size_t largest_exclusive(const CpuSet& node_cpus, const CpuSet& pool, std::size_t min_shared_cpus);

}  // namespace topolet::audit
