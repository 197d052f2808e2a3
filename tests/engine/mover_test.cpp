#include "core/engine/converge/mover.hpp"

#include <gmock/gmock.h>

#include "core/engine/converge/memory_high.hpp"
#include "tests/engine/converge_test.hpp"

namespace topolet::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr auto kConverged = ContainerQueues::Needs::kConverged;

class MoverTest : public ConvergeTest {
 protected:
  /// `a` is given CPU 0, which `b` shares and has not left.
  void give_a_cpu_of_b() {
    begin({shared("b")});
    start_converged("b");
    runtime_.hold();
    commit(event::CreateAdmitted{guaranteed("a", 1), exclusive_on({0})});
  }

  std::optional<Status> await(const placement::ContainerKey& key, milliseconds timeout) {
    mover_->await_neighbours(key, timeout, [this](const Status& status) { clear_ = status; });
    loop_.run();
    return clear_;
  }

  std::optional<Status> clear_;
};

TEST_F(MoverTest, BringsAContainerToWhereTheLedgerWantsIt) {
  begin({shared("b")});
  start_converged("b");
  commit(event::CreateAdmitted{guaranteed("a", 1), exclusive_on({0})});
  EXPECT_THAT(runtime_.take_calls(), Contains("UpdateContainerResources c-b 1-7"));
  EXPECT_THAT(take_transitions(), Contains("b: vacating 0>"));
}

TEST_F(MoverTest, KnowsOfADaemonBeforeItWhereContainersAreToBe) {
  begin({shared("b")});
  runtime_.put("c-b", container_of("b"));
  commit(event::Restarted{});
  EXPECT_EQ(mover_->sendable("c-b"), desired_cpuset_of(*find("b")));
  mover_->open_queue("c-b", std::nullopt);
  loop_.run();
  EXPECT_TRUE(mover_->has_queue("c-b"));
  EXPECT_THAT(runtime_.take_calls(), Contains("UpdateContainerResources c-b 0-7"));
}

TEST_F(MoverTest, MarksTheMemoryHighThatGoesWithAnotherUpdate) {
  Allocation sharing = shared("b");
  sharing.memory_high = 4096;
  begin({sharing});
  runtime_.put("c-b", container_of("b"));
  kernel_.run_in(runtime_.container("c-b").pid, "/kubepods/besteffort/c-b",
                 {{"memory.high", "4096"}, {"cpuset.cpus.effective", "0-7"}});
  cpusets_->note_process("c-b", runtime_.container("c-b").pid);
  if (!mark_memory_high(*cpusets_->cgroup_of("c-b"), 8192)) GTEST_SKIP() << "this file system has no attributes";
  const auto set = mover_->sendable("c-b");
  ASSERT_TRUE(set);
  EXPECT_EQ(set->unified.count("memory.high"), 1U);
  mover_->note_sent("c-b", *set);
  EXPECT_EQ(cpusets_->marked_memory_high("c-b"), 4096);
}

TEST_F(MoverTest, SendsNoFilesWhileTheRuntimeRefusesThem) {
  Allocation sharing = shared("b");
  sharing.memory_high = 4096;
  begin({sharing});
  runtime_.put("c-b", container_of("b"));
  runtime_.refuse_files();
  mover_->open_queue("c-b", std::nullopt);
  loop_.run();
  ASSERT_TRUE(cpusets_->refuses_files());
  ASSERT_TRUE(mover_->sendable("c-b"));
  EXPECT_TRUE(mover_->sendable("c-b")->unified.empty()) << "a kubelet's update would be refused with them";
}

TEST_F(MoverTest, AwaitsThatTheNeighboursHaveLeft) {
  give_a_cpu_of_b();
  EXPECT_FALSE(await(guaranteed("a", 1).key, seconds(20)));
  runtime_.release();
  loop_.advance(milliseconds(100));
  ASSERT_TRUE(clear_);
  EXPECT_TRUE(clear_->has_value());
}

TEST_F(MoverTest, SaysThatTheNeighboursHaveNotLeftInTime) {
  give_a_cpu_of_b();
  EXPECT_FALSE(await(guaranteed("a", 1).key, seconds(20)));
  loop_.advance(seconds(20));
  ASSERT_TRUE(clear_);
  ASSERT_FALSE(clear_->has_value());
  EXPECT_EQ(clear_->error().code, Code::kUnavailable);
  EXPECT_THAT(clear_->error().message, HasSubstr("c-b"));
}

