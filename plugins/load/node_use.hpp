// How much of each NUMA node is used, by measurement, and how much its CPUs can do.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plugins/load/measured.hpp"

namespace topolet::load_policy {

constexpr std::int64_t kWholeCpu = 1000;  ///< thousandths

/// How much a container is taken to use that is not measured yet: what it requests, or one CPU, within its limit.
std::int64_t assumed_milli(const topolet_demand* demand);

/// "1.25", of thousandths of a CPU.
std::string cpus_text(std::int64_t milli);

/// All amounts in thousandths of a CPU.
struct NodeUse {
  std::uint32_t os_index = 0;
  sdk::Set pool;                     ///< its CPUs that containers share
  std::int64_t nominal_milli = 0;    ///< of its allowed CPUs
  std::int64_t effective_milli = 0;  ///< what these can do; nominal where that is not measured
  bool is_effective_known = false;
  std::int64_t pool_milli = 0;      ///< what the CPUs of `pool` can do
  std::int64_t measured_milli = 0;  ///< used by all containers that are measured
  /// Used of the pool: by the measured containers that share CPUs, and by whomever else, where the node's use is known.
  std::int64_t shared_milli = 0;
  /// Of those that share CPUs and are not measured, beyond what is in `shared_milli`.
  std::int64_t assumed_milli = 0;
  std::size_t unmeasured = 0;  ///< how many these are

  /// What its containers would use if no hypervisor took time from them.
  std::int64_t wanted_milli() const;
};

/// One of each node of the topology, in their order; a container counts on each node as its CPUs lie there.
std::vector<NodeUse> node_uses(const topolet_topology& topology, const topolet_ledger& ledger,
                               const Measured& measured);

/// Returns true if the container uses the pool's CPUs together with others.
bool shares_cpus(const topolet_ledger_entry& entry);

}  // namespace topolet::load_policy
