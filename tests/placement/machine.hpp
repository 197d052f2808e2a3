// Machines and workloads for placement tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/engine/state/ledger.hpp"
#include "core/placement/candidates.hpp"
#include "core/placement/decide.hpp"
#include "core/placement/make_request.hpp"
#include "core/topology/discover.hpp"

namespace topolet::testing {

inline std::shared_ptr<const topology::Topology> machine(const std::string& synthetic) {
  auto topology = topology::discover({.synthetic = synthetic});
  EXPECT_TRUE(topology.has_value()) << topology.error().message;
  return *topology;
}

/// A Guaranteed container of whole CPUs.
inline placement::Workload guaranteed(const std::string& name, std::int64_t cpus) {
  placement::Workload workload;
  workload.key = {"uid-" + name, name, 0, "sandbox-" + name};
  workload.pod_name = name;
  workload.pod_namespace = "default";
  workload.qos = placement::Qos::kGuaranteed;
  workload.demand.cpu_request_milli = cpus * 1000;
  workload.demand.cpu_limit_milli = cpus * 1000;
  return workload;
}

inline placement::Workload besteffort(const std::string& name) {
  placement::Workload workload = guaranteed(name, 0);
  workload.qos = placement::Qos::kBestEffort;
  workload.demand = {};
  return workload;
}

/// Ledger, rules and machine of one test.
struct TestNode {
  explicit TestNode(const std::string& synthetic, const std::string& reserved = "")
      : topology(machine(synthetic)),
        candidates(placement::make_candidates(*topology, topology->allowed)),
        ledger({topology->allowed, *CpuSet::parse(reserved), {}}, 0) {}

  placement::PolicyRequest request(const placement::Workload& workload) const {
    return make_request(topology, ledger.snapshot(&workload.key), workload, candidates, rules,
                        ledger.kubelet_hands_out_cpusets());
  }
  placement::Decision ask(const placement::Workload& workload) const { return decide(request(workload), rules, votes); }
  /// Decides and books.
  placement::Decision run(const placement::Workload& workload) {
    placement::Decision decision = ask(workload);
    if (decision.denied) return decision;
    engine::Allocation allocation;
    allocation.workload = workload;
    allocation.placement = decision.placement;
    allocation.within = decision.within;
    allocation.conflict = decision.conflict;
    ledger.assume(allocation);
    return decision;
  }
  CpuSet cpus_of(const placement::Workload& workload) const { return ledger.find(workload.key)->placement.cpus; }

  std::shared_ptr<const topology::Topology> topology;
  std::vector<placement::Candidate> candidates;
  placement::PlacementRules rules;
  std::vector<placement::Vote> votes;
  engine::Ledger ledger;
};

}  // namespace topolet::testing
