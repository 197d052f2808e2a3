// How good a place is for a container with CPUs of its own, by arithmetic alone: to tell which moves are worth a
// question to the policies, and whether somebody is worse off by one. Plain values.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

#include "core/base/index_set.hpp"
#include "core/placement/decision.hpp"
#include "core/topology/topology.hpp"

namespace topolet::engine {

/// How good a place is for a container with CPUs of its own. The less, the better; the first difference counts.
struct Standing {
  bool is_denied = false;  ///< or it shares CPUs, as there were none for it alone
  bool misses_zone = false;
  std::size_t nodes = 0;        ///< CPUs outside any node are on one more
  std::uint32_t distance = 0;   ///< of these nodes, as in Candidate
  std::size_t remote_cpus = 0;  ///< CPUs away from its devices
  std::size_t l3s = 0;

  auto operator<=>(const Standing&) const = default;
};

/// Returns the standing of a container on `cpus`; `near_devices`: empty for one that has none.
Standing standing_of(const topology::Topology& topology, const CpuSet& cpus, const CpuSet& near_devices = {});

/// Returns how many last-level caches the CPUs are of.
std::size_t count_l3s(const topology::Topology& topology, const CpuSet& cpus);

/// Returns the CPUs of the nodes near the devices that the container is placed by; none if it has none, or if nobody
/// knows where they are.
CpuSet cpus_near_devices(const topology::Topology& topology, const placement::Decision& decision);

}  // namespace topolet::engine
