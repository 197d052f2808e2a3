// Tests that need more than one event.
#include "core/engine/state/transitions.hpp"

#include <gmock/gmock.h>

#include <map>
#include <optional>
#include <string>

#include "tests/engine/ledgers.hpp"
#include "tests/engine/transition_text.hpp"

namespace topolet::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TransitionsTest : public ::testing::Test {
 protected:
  std::vector<std::string> happen(const Event& event) {
    const Transition made = compute_transition(ledger_, {}, now_, event);
    ledger_.apply(made);
    return describe(made);
  }
  const Allocation& of(const std::string& name) const { return *ledger_.find(besteffort(name).key); }

  std::chrono::milliseconds now_{1000};
  Ledger ledger_ = ledger_of({});
};

TEST_F(TransitionsTest, AChangeSaysWhatItIsToTheContainer) {
  const placement::ContainerKey key = guaranteed("a", 1).key;
  const auto kind = [this](const Event& event) {
    placement::PlacementRules rules;
    rules.crash_hold = std::chrono::seconds(1);
    const Transition made = compute_transition(ledger_, rules, now_, event);
    ledger_.apply(made);
    return made.changes.empty() ? ChangeKind::kInternal : made.changes.front().kind;
  };
  EXPECT_EQ(kind(event::CreateAdmitted{guaranteed("a", 1), exclusive_on({0})}), ChangeKind::kInternal);
  EXPECT_EQ(kind(event::CreateConfirmed{key, "c1", {CpuSet{0}, {}}}), ChangeKind::kPlaced);
  EXPECT_EQ(kind(event::StartRequested{key}), ChangeKind::kInternal);
  EXPECT_EQ(kind(event::StartConfirmed{key}), ChangeKind::kStarted);
  EXPECT_EQ(kind(event::Moved{guaranteed("a", 1), exclusive_on({1}), AuditEvent::kReplaced}), ChangeKind::kMoved);
  EXPECT_EQ(kind(event::Moved{guaranteed("a", 1), exclusive_on({2}), AuditEvent::kResized}), ChangeKind::kResized);
  EXPECT_EQ(kind(event::Moved{guaranteed("a", 1), exclusive_on({2}), AuditEvent::kReplaced}), ChangeKind::kInternal)
      << "another decision, the same place";
  EXPECT_EQ(kind(event::Exited{key, 1}), ChangeKind::kReleased) << "it failed";
  EXPECT_EQ(kind(event::CrashHoldExpired{key}), ChangeKind::kInternal) << "it was released when it failed";
}

TEST(AuditEvents, AreReadAsTheyAreWritten) {
  for (int number = 0; number <= static_cast<int>(AuditEvent::kCapacity); ++number) {
    const auto event = static_cast<AuditEvent>(number);
    EXPECT_EQ(audit_event_from(to_string(event)), event) << number;
  }
  EXPECT_EQ(audit_event_from("something else"), std::nullopt);
}

TEST_F(TransitionsTest, AnEventAboutWhatIsUnknownChangesNothing) {
  ledger_ = ledger_of({exclusive("b", {0}), shared("c")}, {pod_of("b")});
  const placement::ContainerKey key = guaranteed("a", 1).key;
  const std::vector<Event> events{event::CreateRetried{key},
                                  event::CreateConfirmed{key, "c1", {CpuSet{0}, {}}},
                                  event::CreateRefused{key, {}},
                                  event::CreateLeftInDoubt{key, {}},
                                  event::CreateWithdrawn{key, "cancelled"},
                                  event::CreateDiscovered{key, {}, CpuSet{0}},
                                  event::DoubtExpired{key},
                                  event::StartRequested{key},
                                  event::StartConfirmed{key},
                                  event::StartRefused{key},
                                  event::StartLeftInDoubt{key},
                                  event::StopRequested{key},
                                  event::StopRefused{key},
                                  event::Exited{key, 1},
                                  event::Ended{key, "removed"},
                                  event::PodStopped{key.sandbox_id},
                                  event::PodRemoved{key.sandbox_id},
                                  event::PodForgotten{key.sandbox_id},
                                  event::DemandChanged{key, {}, "why"},
                                  event::Moved{guaranteed("a", 1), exclusive_on({1}), AuditEvent::kReplaced},
                                  event::ChangeReverted{exclusive("a", {1}), "why"},
                                  event::Converged{key, CpuSet{0}},
                                  event::Drifted{key, CpuSet{0}, "why"},
                                  event::Evaluated{key},
                                  event::RestEnded{},
                                  event::WaitingExpired{key.sandbox_id, key.name},
                                  event::MachineChanged{kEightCpus, {key}},
                                  event::CrashHoldExpired{key}};
  for (const Event& event : events) {
    const Transition made = compute_transition(ledger_, {}, now_, event);
    EXPECT_THAT(describe(made), IsEmpty()) << "event " << event.index();
    EXPECT_TRUE(made.is_nothing()) << "event " << event.index();
  }
}

