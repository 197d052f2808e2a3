// Ways to make room for a container, found by counting: no policy is asked.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/engine/planning/place_cost.hpp"
#include "core/engine/planning/placer.hpp"
#include "core/engine/state/ledger.hpp"

namespace topolet::engine {

/// How good a plan is for a container that is to have CPUs of its own. The less, the better; the first difference
/// counts. A plain value.
struct PlanCost {
  bool is_denied = false;  ///< or it shares CPUs, as there were none for it alone
  bool misses_zone = false;
  PlaceCost place = {};

  auto operator<=>(const PlanCost&) const = default;
};

/// The container for which there is to be room. A plain value.
struct RoomWanted {
  placement::ContainerKey key;
  std::size_t cpus = 0;          ///< with those that are to be kept idle for it
  CpuSet own;                    ///< has already: it is resized
  CpuSet free;                   ///< could be given as things are, its own included
  CpuSet usable;                 ///< the same, whoever moves
  std::vector<NodeSet> devices;  ///< of places_of_devices()
  std::optional<NodeSet> zone;   ///< where a scheduler has reserved room for it
  PlanCost now;                  ///< where it would be if nobody moved
  std::size_t most_moves = 1;    ///< so many may move for it
};

/// A container that may move, with what it has alone. A plain value.
struct Resident {
  const Allocation* allocation = nullptr;
  CpuSet held;
  std::size_t size = 0;
  NodeSet nodes;
  std::size_t caches = 0;
  std::size_t cores = 0;
  bool may_leave_nodes = false;

  const placement::ContainerKey& key() const { return allocation->workload.key; }
};

/// Some containers that would move, so that the container for which they do finds room in a better place.
struct RoomTry {
  PlanCost hoped_for;
  std::vector<const Resident*> moved;
  bool stays_inside_nodes = false;  ///< they move within the nodes that they are on
  std::size_t cpus = 0;             ///< that move

  /// The best place comes first, then the fewest and shortest moves.
  bool operator<(const RoomTry& other) const;
};

/// The tries for one container. What it is given must outlive it, and it what it returns.
class RoomTries {
 public:
  /// `now`: wall clock, to tell whom to leave alone.
  RoomTries(const Ledger& ledger, const Placer& placer, std::chrono::milliseconds now, const RoomWanted& wanted);
  RoomTries(const RoomTries&) = delete;
  RoomTries& operator=(const RoomTries&) = delete;

  /// Returns the most promising ways, at most `count`, the best first. Where the container would be on more nodes than
  /// need be, or farther from devices, only ways that mend this; of others, those to have it in one cache.
  std::vector<RoomTry> best(std::size_t count) const;

  /// Returns the node sets that are as good as its own, have enough of `free` in as few caches and cores, and are
  /// promised to nobody else.
  std::vector<NodeSet> nodes_for(const Resident& resident, const CpuSet& free) const;

 private:
  void collect_residents(std::chrono::milliseconds now);
  void add_tries_on_nodes(const placement::Candidate& place, std::vector<RoomTry>& tries) const;
  void add_tries_in_cache(const CpuSet& cache, std::vector<RoomTry>& tries) const;
  bool misses_zone(const NodeSet& nodes) const { return wanted_.zone && !nodes.is_subset_of(*wanted_.zone); }
  std::vector<std::vector<const Resident*>> minimal_groups(const std::vector<const Resident*>& here,
                                                           const CpuSet& place, std::size_t missing) const;
  bool have_room_outside(const std::vector<const Resident*>& moved, const NodeSet& place) const;
  bool has_other_cache(const Resident& resident, const CpuSet& cache, bool stays_inside_nodes) const;

  const Ledger& ledger_;
  const Placer& placer_;
  const topology::Topology& topology_;
  const RoomWanted& wanted_;
  NodeSet promised_;  ///< where a scheduler counts on room for pods that have no container yet
  std::vector<Resident> residents_;
  std::map<std::uint32_t, std::vector<const Resident*>> residents_of_node_;
  std::map<std::uint32_t, std::size_t> free_of_node_;
};

}  // namespace topolet::engine
