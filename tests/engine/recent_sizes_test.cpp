// The sizes of exclusive containers that the ledger remembers: which count, for how long, and that none of it is lost.
#include "core/engine/state/recent_sizes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/engine/planning/placer.hpp"
#include "core/engine/state/load_ledger.hpp"
#include "core/engine/state/record_again.hpp"
#include "core/engine/state/transitions.hpp"
#include "core/engine/state/write_transition.hpp"
#include "core/placement/candidates.hpp"
#include "core/placement/decide.hpp"
#include "tests/engine/ledgers.hpp"

namespace topolet::engine {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr milliseconds kFullHour = hours(24 * 365 * 50);

TEST(RecentSizes, AreOfTheLastDayInFullHours) {
  RecentSizes sizes;
  EXPECT_EQ(sizes.largest(kFullHour), 0U);
  sizes.note(8, kFullHour + minutes(10));
  sizes.note(4, kFullHour + minutes(70));
  EXPECT_EQ(sizes.largest(kFullHour + hours(1)), 8U);
  EXPECT_EQ(sizes.largest(kFullHour + hours(25) - milliseconds(1)), 8U);
  EXPECT_EQ(sizes.largest(kFullHour + hours(25)), 4U);
  EXPECT_EQ(sizes.largest(kFullHour + hours(26)), 0U);
}

TEST(RecentSizes, ChangeNothingWithTheSameAgainWithinTheHour) {
  RecentSizes sizes;
  sizes.note(8, kFullHour);
  RecentSizes again = sizes;
  again.note(8, kFullHour + minutes(59));
  again.note(3, kFullHour + minutes(59));
  EXPECT_EQ(again, sizes);
  again.note(8, kFullHour + minutes(60));
  EXPECT_NE(again, sizes);
  EXPECT_THAT(again.sizes(), SizeIs(1));
}

TEST(RecentSizes, AreWhatAListOfAllWouldSay) {
  std::mt19937 random(7);
  RecentSizes sizes;
  std::vector<std::pair<milliseconds, std::uint32_t>> all;
  milliseconds now = kFullHour;
  for (int i = 0; i < 2000; ++i) {
    now += minutes(random() % 90);
    const auto cpus = static_cast<std::uint32_t>(1 + random() % 40);
    sizes.note(cpus, now);
    all.emplace_back(std::chrono::floor<hours>(now), cpus);
    const milliseconds later = now + minutes(random() % 2000);
    std::uint32_t most = 0;
    for (const auto& [hour, size] : all) {
      if (std::chrono::floor<hours>(later) - hour <= hours(24)) most = std::max(most, size);
    }
    ASSERT_EQ(sizes.largest(later), most) << "after " << i;
  }
  EXPECT_LE(sizes.sizes().size(), 25U);
}

TEST(RecentSizes, AreNotOfTheFutureWhereTheClockWasSetBack) {
  RecentSizes sizes;
  sizes.note(8, kFullHour + hours(1000));
  EXPECT_EQ(sizes.largest(kFullHour), 8U);
  sizes.note(2, kFullHour);
  EXPECT_EQ(sizes.largest(kFullHour + hours(24)), 8U);
  EXPECT_EQ(sizes.largest(kFullHour + hours(25)), 0U);
}

class NotedSizes : public ::testing::Test {
 protected:
  Transition happen(const Event& event) {
    Transition made = compute_transition(ledger_, {}, now_, event);
    ledger_.apply(made);
    return made;
  }
  Transition place(const std::string& name, const CpuSet& cpus, const CpuSet& withheld = {}) {
    Plan plan;
    plan.decision.placement = {placement::Mode::kExclusive, cpus, withheld, {}};
    return happen(
        event::CreateAdmitted{.workload = guaranteed(name, static_cast<std::int64_t>(cpus.size())), .plan = plan});
  }
  std::uint32_t largest() const { return ledger_.recent_sizes().largest(now_); }

