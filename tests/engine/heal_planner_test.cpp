#include "core/engine/planning/heal_planner.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <set>

#include "tests/engine/better_place_test.hpp"
#include "tests/engine/healing.hpp"

namespace topolet::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const CpuSet kLeftNode = CpuSet::range(0, 3);
const CpuSet kRightNode = CpuSet::range(4, 7);
constexpr std::int64_t kMuchMemory = std::int64_t{1} << 30;

class HealPlannerTest : public BetterPlaceTest {
 protected:
  std::vector<std::string> healable(const Ledger& ledger) const {
    return names(HealPlanner(ledger, placer_).healable());
  }
  static BetterPlace plan(const Ledger& ledger, const Placer& placer, const std::string& name) {
    return HealPlanner(ledger, placer).plan_heal(of(ledger, name));
  }
  std::optional<Plan> plan(const Ledger& ledger, const std::string& name) const {
    return plan(ledger, placer_, name).plan;
  }

  const std::shared_ptr<NarrowPolicy> narrow_ = std::make_shared<NarrowPolicy>();
  const Placer placer_ = placer_with(topology_, {{.policy = narrow_}}, healing_all());
};

TEST_F(HealPlannerTest, FindsWhoIsWiderThanItNeedBe) {
  EXPECT_THAT(healable(ledger_of({exclusive("wide", {3, 4}), exclusive("x", {0, 1})})), ElementsAre("wide"));
  EXPECT_THAT(healable(ledger_of({exclusive("wide", {3, 4}), exclusive("x", {0, 1, 2}), exclusive("y", {5, 6, 7})})),
              IsEmpty())
      << "there is no room";
  EXPECT_THAT(healable(ledger_of({exclusive("wide", CpuSet::range(2, 6))})), IsEmpty()) << "no node has so many CPUs";
}

TEST_F(HealPlannerTest, LeavesOutWhoMayNotBeMovedNow) {
  std::vector<std::function<void(Allocation&)>> changes = obstacles();
  changes.emplace_back([](Allocation& a) {
    a.preferred = Preferred{{placement::Mode::kExclusive, {0, 1}, {}, {}}, {}, {}};
  });
  for (std::size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    Allocation wide = exclusive("wide", {3, 4});
    changes[i](wide);
    const Ledger ledger = ledger_of({wide});
    EXPECT_THAT(healable(ledger), IsEmpty());
    EXPECT_FALSE(plan(ledger, "wide").has_value());
  }
}

TEST_F(HealPlannerTest, MovesExclusiveContainersOnlyWhereItIsPermitted) {
  const Placer by_default = placer_with(topology_, {{.policy = narrow_}});
  Allocation wide = exclusive("wide", {3, 4});
  EXPECT_FALSE(plan(ledger_of({wide}), by_default, "wide").plan.has_value());
  wide.workload.settings = std::map<std::string, std::string>{{"move", "allow"}};
  EXPECT_TRUE(plan(ledger_of({wide}), by_default, "wide").plan.has_value());
}

TEST_F(HealPlannerTest, PlansThePlaceThatThePoliciesGive) {
  const Ledger ledger = ledger_of({exclusive("wide", {3, 4}), exclusive("x", {0, 1, 2})});
  const std::optional<Plan> found = plan(ledger, "wide");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->decision.placement.cpus, (CpuSet{4, 5}));
  EXPECT_EQ(found->decision.reason_code, "healed");
  EXPECT_EQ(found->cause, MoveCause::kHeal);
  EXPECT_THAT(found->decision.reason, StartsWith("it moves to CPUs 4-5: 1 node instead of 2; narrow: few nodes"));
}

TEST_F(HealPlannerTest, TakesFirstWhoGainsMost) {
  const auto machine = testing::machine("node:4 core:4 pu:1");
  const Placer placer = placer_with(machine, {{.policy = narrow_}}, healing_all());
  const Ledger ledger = ledger_of({exclusive("a", {0, 4}), exclusive("b", {1, 5, 8}), exclusive("c", {12, 13})}, {},
                                  {machine->allowed, {}, {}});
  EXPECT_THAT(names(HealPlanner(ledger, placer).healable()), ElementsAre("b", "a"));
}

