#include "core/engine/planning/room_planner.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

#include "core/placement/decide.hpp"
#include "tests/engine/crowds.hpp"

namespace topolet::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using ::testing::HasSubstr;

constexpr milliseconds kThisHour = std::chrono::hours(1);

/// Two nodes of four CPUs. On each, two are free: "v" and "w" have the others.
class RoomPlannerTest : public ::testing::Test {
 protected:
  static Ledger two_and_two(Allocation v = exclusive("v", {0, 1}), std::vector<Allocation> more = {}) {
    more.push_back(std::move(v));
    more.push_back(stays(exclusive("w", {4, 5})));
    return ledger_of(std::move(more));
  }
  static Allocation stays(Allocation allocation) {
    allocation.workload.settings = std::map<std::string, std::string>{{"move", "never"}};
    return allocation;
  }
  /// With a device beside each node.
  std::shared_ptr<const topology::Topology> with_devices() const {
    auto machine = std::make_shared<topology::Topology>(*topology_);
    for (const std::uint32_t node : {0U, 1U}) {
      topology::OsDevice device;
      device.name = "near" + std::to_string(node);
      device.nodes = {node};
      machine->os_devices.push_back(device);
    }
    return machine;
  }
  Placer placer_on(const std::shared_ptr<const topology::Topology>& machine) {
    return Placer({machine, placement::make_candidates(*machine, machine->allowed), rules_,
                   [this](const auto& request, const placement::PlacementRules& rules) {
                     ++decisions_;
                     if (denies_moves_ && request->occasion == placement::Occasion::kMove) {
                       placement::Decision denied;
                       denied.denied = true;
                       return denied;
                     }
                     return decide(*request, rules, {{.policy = few_nodes_}});
                   }});
  }
  std::optional<Plan> room_for(const placement::Workload& workload, const Ledger& ledger,
                               const std::shared_ptr<const topology::Topology>& machine = {}) {
    const Placer placer = placer_on(machine ? machine : topology_);
    const auto plan_in = [&](const Ledger& trial) { return placer.plan(trial, workload); };
    const Plan without = plan_in(ledger);
    decisions_ = 0;
    return RoomPlanner(ledger, placer, kThisHour)
        .plan({workload, {}, plan_in, std::chrono::steady_clock::now()}, without);
  }

  const std::shared_ptr<const topology::Topology> topology_ = testing::machine("node:2 core:4 pu:1");
  std::shared_ptr<placement::Policy> few_nodes_ = std::make_shared<FixedPolicy>(
      std::vector<std::pair<NodeSet, std::int32_t>>{{NodeSet{0}, 50}, {NodeSet{1}, 50}, {NodeSet{0, 1}, 0}});
  placement::PlacementRules rules_ = with_heal();
  bool denies_moves_ = false;
  int decisions_ = 0;

 private:
  static placement::PlacementRules with_heal() {
    placement::PlacementRules rules;
    rules.heal = placement::HealRule::kAll;
    return rules;
  }
};

TEST_F(RoomPlannerTest, MovesOneThatIsAsWellOffElsewhere) {
  const std::optional<Plan> plan = room_for(guaranteed("n", 3), two_and_two());
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->decision.nodes, NodeSet{0});
  ASSERT_EQ(plan->moves.size(), 1U);
  const Move& move = plan->moves.front();
  EXPECT_EQ(move.workload.key.name, "v");
  EXPECT_EQ(move.cause, MoveCause::kRoom);
  EXPECT_EQ(move.decision.reason_code, "room");
  EXPECT_THAT(move.decision.reason, HasSubstr("makes room for default/n/n"));
  EXPECT_EQ(move.decision.placement.cpus.to_string(), "6-7");
  EXPECT_FALSE(move.preferred.has_value()) << "it does not go back";
}

TEST_F(RoomPlannerTest, AsksNobodyWhereItIsInOneNodeAnyway) {
  EXPECT_FALSE(room_for(guaranteed("n", 2), two_and_two()).has_value());
  EXPECT_EQ(decisions_, 0);
}

TEST_F(RoomPlannerTest, AsksNobodyWhereCpusAreMissing) {
  EXPECT_FALSE(room_for(guaranteed("n", 6), two_and_two()).has_value());
  EXPECT_EQ(decisions_, 0);
}

