// Containers that ask for shared CPUs, and a policy that spreads them.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/state/shared_load.hpp"
#include "tests/engine/ledgers.hpp"

namespace topolet::engine {

/// Burstable, on those of `within` that are in the pool.
inline Allocation asking(const std::string& name, std::int64_t milli, const CpuSet& within = CpuSet::range(0, 7),
                         Phase phase = Phase::kRunning) {
  Allocation allocation = shared(name, phase, within);
  allocation.workload.qos = placement::Qos::kBurstable;
  allocation.workload.demand.cpu_request_milli = milli;
  return allocation;
}

/// Scores a node the higher, the less would be asked of each of its CPUs, and no set of several nodes.
class LeastAskedPolicy : public placement::Policy {
 public:
  const std::string& name() const override { return name_; }
  Result<std::vector<placement::Verdict>> score(const placement::PolicyRequest& request) override {
    ++asked_;
    SharedLoadSum sum;
    for (const placement::LedgerEntry& entry : request.ledger.entries) {
      if (follows_pool(entry.placement.mode)) sum.add(entry.placement.cpus, entry.demand.cpu_request_milli);
    }
    const SharedLoad load = sum.load();
    const std::int64_t milli = request.workload.demand.cpu_request_milli;
    std::vector<placement::Verdict> verdicts(request.candidates.size());
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      if (request.candidates[i].nodes.size() != 1) continue;
      const CpuSet cpus = request.candidates[i].cpus & request.shared_cpus();
      const auto tenths =
          static_cast<std::int32_t>((load.mean(cpus) + SharedLoad::part(cpus, milli)) / (SharedLoad::kWholeCpu / 10));
      verdicts[i] = {placement::Verdict::Kind::kScore, std::max(-100, 100 - tenths), "least is asked"};
    }
    return verdicts;
  }
  Result<placement::Pick> pick(const placement::PolicyRequest& /*request*/, std::size_t /*candidate*/,
                               const CpuSet& usable, std::size_t /*count*/) override {
    placement::Pick pick;
    pick.narrow = usable;
    return pick;
  }

  /// Returns the number of times that it was asked since the last call.
  int take_asked() { return std::exchange(asked_, 0); }

 private:
  std::string name_ = "least";
  int asked_ = 0;
};

/// Scores as it is told, by the nodes of a candidate.
class FixedPolicy : public LeastAskedPolicy {
 public:
  explicit FixedPolicy(std::vector<std::pair<NodeSet, std::int32_t>> scores) : scores_(std::move(scores)) {}
  const std::string& name() const override { return name_; }
  Result<std::vector<placement::Verdict>> score(const placement::PolicyRequest& request) override {
    std::vector<placement::Verdict> verdicts(request.candidates.size());
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      for (const auto& [nodes, score] : scores_) {
        if (request.candidates[i].nodes == nodes) verdicts[i] = {placement::Verdict::Kind::kScore, score, "told to"};
      }
    }
    return verdicts;
  }

 private:
  std::string name_ = "fixed";
  std::vector<std::pair<NodeSet, std::int32_t>> scores_;
};

}  // namespace topolet::engine