TEST_F(HealPlannerTest, MakesNobodyWorse) {
  const auto with_sharer = [](std::int64_t milli) {
    return ledger_of({exclusive("wide", {3, 4}), exclusive("x", {0, 1, 2}), asking("s", milli, kRightNode)});
  };
  EXPECT_TRUE(plan(with_sharer(2000), "wide").has_value());
  EXPECT_FALSE(plan(with_sharer(2500), "wide").has_value()) << "two CPUs would be left for 2.5";
  EXPECT_FALSE(
      plan(ledger_of({exclusive("wide", {2, 3, 4, 5}), asking("s", 100, kRightNode), asking("t", 100, kLeftNode)}),
           "wide")
          .has_value())
      << "one of them would have to move";
}

TEST_F(HealPlannerTest, TakesNoCacheThatNewcomersNeed) {
  const auto machine = testing::machine("numa:1 l3:4 core:4 pu:1");
  const Placer placer = placer_with(machine, {{.policy = narrow_}}, healing_all());
  const auto beside = [&](const CpuSet& x, const CpuSet& y, const CpuSet& z) {
    const Ledger ledger =
        ledger_of({exclusive("wide", {7, 11}), exclusive("x", x), exclusive("y", y), exclusive("z", z)}, {},
                  {machine->allowed, {}, {}});
    EXPECT_THAT(names(HealPlanner(ledger, placer).healable()), ElementsAre("wide"));
    return plan(ledger, placer, "wide").plan;
  };
  EXPECT_TRUE(beside({4, 5, 6}, {8, 9, 10}, {12}).has_value()) << "one of three CPUs finds a cache as before";
  EXPECT_FALSE(beside({4, 5, 6}, {8, 9, 10}, {12, 13}).has_value()) << "one of three CPUs would find none any more";
}

TEST_F(HealPlannerTest, BringsSharedContainersTogether) {
  const Placer by_default = placer_with(topology_, {{.policy = narrow_}});
  const Ledger ledger = ledger_of({asking("wide", 2000), asking("beside", 1000, kLeftNode)});
  EXPECT_THAT(names(HealPlanner(ledger, by_default).healable()), ElementsAre("wide"));
  const std::optional<Plan> found = plan(ledger, by_default, "wide").plan;
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->decision.within, kLeftNode);
  EXPECT_THAT(healable(ledger_of({asking("wide", 5000)})), IsEmpty()) << "it would be crowded on one node";
}

TEST_F(HealPlannerTest, KeepsMemoryWhereItIs) {
  const auto machine = testing::machine("node:3 core:4 pu:1");
  placement::PlacementRules migrating = healing_all();
  migrating.memory_migrate = true;
  const auto heals = [&](const Allocation& wide, const placement::PlacementRules& rules) {
    const Ledger ledger =
        ledger_of({wide, exclusive("x", {0, 1, 2}), exclusive("y", {5, 6, 7})}, {}, {machine->allowed, {}, {}});
    const Placer placer = placer_with(machine, {{.policy = narrow_}}, rules);
    const bool is_planned = plan(ledger, placer, "wide").plan.has_value();
    EXPECT_EQ(!HealPlanner(ledger, placer).healable().empty(), is_planned);
    return is_planned;
  };
  Allocation wide = exclusive("wide", {3, 4});
  EXPECT_TRUE(heals(wide, healing_all()));
  wide.workload.demand.memory_request_bytes = kMuchMemory;
  EXPECT_FALSE(heals(wide, healing_all()));
  EXPECT_TRUE(heals(wide, migrating));
  Allocation bound = exclusive("wide", {3, 4});
  bound.placement.mems = NodeSet{0, 1};
  EXPECT_FALSE(heals(bound, healing_all()));
  EXPECT_TRUE(heals(bound, migrating));
  // To fewer of the nodes that it has.
  wide.placement.cpus = {3, 4};
  const Ledger narrower = ledger_of({wide, exclusive("x", {0, 1, 2})}, {}, {machine->allowed, {}, {}});
  EXPECT_EQ(plan(narrower, placer_with(machine, {{.policy = narrow_}}, healing_all()), "wide").plan->decision.nodes,
            NodeSet{1});
}