  milliseconds now_ = kFullHour;
  Ledger ledger_ = ledger_of({}, {}, {CpuSet::range(0, 15), {}, CpuSet{14, 15}});
};

TEST_F(NotedSizes, AreThoseOfContainersThatArePlacedWithTheirIdleThreads) {
  place("a", {0, 1});
  EXPECT_EQ(largest(), 2U);
  place("b", {2}, {3, 4, 5});
  EXPECT_EQ(largest(), 4U);
  place("c", {14, 15});
  EXPECT_EQ(largest(), 4U);
  happen(event::Ended{guaranteed("b", 1).key, "removed"});
  EXPECT_EQ(largest(), 4U) << "it has ended within the day";
  now_ += hours(25);
  EXPECT_EQ(largest(), 0U);
  place("d", {6});
  EXPECT_EQ(largest(), 1U);
}

TEST_F(NotedSizes, AreNotThoseOfIsolatedCpus) {
  EXPECT_FALSE(place("a", {14, 15}).recent_sizes.has_value());
  EXPECT_EQ(largest(), 0U);
}

TEST_F(NotedSizes, GrowWithAContainerAndDoNotCountOneThatOnlyMoves) {
  place("a", {0, 1});
  happen(event::CreateConfirmed{.key = guaranteed("a", 2).key, .container_id = "c-a", .sent = {}});
  now_ += hours(30);
  Plan plan;
  plan.decision.placement = {placement::Mode::kExclusive, CpuSet{2, 3}, {}, {}};
  happen(event::Moved{guaranteed("a", 2), plan, AuditEvent::kReplaced});
  EXPECT_EQ(largest(), 0U);
  plan.decision.placement.cpus = CpuSet{2, 3, 4};
  happen(event::Moved{guaranteed("a", 3), plan, AuditEvent::kReplaced});
  EXPECT_EQ(largest(), 3U);
}

TEST_F(NotedSizes, AreNotForgottenByAPlan) {
  place("a", CpuSet::range(0, 7));
  Ledger trial = ledger_;
  trial.assume(exclusive("b", {8}));
  EXPECT_EQ(trial.recent_sizes(), ledger_.recent_sizes());
}

TEST_F(NotedSizes, AgeAsBeforeWhenTheClockIsSet) {
  place("a", {0, 1});
  now_ -= hours(5);
  happen(event::ClockSet{-hours(5)});
  now_ += hours(24);
  EXPECT_EQ(largest(), 2U);
  now_ += hours(1);
  EXPECT_EQ(largest(), 0U);
}

Ledger loaded_from(store::Store& store) {
  LoadedLedger loaded = load_ledger(store, {CpuSet::range(0, 15), {}, {}});
  EXPECT_TRUE(loaded.status.has_value());
  return std::move(loaded.ledger);
}

TEST_F(NotedSizes, AreStoredWithTheTransitionThatPlacesTheContainer) {
  const auto store = *store::Store::open_in_memory("boot", 0);
  ASSERT_TRUE(write(*store, place("a", CpuSet::range(0, 7))).has_value());
  now_ += hours(2);
  ASSERT_TRUE(write(*store, place("b", {8, 9})).has_value());
  EXPECT_EQ(loaded_from(*store).recent_sizes(), ledger_.recent_sizes());
  EXPECT_THAT(ledger_.recent_sizes().sizes(), SizeIs(2));
  now_ += hours(2);
  ASSERT_TRUE(write(*store, place("c", {10, 11, 12})).has_value());
  EXPECT_EQ(loaded_from(*store).recent_sizes(), ledger_.recent_sizes());
}

TEST_F(NotedSizes, AreRecordedAgainInANewDatabase) {
  place("a", {0, 1});
  const auto store = *store::Store::open_in_memory("boot", 0);
  ASSERT_TRUE(store->put_recent_sizes({{99, 5}}).has_value()) << "what is no longer so";
  ASSERT_TRUE(write_again(*store, record_again(ledger_, {}, now_, "lost")).has_value());
  EXPECT_EQ(loaded_from(*store).recent_sizes(), ledger_.recent_sizes());
}

TEST_F(NotedSizes, AreToldToPoliciesAsLongAsTheyCount) {
  const auto machine = testing::machine("node:2 core:8 pu:1");
  std::vector<std::uint32_t> told;
  const Placer placer({.topology = machine,
                       .candidates = placement::make_candidates(*machine, machine->allowed),
                       .rules = {},
                       .decide =
                           [&told](const auto& request, const placement::PlacementRules& rules) {
                             told.push_back(request->largest_exclusive_cpus);
                             return decide(*request, rules, {});
                           },
                       .wall = [this] { return now_; }});
  place("a", CpuSet::range(0, 4));
  placer.plan(ledger_, guaranteed("b", 1));
  const Placer stopped = placer.with_clock_stopped();
  now_ += hours(25);
  placer.plan(ledger_, guaranteed("b", 1));
  stopped.plan(ledger_, guaranteed("b", 1));
  EXPECT_THAT(told, ElementsAre(5, 0, 5));
}

}  // namespace
}  // namespace topolet::engine
