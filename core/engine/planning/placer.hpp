// Puts the parts of a decision together: the machine, the ledger as it is, the rules and the policies.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/state/ledger.hpp"
#include "core/engine/state/plan.hpp"
#include "core/placement/decide.hpp"

namespace topolet::engine {

/// One thread.
class Placer {
 public:
  /// Runs decide() with the policies; see PolicyThread.
  using Decide = std::function<Decision(const std::shared_ptr<const PolicyRequest>&, const DecideRules&)>;

  struct Deps {
    std::shared_ptr<const Topology> topology;
    std::vector<Candidate> candidates;
    DecideRules rules;
    Decide decide;
  };
  explicit Placer(Deps deps) : deps_(std::move(deps)) {}

  /// How a decision differs from that on a container which is new.
  struct Terms {
    std::optional<NodeSet> within;     ///< only candidates inside these nodes
    std::optional<NodeSet> nodes;      ///< only the candidate of just these nodes
    bool only_shared = false;          ///< no CPUs of its own, whatever it asks for
    std::uint32_t exclusive_cpus = 0;  ///< how many of its own, if any; 0: as many as it asks for
    /// Its exclusive CPUs of now or before, to be had again; with them, `keep.withheld` and the idle threads of their
    /// cores.
    Placement keep = {};
    bool must_keep = false;  ///< as in PolicyRequest
  };

  /// Decides as if the workload, and a failed attempt of it, held nothing yet. Whom the placement would leave without
  /// CPUs is placed anew; where that cannot be, the next candidate is tried.
  Plan plan(const Ledger& ledger, const Workload& workload, const Terms& terms) const;
  Plan plan(const Ledger& ledger, const Workload& workload) const { return plan(ledger, workload, Terms{}); }

  const std::shared_ptr<const Topology>& topology() const { return deps_.topology; }
  const std::vector<Candidate>& candidates() const { return deps_.candidates; }
  const DecideRules& rules() const { return deps_.rules; }

  /// Places on another machine from now on, or on the same with other CPUs.
  void set_machine(std::shared_ptr<const Topology> topology, std::vector<Candidate> candidates) {
    deps_.topology = std::move(topology);
    deps_.candidates = std::move(candidates);
  }

  /// Whether a container found on `cpus` would have got just so many for itself, and may keep them.
  bool may_keep(const Ledger& ledger, const Workload& workload, const CpuSet& cpus) const;

 private:
  PolicyRequest request(const Ledger& ledger, const Workload& workload, const Terms& terms) const;
  Result<std::vector<Move>> moves_for(const Ledger& ledger, const Workload& workload, const Decision& decision) const;
  std::optional<Move> move(const Ledger& after, const Allocation& allocation, const Workload& for_whom) const;

  Deps deps_;
};

/// The rest of the cores of some CPUs.
CpuSet beside(const Topology& topology, const CpuSet& cpus);

/// Where it goes back to if it is placed anew because of others.
Preferred preferred_of(const Allocation& before, const Topology& topology);

/// For an audit's reason: what is withheld for a container no longer, or newly; empty if nothing is.
std::string told_of_withheld(const Placement& before, const Placement& now);

/// On a running container memory nodes only grow, as the kernel moves the pages while the write blocks; unless the
/// rules let it.
void keep_memory(const Allocation& before, const DecideRules& rules, Placement& placement);

}  // namespace topolet::engine
