// Brings together what a decision needs: the machine, the ledger as it is, the rules and the policies.
//
// The room core/engine/planning, namespace topolet::engine: plans as pure functions of the ledger: where a new
// container goes, and who moves when CPUs come or go. It changes nothing by itself. It may include core/engine/state;
// not converge or handlers.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/planning/placer_deps.hpp"
#include "core/engine/planning/short_lists.hpp"
#include "core/engine/state/ledger.hpp"
#include "core/engine/state/plan.hpp"
#include "core/placement/annotation_names.hpp"
#include "core/placement/decision.hpp"
#include "core/placement/placement_rules.hpp"
#include "core/placement/policy.hpp"
#include "core/placement/settings.hpp"

namespace topolet::engine {

/// One thread.
class Placer {
 public:
  using Deps = PlacerDeps;
  explicit Placer(Deps deps) : deps_(std::move(deps)) {}

  /// The differences from a decision on a new container.
  struct Constraints {
    std::optional<placement::Occasion> occasion = {};  ///< none: a new container, or the next attempt of one
    std::string container_id = {};                     ///< the runtime's, where the ledger does not know it
    placement::Had had = {};              ///< what it has, where the ledger that is planned on does not say
    std::optional<NodeSet> within_nodes;  ///< only candidates inside these nodes
    std::optional<placement::Candidate> exact_candidate;  ///< only this one
    std::set<NodeSet::Words> among = {};                  ///< only the candidates of these node sets; of all if none
    std::vector<NodeSet> also_among = {};                 ///< candidates as well
    NodeSet keep_nodes = {};                              ///< as in PolicyRequest
    bool only_shared = false;                             ///< no CPUs of its own, whatever it asks for
    bool on_reserved = false;                             ///< shared: the reserved CPUs too, whatever its namespace
    std::uint32_t exclusive_cpus = 0;                     ///< how many of its own, if any; 0: as many as it asks for
    /// Its present or former exclusive CPUs, to be used again, with `keep.withheld` and the idle threads of the cores.
    placement::Placement keep = {};
    bool must_retain = false;                            ///< as in PolicyRequest
    std::optional<NodeSet> stay_near = {};               ///< as in PolicyRequest
    std::optional<NodeSet> zone = {};                    ///< where a scheduler has reserved room for it
    bool zone_is_of_pool = false;                        ///< as in PolicyRequest
    std::optional<placement::CpuSource> only_from = {};  ///< exclusive CPUs of these only, whatever the rules say
    /// As in PolicyRequest: all decisions of plans that share it have one time together.
    std::chrono::steady_clock::time_point plan_began = std::chrono::steady_clock::now();

    bool admits(const placement::Candidate& candidate) const;
  };

  /// Decides as if neither the workload nor an earlier attempt of it had CPUs. Plans moves for containers that would be
  /// left without CPUs; if one of them cannot move, tries the next candidate.
  Plan plan(const Ledger& ledger, const placement::Workload& workload, const Constraints& constraints) const;
  Plan plan(const Ledger& ledger, const placement::Workload& workload) const {
    return plan(ledger, workload, Constraints{});
  }

  /// Returns the inputs of its present plans.
  const Deps& deps() const { return deps_; }
  const std::shared_ptr<const topology::Topology>& topology() const { return deps_.topology; }
  const std::vector<placement::Candidate>& candidates() const { return deps_.candidates; }
  const placement::PlacementRules& rules() const { return deps_.rules; }
  std::optional<placement::KnownAnnotations> known_annotations() const {
    return deps_.annotations ? std::optional(deps_.annotations()) : std::nullopt;
  }

  /// Returns the settings of a new container; see placement::read_settings().
  Result<placement::Settings> read_settings(const placement::Workload& workload) const;
  /// Returns the annotations to be kept; see placement::without_unread_values().
  SharedStringMap annotations_to_keep(const SharedStringMap& annotations) const {
    return deps_.annotations ? placement::without_unread_values(annotations, deps_.annotations()) : annotations;
  }

  /// Places on another machine from now on, or on the same with other CPUs. Returns the candidates until now.
  std::vector<placement::Candidate> set_machine(std::shared_ptr<const topology::Topology> topology,
                                                std::vector<placement::Candidate> candidates) {
    deps_.topology = std::move(topology);
    return std::exchange(deps_.candidates, std::move(candidates));
  }

  /// Returns a copy for other threads, which plans as if no time passed.
  Placer with_clock_stopped() const {
    Deps deps = deps_;
    if (deps_.wall) deps.wall = [now = deps_.wall()] { return now; };
    return Placer(std::move(deps));
  }

  /// Returns true if a container found on `cpus` would have got as many CPUs exclusively, and may keep these.
  bool may_keep_exclusively(const Ledger& ledger, const placement::Workload& workload, const CpuSet& cpus) const;

 private:
  std::uint32_t largest_exclusive_cpus(const Ledger& ledger) const;
  placement::PolicyRequest request(const Ledger& ledger, const placement::Workload& workload,
                                   const Constraints& constraints) const;
  Result<std::vector<Move>> moves_for(const Ledger& ledger, const placement::PolicyRequest& request,
                                      const placement::Decision& decision) const;
  void add_wished_moves(const Ledger& ledger, const placement::PolicyRequest& request, Plan& plan) const;
  /// Returns the move of a container that policies want to be placed anew; nothing if it stays where it is.
  std::optional<Move> plan_wished_move(const Ledger& after, const Allocation& allocation,
                                       const placement::WishedReplacement& wish,
                                       const placement::PolicyRequest& newcomer) const;
  std::optional<Move> plan_move(const Ledger& after, const Allocation& allocation,
                                const placement::PolicyRequest& beneficiary, ShortLists& short_lists) const;
  /// Decides on a container that gets no CPUs of its own, among a short list where there is one. Where there are too
  /// many sets of nodes to ask about each, the policies are asked about single nodes first.
  placement::Decision decide_shared(const Ledger& ledger, const placement::Workload& workload, Constraints constraints,
                                    ShortLists& short_lists) const;

  Deps deps_;
};

/// Returns true if the nodes that a new container is given count for the other containers of its pod: if it is the
/// first, and was placed for the whole pod, whose resources must be known for that.
bool keeps_pod_together(const placement::Workload& workload, const placement::Decision& decision);

/// For a plan's copy of the ledger: the container where it was decided to be.
Allocation assumed_allocation(const placement::Workload& workload, const placement::Decision& decision);

/// Returns what a container has.
placement::Had had_of(const Allocation& allocation);

/// The rest of the cores of some CPUs.
CpuSet core_siblings_of(const topology::Topology& topology, const CpuSet& cpus);

/// Returns why a container is foreign. `obstacle`: what keeps its handler's containers from being placed.
std::string reason_not_placed(const placement::Workload& workload, const std::string& obstacle);
/// Describes a foreign container; said once of each pod.
std::string describe_foreign(const placement::Workload& workload, const std::string& obstacle);

/// Returns the place that it goes back to if it is placed anew because of others.
Preferred preferred_of(const Allocation& before, const topology::Topology& topology);

/// Returns the nodes where it was placed, also if all CPUs of a node are gone.
NodeSet nodes_of(const Allocation& allocation, const topology::Topology& topology);

/// For the reason in the audit: which CPUs are no longer withheld for a container, and which newly are. May be empty.
std::string describe_withheld_change(const placement::Placement& before, const placement::Placement& now);

/// Keeps the memory nodes of a container that is placed anew: see placement::retained_memory_nodes().
void retain_memory_nodes(const Allocation& before, const placement::PlacementRules& rules,
                         placement::Placement& placement);

}  // namespace topolet::engine
