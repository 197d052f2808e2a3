#include "core/engine/handlers/start_container.hpp"

#include <gmock/gmock.h>

#include "core/cri/messages/lens.pb.h"
#include "core/engine/converge/cpuset_files.hpp"
#include "tests/engine/handler_test.hpp"

namespace topolet::engine {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StartContainerTest : public HandlerTest {
 protected:
  std::shared_ptr<ScriptedCall> start(const std::string& id) {
    lens::Target target;
    target.set_id(id);
    return call<StartContainer>("StartContainer", target.SerializeAsString(), cri::read_target);
  }

  /// `a` was superseded: the runtime has it, and topolet nothing.
  void forget_a() {
    begin({}, {pod_of("a")});
    runtime_.put(pod_of("a").sandbox);
    runtime_.put("c-a", {.state = operations::ContainerState::kCreated, .cpus = {0}, .whole_cpus = 1});
  }
};

TEST_F(StartContainerTest, StartsWhatIsWhereItShouldBe) {
  begin({exclusive("a", {0}, Phase::kCreated)});
  start_converged("a", operations::ContainerState::kCreated);
  const auto call = start("c-a");
  ASSERT_TRUE(call->is_forwarded());
  EXPECT_EQ(find("a")->phase, Phase::kStarting);
  call->answer({});
  loop_.run();
  EXPECT_EQ(find("a")->phase, Phase::kRunning);
  ASSERT_TRUE(call->kubelet_answer());
  EXPECT_EQ(call->kubelet_answer()->code, Code::kOk);
}

/// Its process is in the cgroup of the sandbox, as where a virtual machine runs what is in the pod.
TEST_F(StartContainerTest, AContainerWithoutACgroupOfItsOwnGivesItsCpusBack) {
  Allocation sandboxed = in_phase(exclusive("a", {0}), Phase::kCreated);
  sandboxed.workload.runtime_handler = "gvisor";
  begin({sandboxed, shared("b")}, {pod_of("a")});
  start_converged("a", operations::ContainerState::kCreated);
  start_converged("b");
  ASSERT_FALSE(committer_->ledger().pool().contains(0));
  const auto call = start("c-a");
  runtime_.put("c-a", {.pid = 77, .cpus = {0}, .whole_cpus = 1});
  kernel_.run_in(77, "/kubepods/poduid-a/sandbox-a");
  call->answer({});
  loop_.run();
  EXPECT_EQ(find("a")->placement.mode, placement::Mode::kForeign);
  EXPECT_THAT(find("a")->reason, HasSubstr("its containers run in no cgroups of their own"));
  EXPECT_TRUE(committer_->ledger().pool().contains(0));
  EXPECT_FALSE(mover_->has_queue("c-a"));
  EXPECT_NE(placed_handlers_.obstacle(find("a")->workload.runtime_handler), "");
}

TEST_F(StartContainerTest, LetsOthersHaveTheirTurnIfItsAnswerNeverComes) {
  begin({exclusive("a", {0}, Phase::kCreated)});
  start_converged("a", operations::ContainerState::kCreated);
  const auto call = start("c-a");
  ASSERT_TRUE(call->is_forwarded());
  bool has_turn = false;
  mover_->run_in_turn("c-a", ContainerQueues::Needs::kTurn, [&](const Status&, const auto& done) {
    has_turn = true;
    done(false);
  });
  loop_.run();
  ASSERT_FALSE(has_turn);
  loop_.advance(kOutcomePatience);
  expire_outcomes();
  ASSERT_TRUE(call->kubelet_answer());
  EXPECT_EQ(call->kubelet_answer()->code, Code::kDeadlineExceeded);
  loop_.advance(seconds(30));
  EXPECT_TRUE(has_turn);
}

/// Notes how far a call had come when each transition became durable.
class CallWatch final : public Observer {
 public:
  void on_durable(const Transition&) override {
    if (call != nullptr) progress.push_back(call->kubelet_answer() ? "answered" : "forwarded");
    if (call == nullptr) progress.emplace_back("not forwarded");
  }

