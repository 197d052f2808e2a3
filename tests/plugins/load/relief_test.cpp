#include "plugins/load/relief.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <topolet/testing.hpp>

#include "tests/plugins/load/loads.hpp"

namespace topolet::load_policy {
namespace {

using sdk::testing::Container;
using sdk::testing::FakeHost;
using sdk::testing::Ledger;
using sdk::testing::Machine;
using sdk::testing::Plugin;
using sdk::testing::Request;
using sdk::testing::set_of;
using sdk::testing::Wish;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const sdk::Set kNode0 = set_of({0, 1, 2, 3});
const sdk::Set kNode1 = set_of({4, 5, 6, 7});

Container running(const std::string& name) { return {.pod_uid = name, .container_id = "id-" + name}; }

/// Two nodes of four CPUs, two containers on node 0, where all is used, and one on node 1.
class ReliefTest : public ::testing::Test {
 protected:
  ReliefTest() {
    ledger_.place_shared(running("a"), kNode0).entry_flags(TOPOLET_ENTRY_STARTED);
    ledger_.place_shared(running("b"), kNode0).entry_flags(TOPOLET_ENTRY_STARTED);
    ledger_.place_shared(running("c"), kNode1).entry_flags(TOPOLET_ENTRY_STARTED);
  }
  std::vector<Wish> tick(std::uint64_t seconds, const Loads& loads) {
    return plugin_.tick(machine_, ledger_, seconds * 1000, &loads.view());
  }

