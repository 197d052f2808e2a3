#include "core/engine/planning/besteffort_planner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/engine/state/transitions.hpp"
#include "core/placement/decide.hpp"
#include "tests/engine/crowds.hpp"

namespace topolet::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

/// Eight CPUs on two nodes, with one container that requests something and two that do not.
class BestEffortPlannerTest : public ::testing::Test {
 protected:
  BestEffortPlannerTest() {
    const CpuSet all = CpuSet::range(0, 7);
    ledger_ = ledger_of({asking("a", 1000, all), leftover("x", all), leftover("y", all)});
  }
  static Allocation leftover(const std::string& name, const CpuSet& cpus) {
    Allocation allocation = asking(name, 0, cpus);
    allocation.workload.qos = placement::Qos::kBestEffort;
    return allocation;
  }
  void use(const std::string& name, std::int64_t milli, milliseconds age = {}) {
    load_.containers["c-" + name] = {milli, std::nullopt, age};
  }
  std::optional<event::BestEffortNarrowed> step(std::optional<std::uint32_t> percent = 65, bool may_step = true) {
    auto next = planner_.next(&load_, percent, may_step);
    if (next) ledger_.apply(compute_transition(ledger_, {}, seconds(1'000'000), *next));
    return next;
  }
  CpuSet cpus_of(const std::string& name) const { return ledger_.find(besteffort(name).key)->placement.cpus; }

  const std::shared_ptr<const topology::Topology> topology_ = testing::machine("node:2 core:4 pu:1");
  const Placer placer_{{topology_, placement::make_candidates(*topology_, topology_->allowed), {}, {}}};
  Ledger ledger_ = ledger_of({});
  load::Load load_;
  const BestEffortPlanner planner_{ledger_, placer_};
};

TEST_F(BestEffortPlannerTest, TheyRunOnWhatOthersLeave) {
  use("a", 2100);
  const auto next = step();
  ASSERT_TRUE(next);
  EXPECT_EQ(cpus_of("x").size(), 3U) << "65 % of 8 less 2.1";
  EXPECT_EQ(cpus_of("x"), cpus_of("y")) << "all have the same";
  EXPECT_EQ(cpus_of("a"), CpuSet::range(0, 7));
  EXPECT_EQ(next->reason_code, "besteffort-yields");
  EXPECT_EQ(
      next->reason,
      "BestEffort containers run on 3 of the 8 CPUs of the pool: 65 % of the 8.00 that these can do, less the 2.10 "
      "that others use");
  EXPECT_FALSE(step()) << "nothing has changed";
}

TEST_F(BestEffortPlannerTest, WhoeverHasNoneOfTheSetAtHomeRunsOnTheSet) {
  ledger_ = ledger_of(
      {asking("a", 1000, CpuSet::range(4, 7)), leftover("x", CpuSet::range(0, 7)), leftover("y", CpuSet::range(4, 7))});
  use("a", 2900);
  ASSERT_TRUE(step());
  EXPECT_EQ(cpus_of("x"), (CpuSet{2, 3})) << "of the node of which less is used";
  EXPECT_EQ(cpus_of("y"), (CpuSet{2, 3}));
}

TEST_F(BestEffortPlannerTest, TheyKeepTwo) {
  use("a", 7900);
  ASSERT_TRUE(step());
  EXPECT_EQ(cpus_of("x").size(), 2U);
}

TEST_F(BestEffortPlannerTest, WhatAHypervisorTakesCounts) {
  use("a", 100);
  load_.nodes[0] = {.effective_milli = 2000};
  ASSERT_TRUE(step());
  EXPECT_EQ(cpus_of("x").size(), 3U) << "65 % of 6 less 0.1";
}

TEST_F(BestEffortPlannerTest, WhatIsNotMeasuredCountsAsRequested) {
  use("x", 1000);
  ASSERT_TRUE(step());
  EXPECT_EQ(cpus_of("x").size(), 4U) << "65 % of 8 less 1";
}