  std::shared_ptr<ScriptedCall> call;
  std::vector<std::string> progress;
};

TEST_F(StartContainerTest, IsForwardedOnlyWhenThatIsWrittenAndAnsweredAtOnce) {
  begin({exclusive("a", {0}, Phase::kCreated)});
  start_converged("a", operations::ContainerState::kCreated);
  CallWatch watch;
  committer_->subscribe(watch);
  watch.call = start("c-a");
  ASSERT_TRUE(watch.call->is_forwarded());
  EXPECT_THAT(watch.progress, ElementsAre("not forwarded")) << "a daemon that is killed now knows that it may run";
  watch.call->answer({});
  loop_.run();
  EXPECT_THAT(watch.progress, ElementsAre("not forwarded", "answered")) << "the runtime knows that it runs";
}

TEST_F(StartContainerTest, ASecondOneThatIsRefusedSaysNothingOfTheFirst) {
  begin({exclusive("a", {0}, Phase::kCreated)});
  start_converged("a", operations::ContainerState::kCreated);
  const auto first = start("c-a");
  first->answer({Code::kDeadlineExceeded, "timed out", {}});
  loop_.run();
  const auto second = start("c-a");
  ASSERT_TRUE(second->is_forwarded());
  second->answer({Code::kUnknown, "container is in starting state", {}});
  loop_.run();
  EXPECT_EQ(second->kubelet_answer()->code, Code::kUnknown);
  EXPECT_EQ(find("a")->phase, Phase::kStarting) << "the first may still be under way";
}

TEST_F(StartContainerTest, IsRefusedWhileANeighbourIsStillOnItsCpu) {
  begin({shared("b")});
  start_converged("b");
  runtime_.fail("UpdateContainerResources", cri::RuntimeResponse{Code::kUnavailable, "transport is closing", {}});
  const placement::ContainerKey a = guaranteed("a", 1).key;
  runtime_.put(pod_of("a").sandbox);
  commit(event::CreateAdmitted{guaranteed("a", 1), exclusive_on({0})});
  commit(event::CreateConfirmed{a, "c-a", {CpuSet{0}, {}}});
  runtime_.put("c-a", {.state = operations::ContainerState::kCreated, .cpus = {0}, .whole_cpus = 1});
  const auto call = start("c-a");
  loop_.advance(seconds(60));
  EXPECT_FALSE(call->is_forwarded());
  ASSERT_TRUE(call->kubelet_answer());
  EXPECT_EQ(call->kubelet_answer()->code, Code::kUnavailable);
  EXPECT_THAT(call->kubelet_answer()->message, HasSubstr("c-b"));
  EXPECT_EQ(find("a")->phase, Phase::kCreated);
}

TEST_F(StartContainerTest, PlacesFirstWhatIsUnknown) {
  forget_a();
  const auto call = start("c-a");
  ASSERT_TRUE(call->is_forwarded());
  ASSERT_NE(committer_->ledger().find_by_container("c-a"), nullptr);
  EXPECT_EQ(committer_->ledger().find_by_container("c-a")->phase, Phase::kStarting);
}

TEST_F(StartContainerTest, StartsNothingWhileTheRuntimeDoesNotSayWhatItIs) {
  forget_a();
  runtime_.fail("ListContainers", cri::RuntimeResponse{Code::kUnavailable, "transport is closing", {}});
  const auto unlisted = start("c-a");
  EXPECT_FALSE(unlisted->is_forwarded());
  ASSERT_TRUE(unlisted->kubelet_answer());
  EXPECT_EQ(unlisted->kubelet_answer()->code, Code::kUnavailable);
  runtime_.fail("ListContainers", std::nullopt);
  runtime_.fail("ContainerStatus", cri::RuntimeResponse{Code::kUnavailable, "transport is closing", {}});
  const auto undescribed = start("c-a");
  loop_.advance(seconds(5));
  EXPECT_FALSE(undescribed->is_forwarded());
  ASSERT_TRUE(undescribed->kubelet_answer());
  EXPECT_THAT(undescribed->kubelet_answer()->message, HasSubstr("c-a"));
}

TEST_F(StartContainerTest, LetsTheRuntimeSayThatThereIsNothingToStart) {
  begin({}, {pod_of("a")});
  for (const char* id : {"unknown", ""}) {
    const auto call = start(id);
    ASSERT_TRUE(call->is_forwarded()) << id;
    call->answer({Code::kUnknown, "in its own words", {}});
    loop_.run();
    EXPECT_EQ(call->kubelet_answer()->message, "in its own words");
  }
}

/// Some runtimes start what has exited, or what is in a pod that is not ready.
TEST_F(StartContainerTest, StartsNothingThatHoldsNothing) {
  begin({exclusive("e", {7}, Phase::kCrashed)}, {pod_of("e")});
  operations::Sandbox dead = pod_of("dead").sandbox;
  dead.ready = false;
  runtime_.put(dead);
  runtime_.put(pod_of("e").sandbox);
  runtime_.put("c-dead",
               {.sandbox_id = dead.id, .state = operations::ContainerState::kCreated, .cpus = {0}, .whole_cpus = 1});
  runtime_.put("c-gone",
               {.sandbox_id = "gone", .state = operations::ContainerState::kCreated, .cpus = {0}, .whole_cpus = 1});
  runtime_.put("c-e",
               {.sandbox_id = "sandbox-e", .name = "e", .state = operations::ContainerState::kExited, .cpus = {7}});
  for (const char* id : {"c-dead", "c-gone", "c-e"}) {
    const auto call = start(id);
    EXPECT_FALSE(call->is_forwarded()) << id;
    ASSERT_TRUE(call->kubelet_answer()) << id;
    EXPECT_EQ(call->kubelet_answer()->code, Code::kFailedPrecondition);
  }
  EXPECT_THAT(start("c-gone")->kubelet_answer()->message, HasSubstr("its pod gone is not ready or gone"));
  EXPECT_THAT(start("c-e")->kubelet_answer()->message, HasSubstr("it has exited"));
}

/// Its pod dies while it waits for its turn.
TEST_F(StartContainerTest, IsRefusedIfItsPodIsGoneMeanwhile) {
  begin({exclusive("a", {0}, Phase::kCreated)}, {pod_of("a")});
  start_converged("a", operations::ContainerState::kCreated);
  ContainerQueues::OperationDone turn_over;
  mover_->run_in_turn("c-a", ContainerQueues::Needs::kTurn,
                      [&](const Status&, const ContainerQueues::OperationDone& done) { turn_over = done; });
  const auto call = start("c-a");
  reconciler_->run([](const Status&) {});
  loop_.run();
  EXPECT_EQ(find("a"), nullptr);
  turn_over(false);
  loop_.advance(seconds(1));
  EXPECT_FALSE(call->is_forwarded());
  ASSERT_TRUE(call->kubelet_answer());
  EXPECT_EQ(call->kubelet_answer()->code, Code::kFailedPrecondition);
}

TEST_F(StartContainerTest, IsPlacedAnewIfItsAllocationEndsWhileItWaits) {
  begin({exclusive("a", {0}, Phase::kCreated)}, {pod_of("a")});
  start_converged("a", operations::ContainerState::kCreated);
  runtime_.put(pod_of("a").sandbox);
  ContainerQueues::OperationDone turn_over;
  mover_->run_in_turn("c-a", ContainerQueues::Needs::kTurn,
                      [&](const Status&, const ContainerQueues::OperationDone& done) { turn_over = done; });
  const auto call = start("c-a");
  EXPECT_FALSE(call->is_forwarded());
  placement::Workload next = guaranteed("a", 1);
  next.key.attempt = 1;
  commit(event::CreateAdmitted{next, exclusive_on({0}), {guaranteed("a", 1).key}});
  turn_over(false);
  loop_.advance(seconds(1));
  ASSERT_TRUE(call->is_forwarded());
  const Allocation* anew = committer_->ledger().find_by_container("c-a");
  ASSERT_NE(anew, nullptr);
  EXPECT_EQ(anew->placement.mode, placement::Mode::kShared);
  EXPECT_FALSE(runtime_.container("c-a").cpus().contains(0));
}

/// A start whose process is made and waits, as NRI tells it. The runtime changes nobody meanwhile.
class WaitingStart final : public operations::TargetOperation {
 public:
  WaitingStart(std::string id, std::int64_t pid) : id_(std::move(id)), pid_(pid) {}

