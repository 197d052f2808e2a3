// Puts the parts of a decision together: the machine, the ledger as it is, the rules and the policies.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/placement/decide.hpp"
#include "core/placement/ledger.hpp"

namespace topolet {

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

  /// Decides as if the workload held nothing yet.
  Decision place(const Ledger& ledger, const Workload& workload) const {
    return parts_.decide(std::make_shared<const PolicyRequest>(request(ledger, workload)));
  }

  /// The same, but only on candidates inside `nodes`.
  Decision place_within(const Ledger& ledger, const Workload& workload, const NodeSet& nodes) const {
    PolicyRequest within = request(ledger, workload);
    std::erase_if(within.candidates, [&](const Candidate& candidate) { return !candidate.nodes.is_subset_of(nodes); });
    return parts_.decide(std::make_shared<const PolicyRequest>(std::move(within)));
  }

  const std::shared_ptr<const Topology>& topology() const { return parts_.topology; }

  /// Places on another machine from now on, or on the same with other CPUs.
  void set_machine(std::shared_ptr<const Topology> topology, std::vector<Candidate> candidates) {
    parts_.topology = std::move(topology);
    parts_.candidates = std::move(candidates);
  }

  /// Whether a container found on `cpus` would have got just so many for itself, and may keep them.
  bool may_keep(const Ledger& ledger, const Workload& workload, const CpuSet& cpus) const {
    const PolicyRequest asked = request(ledger, workload);
    return asked.exclusive && asked.exclusive_cpus == cpus.size() &&
           validate({Mode::kExclusive, cpus, {}, {}}, asked.ledger, parts_.rules).ok();
  }

  /// For a container that is there already: it gets CPUs of its own only if `workload` is bound to them.
  Decision adopt(const Ledger& ledger, const Workload& workload) const {
    PolicyRequest shared = request(ledger, workload);
    shared.exclusive = false;
    shared.exclusive_cpus = 0;
    return parts_.decide(std::make_shared<const PolicyRequest>(std::move(shared)));
  }

 private:
  PolicyRequest request(const Ledger& ledger, const Workload& workload) const {
    return make_request(parts_.topology, ledger.view(&workload.key), workload, parts_.candidates, parts_.rules,
                        ledger.kubelet_hands_out_cpusets());
  }

  Parts parts_;
};

}  // namespace topolet