TEST_F(TransitionsTest, CarryOutNoWishForWhomWasMovedNotLongAgo) {
  for (const auto& [ago, is_moved] : {std::pair{std::chrono::minutes(9), false}, {std::chrono::minutes(11), true}}) {
    Allocation moved = shared("b", Phase::kRunning, CpuSet::range(0, 3));
    moved.last_move = LastMove{now_ - ago, MoveCause::kHeal};
    Plan plan = exclusive_on({0});
    plan.moves.push_back({moved.workload, shared_on(CpuSet::range(4, 7), CpuSet::range(4, 7)).decision, std::nullopt,
                          MoveCause::kPlugin});
    const Ledger ledger = ledger_of({moved});
    const Transition made = compute_transition(ledger, {}, now_, event::CreateAdmitted{guaranteed("a", 1), plan});
    for (const Change& change : made.changes) {
      if (change.after->workload.key.name != "b") continue;
      EXPECT_EQ(change.after->within, is_moved ? CpuSet::range(4, 7) : CpuSet::range(0, 3));
      EXPECT_EQ(change.after->last_move->cause, is_moved ? MoveCause::kPlugin : MoveCause::kHeal);
    }
  }
}

TEST_F(TransitionsTest, SayWhoseDecisionMadeOthersMove) {
  happen(event::CreateAdmitted{besteffort("b"), shared_on(CpuSet::range(0, 3), CpuSet::range(0, 3))});
  happen(event::CreateAdmitted{besteffort("c"), shared_on(CpuSet::range(0, 7), CpuSet::range(0, 7))});
  Plan plan = exclusive_on(CpuSet::range(0, 3));
  plan.moves.push_back({besteffort("b"), shared_on(CpuSet::range(4, 7), CpuSet::range(4, 7)).decision,
                        Preferred{{}, CpuSet::range(0, 3), NodeSet{0}, false}});
  const Transition made = compute_transition(ledger_, {}, now_, event::CreateAdmitted{guaranteed("a", 4), plan});
  std::map<std::string, std::optional<std::int64_t>> caused_by;
  std::int64_t decision = 0;
  for (const Change& change : made.changes) {
    const std::string& name = change.after->workload.key.name;
    if (name == "a") decision = change.after->decision;
    if (change.audit) caused_by[name] = change.audit->caused_by;
  }
  EXPECT_EQ(caused_by.size(), 2U) << "c follows the pool without a decision";
  EXPECT_EQ(caused_by["a"], std::nullopt);
  EXPECT_EQ(caused_by["b"], decision);
  EXPECT_EQ(made.pool_cause.what, "placed");
  EXPECT_EQ(made.pool_cause.decision, decision);
  ledger_.apply(made);
  const Transition ended = compute_transition(ledger_, {}, now_, event::Ended{guaranteed("a", 4).key, "removed"});
  EXPECT_EQ(ended.pool_cause.what, "ended");
  EXPECT_EQ(ended.pool_cause.decision, decision);
  for (const Change& change : ended.changes) {
    if (!change.audit) continue;
    EXPECT_EQ(change.audit->caused_by, decision) << "b returns";
  }
}

TEST_F(TransitionsTest, CountTheSameDenialInsteadOfTellingItAgain) {
  placement::Decision full;
  full.denied = true;
  full.reason = "full";
  placement::Workload workload = guaranteed("a", 9);
  EXPECT_THAT(happen(event::Denied{workload, full}), ElementsAre("denied 1: a", "pod sandbox-a: nodes , denied a#0 1"));
  EXPECT_THAT(happen(event::Denied{workload, full}), ElementsAre("denied again 1"));
  workload.key.attempt = 1;
  EXPECT_THAT(happen(event::Denied{workload, full}),
              ElementsAre("denied 2: a#1", "pod sandbox-a: nodes , denied a#1 2"));
  full.reason = "fuller";
  EXPECT_THAT(happen(event::Denied{workload, full}),
              ElementsAre("denied 3: a#1", "pod sandbox-a: nodes , denied a#1 3"));
}