  std::chrono::steady_clock::time_point arrived() const override { return {}; }
  bool cancelled() const override { return false; }
  std::optional<std::chrono::milliseconds> patience() const override { return std::chrono::milliseconds(1000); }
  void pass() override { passed = true; }
  void answer() override {}
  void reject(const Error& error) override { rejected = error.message; }
  const std::string& target() const override { return id_; }
  std::int64_t waiting_process() const override { return pid_; }
  void admit(operations::OnOutcome on_outcome) override { outcome = std::move(on_outcome); }

  bool passed = false;
  std::string rejected;
  operations::OnOutcome outcome;  ///< once it is admitted

 private:
  const std::string id_;
  const std::int64_t pid_;
};

class WaitingStartTest : public HandlerTest {
 protected:
  static constexpr std::int64_t kOwn = 1077;
  static constexpr std::int64_t kNeighbour = 1088;

  ~WaitingStartTest() override {
    // Who waits for an outcome keeps its operation.
    for (const auto& operation : started_) operation->outcome = nullptr;
  }

  /// `a` is created on CPU 0, which `b` is to leave, whose update the runtime does not carry out. `before_create`
  /// happens just before that.
  void begin_beside_b(const std::function<void()>& before_create = [] {}) {
    begin({shared("b")});
    ScriptedRuntime::Container neighbour = container_of("b");
    neighbour.pid = kNeighbour;
    runtime_.put("c-b", neighbour);
    mover_->open_queue("c-b", desired_cpuset_of(*find("b")));
    mover_->verify("c-b");
    loop_.run();
    kernel_.run_settable(kNeighbour, "/kubepods/c-b", CpuSet::range(0, 7));
    runtime_.hold();
    before_create();
    commit(event::CreateAdmitted{guaranteed("a", 1), exclusive_on({0}), {}, false, {}, "c-a"});
    commit(event::CreateConfirmed{find("a")->workload.key, "c-a", {{0}, {}}});
    mover_->open_created("c-a", {{0}, {}});
    loop_.run();
    kernel_.run_settable(kOwn, "/kubepods/c-a", CpuSet{0});
  }
  std::shared_ptr<WaitingStart> start() {
    auto operation = std::make_shared<WaitingStart>("c-a", kOwn);
    started_.push_back(operation);
    StartContainer::handle(deps(), operation);
    loop_.run();
    return operation;
  }
  std::string cpus_of(std::int64_t pid) { return read_cpus(kernel_.directory_of(pid)).value_or(CpuSet()).to_string(); }

