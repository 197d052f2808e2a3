// Takes single CPUs out of a set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/placement/policy.hpp"
#include "core/topology/topology.hpp"

namespace topolet::placement {

/// Takes `count` of `usable`: first those `order` names, then whole cores (all online threads of the core usable),
/// then threads of cores that are already in part use, each by lowest index. `usable` must hold that many.
CpuSet take_cpus(const topology::Topology& topology, const CpuSet& usable, std::size_t count,
                 const std::vector<std::uint32_t>& order);

/// In which order to take `count` of `usable`.
using OrderOf = std::function<std::vector<std::uint32_t>(const CpuSet& usable, std::size_t count)>;

/// Adds CPUs of `usable` to `taken` until there are `count`: of each share in turn what it still lacks, then any. Each
/// time as take_cpus() does.
CpuSet take_with_minimums(const topology::Topology& topology, const CpuSet& usable, std::size_t count,
                          const std::vector<CpuMinimum>& shares, const OrderOf& order_of, CpuSet taken = {});

}  // namespace topolet::placement
