#include "core/engine/planning/crowd_planner.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <set>

#include "tests/engine/better_place_test.hpp"

namespace topolet::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const CpuSet kNode0 = CpuSet::range(0, 3);
const CpuSet kNode1 = CpuSet::range(4, 7);

class CrowdPlannerTest : public BetterPlaceTest {
 protected:
  std::vector<std::string> crowded(const Ledger& ledger) const {
    return names(CrowdPlanner(ledger, placer_).crowded(shared_load_of(ledger)));
  }
  std::optional<Plan> relief(const Ledger& ledger, const std::string& name) const {
    return CrowdPlanner(ledger, placer_).plan_relief(of(ledger, name)).plan;
  }
  /// Node 0 has two CPUs to share, which these containers have; the four of
  /// node 1 idle.
  static Ledger on_two_cpus(std::vector<Allocation> allocations) {
    allocations.push_back(exclusive("x", {2, 3}));
    return ledger_of(std::move(allocations));
  }

  const std::shared_ptr<LeastAskedPolicy> least_ = std::make_shared<LeastAskedPolicy>();
  const Placer placer_ = placer_with(topology_, {{.policy = least_}});
};

TEST_F(CrowdPlannerTest, FindsWhoSharesTooFewCpus) {
  EXPECT_THAT(crowded(on_two_cpus({asking("a", 2000, kNode0), asking("b", 2000, kNode0), shared("c")})),
              ElementsAre("a", "b"));
  EXPECT_THAT(crowded(on_two_cpus({asking("a", 1000, kNode0), asking("b", 1000, kNode0)})), IsEmpty());
  EXPECT_EQ(least_->take_asked(), 0);
}

TEST_F(CrowdPlannerTest, CountsWhoeverSharesTheCpus) {
  const Allocation on_all_six = asking("c", 3000);
  EXPECT_THAT(crowded(on_two_cpus({asking("a", 1500, kNode0)})), IsEmpty());
  EXPECT_THAT(crowded(on_two_cpus({asking("a", 1500, kNode0), on_all_six})), ElementsAre("a"));
}

TEST_F(CrowdPlannerTest, LeavesOutWhoHasNowhereBetterToGo) {
  EXPECT_THAT(crowded(on_two_cpus({asking("a", 2000, kNode0), asking("b", 2000, kNode0), asking("c", 7000, kNode1)})),
              IsEmpty());
  EXPECT_THAT(crowded(ledger_of({asking("a", 5000), asking("b", 5000)})), IsEmpty());
}

TEST_F(CrowdPlannerTest, TakesFirstWhoseMoveRelievesMost) {
  EXPECT_THAT(crowded(on_two_cpus({asking("a", 1000, kNode0), asking("b", 3000, kNode0), asking("c", 1000, kNode0)})),
              ElementsAre("b", "a", "c"));
  Allocation bound = asking("b", 3000, kNode0);
  bound.placement.mems = NodeSet{0};
  EXPECT_THAT(crowded(on_two_cpus({asking("a", 1000, kNode0), bound, asking("c", 1000, kNode0)})),
              ElementsAre("a", "c", "b"))
      << "its memory stays";
  Allocation device = asking("b", 3000, kNode0);
  device.workload.devices = {"/dev/x"};
  EXPECT_THAT(crowded(on_two_cpus({asking("a", 1000, kNode0), device, asking("c", 1000, kNode0)})),
              ElementsAre("a", "c", "b"));
}

TEST_F(CrowdPlannerTest, LeavesOutWhoMayNotBeMovedNow) {
  std::vector<std::function<void(Allocation&)>> changes = obstacles();
  changes.emplace_back([](Allocation& a) {
    a.workload.settings = std::map<std::string, std::string>{{"cpus", "none"}};
  });
  changes.emplace_back([](Allocation& a) { a.workload.demand.cpu_request_milli = 0; });
  EXPECT_THAT(crowded(on_two_cpus({asking("a", 3000, kNode0)})), ElementsAre("a"));
  for (std::size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    Allocation allocation = asking("a", 3000, kNode0);
    changes[i](allocation);
    const Ledger ledger = on_two_cpus({allocation});
    EXPECT_THAT(crowded(ledger), IsEmpty());
    EXPECT_FALSE(relief(ledger, "a").has_value());
  }
}

