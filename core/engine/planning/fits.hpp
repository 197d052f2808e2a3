// How much a new container could get on each NUMA node.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/engine/planning/placer.hpp"
#include "core/engine/state/ledger.hpp"

namespace topolet::engine {

/// What one container could have for itself on a node with CPUs.
struct NodeFit {
  std::uint32_t node = 0;  ///< OS index
  std::uint32_t exclusive_cpus = 0;

  friend bool operator==(const NodeFit&, const NodeFit&) = default;
};

struct UnplacedContainer {
  placement::ContainerKey key;
  std::string reason;
};

struct Fits {
  std::uint64_t generation = 0;  ///< of the ledger that this is true of
  std::vector<NodeFit> nodes;    ///< by OS index
  std::vector<UnplacedContainer> unplaced;
  bool lost_votes = false;  ///< a policy was not heard: the numbers may be wrong
};

/// What a Guaranteed container that asks for n whole CPUs and nothing else would be given on each node alone: the
/// largest n that it would get there, by the same decisions as when it is created. CPUs that are kept for failed
/// containers are theirs.
///
/// `pending`: containers that are bound to this machine and not in the ledger yet. They are placed first, in this
/// order. One that the ledger has is not placed again, and one that is denied takes nothing.
Fits compute_fits(const Placer& placer, const Ledger& ledger, const std::vector<placement::Workload>& pending);

}  // namespace topolet::engine