TEST_F(MoverTest, AwaitsNobodyWhoIsGone) {
  give_a_cpu_of_b();
  EXPECT_FALSE(await(guaranteed("a", 1).key, seconds(20)));
  commit(event::Ended{besteffort("b").key, "removed"});
  loop_.advance(milliseconds(100));
  ASSERT_TRUE(clear_);
  EXPECT_TRUE(clear_->has_value());
}

TEST_F(MoverTest, AwaitsNobodyWhomTheRuntimeHasNoMore) {
  give_a_cpu_of_b();
  EXPECT_FALSE(await(guaranteed("a", 1).key, seconds(20)));
  runtime_.remove("c-b");
  runtime_.release();
  loop_.advance(milliseconds(100));
  ASSERT_TRUE(clear_);
  EXPECT_TRUE(clear_->has_value());
}

TEST_F(MoverTest, AppliesNothingBeforeTheNeighboursHaveLeft) {
  give_a_cpu_of_b();
  runtime_.put("c-a", {.state = operations::ContainerState::kCreated, .cpus = {5}});
  commit(event::CreateConfirmed{guaranteed("a", 1).key, "c-a", {CpuSet{5}, {}}});
  mover_->open_queue("c-a", std::nullopt);
  runtime_.release();
  loop_.advance(milliseconds(100));
  EXPECT_THAT(runtime_.take_calls(), ElementsAre("UpdateContainerResources c-b 1-7", "ContainerStatus",
                                                 "UpdateContainerResources c-a 0", "ContainerStatus"));
  EXPECT_EQ(find("a")->vacating, CpuSet());
}

/// A container that no CPU is left for, and that may have been told all CPUs before. Tests whether it counts as where
/// it is to be, so that it may start.
class LeftToKernelTest : public MoverTest, public ::testing::WithParamInterface<std::pair<Phase, bool>> {};

TEST_P(LeftToKernelTest, StartsOnlyWithCpusOfItsOwn) {
  const auto [phase, converges] = GetParam();
  Allocation left = exclusive("b", {1}, phase);
  left.squeeze = Squeeze::kLeftToKernel;
  begin({left});
  runtime_.put("c-b", container_of("b", phase == Phase::kCreated ? operations::ContainerState::kCreated
                                                                 : operations::ContainerState::kRunning));
  mover_->note_sent("c-b", {CpuSet::range(0, 7), {}});
  mover_->open_queue("c-b", std::nullopt);
  mover_->when_converged("c-b", seconds(5), [this](const Status& status) { clear_ = status; });
  loop_.advance(seconds(5));
  ASSERT_TRUE(clear_);
  EXPECT_EQ(clear_->has_value(), converges);
}

INSTANTIATE_TEST_SUITE_P(ByPhase, LeftToKernelTest,
                         ::testing::Values(std::pair(Phase::kCreated, false), std::pair(Phase::kRunning, true)));

TEST_F(MoverTest, HasNotConvergedWhileAStartMayBeUnderWay) {
  Allocation starting = exclusive("a", {0}, Phase::kStarting);
  starting.vacating = CpuSet{5};
  begin({starting});
  runtime_.put("c-a", container_of("a", operations::ContainerState::kCreated));
  commit(event::Restarted{});
  mover_->open_queue("c-a", std::nullopt);
  loop_.advance(seconds(9));
  EXPECT_EQ(find("a")->vacating, CpuSet{5}) << "it may begin to run where it was when it was started";
  EXPECT_EQ(find("a")->phase, Phase::kStarting);
  runtime_.put("c-a", container_of("a"));
  loop_.advance(seconds(5));
  EXPECT_EQ(find("a")->vacating, CpuSet());
  EXPECT_EQ(find("a")->phase, Phase::kRunning);
}

TEST_F(MoverTest, HasConvergedOnceTheGraceOfAStartIsOver) {
  Allocation starting = exclusive("a", {0}, Phase::kStarting);
  starting.vacating = CpuSet{5};
  begin({starting});
  runtime_.put("c-a", container_of("a", operations::ContainerState::kCreated));
  commit(event::Restarted{});
  mover_->open_queue("c-a", std::nullopt);
  loop_.advance(seconds(15));
  EXPECT_EQ(find("a")->vacating, CpuSet());
  EXPECT_EQ(find("a")->phase, Phase::kCreated);
}

TEST_F(MoverTest, ReportsAnExitThatItComesAcrossOnce) {
  begin({exclusive("a", {0}), shared("b")});
  start_converged("a");
  start_converged("b");
  runtime_.exit("c-a", 3);
  commit(event::Moved{guaranteed("a", 1), exclusive_on({1}), AuditEvent::kReplaced});
  const std::vector<std::string> transitions = take_transitions();
  EXPECT_EQ(std::count_if(transitions.begin(), transitions.end(),
                          [](const std::string& line) { return line.find("crashed") != std::string::npos; }),
            1);
  EXPECT_EQ(find("a")->phase, Phase::kCrashed);
  EXPECT_FALSE(mover_->has_queue("c-a"));
}

