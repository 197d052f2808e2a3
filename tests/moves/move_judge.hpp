// Judges whether containers are moved as topolet promises, from what a simulation was asked and what it answered.
//
// It keeps a ledger of its own, of answers only, and shares no code with the engine but sets of CPUs and the discovery
// of machines: what the engine believes of itself is not looked at.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/simulate/operation.hpp"
#include "core/simulate/simulation.hpp"
#include "core/topology/topology.hpp"

namespace topolet::moves {

/// The options of topoletd that the promises depend on.
struct MoveRules {
  std::string heal = "shared";
  std::string make_room = "all";
  std::int64_t move_memory_bytes = std::int64_t{256} << 20;
  bool memory_migrate = false;
  bool keeps_pods_together = false;  ///< numa.scope = pod
  bool full_cores = false;           ///< numa.full-pcpus-only

  /// Reads flags such as "--placement.heal=all"; others are ignored.
  static MoveRules from_flags(const std::vector<std::string>& flags);
};

/// How good a place is; of two, the lesser is better.
struct PlaceQuality {
  std::size_t nodes = 0;
  std::uint32_t distance = 0;
  std::size_t remote_cpus = 0;  ///< CPUs on none of the nodes of its devices
  std::size_t caches = 0;       ///< last-level caches

  friend auto operator<=>(const PlaceQuality&, const PlaceQuality&) = default;
};

PlaceQuality quality_of(const topology::Topology& topology, const CpuSet& cpus, const NodeSet& device_nodes);

/// Feed it every operation of a run, with its answer, in their order. One thread.
class MoveJudge {
 public:
  /// `topology`: the whole machine, with all CPUs online.
  MoveJudge(std::shared_ptr<const topology::Topology> topology, MoveRules rules)
      : topology_(std::move(topology)), rules_(std::move(rules)) {}

  void observe(const simulate::Operation& operation, const simulate::OperationResult& answer);

  /// What broke a promise, each with the number of the operation, from 1 on.
  const std::vector<std::string>& faults() const { return faults_; }
  std::size_t operations() const { return operation_number_; }
  /// How often a container was moved: "heal", "room", "crowd", "pool", or the code of the reason.
  const std::map<std::string, std::size_t>& moves() const { return moves_; }
  /// Moves that were topolet's own choice: to heal or to make room.
  std::size_t chosen_moves() const;

 private:
  using Name = std::pair<std::string, std::string>;  ///< pod, container
  using Time = std::chrono::milliseconds;
  using Counts = std::map<std::string, std::size_t>;  ///< by what moved a container

  struct Held {
    bool is_exclusive = false;
    CpuSet cpus;
    CpuSet withheld;
    NodeSet mems;
    NodeSet device_nodes;
    bool has_devices = false;
    bool is_bound_by_kubelet = false;
    std::optional<std::int64_t> memory_bytes;
    std::optional<std::pair<Time, Time>> moved;  ///< when it was moved last: not before, not after
  };

  void note(const simulate::Operation& operation);
  void note_own(const simulate::Operation& operation, const simulate::OperationResult& answer);
  std::string note_moved(const simulate::MovedContainer& moved, const char* if_untold);
  void judge_move(const Name& name, const Held& before, const Held& after, const std::string& kind);
  void judge_pace(const Name& name, const std::optional<std::pair<Time, Time>>& before);
  void judge_permission(const Name& name, const Held& before, const std::string& kind);
  void judge_place(const Name& name, const Held& before, const Held& after);
  void judge_memory(const Name& name, const Held& before, const Held& after);
  void judge_counts(const simulate::Operation& operation, Counts& counts);
  void judge_overlaps();
  void judge_cores(const Name& name, const Held& held);
  NodeSet nodes_of_devices(const simulate::Operation& create) const;
  NodeSet nodes_of_pod(const Name& but) const;
  void fault(const Name& name, const std::string& what);

  const std::shared_ptr<const topology::Topology> topology_;
  const MoveRules rules_;
  std::size_t operation_number_ = 0;
  Time began_{0};  ///< of the operation, by the clock of the run
  Time now_{0};
  bool has_lost_cpus_ = false;  ///< at some time CPUs were offline or somebody else's
  CpuSet offline_;
  std::map<std::string, NodeSet> devices_;               ///< by path
  std::map<std::string, std::string> move_annotations_;  ///< topolet.io/move, by pod
  std::map<Name, Held> held_;
  std::map<std::string, std::size_t> moves_;
  std::vector<std::string> faults_;
};

}  // namespace topolet::moves
