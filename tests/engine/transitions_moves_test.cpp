#include "tests/engine/transitions_table.hpp"

namespace topolet::engine {
namespace {

Allocation tagged(Allocation allocation, const std::string& key) {
  allocation.workload.tags = {{key, "x"}};
  return allocation;
}

/// As if policies had set a variable and a tag.
Plan tagging(Plan plan) {
  plan.decision.tags = {{"b/tag", "y"}};
  plan.decision.placement.added = {{{"NAME", "1"}}, {}, {{"b/tag", "y"}}};
  return plan;
}

event::Adopted passed_on(event::Adopted adopted) {
  adopted.is_created = true;
  return adopted;
}

class TransitionsOfAPlace : public ::testing::TestWithParam<Row> {};

TEST_P(TransitionsOfAPlace, ChangeJustThat) { expect_just_those_changes(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Moves, TransitionsOfAPlace,
    ::testing::Values(
        Row{"asks for more, its CPUs stay",
            {shared("a")},
            event::DemandChanged{key_of("a"), half_a_cpu(), "why"},
            {"a: demand 0>500 [resized instead of 1] (bound)"}},
        Row{"asks for what it has", {shared("a")}, event::DemandChanged{key_of("a"), {}, "why"}, {}},
        Row{"moved, what it had is nobody's until it has left",
            {exclusive("a", {0, 1}), shared("b")},
            event::Moved{guaranteed("a", 2), exclusive_on({1, 2}), AuditEvent::kReplaced},
            {"a: cpus 0-1>1-2, vacating >0, alone >0, evaluated 0-1>1-2 [re-placed instead of 1] (bound)",
             "b: cpus 2-7>3-7, vacating >2", "pool 2-7>3-7"}},
        Row{"asks for more memory, and tagged anew",
            {tagged(shared("a"), "pools/pool")},
            event::DemandChanged{key_of("a"), half_a_cpu(), "why", tagging(shared_on({1})).decision},
            {"a: demand 0>500, tags pools/pool=x>b/tag=y [resized instead of 1] (bound)"}},
        Row{"moved, its tags stay",
            {tagged(shared("a"), "pools/pool")},
            event::Moved{tagged(shared("a"), "pools/pool").workload, shared_on({1, 2}, {1, 2}), AuditEvent::kReplaced},
            {"a: cpus 0-7>1-2, within 0-7>1-2, vacating >0,3-7, evaluated 0-7>1-2 [re-placed instead of 1] (bound)"}},
        Row{"moved, and tagged anew",
            {tagged(shared("a"), "pools/pool")},
            event::Moved{tagged(shared("a"), "pools/pool").workload, tagging(shared_on({1, 2}, {1, 2})),
                         AuditEvent::kReplaced},
            {"a: cpus 0-7>1-2, within 0-7>1-2, vacating >0,3-7, evaluated 0-7>1-2, tags pools/pool=x>b/tag=y "
             "[re-placed instead of 1] "
             "(bound)"}},
        Row{"moved into the pool, what it had is nobody's until it has left",
            {exclusive("a", {0, 1}), shared("b")},
            event::Moved{besteffort("a"), shared_on(CpuSet::range(0, 7)), AuditEvent::kResized},
            {"a: demand 2000>0, mode exclusive>shared, cpus 0-1>2-7, within >0-7, vacating >0-1, alone >0-1, evaluated "
             "0-1>0-7 [resized instead of 1] (bound)"}},
        Row{"moved into a pool of which nothing else is left",
            {exclusive("a", CpuSet::range(0, 7))},
            event::Moved{besteffort("a"), shared_on(CpuSet::range(0, 7)), AuditEvent::kResized},
            {"a: demand 8000>0, mode exclusive>shared, within >0-7 [resized instead of 1] (bound)", "pool >0-7"}},
        Row{"moved out of the pool",
            {shared("a"), shared("b")},
            event::Moved{guaranteed("a", 1), exclusive_on({0}), AuditEvent::kResized},
            {"a: demand 0>1000, mode shared>exclusive, cpus 0-7>0, within 0-7>, vacating >1-7, evaluated 0-7>0 "
             "[resized instead of 1] (bound)",
             "b: cpus 0-7>1-7, vacating >0", "pool 0-7>1-7"}},
        Row{"moved, and others with it",
            {exclusive("a", {4}), shared("b", Phase::kRunning, CpuSet::range(0, 3))},
            event::Moved{guaranteed("a", 4), moving_b_away(exclusive_on(CpuSet::range(0, 3))), AuditEvent::kReplaced},
            {"b: cpus 0-3>5-7, within 0-3>4-7, vacating >0-3, preferred >shared   0-3 0, evaluated 0-3>4-7 [re-placed "
             "instead of 2] (bound)",
             "a: demand 1000>4000, cpus 4>0-3, vacating >4, alone >4, evaluated 4>0-3 [re-placed instead of 1] (bound)",
             "pool 0-3,5-7>5-7"}},
        Row{"moved while it is created, it may be on the CPUs from before",
            {exclusive("a", {0}, Phase::kCreated)},
            event::Moved{guaranteed("a", 1), exclusive_on({1}), AuditEvent::kReplaced},
            {"a: cpus 0>1, vacating >0, alone >0, evaluated 0>1 [re-placed instead of 1] (bound)", "pool 1-7>2-7"}},
        Row{"moved before the runtime has it",
            {exclusive("a", {0}, Phase::kInDoubt)},
            event::Moved{guaranteed("a", 1), exclusive_on({1}), AuditEvent::kReplaced},
            {"a: cpus 0>1, evaluated 0>1 [re-placed instead of 1]", "pool 1-7>0,2-7"}},
        Row{"converged",
            {changed(exclusive("a", {0}),
                     [](Allocation& a) {
                       a.vacating = a.vacating_alone = CpuSet{1, 2};
                     }),
             shared("b")},
            event::Converged{key_of("a"), CpuSet{0}},
            {"a: vacating 1-2>, alone 1-2> [re-placed instead of 1] (bound)", "b: cpus 3-7>1-7", "pool 3-7>1-7"}},
        Row{"converged on a part",
            {changed(exclusive("a", {0}),
                     [](Allocation& a) {
                       a.vacating = a.vacating_alone = CpuSet{1, 2};
                     })},
            event::Converged{key_of("a"), CpuSet{0, 2}},
            {"a: vacating 1-2>2, alone 1-2>2 [re-placed instead of 1] (bound)", "pool 3-7>1,3-7"}},
        Row{"converged, nothing that it had alone",
            {changed(shared("a", Phase::kRunning, {0, 1}),
                     [](Allocation& a) {
                       a.vacating = CpuSet{2, 3};
                     })},
            event::Converged{key_of("a"), CpuSet{0, 1, 3}},
            {"a: vacating 2-3>3"}},
        Row{"converged where it was before",
            {changed(exclusive("a", {0}), [](Allocation& a) { a.vacating = a.vacating_alone = CpuSet{1}; })},
            event::Converged{key_of("a"), CpuSet{1}},
            {}},
        Row{"converged with nothing to leave", {shared("a")}, event::Converged{key_of("a"), CpuSet{0}}, {}},
        Row{"drifted",
            {exclusive("a", {0})},
            event::Drifted{key_of("a"), CpuSet{0, 5}, "why"},
            {"a: vacating >5", "drift 2: a"}},
        Row{"drifted to where it may still be",
            {changed(exclusive("a", {0}), [](Allocation& a) { a.vacating = CpuSet{5}; })},
            event::Drifted{key_of("a"), CpuSet{5}, "why"},
            {"drift 2: a"}},
        Row{"drifted, which was told before",
            {exclusive("a", {0})},
            event::Drifted{key_of("a"), CpuSet{5}, ""},
            {"a: vacating >5"}},
        Row{"evaluated",
            {changed(shared("a"), [](Allocation& a) { a.evaluated_cpus = CpuSet{0}; })},
            event::Evaluated{key_of("a")},
            {"a: evaluated 0>0-7"}},
        Row{"evaluated again", {shared("a")}, event::Evaluated{key_of("a")}, {}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Daemon, TransitionsOfAPlace,
    ::testing::Values(
        Row{"adopted",
            {shared("b")},
            event::Adopted{guaranteed("a", 1), exclusive_on({0}), found("c1", operations::ContainerState::kRunning),
                           AuditEvent::kAdopted, CpuSet{0}},
            {"a: new phase pending>running, since >1000, container >c1, mode shared>exclusive, cpus >0, evaluated >0, "
             "adopted >yes [adopted] (bound)",
             "b: cpus 0-7>1-7, vacating >0", "pool 0-7>1-7"}},
        Row{"adopted, it is where it should not be",
            {exclusive("b", {0})},
            event::Adopted{besteffort("a"), shared_on(CpuSet::range(1, 7)),
                           found("c1", operations::ContainerState::kRunning), AuditEvent::kAdopted,
                           CpuSet::range(0, 7)},
            {"a: new phase pending>running, since >1000, container >c1, cpus >1-7, within >0-7, vacating >0, evaluated "
             ">1-7, adopted >yes [adopted] (bound)"}},
        Row{"adopted, creates in doubt are overruled",
            {exclusive("b", {0}, Phase::kInDoubt)},
            event::Adopted{guaranteed("a", 1),
                           exclusive_on({0}),
                           found("c1", operations::ContainerState::kRunning),
                           AuditEvent::kAdopted,
                           CpuSet{0},
                           {key_of("b")}},
            {"b: over: overruled",
             "a: new phase pending>running, since >1000, container >c1, mode shared>exclusive, cpus >0, evaluated >0, "
             "adopted >yes [adopted] (bound)"}},
        Row{"adopted, foreign",
            {},
            event::Adopted{besteffort("a"),
                           plan_of({placement::Mode::kForeign, {2}, {}, {}}),
                           found("c1", operations::ContainerState::kCreated),
                           AuditEvent::kForeign,
                           {}},
            {"a: new phase pending>created, since >1000, container >c1, mode shared>foreign, cpus >2, evaluated >2, "
             "adopted >yes [foreign] (bound)",
             "pool 0-7>0-1,3-7"}},
        Row{"foreign, its create was passed on",
            {},
            passed_on(event::Adopted{besteffort("a"),
                                     plan_of({placement::Mode::kForeign, {}, {}, {}}),
                                     found("c1", operations::ContainerState::kCreated),
                                     AuditEvent::kForeign,
                                     {}}),
            {"a: new phase pending>created, since >1000, container >c1, mode shared>foreign [foreign] (bound)"}},
        Row{"a create in doubt turns up alone elsewhere, what was noted of it stays",
            {tagged(exclusive("a", {0}, Phase::kInDoubt), "pools/pool")},
            event::Adopted{guaranteed("a", 1), exclusive_on({1}), found("c1", operations::ContainerState::kRunning),
                           AuditEvent::kAdopted, CpuSet{1}},
            {"a: phase in_doubt>running, since 1>1000, container >c1, cpus 0>1, evaluated 0>1 [adopted instead of 1] "
             "(bound)",
             "pool 1-7>0,2-7"}},
        Row{"CPUs went, who shares follows and who has them alone stays",
            {exclusive("a", {0}), shared("b")},
            event::MachineChanged{{CpuSet::range(1, 6), {}, {}}},
            {"b: cpus 1-7>1-6, vacating >7", "pool 1-7>1-6"}},
        Row{"CPUs came",
            {exclusive("a", {0}), shared("b")},
            event::MachineChanged{{CpuSet::range(0, 9), {}, {}}},
            {"a: arrived >8-9", "pool 1-7>1-9"}},
        Row{"a CPU came back that its container has not left",
            {changed(exclusive("a", {0}), [](Allocation& a) { a.vacating = CpuSet{1}; }), shared("b")},
            event::MachineChanged{kEightCpus},
            {"a: alone >1, arrived >1"},
            {},
            {},
            {CpuSet::range(0, 7) - CpuSet{1}, {}, {}}},
        Row{"CPUs are there again for somebody whom the kernel has put somewhere",
            {changed(shared("b"),
                     [](Allocation& b) {
                       b.within = b.placement.cpus = CpuSet{1};
                       b.squeeze = Squeeze::kLeftToKernel;
                     })},
            event::MachineChanged{kEightCpus},
            {"b: vacating >0,2-7, squeezed left-to-kernel> [re-placed instead of 1] (bound)", "pool 0,2-7>0-7"},
            {},
            {},
            {CpuSet::range(0, 7) - CpuSet{1}, {}, {}}},
        Row{"CPUs came, not all that somebody needs to go back",
            {displaced(true)},
            event::MachineChanged{{CpuSet::range(2, 7), {}, {}}},
            {"pool 4-7>2-7"},
            {},
            {},
            {CpuSet::range(4, 7), {}, {}}},
        Row{"CPUs came, all that somebody needs to go back",
            {displaced(true)},
            event::MachineChanged{kEightCpus},
            {"b: cpus 4-7>0-3, within 4-7>0-3, vacating >4-7, preferred shared   0-3 0 whole>, evaluated 4-7>0-3 "
             "[re-placed instead of 1] (bound)",
             "pool 4-7>0-7"},
            {},
            {},
            {CpuSet::range(4, 7), {}, {}}},
        Row{"machine changed, somebody is restricted from now on",
            {shared("a", Phase::kRunning, {0, 1})},
            event::MachineChanged{kEightCpus, {key_of("a")}},
            {"a: restricted >yes"}},
        Row{"machine changed, somebody may share more of it",
            {shared("a", Phase::kRunning, CpuSet::range(0, 3))},
            event::MachineChanged{{CpuSet::range(0, 9), {}, {}}, {}, {{key_of("a"), {0, 1, 2, 3, 8, 9}}}},
            {"a: cpus 0-3>0-3,8-9, within 0-3>0-3,8-9 [re-placed instead of 1] (bound)", "pool 0-7>0-9"}},
        Row{"machine changed to what it is", {exclusive("a", {0})}, event::MachineChanged{kEightCpus}, {}},
        Row{"restarted",
            {exclusive("a", {0}, Phase::kPending), in_doubt_since(exclusive("b", {1}, Phase::kPending), 500),
             exclusive("c", {2}, Phase::kStarting), exclusive("d", {3}), exclusive("e", {4}, Phase::kCrashed)},
            event::Restarted{},
            {"a: phase pending>in_doubt, doubt >1", "b: phase pending>in_doubt", "c: since 1>1000", "pool 5-7>5-7"}},
        Row{"restarted after the clock was set back",
            {in_doubt_since(changed(exclusive("a", {0}, Phase::kInDoubt),
                                    [](Allocation& a) { a.phase_since = std::chrono::milliseconds(5000); }),
                            4000)},
            event::Restarted{},
            {"a: since 5000>1000, doubt 4000>1000", "pool 1-7>1-7"}},
        Row{"clock set",
            {exclusive("a", {0}, Phase::kCrashed), in_doubt_since(exclusive("b", {1}, Phase::kInDoubt), 1),
             exclusive("c", {2})},
            event::ClockSet{std::chrono::milliseconds(500)},
            {"a: since 1>501", "b: since 1>501, doubt 1>501"}},
        Row{"restarted with less than was stored, what was created may have been started",
            {exclusive("a", {0}, Phase::kCreated), exclusive("b", {1})},
            event::Restarted{.store_regressed = true},
            {"a: phase created>starting, since 1>1000", "pool 2-7>2-7"}},
        Row{"noted", {shared("a")}, event::AuditOnly{AuditEvent::kGap, "why"}, {"gap 2: nobody"}}),
    name_of);

/// "b" leaves CPUs 0-1 for 2-3, so that "a" has CPU 0.
class MoveForRoom : public ::testing::Test {
 protected:
  MoveForRoom() {
    Plan plan = exclusive_on({0});
    plan.moves.push_back({guaranteed("b", 2), exclusive_on({2, 3}).decision, std::nullopt, MoveCause::kRoom});
    commit(event::CreateAdmitted{guaranteed("a", 1), plan});
  }
  void commit(const Event& event) {
    ledger_.apply(compute_transition(ledger_, {}, std::chrono::milliseconds(1000), event));
  }
  const Allocation& b() const { return *ledger_.find(key_of("b")); }

  Ledger ledger_ = ledger_of({exclusive("b", {0, 1}), shared("s")});
  const Allocation before_ = b();
};

TEST_F(MoveForRoom, GivesTheOthersNothingBeforeItHasLeft) {
  EXPECT_EQ(b().placement.cpus.to_string(), "2-3");
  EXPECT_EQ(b().vacating.to_string(), "0-1");
  EXPECT_EQ(b().vacating_alone.to_string(), "1") << "the newcomer has the other one";
  EXPECT_EQ(ledger_.pool().to_string(), "4-7");
  EXPECT_THAT(ledger_.neighbours_blocking(key_of("a")), ::testing::ElementsAre(key_of("b")));
  EXPECT_EQ(b().last_move, (LastMove{std::chrono::milliseconds(1000), MoveCause::kRoom}));
  commit(event::Converged{key_of("b"), {2, 3}});
  EXPECT_EQ(ledger_.pool().to_string(), "1,4-7");
  EXPECT_THAT(ledger_.neighbours_blocking(key_of("a")), ::testing::IsEmpty());
}

TEST_F(MoveForRoom, KeepsCpusThatTheNewcomerGivesUpBeforeItHasLeft) {
  commit(event::CreateWithdrawn{key_of("a"), "neighbours-stuck"});
  EXPECT_EQ(b().vacating_alone.to_string(), "0-1");
  EXPECT_EQ(ledger_.pool().to_string(), "4-7");
}

TEST_F(MoveForRoom, IsTakenBackWhole) {
  commit(event::CreateWithdrawn{key_of("a"), "neighbours-stuck"});
  commit(event::MoveWithdrawn{key_of("b"), "why"});
  EXPECT_EQ(b().placement.cpus.to_string(), "0-1");
  EXPECT_EQ(b().vacating_alone.to_string(), "2-3") << "it may have been told these";
  EXPECT_EQ(ledger_.pool().to_string(), "4-7");
  EXPECT_TRUE(b().last_move.has_value()) << "it is not tried again soon";
  commit(event::Converged{key_of("b"), {0, 1}});
  EXPECT_EQ(ledger_.pool().to_string(), "2-7");
  EXPECT_TRUE(b().vacating.empty());
}

TEST_F(MoveForRoom, SaysWhereItWasUntilItHasLeft) {
  ASSERT_TRUE(b().moved_from.has_value());
  EXPECT_EQ(b().moved_from->placement.cpus.to_string(), "0-1");
  EXPECT_EQ(b().moved_from->newcomer, key_of("a"));
  commit(event::Converged{key_of("b"), {0, 1}});
  EXPECT_TRUE(b().moved_from.has_value()) << "it is there yet";
  commit(event::Converged{key_of("b"), {2, 3}});
  EXPECT_FALSE(b().moved_from.has_value());
  commit(event::MoveWithdrawn{key_of("b"), "why"});
  EXPECT_EQ(b().placement.cpus.to_string(), "2-3") << "it has left";
}

TEST_F(MoveForRoom, IsForgottenWhenItHasToBeElsewhereOrHasEnded) {
  const Ledger moving = ledger_;
  commit(event::Moved{guaranteed("b", 2), exclusive_on({4, 5}), AuditEvent::kReplaced});
  EXPECT_FALSE(b().moved_from.has_value());
  ledger_ = moving;
  commit(event::Exited{key_of("b"), 1});
  EXPECT_TRUE(ledger_.find(key_of("b")) == nullptr || !b().moved_from.has_value());
}

TEST_F(MoveForRoom, IsTakenBackWithAllThatItChanged) {
  Allocation before = before_;
  commit(event::CreateWithdrawn{key_of("a"), "neighbours-stuck"});
  commit(event::MoveWithdrawn{key_of("b"), "why"});
  commit(event::Converged{key_of("b"), {0, 1}});
  Allocation after = b();
  after.last_move.reset();
  after.generation = before.generation;
  after.decision = before.decision;
  after.reason = before.reason;
  EXPECT_EQ(after, before);
}

/// "s", which shares CPUs 0-3, moves to 4-7 although it could stay.
TEST(MoveOfItsOwn, KeepsItsNewDemandWhenItIsTakenBack) {
  Ledger ledger = ledger_of({shared("s", Phase::kRunning, CpuSet::range(0, 3))});
  const auto commit = [&ledger](const Event& event) {
    ledger.apply(compute_transition(ledger, {}, std::chrono::milliseconds(1000), event));
  };
  const auto s = [&ledger] { return *ledger.find(key_of("s")); };
  Plan plan;
  plan.decision.placement.cpus = plan.decision.within = CpuSet::range(4, 7);
  plan.cause = MoveCause::kCrowd;
  commit(event::Moved{s().workload, plan, AuditEvent::kReplaced});
  EXPECT_EQ(s().placement.cpus.to_string(), "4-7");
  placement::Demand demand = s().workload.demand;
  demand.cpu_request_milli = 700;
  commit(event::DemandChanged{key_of("s"), demand, "resized"});
  commit(event::MoveWithdrawn{key_of("s"), "why"});
  EXPECT_EQ(s().placement.cpus.to_string(), "0-3");
  EXPECT_EQ(s().workload.demand.cpu_request_milli, 700);
  EXPECT_FALSE(s().moved_from.has_value());
}

/// Its new CPUs have all of the old ones, so that it has nothing to leave.
TEST(MoveOfItsOwn, IsTakenBackThoughItWouldLeaveNoCpus) {
  Ledger ledger = ledger_of({shared("s", Phase::kRunning, CpuSet::range(0, 3))});
  const auto commit = [&ledger](const Event& event) {
    ledger.apply(compute_transition(ledger, {}, std::chrono::milliseconds(1000), event));
  };
  Plan plan;
  plan.decision.placement.cpus = plan.decision.within = CpuSet::range(0, 7);
  plan.cause = MoveCause::kCrowd;
  commit(event::Moved{ledger.find(key_of("s"))->workload, plan, AuditEvent::kReplaced});
  commit(event::Converged{key_of("s"), CpuSet::range(0, 3)});
  commit(event::MoveWithdrawn{key_of("s"), "why"});
  EXPECT_EQ(ledger.find(key_of("s"))->placement.cpus.to_string(), "0-3");
}

TEST_F(MoveForRoom, LeavesToOthersWhatTheyHaveAloneByNow) {
  const Allocation unleft = b();
  commit(event::Converged{key_of("b"), {2, 3}});
  commit(event::CreateAdmitted{guaranteed("c", 1), exclusive_on({1})});
  commit(event::Moved{guaranteed("b", 2), exclusive_on({4, 5}), AuditEvent::kReplaced});
  commit(event::ChangeReverted{unleft, "why"});
  EXPECT_EQ(b().placement.cpus.to_string(), "2-3");
  EXPECT_TRUE(b().vacating.contains(1)) << "the other one waits for it";
  EXPECT_FALSE(b().vacating_alone.contains(1));
}

}  // namespace
}  // namespace topolet::engine