TEST_F(MoverTest, RunsWhatWaitsForAContainerThatIsOver) {
  begin({exclusive("a", {0})});
  start_converged("a");
  ContainerQueues::OperationDone first;
  mover_->run_in_turn("c-a", ContainerQueues::Needs::kTurn,
                      [&](const Status&, const ContainerQueues::OperationDone& done) { first = done; });
  std::optional<Status> reported;
  mover_->run_in_turn("c-a", ContainerQueues::Needs::kConverged,
                      [&](const Status& status, const ContainerQueues::OperationDone&) { reported = status; });
  exits_->report("c-a", {Exit::Kind::kRemoved});
  loop_.run();
  ASSERT_TRUE(reported);
  ASSERT_FALSE(reported->has_value());
  EXPECT_EQ(reported->error().code, Code::kNotFound);
  first(false);
  EXPECT_FALSE(mover_->run_in_turn("c-a", ContainerQueues::Needs::kTurn, [](const Status&, const auto&) {}));
}

TEST_F(MoverTest, MovesAContainerThatIsThere) {
  begin({exclusive("a", {0}), shared("b")});
  start_converged("a");
  start_converged("b");
  std::vector<std::pair<std::string, std::string>> env;
  mover_->move(find("a")->workload.key, kConverged, [&](const Allocation& before) {
    env = before.workload.env;
    return std::optional(exclusive_on({1}));
  });
  loop_.advance(seconds(1));
  EXPECT_EQ(find("a")->placement.cpus, CpuSet{1});
  EXPECT_EQ(find("a")->vacating, CpuSet());
  EXPECT_EQ(find("b")->placement.cpus, (CpuSet{0, 2, 3, 4, 5, 6, 7}));
  EXPECT_THAT(env, ElementsAre(std::pair("A", "1"))) << "as the runtime tells it";
  EXPECT_EQ(runtime_.container("c-a").cpus(), CpuSet{1});
  EXPECT_EQ(runtime_.container("c-b").cpus(), find("b")->placement.cpus);
}

TEST_F(MoverTest, UndoesAMoveThatTheNeighboursHoldUp) {
  begin({exclusive("a", {0}), shared("b")});
  start_converged("a");
  start_converged("b");
  runtime_.ignore_updates("c-b");
  mover_->move(find("a")->workload.key, kConverged, [](const Allocation&) { return std::optional(exclusive_on({1})); });
  loop_.advance(seconds(4));
  EXPECT_EQ(find("a")->placement.cpus, CpuSet{0});
  EXPECT_EQ(runtime_.container("c-a").cpus(), CpuSet{0}) << "it was never on CPUs that another is on";
  EXPECT_EQ(find("a")->vacating, CpuSet()) << "and is in nobody's way there";
}

TEST_F(MoverTest, HasNothingToLeaveWhereAContainerWasNeverTold) {
  begin({exclusive("a", {0}), shared("b")});
  start_converged("a");
  start_converged("b");
  ContainerQueues::OperationDone turn_over;
  mover_->run_in_turn("c-b", ContainerQueues::Needs::kTurn,
                      [&](const Status&, const ContainerQueues::OperationDone& done) { turn_over = done; });
  commit(event::Ended{find("a")->workload.key, "exited"});
  commit(event::CreateAdmitted{guaranteed("c", 1), exclusive_on({0})});
  EXPECT_EQ(find("b")->vacating, CpuSet{0});
  turn_over(false);
  loop_.run();
  EXPECT_EQ(find("b")->vacating, CpuSet());
  EXPECT_THAT(runtime_.take_calls(), IsEmpty());
}

TEST_F(MoverTest, SaysNotFoundOnlyOfWhatIsGone) {
  begin({exclusive("a", {0})});
  start_converged("a", operations::ContainerState::kCreated);
  runtime_.fail("UpdateContainerResources", cri::RuntimeResponse{Code::kNotFound, "no such task", {}});
  commit(event::Moved{guaranteed("a", 1), exclusive_on({1}), AuditEvent::kReplaced});
  std::optional<Status> reported;
  mover_->run_in_turn("c-a", kConverged, [&](const Status& status, const ContainerQueues::OperationDone& done) {
    reported = status;
    done(false);
  });
  loop_.advance(seconds(5));
  ASSERT_TRUE(reported && !reported->has_value());
  EXPECT_EQ(reported->error().code, Code::kUnavailable);
}