TEST_F(CrowdPlannerTest, PlansThePlaceThatThePoliciesGive) {
  const Ledger ledger = on_two_cpus(
      {asking("a", 2000, kNode0), asking("b", 2000, kNode0), asking("c", 2000, kNode0), asking("d", 500, kNode1)});
  const std::optional<Plan> plan = relief(ledger, "a");
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->decision.placement.cpus, kNode1);
  EXPECT_EQ(plan->decision.within, kNode1);
  EXPECT_EQ(plan->decision.reason_code, "crowded");
  EXPECT_EQ(plan->audit_event, AuditEvent::kReplaced);
  EXPECT_FALSE(plan->preferred.has_value());
  EXPECT_THAT(plan->decision.reason, StartsWith("its CPUs 0-1 are shared by containers that request 6 "
                                                "CPUs; it moves to node 1, where 4 CPUs "
                                                "have 0.5 requested; least: "));
}

TEST_F(CrowdPlannerTest, PlansNothingThatGainsTooLittle) {
  // From 2.5 on each CPU to (3 + 2 · 4.5) / 4 and less.
  EXPECT_FALSE(relief(on_two_cpus({asking("a", 3000, kNode0), asking("d", 4000, kNode1)}), "a").has_value());
  EXPECT_TRUE(relief(on_two_cpus({asking("a", 3000, kNode0), asking("d", 1000, kNode1)}), "a").has_value());
  EXPECT_TRUE(
      relief(on_two_cpus({asking("a", 2000, kNode0), asking("b", 2000, kNode0), asking("d", 4000, kNode1)}), "a")
          .has_value())
      << "1.5 instead of 2";
}

TEST_F(CrowdPlannerTest, TakesNobodyAwayFromWhereAPolicyWantsIt) {
  const Ledger ledger = on_two_cpus({asking("a", 2000, kNode0), asking("b", 2000, kNode0)});
  for (const auto& [preference, moves] : {std::pair{10, true}, {11, false}}) {
    const auto beside_device =
        std::make_shared<FixedPolicy>(std::vector<std::pair<NodeSet, std::int32_t>>{{{0}, preference}, {{1}, 0}});
    const Placer placer = placer_with(topology_, {{.policy = least_, .weight = 100}, {.policy = beside_device}});
    EXPECT_EQ(CrowdPlanner(ledger, placer).plan_relief(of(ledger, "a")).plan.has_value(), moves) << preference;
    Allocation with_device = of(ledger, "a");
    with_device.workload.devices = {"/dev/x"};
    EXPECT_FALSE(CrowdPlanner(ledger, placer).plan_relief(with_device).plan.has_value());
  }
}

TEST_F(CrowdPlannerTest, MovesNobodyWhileItIsNotKnownWhatAPolicyThinks) {
  const Ledger ledger = on_two_cpus({asking("a", 2000, kNode0), asking("b", 2000, kNode0)});
  // Each decision but the last goes well; the others compare the new place with the present one.
  enum class Asks { kOnce, kAlsoOfPresentPlace, kAlsoOfBothPlaces };
  for (const Asks asks : {Asks::kOnce, Asks::kAlsoOfPresentPlace, Asks::kAlsoOfBothPlaces}) {
    for (const bool loses_vote : {false, true}) {
      SCOPED_TRACE(static_cast<int>(asks) * 10 + (loses_vote ? 1 : 0));
      std::size_t asked = 0;
      const std::size_t last = asks == Asks::kOnce ? 1 : 2;
      const Placer placer = placer_with(topology_, {{.policy = least_}}, {}, [&](placement::Decision& decision) {
        if (asks == Asks::kAlsoOfPresentPlace) decision.verdicts.dropped = {"least: a wish"};
        if (asks == Asks::kAlsoOfBothPlaces && asked == 0) {
          std::erase_if(decision.verdicts.best, [](const auto& row) { return row.nodes == "0"; });
        }
        if (++asked == last && loses_vote) decision.lost_votes = {"least"};
      });
      const BetterPlace relief = CrowdPlanner(ledger, placer).plan_relief(of(ledger, "a"));
      EXPECT_EQ(asked, last);
      EXPECT_EQ(relief.plan.has_value(), !loses_vote);
      EXPECT_EQ(relief.lacks_votes, loses_vote);
    }
  }
}

