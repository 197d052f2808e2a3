// Verdicts on the candidates of one request.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "plugins/numa/answers.hpp"
#include "plugins/numa/candidate_resources.hpp"
#include "plugins/numa/demand.hpp"
#include "plugins/numa/options.hpp"

namespace topolet::numa {

/// Compares the candidates of a request with each other. Borrows them, the demand and the options. `has_room`: see
/// leaves_room(); strategy roomy goes by it.
class CandidateScorer {
 public:
  CandidateScorer(const topolet_topology& topology, const std::vector<CandidateResources>& candidates,
                  const Demand& demand, const PolicyOptions& options, bool has_room = false);

  Verdict verdict_on(const CandidateResources& candidate) const;

 private:
  using Width = std::pair<std::size_t, std::size_t>;       ///< packages, if they count (align-by-socket), and nodes
  using Nearness = std::pair<std::size_t, std::uint32_t>;  ///< nodes without memory of their own, and distance
  using Place = std::pair<Width, Nearness>;
  /// Caches, crowded CPUs, and those beside strangers.
  using Division = std::tuple<std::size_t, std::size_t, std::size_t>;
  /// The strategy's ranking, lowest first, of which the first number counts most: those that leave the least behind of
  /// what the container has. Then, packed: those that leave the least of a shared cache over, then those of the fullest
  /// nodes. Roomy while there is room: those that are not busy, then those with the fewest siblings, then those of the
  /// emptiest nodes, then those that leave the least of a cache over.
  using Preference = std::array<std::int64_t, 5>;
  /// How far the pod's containers are, and what is missing for those that are still to come, the worse the more:
  /// memory; CPUs that nobody else has requested, which counts for more; isolated CPUs, for who has these first; CPUs.
  using PodFit = std::pair<std::uint32_t, int>;
  using PlaceOfPod = std::pair<Place, PodFit>;

  /// Resources that a candidate should have beyond the required ones. Never more than some candidate has: a shortage
  /// that is the same everywhere is not a reason to prefer one candidate to another.
  struct Target {
    std::size_t exclusive_cpus = 0;
    std::int64_t shared_milli = 0;
    std::int64_t memory_bytes = 0;
    bool huge_pages = false;
    bool whole_cores = false;
  };

  void look_into_zone(const std::vector<CandidateResources>& candidates);
  void set_target(const std::vector<CandidateResources>& candidates);
  bool has_cpus_if_empty(const CandidateResources& candidate) const;
  bool fits_if_empty(const CandidateResources& candidate) const;
  /// Returns true if the container can run there at all.
  bool is_feasible(const CandidateResources& candidate) const;
  bool is_aligned(const CandidateResources& candidate) const;
  /// How far a feasible candidate misses the target, in thousandths; 0 if it does not.
  std::int64_t shortage(const CandidateResources& candidate) const;
  /// Returns the CPUs, or the memory, that nobody has requested: the packed and spread strategies compare them.
  std::int64_t uncommitted(const CandidateResources& candidate) const;
  /// Exclusive CPUs here would leave the shared containers with fewer CPUs than they request.
  bool crowds_out_shared(const CandidateResources& candidate) const;
  /// Returns the distance, or, if the machine reports none, the number of packages, since nodes of one package are
  /// nearer.
  std::uint32_t distance_of(const CandidateResources& candidate) const;
  Nearness nearness_of(const CandidateResources& candidate) const {
    return {candidate.nodes_without_memory, distance_of(candidate)};
  }
  Width width_of(const CandidateResources& candidate) const;
  Place place_of(const CandidateResources& candidate) const { return {width_of(candidate), nearness_of(candidate)}; }
  PlaceOfPod place_of_pod(const CandidateResources& candidate) const {
    return {place_of(candidate), pod_fit(candidate)};
  }
  PodFit pod_fit(const CandidateResources& candidate) const;
  std::int64_t milli_on_isolated_cpus(const CandidateResources& candidate) const;
  int cpus_missing_for_pod(const CandidateResources& candidate) const;
  static Division division_of(const CandidateResources& candidate) {
    return {candidate.caches.caches, candidate.crowded_cpus, candidate.beside_strangers};
  }
  Strategy strategy() const;
  Preference preference(const CandidateResources& candidate) const;

  std::int32_t node_penalty(const CandidateResources& candidate) const;
  std::int32_t pod_penalty(const CandidateResources& candidate) const;
  std::int32_t division_penalty(const CandidateResources& candidate) const;
  std::int32_t strategy_penalty(const CandidateResources& candidate) const;
  /// The score of a candidate that lacks nothing, with regard to the zone.
  std::int32_t score_by_zone(const CandidateResources& candidate, std::int32_t score) const;
  Verdict score(const CandidateResources& candidate) const;

  bool is_named(const CandidateResources& candidate) const;
  std::string rejection(const CandidateResources& candidate) const;
  std::string cpu_rejection(const CandidateResources& candidate) const;
  std::string memory_rejection(const CandidateResources& candidate) const;
  std::string fit_text(const CandidateResources& candidate) const;
  std::string shortage_text(const CandidateResources& candidate) const;
  std::string strategy_text(const CandidateResources& candidate) const;
  std::string pod_text(const CandidateResources& candidate) const;
  std::string cache_text(const CandidateResources& candidate) const;
  std::string nearness_text(const CandidateResources& candidate) const;
  std::string division_text(const CandidateResources& candidate) const;

  const Demand& demand_;
  const PolicyOptions& options_;
  const bool has_room_;
  bool pod_counts_ = false;  ///< some places are better for the pod than others that are as good
  bool by_package_ = false;  ///< nodes of one package are as aligned as one node
  bool distances_known_ = false;
  bool any_shortage_ = false;
  bool any_fit_ = false;            ///< some candidate may be used and lacks nothing; known where there is a zone
  bool zone_counts_ = false;        ///< no candidate outside the zone is as good
  bool widened_by_memory_ = false;  ///< the CPUs alone would have fitted into fewer nodes
  Target target_;
  std::size_t most_nodes_ = 0;              ///< of any candidate
  std::size_t fewest_nodes_ = SIZE_MAX;     ///< that could hold the demand on an empty machine
  std::size_t fewest_packages_ = SIZE_MAX;  ///< that have so many nodes
  // The values that candidates have which compete with each other, the best first.
  std::map<Width, std::set<Nearness>> nearnesses_;
  std::map<Place, std::set<PodFit>> pod_fits_;
  std::map<PlaceOfPod, std::set<Division>> divisions_;
  std::map<std::pair<PlaceOfPod, Division>, std::set<Preference>> preferences_;
};

}  // namespace topolet::numa