TEST_F(MoverTest, LeavesWhoIsNotToBeMoved) {
  begin({exclusive("a", {0})});
  start_converged("a");
  mover_->move(find("a")->workload.key, kConverged, [](const Allocation&) { return std::optional<Plan>(); });
  mover_->move(find("a")->workload.key, kConverged, [](const Allocation&) { return std::optional(exclusive_on({0})); });
  mover_->move(besteffort("unknown").key, kConverged,
               [](const Allocation&) { return std::optional(exclusive_on({1})); });
  runtime_.exit("c-a", 0);
  mover_->move(find("a")->workload.key, kConverged, [](const Allocation&) { return std::optional(exclusive_on({1})); });
  loop_.advance(seconds(1));
  EXPECT_THAT(take_transitions(), IsEmpty());
}

TEST_F(MoverTest, RepairsWhatHasDrifted) {
  begin({exclusive("a", {0})});
  start_converged("a");
  mover_->verify("c-a");
  loop_.run();
  EXPECT_THAT(take_transitions(), IsEmpty());
  kernel_.run_on(container_of("a").pid, CpuSet{0, 5});
  runtime_.take_calls();
  mover_->verify_in_kernel("c-a");
  loop_.advance(seconds(1));
  EXPECT_THAT(take_transitions(),
              ElementsAre("a: seen on >0,5", "a: vacating >5", "drift 2: a", "a: vacating 5>", "a: seen on 0,5>"));
  EXPECT_THAT(runtime_.take_calls(), Contains("UpdateContainerResources c-a 0"));
  mover_->verify_in_kernel("c-a");
  loop_.run();
  EXPECT_THAT(runtime_.take_calls(), IsEmpty()) << "the kernel agrees";
}

TEST_F(MoverTest, SettlesStartsThatNobodyWaitsFor) {
  begin({exclusive("a", {0}, Phase::kStarting), exclusive("b", {1}, Phase::kStarting),
         exclusive("c", {2}, Phase::kStarting), exclusive("d", {3}, Phase::kStarting)});
  commit(event::Restarted{});
  for (const char* name : {"a", "b", "c", "d"}) start_converged(name, operations::ContainerState::kCreated);
  runtime_.put("c-a", container_of("a"));
  runtime_.exit("c-c", 0);
  mover_->run_in_turn("c-d", ContainerQueues::Needs::kTurn, [](const Status&, const auto&) {});
  mover_->resolve_unfinished_starts();
  loop_.run();
  EXPECT_EQ(find("a")->phase, Phase::kRunning);
  EXPECT_EQ(find("b")->phase, Phase::kStarting) << "it may take a while";
  EXPECT_EQ(find("c")->phase, Phase::kKept);
  loop_.advance(seconds(10));
  mover_->resolve_unfinished_starts();
  loop_.run();
  EXPECT_EQ(find("b")->phase, Phase::kCreated);
  EXPECT_EQ(find("d")->phase, Phase::kStarting) << "somebody waits for its answer";
}

/// CPU 0 is `b`'s again, and given away before `b` was told.
TEST_F(MoverTest, TellsNobodyOfACpuThatAnotherIsToHaveByNow) {
  transaction_time_ = milliseconds(10);
  begin({exclusive("a", {0}), shared("b")});
  start_converged("a");
  start_converged("b");
  commit(event::Ended{find("a")->workload.key, "exited"});
  loop_.advance(milliseconds(5));
  commit(event::CreateAdmitted{guaranteed("c", 1), exclusive_on({0})});
  EXPECT_EQ(find("b")->vacating, CpuSet{0});
  loop_.advance(milliseconds(100));
  EXPECT_THAT(runtime_.take_calls(), IsEmpty());
  EXPECT_EQ(find("b")->vacating, CpuSet());
  EXPECT_THAT(errors_, IsEmpty());
}

/// An update of `b` is under way when it could have CPU 0 again, and answered when it is not to have it any more.
TEST_F(MoverTest, ForgetsNoCpuForTheAnswerToAnOlderUpdate) {
  transaction_time_ = milliseconds(10);
  begin({exclusive("a", {0}), exclusive("d", {1, 2}), shared("b")});
  for (const char* name : {"a", "d", "b"}) start_converged(name);
  runtime_.hold();
  commit(event::Ended{find("d")->workload.key, "exited"});
  loop_.advance(milliseconds(15));
  EXPECT_EQ(mover_->footprint("c-b"), CpuSet::range(1, 7)) << "it was told these, and has not answered";
  commit(event::Ended{find("a")->workload.key, "exited"});
  loop_.advance(milliseconds(15));  // 0-7 is durable
  commit(event::CreateAdmitted{guaranteed("c", 1), exclusive_on({0})});
  runtime_.release();
  loop_.run();
  loop_.advance(milliseconds(100));
  for (const std::string& call : runtime_.take_calls()) EXPECT_THAT(call, Not(HasSubstr(" 0"))) << "it is c's";
  EXPECT_EQ(runtime_.container("c-b").cpus(), CpuSet::range(1, 7));
  await(find("c")->workload.key, seconds(1));
  EXPECT_TRUE(clear_ && clear_->has_value());
  EXPECT_THAT(errors_, IsEmpty());
}

