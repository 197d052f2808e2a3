#include "core/placement/make_request.hpp"

#include <utility>

#include "core/placement/exclusive_claim.hpp"
#include "core/placement/settings.hpp"

namespace topolet::placement {

PolicyRequest make_request(std::shared_ptr<const topology::Topology> topology, LedgerSnapshot ledger, Workload workload,
                           std::vector<Candidate> candidates, const PlacementRules& rules,
                           bool kubelet_hands_out_cpusets) {
  PolicyRequest request;
  request.topology = std::move(topology);
  request.ledger = std::move(ledger);
  request.candidates = std::move(candidates);
  request.kubelet_hands_out_cpusets = kubelet_hands_out_cpusets;
  const ExclusiveClaim claim = exclusive_claim(workload, rules);
  request.exclusive = claim.cpus > 0;
  request.exclusive_cpus = claim.cpus;
  request.why_not_exclusive = claim.why_not;
  if (kubelet_hands_out_cpusets || !workload.kubelet_cpus.empty()) request.share(NotExclusive::kKubeletHandsOutCpus);
  request.shared_mode = shared_mode(workload, rules);
  if (request.exclusive) request.from = cpu_source(workload, rules);
  request.min_shared_cpus = rules.min_shared_cpus;
  request.occasion = workload.key.attempt > 0 ? Occasion::kRestart : Occasion::kCreate;
  request.whole_pool = cpus_annotation(workload) == CpusAnnotation::kNone;
  request.workload = std::move(workload);
  return request;
}

}  // namespace topolet::placement
