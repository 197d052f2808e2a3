// What the tests of the plans have in common by which containers move that could stay.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/planning/better_place.hpp"
#include "core/placement/decide.hpp"
#include "tests/engine/crowds.hpp"
#include "tests/support/dice.hpp"

namespace topolet::engine {

/// Two nodes of four CPUs.
class BetterPlaceTest : public ::testing::Test {
 protected:
  using Machine = std::shared_ptr<const topology::Topology>;

  /// Each decision is shown to `change` before the planner sees it.
  static Placer placer_with(Machine machine, std::vector<placement::Vote> votes, placement::PlacementRules rules = {},
                            std::function<void(placement::Decision&)> change = {}) {
    std::vector<placement::Candidate> candidates = placement::make_candidates(*machine, machine->allowed);
    return Placer({std::move(machine), std::move(candidates), std::move(rules),
                   [votes = std::move(votes), change = std::move(change)](const auto& request,
                                                                          const placement::PlacementRules& known) {
                     placement::Decision decision = decide(*request, known, votes);
                     if (change) change(decision);
                     return decision;
                   }});
  }
  static std::vector<std::string> names(const std::vector<placement::ContainerKey>& keys) {
    std::vector<std::string> names;
    for (const placement::ContainerKey& key : keys) names.push_back(key.name);
    return names;
  }
  static const Allocation& of(const Ledger& ledger, const std::string& name) {
    return *ledger.find(besteffort(name).key);
  }

  /// Changes of a container that keep anybody from moving it now.
  static std::vector<std::function<void(Allocation&)>> obstacles() {
    return {
        [](Allocation& a) {
          a.workload.settings = std::map<std::string, std::string>{{"move", "never"}};
        },
        [](Allocation& a) { a.workload.kubelet_cpus = CpuSet::range(0, 3); },
        [](Allocation& a) { a.conflict = true; },
        [](Allocation& a) { a.stopping = true; },
        [](Allocation& a) { a.vacating = {5}; },
        [](Allocation& a) { a.squeeze = Squeeze::kPlaced; },
        [](Allocation& a) { a.phase = Phase::kStarting; },
        [](Allocation& a) { a.phase = Phase::kInDoubt; },
        [](Allocation& a) {
          a.stuck = Stuck{{3}, "why"};
        },
        [](Allocation& a) { a.overruled = Overruled{}; },
    };
  }

  /// A policy may score a place in any way.
  static std::shared_ptr<FixedPolicy> whimsical(testing::Dice& dice,
                                                const std::vector<placement::Candidate>& candidates,
                                                std::uint64_t most) {
    std::vector<std::pair<NodeSet, std::int32_t>> scores;
    for (const placement::Candidate& candidate : candidates)
      scores.emplace_back(candidate.nodes, static_cast<std::int32_t>(dice.below(most)));
    return std::make_shared<FixedPolicy>(std::move(scores));
  }

  /// Plans the next move for the ledger of now; nothing if nobody is to move.
  using NextMove = std::function<std::optional<std::pair<Allocation, Plan>>()>;
  /// Carries out one move after the other until there is none, and calls `moved` after each. Returns how many there
  /// were, which are 100 at most.
  static std::size_t move_all(Ledger& ledger, const NextMove& next,
                              const std::function<void(const Allocation& before, const Plan& plan)>& moved) {
    std::size_t count = 0;
    while (const auto move = next()) {
      if (++count > 100) {
        ADD_FAILURE() << "the moves do not end";
        break;
      }
      const auto& [before, plan] = *move;
      Allocation after = before;
      after.placement = plan.decision.placement;
      after.within = plan.decision.within;
      after.nodes = plan.decision.nodes;
      ledger.assume(std::move(after));
      moved(before, plan);
    }
    return count;
  }

  const Machine topology_ = testing::machine("node:2 core:4 pu:1");
};

}  // namespace topolet::engine
