// The room of init containers that will have ended when the containers after them are placed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/engine/state/ledger.hpp"
#include "core/topology/topology.hpp"

namespace topolet::engine {

/// The memory requests of containers on one node.
struct NodeMemory {
  std::int64_t bytes = 0;
  std::map<std::string, std::int64_t> huge_page_bytes = {};  ///< by page size, "2MB"

  void add(const NodeMemory& other);
  /// Nothing becomes less than 0.
  void subtract(const NodeMemory& other);
  /// Raises each amount to the larger of the two.
  void raise_to(const NodeMemory& other);

  friend bool operator==(const NodeMemory&, const NodeMemory&) = default;
};

/// Returns the bookings for `demand`, by position of the topology's nodes: in equal parts over the nodes that the
/// container's memory is bound to, else in proportion to its CPUs. For a bound one whose request is not known, its
/// limit counts. Rounded up.
std::vector<NodeMemory> memory_by_node(const topology::Topology& topology, const Allocation& allocation,
                                       const placement::Demand& demand);

/// One pod of a trial ledger, whose containers are placed one after the other.
///
/// An init container leaves before those after it come, so they may have its room. They need not be placed there: what
/// it has on a node is reused only by what comes after it on the same node, and what it has beyond that stays taken.
class InitRoom {
 public:
  /// `init` is about to be taken out of the ledger.
  void end_init(const Allocation& init) { ended_.push_back({init, {}}); }
  /// A container that comes `after` init containers has been added to the ledger.
  void add(const placement::ContainerKey& key, const std::vector<std::string>& after);

  /// CPUs that nobody has in `ledger`, the pod's last container being placed: as many on each node as the most that an
  /// init container has there beyond what those after it have. Whole cores first.
  CpuSet cpus_beyond(const topology::Topology& topology, const Ledger& ledger) const;
  /// The same of memory, by position of the topology's nodes.
  std::vector<NodeMemory> memory_beyond(const topology::Topology& topology, const Ledger& ledger) const;

  bool empty() const { return ended_.empty(); }
  const Allocation& first() const { return ended_.front().init; }

 private:
  struct Ended {
    Allocation init;
    std::vector<placement::ContainerKey> later;  ///< of them, those in the ledger count
  };

  std::vector<Ended> ended_;
};

}  // namespace topolet::engine
