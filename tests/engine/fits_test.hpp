// A machine whose free capacity is computed, with a policy that is the test's.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/planning/fits.hpp"
#include "core/engine/planning/placer.hpp"
#include "core/placement/candidates.hpp"
#include "core/placement/decide.hpp"
#include "core/placement/policy.hpp"
#include "core/placement/zone.hpp"
#include "tests/engine/ledgers.hpp"

namespace topolet::engine {

/// Grants multiples of `step` CPUs only, what `may_have` says, and none on `closed_node`; the zone is best.
class StepPolicy final : public placement::Policy {
 public:
  const std::string& name() const override { return name_; }
  Result<std::vector<placement::Verdict>> score(const placement::PolicyRequest& request) override {
    if (is_silent || (is_silent_of_shared && !request.exclusive)) return Error{Code::kDeadlineExceeded, "late"};
    std::vector<placement::Verdict> verdicts(request.candidates.size());
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      const bool is_closed = closed_node && request.candidates[i].nodes.contains(*closed_node);
      const std::uint32_t asked = request.exclusive_cpus;
      const bool is_odd = request.exclusive && (asked % step != 0 || (may_have && !may_have(asked)));
      if (is_closed || is_odd) verdicts[i] = {placement::Verdict::Kind::kReject, 0, "not here"};
      const auto zone = zone_of(request.workload);
      if (zone && request.candidates[i].nodes == *zone) verdicts[i] = {placement::Verdict::Kind::kScore, 100, "zone"};
    }
    return verdicts;
  }
  Result<placement::Pick> pick(const placement::PolicyRequest&, std::size_t, const CpuSet&, std::size_t) override {
    return placement::Pick();
  }

  std::uint32_t step = 1;
  std::optional<std::uint32_t> closed_node;
  std::function<bool(std::uint32_t cpus)> may_have;
  bool is_silent = false;
  bool is_silent_of_shared = false;

 private:
  std::string name_ = "step";
};

class FitsTest : public ::testing::Test {
 protected:
  void use(const std::string& synthetic) { topology_ = testing::machine(synthetic); }
  Placer placer() const {
    return Placer({topology_, placement::make_candidates(*topology_, topology_->allowed), rules_,
                   [policy = policy_, asked = asked_](const auto& request, const placement::PlacementRules& rules) {
                     ++*asked;
                     return decide(*request, rules, {{policy, 1, true}});
                   }});
  }
  Ledger ledger(std::vector<Allocation> allocations = {}, std::vector<Pod> pods = {}) const {
    return ledger_of(std::move(allocations), std::move(pods), {topology_->allowed, reserved_, isolated_});
  }
  /// As if hwloc had found it like this.
  void change_machine(const std::function<void(topology::Topology&)>& change) {
    topology::Topology changed = *topology_;
    change(changed);
    topology_ = std::make_shared<const topology::Topology>(std::move(changed));
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> fits(const Ledger& ledger,
                                                            const std::vector<PendingContainer>& pending = {}) {
    last_ = compute_fits(placer(), ledger, pending);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
    for (const NodeFit& node : last_.nodes) found.emplace_back(node.node, node.exclusive_cpus);
    return found;
  }

  std::shared_ptr<const topology::Topology> topology_ = testing::machine("node:2 core:4 pu:2");
  CpuSet reserved_;
  CpuSet isolated_;
  placement::PlacementRules rules_;
  std::shared_ptr<StepPolicy> policy_ = std::make_shared<StepPolicy>();
  std::shared_ptr<int> asked_ = std::make_shared<int>(0);
  Fits last_;
};

}  // namespace topolet::engine
