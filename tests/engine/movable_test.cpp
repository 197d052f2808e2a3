#include "core/engine/planning/movable.hpp"

#include <gtest/gtest.h>

namespace topolet::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

Allocation running(placement::Mode mode, const std::string& annotation = "") {
  Allocation allocation;
  allocation.phase = Phase::kRunning;
  allocation.placement.mode = mode;
  allocation.workload.qos = placement::Qos::kGuaranteed;
  if (!annotation.empty()) allocation.workload.settings = {{"move", annotation}};
  return allocation;
}

placement::PlacementRules rules_with(placement::HealRule heal) {
  placement::PlacementRules rules;
  rules.heal = heal;
  return rules;
}

TEST(Movable, IsWhomTheRuleNames) {
  const Allocation shared = running(placement::Mode::kShared);
  const Allocation exclusive = running(placement::Mode::kExclusive);
  EXPECT_FALSE(is_movable(shared, rules_with(placement::HealRule::kOff)));
  EXPECT_TRUE(is_movable(shared, rules_with(placement::HealRule::kShared)));
  EXPECT_FALSE(is_movable(exclusive, rules_with(placement::HealRule::kShared)));
  EXPECT_TRUE(is_movable(exclusive, rules_with(placement::HealRule::kAll)));
}

TEST(Movable, AnnotationComesBeforeTheRule) {
  const Allocation allowed = running(placement::Mode::kExclusive, "allow");
  const Allocation forbidden = running(placement::Mode::kShared, "never");
  EXPECT_TRUE(is_movable(allowed, rules_with(placement::HealRule::kOff)));
  EXPECT_FALSE(is_movable(forbidden, rules_with(placement::HealRule::kAll)));
}

TEST(Movable, IsNobodyWhoseCpusAreNotForTopoletToChoose) {
  const auto rules = rules_with(placement::HealRule::kAll);
  Allocation of_kubelet = running(placement::Mode::kShared, "allow");
  of_kubelet.workload.kubelet_cpus = CpuSet{1};
  EXPECT_FALSE(is_movable(of_kubelet, rules));
  Allocation stuck = running(placement::Mode::kExclusive, "allow");
  stuck.stuck.emplace();
  EXPECT_FALSE(is_movable(stuck, rules));
  Allocation overruled = running(placement::Mode::kExclusive, "allow");
  overruled.overruled.emplace();
  EXPECT_FALSE(is_movable(overruled, rules));
  Allocation pending = running(placement::Mode::kExclusive, "allow");
  pending.phase = Phase::kPending;
  EXPECT_FALSE(is_movable(pending, rules));
}

TEST(Movable, IsLeftAloneForTenMinutes) {
  Allocation allocation = running(placement::Mode::kShared);
  EXPECT_FALSE(was_just_moved(allocation, milliseconds(0)));
  allocation.last_move = LastMove{minutes(60), MoveCause::kHeal};
  EXPECT_TRUE(was_just_moved(allocation, minutes(60)));
  EXPECT_TRUE(was_just_moved(allocation, minutes(70) - milliseconds(1)));
  EXPECT_FALSE(was_just_moved(allocation, minutes(70)));
  EXPECT_FALSE(was_just_moved(allocation, minutes(50)));  // the clock was set back
}

TEST(Movable, LeavesItsNodesWithLittleMemoryOnly) {
  placement::PlacementRules rules;
  Allocation allocation = running(placement::Mode::kExclusive);
  EXPECT_TRUE(may_leave_its_nodes(allocation, rules));
  allocation.workload.demand.memory_request_bytes = (std::int64_t{256} << 20) - 1;
  EXPECT_TRUE(may_leave_its_nodes(allocation, rules));
  allocation.workload.demand.memory_request_bytes = std::int64_t{256} << 20;
  EXPECT_FALSE(may_leave_its_nodes(allocation, rules));
  rules.memory_migrate = true;
  EXPECT_TRUE(may_leave_its_nodes(allocation, rules));
}

TEST(Movable, StaysOnItsNodesWhereItsMemoryIsNotKnown) {
  const placement::PlacementRules rules;
  Allocation allocation = running(placement::Mode::kShared);
  allocation.workload.qos = placement::Qos::kBurstable;
  EXPECT_FALSE(may_leave_its_nodes(allocation, rules));
  allocation.workload.demand.memory_limit_bytes = std::int64_t{128} << 20;
  EXPECT_TRUE(may_leave_its_nodes(allocation, rules));
}

}  // namespace
}  // namespace topolet::engine
