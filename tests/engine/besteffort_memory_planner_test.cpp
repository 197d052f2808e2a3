#include "core/engine/planning/besteffort_memory_planner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/engine/state/transitions.hpp"
#include "core/engine/state/unified_files.hpp"
#include "core/placement/decide.hpp"
#include "tests/engine/crowds.hpp"

namespace topolet::engine {
namespace {

using std::chrono::seconds;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kPart = 24576 * kMiB;

/// Two nodes of 64 GiB, with one container that requests memory and two that do not.
class BestEffortMemoryPlannerTest : public ::testing::Test {
 protected:
  BestEffortMemoryPlannerTest() { begin({asking_memory("a", 16 * kGiB), leftover("x"), leftover("y")}); }

  void begin(std::vector<Allocation> allocations) { ledger_ = ledger_of(std::move(allocations)); }
  static Allocation asking_memory(const std::string& name, std::int64_t bytes) {
    Allocation allocation = asking(name, 1000);
    allocation.workload.demand.memory_request_bytes = bytes;
    return allocation;
  }
  static Allocation leftover(const std::string& name) {
    Allocation allocation = asking(name, 0);
    allocation.workload.qos = placement::Qos::kBestEffort;
    return allocation;
  }
  Transition happen(const Event& event) {
    Transition transition = compute_transition(ledger_, {}, seconds(1'000'000), event);
    ledger_.apply(transition);
    return transition;
  }
  std::optional<event::BestEffortMemoryShared> step(std::optional<std::uint32_t> percent = 50, bool may_step = true) {
    auto next = planner_.next(percent, may_step);
    if (next) happen(*next);
    return next;
  }
  Allocation now(const std::string& name) const { return *ledger_.find(besteffort(name).key); }
  std::string told(const std::string& name) const {
    const SharedStringMap files = unified_to_tell(now(name));
    const auto high = files.find("memory.high");
    return high == files.end() ? "" : high->second;
  }
  void request(std::int64_t bytes) {
    Allocation changed = now("a");
    placement::Demand demand = changed.workload.demand;
    demand.memory_request_bytes = bytes;
    happen(event::DemandChanged{changed.workload.key, demand, "resized"});
  }