 private:
  std::vector<std::shared_ptr<WaitingStart>> started_;
};

TEST_F(WaitingStartTest, HasTheKernelMoveWhoIsOnItsCpus) {
  begin_beside_b();
  ASSERT_EQ(find("b")->vacating, CpuSet{0});
  const auto started = start();
  EXPECT_EQ(cpus_of(kNeighbour), "1-7");
  EXPECT_EQ(find("b")->vacating, CpuSet());
  ASSERT_TRUE(started->outcome) << started->rejected;
  EXPECT_EQ(find("a")->phase, Phase::kStarting);
  started->outcome({.kind = operations::Outcome::Kind::kDone, .id = "c-a"});
  loop_.run();
  EXPECT_EQ(find("a")->phase, Phase::kRunning);
}

TEST_F(WaitingStartTest, IsPutWhereItIsToBeByNow) {
  begin_beside_b();
  kernel_.run_settable(kOwn, "/kubepods/c-a", CpuSet::range(0, 3));
  const auto started = start();
  EXPECT_TRUE(started->outcome) << started->rejected;
  EXPECT_EQ(cpus_of(kOwn), "0");
}

TEST_F(WaitingStartTest, IsRejectedWhereSomebodyStays) {
  begin_beside_b();
  // The kernel refuses the write.
  std::filesystem::remove(kernel_.directory_of(kNeighbour) / "cpuset.cpus.effective");
  std::filesystem::remove(kernel_.directory_of(kNeighbour) / "cpuset.cpus");
  kernel_.run_on(kNeighbour, CpuSet::range(0, 7));
  std::filesystem::create_directory(kernel_.directory_of(kNeighbour) / "cpuset.cpus");
  const auto started = start();
  EXPECT_FALSE(started->outcome);
  EXPECT_EQ(started->rejected, "") << "it waits for a while";
  loop_.advance(seconds(2));
  EXPECT_FALSE(started->outcome);
  EXPECT_THAT(started->rejected, HasSubstr("cannot start before its CPUs are set"));
  EXPECT_EQ(find("a")->phase, Phase::kCreated);
}

/// What the runtime has in hand brings it no further than where it is to be.
TEST_F(WaitingStartTest, GoesOnBesideAnUpdateThatWasRenewedSince) {
  begin_beside_b();
  mover_->renew("c-b", {CpuSet::range(0, 7), {}});
  EXPECT_TRUE(start()->outcome);
}

/// What the runtime has in hand may bring it back.
TEST_F(WaitingStartTest, IsRejectedBesideAnUpdateThatCannotBeChangedAnyMore) {
  begin_beside_b([this] { mover_->renew("c-b", {CpuSet::range(0, 7), {}}); });
  const auto started = start();
  loop_.advance(seconds(2));
  EXPECT_FALSE(started->outcome);
  EXPECT_THAT(started->rejected, HasSubstr("cannot start before its CPUs are set"));
}

}  // namespace
}  // namespace topolet::engine
