// The reported capacity of a NUMA node: when it counts, what is audited, and that none of it is lost.
#include "core/engine/state/reported_capacity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/engine/state/codec.hpp"
#include "core/engine/state/record_again.hpp"
#include "core/engine/state/transitions.hpp"
#include "core/engine/state/write_transition.hpp"
#include "tests/engine/ledgers.hpp"

namespace topolet::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kNominal = 8000;

TEST(ReportedCapacity, IsLowBelowNineTenths) {
  EXPECT_FALSE(is_low(kNominal, kNominal));
  EXPECT_FALSE(is_low(7200, kNominal));
  EXPECT_TRUE(is_low(7199, kNominal));
  EXPECT_FALSE(is_low(0, 0));
}

TEST(ReportedCapacity, LacksCpusToTheNearestOnce) {
  ReportedCapacity told{.milli = 6000, .source = "test", .lowers = true};
  EXPECT_EQ(missing_cpus(told, kNominal), 2U);
  told.milli = 5500;
  EXPECT_EQ(missing_cpus(told, kNominal), 3U) << "half a CPU counts as one";
  told.milli = 5501;
  EXPECT_EQ(missing_cpus(told, kNominal), 2U);
  told.milli = 0;
  EXPECT_EQ(missing_cpus(told, kNominal), 8U);
  EXPECT_EQ(missing_cpus(told, -1), 0U);
  told.lowers = false;
  EXPECT_EQ(missing_cpus(told, kNominal), 0U) << "not yet";
}

TEST(ReportedCapacity, IsNominalByTheOnlineCpusOfANodeThatHasSome) {
  const auto machine = testing::machine("node:2 core:4 pu:2");
  EXPECT_EQ(nominal_milli(machine.get(), 1), 8000);
  EXPECT_EQ(nominal_milli(machine.get(), 2), 0);
  EXPECT_EQ(nominal_milli(nullptr, 0), 0);
  topolet::topology::Topology with_memory = *machine;
  with_memory.nodes[1].memory_only = true;
  EXPECT_EQ(nominal_milli(&with_memory, 1), 0);
}

class CapacityTransitions : public ::testing::Test {
 protected:
  void SetUp() override { happen(event::Restarted{.topology = machine_}); }

  Transition happen(const Event& event) {
    Transition made = compute_transition(ledger_, {}, now_, event);
    EXPECT_TRUE(made.changes.empty()) << "no container is concerned";
    ledger_.apply(made);
    return made;
  }
  Transition tell(std::int64_t milli, milliseconds lasts = minutes(10), const std::string& source = "operator") {
    return happen(event::CapacityReported{1, milli, now_ + lasts, source});
  }
  Transition pass(milliseconds time) {
    now_ += time;
    return happen(event::CapacityTimePassed{});
  }
  const ReportedCapacity* told() const {
    const auto found = ledger_.reported_capacities().find(1);
    return found == ledger_.reported_capacities().end() ? nullptr : &found->second;
  }
  static std::vector<std::string> audited(const Transition& made) {
    std::vector<std::string> texts;
    for (const RecordedEvent& recorded : made.recorded_events) {
      EXPECT_EQ(recorded.audit.event, AuditEvent::kCapacity);
      EXPECT_EQ(recorded.audit.nodes, NodeSet{1});
      texts.push_back(recorded.audit.reason);
    }
    return texts;
  }

  milliseconds now_ = std::chrono::hours(24 * 365 * 50);
  const std::shared_ptr<const topology::Topology> machine_ = testing::machine("node:2 core:4 pu:2");
  Ledger ledger_ = ledger_of({}, {}, {machine_->allowed, {}, {}});
};

