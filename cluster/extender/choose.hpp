// Choice of zones for a pod on a node: a pure function of the free amounts there and of the pod's demand.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "cluster/extender/demand.hpp"
#include "cluster/extender/node_zones.hpp"
#include "core/base/result.hpp"

namespace topolet::extender {

/// A node's zones, and what is left in each of them after all that is promised.
struct FreeZones {
  const NodeZones& node;
  const std::vector<Amounts>& free;           ///< by position in node.zones
  const std::vector<std::int64_t>& free_cpu;  ///< the same of CPUs alone, which is what is looked at most
  /// By position: zones where something is promised that the node does not count yet.
  const std::vector<bool>& has_promises;
  bool has_cpus = false;  ///< some zone publishes CPUs
  /// Promises on this node have not shown up for too long: its published amounts are not relied on.
  bool is_stale = false;
  /// The node's agent was not heard of for too long: the same.
  bool is_silent = false;
};

/// In NodeZones::zones, ascending.
using ZonePositions = boost::container::small_vector<std::size_t, 8>;

struct ContainerZones {
  std::string container;
  ZonePositions zones;
};

/// How good a choice is.
struct Fit {
  std::size_t most_zones = 0;     ///< of the container with the most; 0: none has CPUs of its own
  std::int64_t preference = 0;    ///< by the strategy: more is better
  std::int64_t effective = 1000;  ///< permille of the CPUs of its zones that can be had at present
};

struct Choice {
  std::vector<ContainerZones> containers;  ///< in the demand's order, those with CPUs of their own there
  /// Names of those that have CPUs of the pool where they would have isolated ones if there were more.
  std::vector<std::string> of_pool;
  /// The amounts to keep free for it, by position in node.zones. It is not known how much a container on several zones
  /// takes from each of them, and more may be free when it comes: each zone keeps all that it may take.
  std::vector<Amounts> taken;
  Fit fit;
};

/// By the node's rules: without containers where the pod has no CPUs of its own there.
///
/// FAILED_PRECONDITION says in a few words why there is none: "no zone has 8 free CPUs, the best has 4: not now".
Result<Choice> choose_zones(const FreeZones& zones, const Demand& demand);

/// Returns the fit of the choice that choose_zones() would make, faster: for thousands of nodes.
Result<Fit> fit_zones(const FreeZones& zones, const Demand& demand);

/// Checks whether choose_zones() would find a place, faster still; the error says why not.
Status check_zones(const FreeZones& zones, const Demand& demand);

/// Returns the amounts that a container may take on the zones that it was given before, as in Choice::taken.
std::vector<Amounts> taken_by(const NodeZones& node, const Amounts& asks, const std::vector<std::uint32_t>& os_indices);

}  // namespace topolet::extender