TEST_F(BestEffortPlannerTest, TheyGetBackOneAfterTheOther) {
  use("a", 4000);
  ASSERT_TRUE(step(70));
  const CpuSet least = cpus_of("x");
  ASSERT_EQ(least.size(), 2U);
  use("a", 0);
  const auto next = step(70);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->reason_code, "besteffort-freed");
  EXPECT_EQ(cpus_of("x").size(), 3U) << "a tenth of the machine, or one";
  EXPECT_TRUE(least.is_subset_of(cpus_of("x")));
  ASSERT_TRUE(step(70));
  ASSERT_TRUE(step(70));
  EXPECT_FALSE(step(70)) << "70 % of 8";
  EXPECT_EQ(cpus_of("x").size(), 5U);
}

TEST_F(BestEffortPlannerTest, WhatIsUsedMayVaryALittle) {
  use("a", 2100);
  ASSERT_TRUE(step());
  use("a", 1150);
  EXPECT_FALSE(step()) << "4.05 are left, which is hardly one more";
  use("a", 900);
  EXPECT_TRUE(step());
}

TEST_F(BestEffortPlannerTest, TheyAreFreedWhereNothingIsKnownAnyMore) {
  use("a", 4000);
  ASSERT_TRUE(step());
  EXPECT_FALSE(step(65, false));
  use("a", 4000, milliseconds(5001));
  const auto next = step(65, false);
  ASSERT_TRUE(next) << "at once, however short a time ago the last step was";
  EXPECT_EQ(next->reason_code, "load-unknown");
  EXPECT_EQ(cpus_of("x"), CpuSet::range(0, 7));
  EXPECT_FALSE(step());
}

TEST_F(BestEffortPlannerTest, TheyAreFreedWhenThatIsNotAskedForAnyMore) {
  use("a", 4000);
  ASSERT_TRUE(step());
  ASSERT_TRUE(step(std::nullopt));
  EXPECT_EQ(cpus_of("x"), CpuSet::range(0, 7));
  EXPECT_FALSE(step(std::nullopt));
}

TEST_F(BestEffortPlannerTest, NobodyIsNarrowedInTheFirstMinute) {
  use("a", 4000);
  load_.measured_for = milliseconds(59'999);
  EXPECT_FALSE(step());
  load_.measured_for = seconds(60);
  EXPECT_TRUE(step());
}

TEST_F(BestEffortPlannerTest, TheyYieldWhereOneWaitsWhateverTheFormulaSays) {
  use("a", 0);
  const Pressed pressed{"default/a/main", 400, CpuSet::range(0, 3)};
  const BestEffortPlanner::Pressure lasting{&pressed, true};
  std::vector<std::size_t> sizes;
  for (int i = 0; i < 10; ++i) {
    const auto next = planner_.next(&load_, 100, true, lasting);
    if (!next) break;
    if (i == 0) {
      EXPECT_EQ(next->reason_code, "besteffort-pressure");
      EXPECT_EQ(
          next->reason,
          "BestEffort containers run on 7 of the 8 CPUs of the pool: default/a/main has waited for a CPU for 30 s "
          "beside them, now for 40 % of the time");
    }
    ledger_.apply(compute_transition(ledger_, {}, seconds(1'000'000), *next));
    sizes.push_back(cpus_of("x").size());
  }
  EXPECT_THAT(sizes, ::testing::ElementsAre(7U, 6U, 5U, 4U)) << "then they are not beside it any more";
  EXPECT_EQ(cpus_of("x"), CpuSet::range(4, 7));
  EXPECT_FALSE(planner_.next(&load_, 100, true, {nullptr, true})) << "not at once";
  EXPECT_TRUE(planner_.next(&load_, 100, true, {nullptr, false}));
  EXPECT_FALSE(planner_.next(&load_, 100, false, lasting)) << "one step in ten seconds";
}

TEST_F(BestEffortPlannerTest, NobodyIsLeftWithoutCpus) {
  use("a", 4000);
  ASSERT_TRUE(step());
  const CpuSet narrowed = cpus_of("x");
  ASSERT_EQ(narrowed.size(), 2U);
  // Another one gets just these alone.
  ledger_.apply(compute_transition(ledger_, {}, seconds(1'000'001),
                                   event::CreateAdmitted{guaranteed("e", 2), exclusive_on(narrowed)}));
  EXPECT_EQ(cpus_of("x").to_string(), (CpuSet::range(0, 7) - narrowed).to_string());
  ASSERT_TRUE(step()) << "the next step is of the pool as it is then";
  EXPECT_EQ(cpus_of("x").size(), 2U);
}

}  // namespace
}  // namespace topolet::engine