TEST_F(CapacityTransitions, LowersAfterAMinuteAndEndsInItsTimeEachOnce) {
  EXPECT_THAT(audited(tell(6000, seconds(90))),
              ElementsAre("node 1: 6000 of 8000 milli-CPUs (told by operator) until 2019-12-20T00:01:30Z"));
  ASSERT_NE(told(), nullptr);
  EXPECT_EQ(told()->below_since, now_);
  EXPECT_TRUE(pass(milliseconds(59'999)).is_nothing());
  EXPECT_THAT(audited(pass(milliseconds(1))),
              ElementsAre("node 1: 6000 of 8000 milli-CPUs (told by operator) for 60 s: 2 CPUs fewer can be had for "
                          "exclusive use"));
  EXPECT_TRUE(told()->lowers);
  EXPECT_TRUE(pass(milliseconds(29'999)).is_nothing()) << "said once";
  EXPECT_THAT(audited(pass(milliseconds(1))),
              ElementsAre("node 1: 6000 of 8000 milli-CPUs (told by operator) has expired; its nominal capacity counts "
                          "again"));
  EXPECT_EQ(told(), nullptr);
  EXPECT_TRUE(pass(minutes(1)).is_nothing());
}

TEST_F(CapacityTransitions, CountsTheMinuteOverWordsThatAreAllLow) {
  tell(6000);
  now_ += seconds(40);
  tell(5000);
  EXPECT_EQ(told()->below_since, now_ - seconds(40));
  pass(seconds(20));
  EXPECT_TRUE(told()->lowers);
  tell(7000);
  EXPECT_TRUE(told()->lowers) << "another amount counts at once";
  tell(7200);
  EXPECT_FALSE(told()->lowers);
  EXPECT_EQ(told()->below_since.count(), 0);
  tell(6000);
  EXPECT_FALSE(told()->lowers) << "it begins anew";
  EXPECT_EQ(told()->below_since, now_);
}

TEST_F(CapacityTransitions, AuditsNewWordsAndNotTheSameForLonger) {
  EXPECT_THAT(audited(tell(6000)), SizeIs(1));
  EXPECT_TRUE(tell(6000).is_nothing());
  const Transition longer = tell(6000, minutes(20));
  EXPECT_THAT(audited(longer), IsEmpty());
  EXPECT_FALSE(longer.is_nothing());
  EXPECT_EQ(told()->until, now_ + minutes(20));
  EXPECT_THAT(audited(tell(6000, minutes(20), "nrt")), ElementsAre(HasSubstr("told by nrt")));
}

TEST_F(CapacityTransitions, IsClearedByWhoeverSaysSo) {
  EXPECT_TRUE(happen(event::CapacityCleared{1, "operator"}).is_nothing());
  tell(6000);
  EXPECT_THAT(audited(happen(event::CapacityCleared{1, "nrt"})),
              ElementsAre("node 1: 6000 of 8000 milli-CPUs (told by operator) was cleared by nrt; its nominal capacity "
                          "counts again"));
  EXPECT_EQ(told(), nullptr);
}

TEST_F(CapacityTransitions, IsJudgedAnewWhenTheNodeHasOtherCpus) {
  tell(6000);
  pass(minutes(1));
  topolet::topology::Topology smaller = *machine_;
  smaller.nodes[1].cpus = CpuSet::range(8, 13);
  happen(event::MachineChanged{.inventory = ledger_.inventory(),
                               .topology = std::make_shared<const topology::Topology>(smaller)});
  EXPECT_EQ(told()->below_since.count(), 0) << "6 CPUs of 6";
  EXPECT_FALSE(told()->lowers);
  happen(event::MachineChanged{.inventory = ledger_.inventory(), .topology = machine_});
  EXPECT_EQ(told()->below_since, now_);
}

TEST_F(CapacityTransitions, GoesOnCountingWhenTheClockIsSet) {
  tell(6000);
  now_ -= std::chrono::hours(5);
  happen(event::ClockSet{-std::chrono::hours(5)});
  EXPECT_EQ(told()->until, now_ + minutes(10));
  EXPECT_EQ(told()->below_since, now_);
  pass(minutes(1));
  EXPECT_TRUE(told()->lowers);
}

TEST_F(CapacityTransitions, StaysAsItWasOverARestart) {
  tell(6000);
  const ReportedCapacity before = *told();
  now_ += seconds(30);
  happen(event::Restarted{.topology = machine_});
  EXPECT_EQ(*told(), before);
  now_ -= minutes(3);
  happen(event::Restarted{.topology = machine_});
  EXPECT_EQ(told()->below_since, now_) << "the wall clock was set back while no daemon ran";
}

ReportedCapacity full_capacity() {
  return {.node = 3,
          .milli = 6000,
          .until = milliseconds(1700000000001),
          .source = "operator",
          .below_since = milliseconds(1700000000000),
          .lowers = true};
}

std::vector<ReportedCapacity> stored_in(store::Store& store) {
  std::vector<ReportedCapacity> all;
  const auto rows = store.capacities();
  EXPECT_TRUE(rows.has_value());
  for (const store::CapacityRow& row : *rows) {
    const auto told = decode_capacity(row);
    EXPECT_TRUE(told.has_value()) << told.error().message;
    all.push_back(*told);
  }
  return all;
}

std::unique_ptr<store::Store> empty_store() { return *store::Store::open_in_memory("boot", 0); }

TEST(StoredCapacity, IsGivenBackWhole) {
  const auto store = empty_store();
  ASSERT_TRUE(store->put_capacity(3, encode(full_capacity())).has_value());
  EXPECT_THAT(stored_in(*store), ElementsAre(full_capacity()));
  const store::Columns empty = encode(ReportedCapacity());
  const store::Columns full = encode(full_capacity());
  for (std::size_t i = 0; i < full.size(); ++i) EXPECT_NE(full[i], empty[i]) << full[i].first;
}

TEST(StoredCapacity, NamesTheNodeWhoseRowCannotBeRead) {
  store::CapacityRow row{3, {}};
  for (const auto& [column, value] : encode(full_capacity())) row.columns[column] = value;
  row.columns["lowers"] = std::int64_t{7};
  const auto told = decode_capacity(row);
  ASSERT_FALSE(told.has_value());
  EXPECT_EQ(told.error().code, Code::kDataLoss);
  EXPECT_THAT(told.error().message, HasSubstr("node 3: column lowers"));
}

TEST_F(CapacityTransitions, AreWrittenWithTheirTransition) {
  const auto store = empty_store();
  ASSERT_TRUE(write(*store, tell(6000)).has_value());
  EXPECT_THAT(stored_in(*store), ElementsAre(*told()));
  ASSERT_TRUE(write(*store, pass(minutes(1))).has_value());
  EXPECT_THAT(stored_in(*store), ElementsAre(*told()));
  ASSERT_TRUE(write(*store, pass(minutes(10))).has_value());
  EXPECT_THAT(stored_in(*store), IsEmpty());
}

TEST_F(CapacityTransitions, AreRecordedAgainInANewDatabaseAsTheyAre) {
  tell(6000);
  const auto store = empty_store();
  ASSERT_TRUE(store->put_capacity(3, encode(full_capacity())).has_value()) << "what is no longer so";
  ASSERT_TRUE(write_again(*store, record_again(ledger_, {}, now_, "lost")).has_value());
  EXPECT_THAT(stored_in(*store), ElementsAre(*told()));
}

}  // namespace
}  // namespace topolet::engine