TEST_F(RoomPlannerTest, MovesTheSmallestThatSuffices) {
  const auto machine = testing::machine("node:2 core:8 pu:1");
  const Ledger ledger = ledger_of({exclusive("large", {1, 2, 3}), exclusive("small", {4, 5}),
                                   stays(exclusive("x", {0})), stays(exclusive("w", {8, 9, 10, 11, 12}))},
                                  {}, {machine->allowed, {}, {}});
  const std::optional<Plan> plan = room_for(guaranteed("n", 4), ledger, machine);
  ASSERT_TRUE(plan.has_value());
  ASSERT_EQ(plan->moves.size(), 1U);
  EXPECT_EQ(plan->moves.front().workload.key.name, "small");
}

/// Policies would rather have it on node 1, where only halves of cores are free.
TEST_F(RoomPlannerTest, MovesNobodyToMoreCores) {
  const auto machine = testing::machine("node:3 core:2 pu:2");
  few_nodes_ = std::make_shared<FixedPolicy>(std::vector<std::pair<NodeSet, std::int32_t>>{
      {NodeSet{0}, 50}, {NodeSet{1}, 60}, {NodeSet{2}, 50}, {NodeSet{0, 1}, 0}, {NodeSet{0, 2}, 0}});
  const Ledger ledger = ledger_of({exclusive("v", {0, 1}), stays(exclusive("w", {4})), stays(exclusive("x", {6}))}, {},
                                  {machine->allowed - (CpuSet{8, 9}), {}, {}});
  const std::optional<Plan> plan = room_for(guaranteed("n", 4), ledger, machine);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->decision.nodes, NodeSet{0});
  ASSERT_EQ(plan->moves.size(), 1U);
  EXPECT_EQ(plan->moves.front().decision.placement.cpus.to_string(), "10-11");
}

TEST_F(RoomPlannerTest, PutsSoManyWaysToThePolicies) {
  const std::shared_ptr<const topology::Topology> large = testing::machine("node:2 core:64 pu:1");
  denies_moves_ = true;
  std::vector<Allocation> allocations;
  std::uint32_t cpu = 0;
  for (int i = 0; i < 58; ++i, cpu += 1) allocations.push_back(exclusive("a" + std::to_string(100 + i), {cpu}));
  cpu = 64;
  for (int i = 0; i < 58; ++i, cpu += 1) allocations.push_back(exclusive("b" + std::to_string(100 + i), {cpu}));
  const Ledger ledger = ledger_of(std::move(allocations), {}, {large->allowed, {}, {}});
  EXPECT_FALSE(room_for(guaranteed("n", 7), ledger, large).has_value());
  EXPECT_EQ(decisions_, static_cast<int>(2 * kMostRoomTries));
}

TEST_F(RoomPlannerTest, LeavesAloneWhoMayNotMoveNow) {
  const std::vector<std::pair<const char*, std::function<void(Allocation&)>>> changes = {
      {"has a device", [](Allocation& a) { a.workload.devices = {"/dev/x"}; }},
      {"uses a device", [](Allocation& a) { a.workload.used_devices = {"/dev/x"}; }},
      {"has bound memory", [](Allocation& a) { a.placement.mems = NodeSet{0}; }},
      {"has much memory", [](Allocation& a) { a.workload.demand.memory_request_bytes = std::int64_t{1} << 30; }},
      {"has moved",
       [](Allocation& a) {
         a.last_move = LastMove{kThisHour - minutes(9), MoveCause::kHeal};
       }},
      {"is leaving CPUs", [](Allocation& a) { a.vacating = {5}; }},
      {"is to go back",
       [](Allocation& a) {
         a.preferred = Preferred{a.placement, {}, NodeSet{0}, false};
       }},
      {"starts", [](Allocation& a) { a.phase = Phase::kStarting; }},
      {"ends", [](Allocation& a) { a.stopping = true; }},
      {"is held", [](Allocation& a) { a.phase = Phase::kCrashed; }},
  };
  for (const auto& [what, change] : changes) {
    Allocation v = exclusive("v", {0, 1});
    change(v);
    EXPECT_FALSE(room_for(guaranteed("n", 3), two_and_two(v)).has_value()) << what;
  }
}