TEST_F(CrowdPlannerTest, KeepsInMindWhereSomebodyGoesBackTo) {
  Allocation displaced = asking("a", 2000, kNode0);
  displaced.preferred = Preferred{{}, {7}, {1}, false};
  const Ledger ledger = on_two_cpus({displaced, asking("b", 2000, kNode0)});
  EXPECT_EQ(relief(ledger, "a")->preferred, displaced.preferred);
  displaced.preferred->within = kNode1;
  EXPECT_FALSE(relief(on_two_cpus({displaced, asking("b", 2000, kNode0)}), "a")->preferred.has_value())
      << "it is there";
}

/// The loads of all CPUs, the highest first.
std::vector<SharedLoad::Load> profile_of(const Ledger& ledger) {
  const SharedLoad load = shared_load_of(ledger);
  std::vector<SharedLoad::Load> profile;
  for (const std::uint32_t cpu : ledger.inventory().allowed) profile.push_back(load.total({cpu}));
  std::sort(profile.begin(), profile.end(), std::greater<>());
  return profile;
}

TEST_F(CrowdPlannerTest, NeverMovesBackAndForth) {
  const auto four_nodes = testing::machine("node:4 core:4 pu:1");
  const std::vector<placement::Candidate> candidates = placement::make_candidates(*four_nodes, four_nodes->allowed);
  std::size_t moves = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    testing::Dice dice(seed);
    std::vector<placement::Vote> votes = {{.policy = whimsical(dice, candidates, 40)}};
    if (dice.permille(500)) votes.push_back({.policy = least_});
    const Placer placer = placer_with(four_nodes, votes);
    std::vector<Allocation> allocations = {
        exclusive("x", CpuSet::range(0, static_cast<std::uint32_t>(dice.below(12))))};
    const std::uint64_t containers = 3 + dice.below(10);
    for (std::uint64_t i = 0; i < containers; ++i) {
      const auto name = std::string(1, static_cast<char>('a' + i));
      allocations.push_back(
          asking(name, static_cast<std::int64_t>(250 * dice.below(20)), dice.one_of(candidates).cpus));
    }
    Ledger ledger = ledger_of(allocations, {}, {four_nodes->allowed, {}, {}});
    auto profile = profile_of(ledger);
    std::set<std::vector<SharedLoad::Load>> seen = {profile};
    const auto next = [&]() -> std::optional<std::pair<Allocation, Plan>> {
      const CrowdPlanner planner(ledger, placer);
      for (const placement::ContainerKey& key : planner.crowded(shared_load_of(ledger))) {
        std::optional<Plan> plan = planner.plan_relief(*ledger.find(key)).plan;
        if (plan) return std::pair(*ledger.find(key), *std::move(plan));
      }
      return std::nullopt;
    };
    moves += move_all(ledger, next, [&](const Allocation& /*before*/, const Plan& /*plan*/) {
      const auto before = std::exchange(profile, profile_of(ledger));
      EXPECT_LT(profile, before);
      EXPECT_TRUE(seen.insert(profile).second);
    });
  }
  EXPECT_GT(moves, 100U);
}

}  // namespace
}  // namespace topolet::engine
