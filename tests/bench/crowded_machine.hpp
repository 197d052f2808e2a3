// A machine with devices and 500 containers, for measurements of what decisions on it cost.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/state/ledger.hpp"
#include "core/placement/workload.hpp"
#include "core/topology/topology.hpp"

namespace topolet::bench {

struct MachineShape {
  int packages = 1;
  int nodes_per_package = 1;
  int cores_per_node = 1;  ///< of two threads, half of them below each last-level cache

  std::size_t nodes() const;
  std::size_t cpus() const;
  std::string synthetic() const;
};

/// Two PCI GPUs behind one switch on every other node, with the names /dev/g0, /dev/g1 and so on, and distances that
/// grow with the number of nodes in between. `offline`: CPUs that are offline.
std::shared_ptr<const topology::Topology> machine_with_gpus(const MachineShape& shape, const CpuSet& offline = {});

inline constexpr int kContainers = 500;

/// Each tenth of them holds two CPUs alone as far as half of the CPUs go, some of them half cores; each fifth says what
/// it does to its sibling threads.
engine::Ledger ledger_with_containers(const topology::Topology& topology);

struct NamedWorkload {
  std::string name;
  placement::Workload workload;
};

/// One that requests nothing and runs on the whole pool.
placement::Workload best_effort(const std::string& name);

/// Returns one workload of each kind that takes its own way through the plugins.
std::vector<NamedWorkload> workloads_for(const MachineShape& shape);

}  // namespace topolet::bench