  Machine machine_{"numa:2 core:4 pu:1"};
  Ledger ledger_{machine_};
  FakeHost host_;
  Plugin plugin_{topolet_plugin_v1, host_};
  const Loads full_{{{4000, 0}, {4000, 0}}, {used(1500), used(2400), used(100)}};
};

TEST_F(ReliefTest, MovesTheOneThatUsesMostAfterAMinute) {
  EXPECT_THAT(tick(100, full_), IsEmpty());
  EXPECT_THAT(tick(159, full_), IsEmpty());
  const std::vector<Wish> wishes = tick(160, full_);
  ASSERT_EQ(wishes.size(), 1U);
  EXPECT_EQ(wishes.front().entry, 1U);
  EXPECT_TRUE(wishes.front().move_nodes);
  EXPECT_EQ(wishes.front().reason,
            "class LS, uses 2.40 CPUs: 3.90 of 4.00 shared CPUs of node 0 are used, and 0.10 of 4.00 of node 1");
  EXPECT_THAT(tick(165, full_), IsEmpty()) << "one a minute";
}

TEST_F(ReliefTest, AsksTheNextOneAMinuteLater) {
  static_cast<void>(tick(0, full_));
  EXPECT_EQ(tick(60, full_).size(), 1U);
  const std::vector<Wish> wishes = tick(120, full_);
  ASSERT_EQ(wishes.size(), 1U);
  EXPECT_EQ(wishes.front().entry, 0U) << "the other one did not leave";
  EXPECT_THAT(tick(180, full_), IsEmpty()) << "each is asked once in ten minutes";
}

TEST_F(ReliefTest, BeginsAnewWhereThePressureEnds) {
  const Loads calm({{4000, 0}, {4000, 0}}, {used(1000), used(2000), used(100)});
  static_cast<void>(tick(0, full_));
  static_cast<void>(tick(55, calm));
  EXPECT_THAT(tick(60, full_), IsEmpty());
  EXPECT_THAT(tick(119, full_), IsEmpty());
  EXPECT_EQ(tick(120, full_).size(), 1U);
}

TEST_F(ReliefTest, LeavesANodeFromWhichAHypervisorTakesTime) {
  const Loads stolen({{2000, 0}, {4000, 0}}, {used(1000), used(700), used(100)});
  static_cast<void>(tick(0, stolen));
  EXPECT_EQ(tick(60, stolen).size(), 1U) << "they would use 3.4 CPUs, and have 2";
}

TEST_F(ReliefTest, StaysWhereNoOtherNodeIsClearlyCalmer) {
  const Loads both({{4000, 0}, {4000, 0}}, {used(1500), used(2400), used(1500)});
  static_cast<void>(tick(0, both));
  EXPECT_EQ(tick(60, both).size(), 1U) << "1.5 of it fit";
  const Loads all({{4000, 0}, {4000, 0}}, {used(1500), used(2400), used(2600)});
  EXPECT_THAT(tick(200, all), IsEmpty());
}

TEST_F(ReliefTest, FillsNoNodeToMoreThanFourFifths) {
  const Loads loads({{3000, 0}, {4000, 0}}, {used(1500), used(1700), used(1800)});
  static_cast<void>(tick(0, loads));
  EXPECT_THAT(tick(60, loads), IsEmpty()) << "3.3 of 4 CPUs would be used, where 3.2 of 3 are wanted now";
}

TEST_F(ReliefTest, GoesToNoNodeFromWhichAHypervisorTakesTime) {
  const Loads stolen({{4000, 0}, {1100, 0}}, {used(3500), used(400), used(450)});
  static_cast<void>(tick(0, stolen));
  EXPECT_THAT(tick(60, stolen), IsEmpty());
}

TEST_F(ReliefTest, MovesNobodyWhoIsIdle) {
  Ledger ledger(machine_);
  Container tied = running("a");
  tied.used_devices = {"0000:01:00.0"};
  ledger.place_shared(tied, kNode0).entry_flags(TOPOLET_ENTRY_STARTED);
  ledger.place_shared(running("b"), kNode0).entry_flags(TOPOLET_ENTRY_STARTED);
  for (const std::int64_t milli : {40, 60}) {
    const Loads loads({{4000, 0}, {4000, 0}}, {used(3900), used(milli)});
    FakeHost host;
    Plugin plugin(topolet_plugin_v1, host);
    static_cast<void>(plugin.tick(machine_, ledger, 0, &loads.view()));
    EXPECT_EQ(plugin.tick(machine_, ledger, 60000, &loads.view()).size(), milli == 60 ? 1U : 0U);
  }
}

TEST_F(ReliefTest, MovesClassBeFirst) {
  Container be = running("be");
  be.settings = {{"class", "BE"}};
  ledger_.place_shared(be, kNode0).entry_flags(TOPOLET_ENTRY_STARTED);
  const Loads loads({{4000, 0}, {4000, 0}}, {used(1500), used(1900), used(500), used(100)});
  static_cast<void>(tick(0, loads));
  const std::vector<Wish> wishes = tick(60, loads);
  ASSERT_EQ(wishes.size(), 1U);
  EXPECT_EQ(wishes.front().entry, 2U);
  EXPECT_THAT(wishes.front().reason, HasSubstr("class BE"));
}

TEST_F(ReliefTest, MovesBestEffortContainersOnlyWhereTheyDoNotGiveWay) {
  Ledger ledger(machine_);
  Container be = running("be");
  be.qos = TOPOLET_QOS_BESTEFFORT;
  ledger.place_shared(be, kNode0).entry_flags(TOPOLET_ENTRY_STARTED);
  ledger.place_shared(running("c"), kNode0).entry_flags(TOPOLET_ENTRY_STARTED);
  const Loads loads({{4000, 0}, {4000, 0}}, {used(900), used(2900)});
  for (const std::string percent : {"0", "65"}) {
    Plugin plugin(topolet_plugin_v1, host_, {{"besteffort-percent", percent}});
    static_cast<void>(plugin.tick(machine_, ledger, 0, &loads.view()));
    const std::vector<Wish> wishes = plugin.tick(machine_, ledger, 60000, &loads.view());
    ASSERT_EQ(wishes.size(), 1U);
    EXPECT_EQ(wishes.front().entry, percent == "0" ? 0U : 1U);
  }
}

TEST_F(ReliefTest, AsksNobodyWhoIsTiedToItsNode) {
  Ledger tied(machine_);
  Container with_device = running("a");
  with_device.used_devices = {"0000:01:00.0"};
  tied.place_shared(with_device, kNode0).entry_flags(TOPOLET_ENTRY_STARTED);
  tied.place_shared(running("b"), kNode0, set_of({0})).entry_flags(TOPOLET_ENTRY_STARTED);
  tied.place_shared(running("c"), kNode0);
  const Loads loads({{4000, 0}, {4000, 0}}, {used(1500), used(1500), used(1000)});
  static_cast<void>(plugin_.tick(machine_, tied, 0, &loads.view()));
  EXPECT_THAT(plugin_.tick(machine_, tied, 60000, &loads.view()), IsEmpty());
}

TEST_F(ReliefTest, GoesToNoNodeWhoseCpusMayBeStolen) {
  const Loads unknown({{4000, 0}, {-1, -1}}, {used(1500), used(2400), used(100)});
  static_cast<void>(tick(0, unknown));
  EXPECT_THAT(tick(60, unknown), IsEmpty());
}

/// Of the first of `full_`, on node 0.
topolet_entry_load waiting(std::int64_t milli, std::int32_t permille) { return {milli, 0, permille, 0}; }

TEST_F(ReliefTest, MovesOneThatWaitsForCpusAfterHalfAMinute) {
  const Loads pressed({{4000, 0}, {4000, 0}}, {waiting(1500, 400), used(1500), used(100)});
  EXPECT_THAT(tick(0, pressed), IsEmpty());
  EXPECT_THAT(tick(29, pressed), IsEmpty());
  const std::vector<Wish> wishes = tick(30, pressed);
  ASSERT_EQ(wishes.size(), 1U);
  EXPECT_EQ(wishes.front().entry, 0U);
  EXPECT_THAT(wishes.front().reason, HasSubstr("class LS, waits for a CPU for 40 % of the time, uses 1.50 CPUs"));
  EXPECT_THAT(tick(35, pressed), IsEmpty());
}

TEST_F(ReliefTest, AsksOneOfANodeInAMinuteWhateverTheCause) {
  const Loads both({{4000, 0}, {4000, 0}}, {waiting(1500, 400), used(2400), used(100)});
  static_cast<void>(tick(0, both));
  EXPECT_EQ(tick(30, both).size(), 1U) << "one waits";
  EXPECT_THAT(tick(60, both), IsEmpty()) << "the node has been used up for a minute";
  const std::vector<Wish> wishes = tick(90, both);
  ASSERT_EQ(wishes.size(), 1U);
  EXPECT_EQ(wishes.front().entry, 1U);
}

TEST_F(ReliefTest, MovesNobodyThatWaitsForLessOrForAMomentOnly) {
  const Loads less({{4000, 0}, {4000, 0}}, {waiting(1500, 249), used(1500), used(100)});
  const Loads pressed({{4000, 0}, {4000, 0}}, {waiting(1500, 400), used(1500), used(100)});
  for (int second = 0; second < 120; second += 10)
    EXPECT_THAT(tick(static_cast<std::uint64_t>(second), second % 30 == 0 ? less : pressed), IsEmpty());
  Plugin off(topolet_plugin_v1, host_, {{"pressure-percent", "0"}});
  static_cast<void>(off.tick(machine_, ledger_, 0, &pressed.view()));
  EXPECT_THAT(off.tick(machine_, ledger_, 60000, &pressed.view()), IsEmpty());
}

TEST_F(ReliefTest, LetsBestEffortContainersGiveWayFirst) {
  const Loads pressed({{4000, 0}, {4000, 0}}, {waiting(1500, 400), used(1500), used(100), used(500)});
  for (const auto& [cpus, wishes] :
       {std::pair(set_of({0, 1, 2}), 0U), std::pair(set_of({0, 1}), 1U), std::pair(set_of({4, 5, 6}), 1U)}) {
    Ledger ledger(machine_);
    for (const std::string name : {"a", "b"})
      ledger.place_shared(running(name), kNode0).entry_flags(TOPOLET_ENTRY_STARTED);
    ledger.place_shared(running("c"), kNode1).entry_flags(TOPOLET_ENTRY_STARTED);
    Container be = running("be");
    be.qos = TOPOLET_QOS_BESTEFFORT;
    ledger.place_shared(be, cpus).entry_flags(TOPOLET_ENTRY_STARTED);
    FakeHost host;
    Plugin plugin(topolet_plugin_v1, host);
    static_cast<void>(plugin.tick(machine_, ledger, 0, &pressed.view()));
    EXPECT_EQ(plugin.tick(machine_, ledger, 30000, &pressed.view()).size(), wishes) << cpus.to_string();
  }
}

TEST_F(ReliefTest, DoesNothingWithoutMeasurements) {
  const Loads old({{4000, 6000}, {4000, 6000}}, {used(1500, 6000), used(2400, 6000), used(100, 6000)});
  static_cast<void>(tick(0, full_));
  EXPECT_THAT(tick(60, old), IsEmpty());
  EXPECT_THAT(tick(65, full_), IsEmpty()) << "the minute begins anew";
  EXPECT_THAT(plugin_.tick(machine_, ledger_, 200000), IsEmpty());
}

TEST_F(ReliefTest, CanBeTurnedOff) {
  Plugin off(topolet_plugin_v1, host_, {{"relieve", "off"}});
  static_cast<void>(off.tick(machine_, ledger_, 0, &full_.view()));
  EXPECT_THAT(off.tick(machine_, ledger_, 60000, &full_.view()), IsEmpty());
}

TEST_F(ReliefTest, NobodyComesBack) {
  static_cast<void>(tick(0, full_));
  ASSERT_EQ(tick(60, full_).size(), 1U);
  plugin_.notify({.kind = TOPOLET_EVENT_MOVED, .cpus = kNode1, .mode = TOPOLET_MODE_SHARED}, machine_, running("b"));
  EXPECT_EQ(host_.state.at("left/id-b"), "0");
  Ledger after(machine_);
  after.place_shared(running("a"), kNode0).entry_flags(TOPOLET_ENTRY_STARTED);
  after.place_shared(running("b"), kNode1).entry_flags(TOPOLET_ENTRY_STARTED);
  const Loads loads({{4000, 0}, {4000, 0}}, {used(0), used(4000)});
  Plugin restarted(topolet_plugin_v1, host_);
  static_cast<void>(restarted.tick(machine_, after, 0, &loads.view()));
  EXPECT_THAT(restarted.tick(machine_, after, 60000, &loads.view()), IsEmpty());
  const Loads others({{4000, 0}, {4000, 0}}, {used(0)});
  Ledger without(machine_);
  without.place_shared(running("a"), kNode0).entry_flags(TOPOLET_ENTRY_STARTED);
  Request request(machine_, without, running("b"), 0);
  request.occasion(TOPOLET_OCCASION_MOVE).load(others.view());
  const auto said = restarted.score(request);
  EXPECT_EQ(said.at(0).kind, TOPOLET_VERDICT_REJECT) << "whatever others prefer";
  EXPECT_EQ(said.at(0).reason, "it left a node here because of its load");
  EXPECT_EQ(said.at(1).score, -7) << "what it used when it was asked counts, more than the CPU that it is taken for";
}

TEST_F(ReliefTest, ForgetsContainersThatAreGone) {
  static_cast<void>(tick(0, full_));
  ASSERT_EQ(tick(60, full_).size(), 1U);
  EXPECT_EQ(host_.state.at("used/id-b"), "2400");
  plugin_.notify({.kind = TOPOLET_EVENT_RELEASED, .mode = TOPOLET_MODE_SHARED}, machine_, running("b"));
  EXPECT_THAT(host_.state, IsEmpty());
  host_.state = {{"left/id-z", "0"}, {"used/id-z", "100"}, {"x", "of another version"}};
  const Loads calm({{4000, 0}, {4000, 0}}, {used(100), used(100), used(100)});
  static_cast<void>(tick(200, calm));
  EXPECT_THAT(host_.state, IsEmpty());
}

}  // namespace
}  // namespace topolet::load_policy