TEST_F(RoomPlannerTest, MovesMemoryThatMigrates) {
  rules_.memory_migrate = true;
  Allocation v = exclusive("v", {0, 1});
  v.workload.demand.memory_request_bytes = std::int64_t{1} << 30;
  EXPECT_TRUE(room_for(guaranteed("n", 3), two_and_two(v)).has_value());
}

TEST_F(RoomPlannerTest, MovesAgainAfterTenMinutes) {
  Allocation v = exclusive("v", {0, 1});
  v.last_move = LastMove{kThisHour - minutes(11), MoveCause::kHeal};
  EXPECT_TRUE(room_for(guaranteed("n", 3), two_and_two(v)).has_value());
}

TEST_F(RoomPlannerTest, KeepsThePodTogether) {
  Allocation mate = shared("mate");
  mate.workload.key.pod_uid = "uid-v";
  mate.workload.key.sandbox_id = "sandbox-v";
  EXPECT_FALSE(room_for(guaranteed("n", 3), two_and_two(exclusive("v", {0, 1}), {mate})).has_value());
}

TEST_F(RoomPlannerTest, LeavesEveryContainerCpusWhileItMoves) {
  EXPECT_FALSE(room_for(guaranteed("n", 3),
                        two_and_two(exclusive("v", {0, 1}), {shared("s", Phase::kRunning, CpuSet::range(4, 7))}))
                   .has_value());
}

TEST_F(RoomPlannerTest, PlansTheSameForTheSame) {
  const auto first = room_for(guaranteed("n", 3), two_and_two());
  const auto second = room_for(guaranteed("n", 3), two_and_two());
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->decision.placement, second->decision.placement);
  EXPECT_EQ(first->moves.front().decision.placement, second->moves.front().decision.placement);
}

TEST_F(RoomPlannerTest, LooksNoFurtherWhereOneOfTwoDevicesIsFarAnyway) {
  const Placer placer({with_devices(), placement::make_candidates(*topology_, topology_->allowed), rules_,
                       [this](const auto& request, const placement::PlacementRules& rules) {
                         ++decisions_;
                         placement::Decision decision = decide(*request, rules, {{.policy = few_nodes_}});
                         decision.used_devices = {"near0", "near1"};
                         return decision;
                       }});
  const Ledger ledger = two_and_two();
  const auto plan_in = [&](const Ledger& trial) { return placer.plan(trial, guaranteed("n", 2)); };
  const Plan without = plan_in(ledger);
  decisions_ = 0;
  const RoomPlanner planner(ledger, placer, kThisHour);
  EXPECT_FALSE(planner.plan({guaranteed("n", 2), {}, plan_in, std::chrono::steady_clock::now()}, without).has_value());
  EXPECT_EQ(decisions_, 0);
}

TEST_F(RoomPlannerTest, ShowsPoliciesTheSizesOfTheLastDayInEveryDecision) {
  std::vector<std::uint32_t> shown;
  PlacerDeps deps{topology_, placement::make_candidates(*topology_, topology_->allowed), rules_,
                  [&](const auto& request, const placement::PlacementRules& rules) {
                    shown.push_back(request->largest_exclusive_cpus);
                    return decide(*request, rules, {{.policy = few_nodes_}});
                  }};
  deps.wall = [] { return kThisHour; };
  const Placer placer(std::move(deps));
  Ledger ledger({topology_->allowed, {}, {}}, 0);
  ledger.load({exclusive("v", {0, 1}), stays(exclusive("w", {4, 5})), shared("s", Phase::kRunning, {2, 3})}, {}, {},
              RecentSizes({{6, kThisHour}}));
  const auto plan_in = [&](const Ledger& trial) { return placer.plan(trial, guaranteed("n", 3)); };
  const Plan without = plan_in(ledger);
  const RoomPlanner planner(ledger, placer, kThisHour);
  ASSERT_TRUE(planner.plan({guaranteed("n", 3), {}, plan_in, std::chrono::steady_clock::now()}, without).has_value());
  EXPECT_GE(shown.size(), 3U) << "the container, the one that makes room, and one that shares CPUs";
  EXPECT_THAT(shown, ::testing::Each(6U));
}

}  // namespace
}  // namespace topolet::engine