  const std::shared_ptr<const topology::Topology> topology_ =
      testing::machine("node:2(memory=68719476736) core:4 pu:1");
  const Placer placer_{{topology_, placement::make_candidates(*topology_, topology_->allowed), {}, {}}};
  Ledger ledger_ = ledger_of({});
  const BestEffortMemoryPlanner planner_{ledger_, placer_};
};

TEST_F(BestEffortMemoryPlannerTest, TheyShareWhatOthersHaveNotRequested) {
  const auto next = step();
  ASSERT_TRUE(next);
  EXPECT_EQ(now("x").memory_high, kPart) << "half of 50 % of 128 GiB less 16 GiB";
  EXPECT_EQ(told("x"), std::to_string(kPart));
  EXPECT_EQ(told("x"), told("y"));
  EXPECT_EQ(told("a"), "");
  EXPECT_EQ(next->reason_code, "besteffort-memory");
  EXPECT_EQ(next->reason,
            "memory.high of each of 2 BestEffort containers is 24576 MiB: 50 % of the machine's 131072 MiB, less the "
            "16384 MiB that others request, in equal parts");
  EXPECT_FALSE(step()) << "nothing has changed";
}

TEST_F(BestEffortMemoryPlannerTest, EachStepIsAudited) {
  const Transition transition = happen(*planner_.next(50, true));
  ASSERT_EQ(transition.changes.size(), 2U);
  for (const Change& change : transition.changes) {
    ASSERT_TRUE(change.audit);
    EXPECT_EQ(change.audit->event, AuditEvent::kNarrowed);
    EXPECT_EQ(change.audit->reason_code, "besteffort-memory");
  }
  const Transition back = happen(*planner_.next(std::nullopt, false));
  ASSERT_EQ(back.changes.size(), 2U);
  EXPECT_EQ(back.changes[0].audit->event, AuditEvent::kWidened);
}

TEST_F(BestEffortMemoryPlannerTest, SmallChangesAreNotWorthAStep) {
  ASSERT_TRUE(step());
  request(18 * kGiB);
  EXPECT_FALSE(step()) << "23 GiB instead of 24";
  request(20 * kGiB);
  EXPECT_FALSE(step(50, false)) << "the last step was too short a time ago";
  ASSERT_TRUE(step());
  EXPECT_EQ(now("x").memory_high, 22528 * kMiB);
}

TEST_F(BestEffortMemoryPlannerTest, NobodyIsBoundToNextToNothing) {
  request(100 * kGiB);
  ASSERT_TRUE(step());
  EXPECT_EQ(now("x").memory_high, 64 * kMiB) << "others have requested all of it";
}

TEST_F(BestEffortMemoryPlannerTest, ItIsTakenBackWhenItIsNotAskedForAnyMore) {
  ASSERT_TRUE(step());
  const auto back = step(std::nullopt, false);
  ASSERT_TRUE(back) << "at once";
  EXPECT_EQ(back->reason_code, "besteffort-memory-freed");
  EXPECT_EQ(told("x"), "max");
  EXPECT_FALSE(step(std::nullopt));
  ASSERT_TRUE(step());
  EXPECT_EQ(told("x"), std::to_string(kPart));
}

TEST_F(BestEffortMemoryPlannerTest, ItIsTakenBackFromOneThatIsNotBestEffortAnyMore) {
  ASSERT_TRUE(step());
  begin({now("a"), now("x"), [this] {
           Allocation changed = now("y");
           changed.workload.qos = placement::Qos::kBurstable;
           return changed;
         }()});
  ASSERT_TRUE(step(50, false));
  EXPECT_EQ(told("y"), "max");
  EXPECT_EQ(told("x"), std::to_string(kPart));
  ASSERT_TRUE(step());
  EXPECT_EQ(now("x").memory_high, 49152 * kMiB) << "the other's part, too";
}

TEST_F(BestEffortMemoryPlannerTest, WhoSaysItselfHowMuchItMayUseIsLeftAlone) {
  Allocation kubelets = leftover("k");
  kubelets.workload.kubelet_unified = {{"memory.high", "1"}};
  Allocation found = leftover("f");
  found.adopted = true;
  Allocation plugins = leftover("p");
  plugins.unified = {{"memory.high", "8192"}};
  begin({kubelets, found, plugins});
  ASSERT_TRUE(step());
  EXPECT_EQ(told("k"), "");
  EXPECT_EQ(told("f"), "");
  EXPECT_EQ(told("p"), "8192") << "a plugin's comes first";
}

TEST_F(BestEffortMemoryPlannerTest, OneThatHasNotStartedIsBoundOnceItRuns) {
  Allocation created = leftover("c");
  created.phase = Phase::kCreated;
  begin({asking_memory("a", 16 * kGiB), leftover("x"), created});
  ASSERT_TRUE(step());
  EXPECT_EQ(now("c").memory_high, 0);
  EXPECT_EQ(now("x").memory_high, 49152 * kMiB) << "it has no part either";
}

TEST_F(BestEffortMemoryPlannerTest, AMemoryHighOfAnEarlierTopoletdIsLifted) {
  Allocation found = leftover("f");
  found.adopted = true;
  found.memory_high = kPart;
  found.unified = {{"memory.high", "8192"}};
  begin({found, leftover("x")});
  EXPECT_EQ(told("f"), std::to_string(kPart));
  ASSERT_TRUE(step(50, false));
  EXPECT_EQ(told("f"), "max");
  ASSERT_TRUE(step());
  EXPECT_EQ(told("f"), "max") << "nobody knows what its request has set";
}

TEST(MemoryOf, AMachineIsUnknownWhereThatOfANodeIs) {
  EXPECT_EQ(memory_of(*testing::machine("node:2(memory=68719476736) core:4 pu:1")), 128 * kGiB);
  topology::Topology machine = *testing::machine("node:2(memory=68719476736) core:4 pu:1");
  machine.nodes[1].memory_bytes = 0;
  EXPECT_EQ(memory_of(machine), std::nullopt);
  machine.nodes[1].has_memory = false;
  EXPECT_EQ(memory_of(machine), 64 * kGiB);
}

}  // namespace
}  // namespace topolet::engine
