// Puts the parts of a decision together: the machine, the ledger as it is, the rules and the policies.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/placement/decide.hpp"
#include "core/placement/ledger.hpp"

namespace topolet {

/// A shared container that has to make room, and its new place.
struct Move {
  Workload workload;
  Decision decision;
};

/// A decision with the moves that go before it.
struct Plan {
  Decision decision;
  std::vector<Move> moves;
  std::optional<Home> home = {};  ///< where it still goes back to, as in Holding
  CpuSet came = {};               ///< as in Holding

  /// CPUs of its own were asked for and not there.
  bool lacks_cpus() const { return decision.denied || decision.shared_for_lack; }
};

/// One thread.
class Placer {
 public:
  /// Runs decide() with the policies; see PolicyThread.
  using Decide = std::function<Decision(const std::shared_ptr<const PolicyRequest>&)>;

  struct Parts {
    std::shared_ptr<const Topology> topology;
    std::vector<Candidate> candidates;
    DecideRules rules;
    Decide decide;
  };
  explicit Placer(Parts parts) : parts_(std::move(parts)) {}

  /// How a decision differs from that on a container which is new.
  struct Terms {
    std::optional<NodeSet> within;     ///< only candidates inside these nodes
    std::optional<NodeSet> nodes;      ///< only the candidate of just these nodes
    bool only_shared = false;          ///< no CPUs of its own, whatever it asks for
    std::uint32_t exclusive_cpus = 0;  ///< how many of its own, if any; 0: as many as it asks for
    Placement keep = {};     ///< exclusive CPUs that it has or had. Withheld are what was, or what is beside them
    bool must_keep = false;  ///< as in PolicyRequest
  };

  /// Decides as if the workload, and a failed attempt of it, held nothing yet. Whom the placement would leave without
  /// CPUs is placed anew; where that cannot be, the next candidate is tried.
  Plan plan(const Ledger& ledger, const Workload& workload, const Terms& terms) const;
  Plan plan(const Ledger& ledger, const Workload& workload) const { return plan(ledger, workload, Terms{}); }

  const std::shared_ptr<const Topology>& topology() const { return parts_.topology; }
  const std::vector<Candidate>& candidates() const { return parts_.candidates; }
  const DecideRules& rules() const { return parts_.rules; }

  /// Places on another machine from now on, or on the same with other CPUs.
  void set_machine(std::shared_ptr<const Topology> topology, std::vector<Candidate> candidates) {
    parts_.topology = std::move(topology);
    parts_.candidates = std::move(candidates);
  }

  /// Whether a container found on `cpus` would have got just so many for itself, and may keep them.
  bool may_keep(const Ledger& ledger, const Workload& workload, const CpuSet& cpus) const;

 private:
  PolicyRequest request(const Ledger& ledger, const Workload& workload, const Terms& terms) const;
  Decision decide(PolicyRequest request) const {
    return parts_.decide(std::make_shared<const PolicyRequest>(std::move(request)));
  }
  Result<std::vector<Move>> moves_for(const Ledger& ledger, const Workload& workload, const Decision& decision) const;
  std::optional<Move> move(const Ledger& after, const Holding& holding, const Workload& for_whom) const;

  Parts parts_;
};

/// The rest of the cores of some CPUs.
CpuSet beside(const Topology& topology, const CpuSet& cpus);

/// Where it goes back to if it is placed anew because of others.
Home home_of(const Holding& before, const Topology& topology);

/// For an audit's reason: what is withheld for a container no longer, or newly; empty if nothing is.
std::string told_of_withheld(const Placement& before, const Placement& now);

/// On a running container memory nodes only grow, as the kernel moves the pages while the write blocks; unless the
/// rules let it.
void keep_memory(const Holding& before, const DecideRules& rules, Placement& placement);

}  // namespace topolet