TEST_F(HealPlannerTest, MovesNobodyWhileItIsNotKnownWhatAPolicyThinks) {
  const Ledger ledger = ledger_of({exclusive("wide", {3, 4})});
  const Placer placer = placer_with(topology_, {{.policy = narrow_}}, healing_all(),
                                    [](placement::Decision& decision) { decision.lost_votes = {"narrow"}; });
  const BetterPlace found = plan(ledger, placer, "wide");
  EXPECT_FALSE(found.plan.has_value());
  EXPECT_TRUE(found.lacks_votes);
}

TEST_F(HealPlannerTest, TakesNobodyAwayFromWhereAPolicyWantsIt) {
  const Ledger ledger = ledger_of({exclusive("wide", {3, 4}), exclusive("x", {0, 1, 2})});
  for (const auto& [preference, moves] : {std::pair{10, true}, {11, false}}) {
    const auto fixed =
        std::make_shared<FixedPolicy>(std::vector<std::pair<NodeSet, std::int32_t>>{{{0, 1}, preference}, {{1}, 0}});
    const Placer placer =
        placer_with(topology_, {{.policy = narrow_, .weight = 100}, {.policy = fixed}}, healing_all());
    EXPECT_EQ(plan(ledger, placer, "wide").plan.has_value(), moves) << preference;
  }
}

/// Where everybody is; of who shares CPUs, within what.
std::map<placement::ContainerKey, std::string> places_of(const Ledger& ledger) {
  std::map<placement::ContainerKey, std::string> places;
  for (const auto& [key, allocation] : ledger.allocations()) {
    places[key] = (allocation.is_exclusive() ? allocation.placement.cpus : allocation.within).to_string();
  }
  return places;
}

TEST_F(HealPlannerTest, NeverMovesBackAndForth) {
  const auto machine = testing::machine("node:4 l3:2 core:2 pu:1");
  const std::vector<placement::Candidate> candidates = placement::make_candidates(*machine, machine->allowed);
  std::size_t moves = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    testing::Dice dice(seed);
    std::vector<placement::Vote> votes = {{.policy = whimsical(dice, candidates, 20)}};
    if (dice.permille(700)) votes.push_back({.policy = narrow_});
    const Placer placer = placer_with(machine, votes, healing_all());
    std::vector<Allocation> allocations;
    CpuSet left = machine->allowed;
    const std::size_t containers = 3 + dice.below(5);
    for (std::size_t i = 0; i < containers; ++i) {
      const auto name = std::string(1, static_cast<char>('a' + i));
      CpuSet own;
      for (const std::uint32_t cpu : left) {
        if (own.size() < 3 && dice.permille(250)) own.insert(cpu);
      }
      if (own.empty() || dice.permille(300)) {
        allocations.push_back(
            asking(name, static_cast<std::int64_t>(250 * dice.below(8)), dice.one_of(candidates).cpus));
      } else {
        left -= own;
        allocations.push_back(exclusive(name, own));
      }
    }
    Ledger ledger = ledger_of(allocations, {}, {machine->allowed, {}, {}});
    auto places = places_of(ledger);
    std::set<decltype(places)> seen = {places};
    const auto next = [&]() -> std::optional<std::pair<Allocation, Plan>> {
      const HealPlanner planner(ledger, placer);
      for (const placement::ContainerKey& key : planner.healable()) {
        std::optional<Plan> found = planner.plan_heal(*ledger.find(key)).plan;
        if (found) return std::pair(*ledger.find(key), *std::move(found));
      }
      return std::nullopt;
    };
    moves += move_all(ledger, next, [&](const Allocation& before, const Plan& plan) {
      EXPECT_LT(cost_of(*machine, before, plan.decision), cost_of(*machine, before));
      auto now = places_of(ledger);
      EXPECT_TRUE(seen.insert(now).second);
      // Nobody else has moved.
      now[before.workload.key] = places[before.workload.key];
      EXPECT_EQ(now, places);
      places = places_of(ledger);
    });
  }
  EXPECT_GT(moves, 100U);
}

}  // namespace
}  // namespace topolet::engine