/// The remaining CPUs of a durable set are told, so that others need not wait for the next one.
TEST_F(MoverTest, TellsWhoSharesWhatIsLeft) {
  transaction_time_ = milliseconds(10);
  begin({exclusive("a", {0, 1}), shared("b")});
  start_converged("a");
  start_converged("b");
  commit(event::Ended{find("a")->workload.key, "exited"});
  loop_.advance(milliseconds(5));
  commit(event::CreateAdmitted{guaranteed("c", 1), exclusive_on({0})});
  loop_.advance(milliseconds(100));
  EXPECT_THAT(runtime_.take_calls(), ElementsAre("UpdateContainerResources c-b 1-7", "ContainerStatus"));
}

TEST_F(MoverTest, MakesWhoeverTheLedgerHasOverlookedLeaveFirst) {
  begin({exclusive("a", {0}, Phase::kCreated), shared("b")});
  start_converged("a", operations::ContainerState::kCreated);
  start_converged("b");
  mover_->note_sent("c-b", {CpuSet{0}, {}});
  runtime_.hold();
  EXPECT_FALSE(await(find("a")->workload.key, seconds(1)).has_value());
  EXPECT_THAT(errors_, ElementsAre(HasSubstr("fault in topoletd")));
  runtime_.release();
  loop_.advance(seconds(1));
  EXPECT_TRUE(clear_ && clear_->has_value());
  EXPECT_THAT(runtime_.take_calls(), Contains("UpdateContainerResources c-b 1-7"));
}

TEST_F(MoverTest, AuditsWhoRunsOnCpusThatAnotherHasAloneAndThatItIsOver) {
  begin({exclusive("a", {0}), shared("b")});
  start_converged("a");
  start_converged("b");
  kernel_.run_on(container_of("b").pid, CpuSet::range(0, 7));
  mover_->verify("c-b");
  loop_.run();
  ASSERT_EQ(mover_->overlaps().size(), 0U) << "it was repaired at once";
  EXPECT_THAT(take_transitions(), ::testing::IsSupersetOf({std::string("overlap 4: b"), std::string("overlap 5: b")}));
  EXPECT_THAT(runtime_.take_calls(), Contains("UpdateContainerResources c-b 1-7"));
}

TEST_F(MoverTest, KnowsOfAnOverlapUntilItIsOver) {
  begin({exclusive("a", {0}), shared("b")});
  start_converged("a");
  start_converged("b");
  kernel_.run_on(container_of("b").pid, CpuSet::range(0, 7));
  mover_->verify("c-b");
  runtime_.fail("UpdateContainerResources", cri::RuntimeResponse{Code::kUnavailable, "busy", {}});
  loop_.advance(milliseconds(32));
  const std::vector<Overlap> overlaps = mover_->overlaps();
  ASSERT_EQ(overlaps.size(), 1U);
  EXPECT_EQ(overlaps[0].cpus, CpuSet{0});
  EXPECT_EQ(overlaps[0].container, display_name(find("b")->workload));
  EXPECT_EQ(overlaps[0].owner, display_name(find("a")->workload));
  EXPECT_EQ(overlaps[0].seen_for, milliseconds(32));
  commit(event::Ended{find("a")->workload.key, "exited"});
  EXPECT_THAT(mover_->overlaps(), IsEmpty());
}

/// An update on its way to the runtime, which its front can still change.
TEST_F(MoverTest, LeavesOutOfAnUpdateWhatTheContainerIsNotToHaveAnyMore) {
  begin({shared("b")});
  start_converged("b");
  EXPECT_EQ(mover_->renew("c-b", {CpuSet::range(0, 7), {}}).cpus, CpuSet::range(0, 7));
  commit(event::CreateAdmitted{guaranteed("a", 1), exclusive_on({0})});
  EXPECT_EQ(mover_->renew("c-b", {CpuSet::range(0, 7), {}}).cpus, CpuSet::range(1, 7));
  EXPECT_EQ(mover_->renew("unknown", {CpuSet{3}, {}}).cpus, CpuSet{3});
}

}  // namespace
}  // namespace topolet::engine