TEST_F(TransitionsTest, KeepWhatWasLoggedOfAPodsAnnotationsOnceEach) {
  placement::Decision full;
  full.reason = "full";
  happen(event::Denied{guaranteed("a", 1), full, {"one"}});
  EXPECT_THAT(ledger_.find_pod("sandbox-a")->warned, ElementsAre("one"));
  placement::Workload side = guaranteed("a", 1);
  side.key.name = "side";
  happen(event::CreateAdmitted{side, exclusive_on({2}), {}, false, {"one", "two"}});
  EXPECT_THAT(ledger_.find_pod("sandbox-a")->warned, ElementsAre("one", "two"));
  EXPECT_EQ(ledger_.find_pod("sandbox-a")->sandbox.pod_uid, side.key.pod_uid);
  operations::Sandbox again = ledger_.find_pod("sandbox-a")->sandbox;
  again.id = "sandbox-again";
  happen(event::PodSeen{again});
  EXPECT_THAT(ledger_.find_pod("sandbox-again")->warned, ElementsAre("one", "two")) << "it is the same pod";
}

TEST_F(TransitionsTest, KeepTheFirstDoubtOfACreateThroughItsRetries) {
  happen(event::CreateAdmitted{guaranteed("a", 1), exclusive_on({0})});
  const placement::ContainerKey key = guaranteed("a", 1).key;
  happen(event::CreateLeftInDoubt{key, {Code::kUnavailable, ""}});
  for (int retry = 0; retry < 2; ++retry) {
    now_ += std::chrono::milliseconds(1000);
    happen(event::CreateRetried{key});
    EXPECT_EQ(of("a").phase, Phase::kPending);
    if (retry == 1) {
      happen(event::Restarted{});
      happen(event::CreateRetried{key});
    }
    happen(event::CreateLeftInDoubt{key, {Code::kUnavailable, ""}});
  }
  EXPECT_EQ(of("a").doubt_since, std::chrono::milliseconds(1000));
  EXPECT_EQ(of("a").phase_since, std::chrono::milliseconds(3000));
}

TEST_F(TransitionsTest, KeepWhatIsKnownOfAPodAndAListDoesNotTell) {
  operations::Sandbox sandbox = pod_of("a").sandbox;
  sandbox.annotations = {{"note", "kept"}, {"kubectl.kubernetes.io/last-applied-configuration", "a secret"}};
  EXPECT_THAT(happen(event::PodSeen{sandbox}), ElementsAre("pod sandbox-a: nodes , note=kept"));
  sandbox.annotations = {};
  EXPECT_THAT(happen(event::PodSeen{sandbox}), IsEmpty());
  sandbox.ready = false;
  EXPECT_THAT(happen(event::PodSeen{sandbox}), ElementsAre("pod sandbox-a: nodes , note=kept, not ready"));
}

TEST_F(TransitionsTest, LeaveAPodWhereItIsWhenItsSandboxIsMadeAnew) {
  Pod first = pod_of("a");
  first.nodes = NodeSet{1};
  first.former["a"] = {CpuSet{4}, {}};
  first.sandbox.annotations = {{"of", "the first"}};
  ledger_ = ledger_of({}, {first});
  operations::Sandbox second = pod_of("a").sandbox;
  second.id = "second";
  EXPECT_THAT(happen(event::PodSeen{second}), ElementsAre("pod second: nodes 1, former a 4 "));
}

TEST_F(TransitionsTest, UndoAMove) {
  ledger_ = ledger_of({exclusive("a", {0, 1}), shared("b")});
  const Allocation before = of("a");
  happen(event::Moved{guaranteed("a", 1), exclusive_on({2}), AuditEvent::kResized});
  EXPECT_EQ(ledger_.pool(), CpuSet::range(3, 7)) << "what it had is kept for the way back";
  EXPECT_THAT(happen(event::ChangeReverted{before, "why"}),
              ElementsAre("a: demand 1000>2000, cpus 2>0-1, vacating 0-1>2, alone 0-1>, evaluated 2>0-1 "
                          "[re-placed instead of 3] (bound)",
                          "b: cpus 3-7>2-7, vacating 2>", "pool 3-7>2-7"));
  EXPECT_THAT(happen(event::ChangeReverted{of("a"), "why"}), IsEmpty()) << "it is there";
}

TEST_F(TransitionsTest, UndoAMoveIntoThePool) {
  ledger_ = ledger_of({exclusive("a", {0, 1}), shared("b")});
  const Allocation before = of("a");
  happen(event::Moved{besteffort("a"), shared_on(CpuSet::range(0, 7)), AuditEvent::kResized});
  EXPECT_EQ(ledger_.pool(), CpuSet::range(2, 7)) << "what it had is kept for the way back";
  happen(event::ChangeReverted{before, "why"});
  EXPECT_EQ(of("a").placement, before.placement);
  EXPECT_EQ(of("a").vacating, CpuSet::range(2, 7));
  EXPECT_EQ(of("a").vacating_alone, CpuSet());
  EXPECT_EQ(ledger_.pool(), CpuSet::range(2, 7));
}

TEST_F(TransitionsTest, WithholdNothingAgainThatOthersWereGivenMeanwhile) {
  ledger_ = ledger_of({exclusive("a", {0, 1}, Phase::kRunning, {4, 5})});
  const Allocation before = of("a");
  happen(event::Moved{guaranteed("a", 1), exclusive_on({0}, {4}), AuditEvent::kResized});
  happen(event::CreateAdmitted{guaranteed("b", 1), exclusive_on({5})});
  happen(event::ChangeReverted{before, "why"});
  EXPECT_EQ(of("a").placement.cpus, (CpuSet{0, 1}));
  EXPECT_EQ(of("a").placement.withheld, CpuSet{4});
}

TEST_F(TransitionsTest, DoNotUndoAMoveOntoWhatOthersWereGivenMeanwhile) {
  ledger_ = ledger_of({exclusive("a", CpuSet::range(0, 7))});
  const Allocation before = of("a");
  happen(event::Moved{besteffort("a"), shared_on(CpuSet::range(0, 7)), AuditEvent::kResized});
  happen(event::CreateAdmitted{guaranteed("b", 1), exclusive_on({0})});
  happen(event::ChangeReverted{before, "why"});
  EXPECT_EQ(of("a").placement.mode, placement::Mode::kShared);
  EXPECT_EQ(of("a").placement.cpus, CpuSet::range(1, 7));
  EXPECT_EQ(of("a").workload.demand, before.workload.demand) << "the runtime has not changed it";
  ASSERT_TRUE(of("a").preferred);
  EXPECT_EQ(of("a").preferred->placement, before.placement) << "it may have them again later";
}

TEST_F(TransitionsTest, KeepTheDoubtOfACreateThatIsDecidedAnew) {
  happen(event::CreateAdmitted{guaranteed("a", 1), exclusive_on({0})});
  happen(event::CreateLeftInDoubt{guaranteed("a", 1).key, {Code::kUnavailable, ""}});
  now_ += std::chrono::milliseconds(1000);
  happen(event::CreateAdmitted{besteffort("a"), shared_on(CpuSet::range(0, 7)), {guaranteed("a", 1).key}});
  EXPECT_EQ(of("a").placement.mode, placement::Mode::kShared);
  EXPECT_EQ(of("a").doubt_since, std::chrono::milliseconds(1000));
  EXPECT_EQ(ledger_.pool(), CpuSet::range(0, 7));
}

TEST_F(TransitionsTest, WithdrawOrDoubtNoCreateThatIsOver) {
  ledger_ = ledger_of({exclusive("a", {0})});
  EXPECT_THAT(happen(event::CreateWithdrawn{of("a").workload.key, "cancelled"}), IsEmpty());
  EXPECT_THAT(happen(event::CreateLeftInDoubt{of("a").workload.key, {Code::kUnavailable, ""}}), IsEmpty());
}

TEST_F(TransitionsTest, PutNobodyOnReservedCpusThatAreHeldAlone) {
  Allocation system = shared("b");
  system.placement.mode = placement::Mode::kReserved;
  ledger_ = ledger_of({exclusive("a", {2, 3}), system}, {}, {CpuSet::range(0, 7), {2, 3}, {}});
  happen(event::Restarted{});
  EXPECT_EQ(of("b").placement.cpus, (CpuSet{0, 1, 4, 5, 6, 7}));
  happen(event::Ended{of("a").workload.key, "exited"});
  EXPECT_EQ(of("b").placement.cpus, CpuSet::range(0, 7));
}

TEST_F(TransitionsTest, UndoNoMoveOfOneThatHasFailedMeanwhile) {
  ledger_ = ledger_of({exclusive("a", {0, 1})});
  const Allocation before = of("a");
  happen(event::Moved{guaranteed("a", 1), exclusive_on({2}), AuditEvent::kResized});
  happen(event::Exited{before.workload.key, 1});
  EXPECT_THAT(happen(event::ChangeReverted{before, "why"}), IsEmpty());
}

TEST_F(TransitionsTest, JoinThePoolInTwoSteps) {
  ledger_ = ledger_of({exclusive("a", {0, 1})});
  happen(event::Moved{besteffort("a"), shared_on(CpuSet::range(0, 7)), AuditEvent::kResized});
  EXPECT_EQ(of("a").placement.cpus, CpuSet::range(2, 7));
  happen(event::Converged{of("a").workload.key, CpuSet::range(2, 7)});
  EXPECT_EQ(of("a").placement.cpus, CpuSet::range(0, 7)) << "what it had is the pool's once it has left";
  EXPECT_EQ(ledger_.pool(), CpuSet::range(0, 7));
}

}  // namespace
}  // namespace topolet::engine
