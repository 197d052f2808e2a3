#include "core/engine/converge/reconciler.hpp"

#include <gmock/gmock.h>

#include "tests/engine/reconciler_test.hpp"

namespace topolet::engine {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(ReconcilerTest, AdoptsWhatWasMadePastTopolet) {
  begin({});
  runtime_.put(pod_of("a").sandbox);
  runtime_.put("c1", {.pid = 1, .cpus = {2, 3}, .whole_cpus = 2});
  runtime_.put("c2", {.name = "b", .pid = 2});
  EXPECT_TRUE(reconcile().has_value());
  const Allocation* alone = committer_->ledger().find_by_container("c1");
  ASSERT_NE(alone, nullptr);
  EXPECT_EQ(alone->placement.mode, placement::Mode::kExclusive);
  EXPECT_EQ(alone->placement.cpus, (CpuSet{2, 3}));
  EXPECT_EQ(alone->phase, Phase::kRunning);
  EXPECT_EQ(alone->workload.key.pod_uid, "uid-a");
  const Allocation* sharing = committer_->ledger().find_by_container("c2");
  ASSERT_NE(sharing, nullptr);
  EXPECT_EQ(sharing->placement.cpus, (CpuSet{0, 1, 4, 5, 6, 7}));
  EXPECT_EQ(runtime_.container("c2").cpus(), sharing->placement.cpus) << "it is brought there";
  EXPECT_EQ(sharing->vacating, CpuSet());
}

TEST_F(ReconcilerTest, LeavesContainersTheCpusThatTheKubeletGaveThem) {
  kubelet_cpus_ = {{{"uid-a", "main"}, {2, 3}}, {{"uid-a", "moved"}, {4}}, {{"uid-a", "taken"}, {7}}};
  begin({exclusive("e", {7})});
  start_converged("e");
  operations::Sandbox sandbox = pod_of("a").sandbox;
  sandbox.pod_namespace = "kube-system";
  runtime_.put(sandbox);
  runtime_.put("c1", {.name = "main", .pid = 1, .cpus = {2, 3}});
  runtime_.put("c2", {.name = "moved", .pid = 2, .cpus = {5}});
  runtime_.put("c3", {.name = "taken", .pid = 3, .cpus = {7}});
  runtime_.put("c4", {.name = "other", .pid = 4, .cpus = {6}});
  EXPECT_TRUE(reconcile().has_value());
  const Allocation* given = committer_->ledger().find_by_container("c1");
  ASSERT_NE(given, nullptr);
  EXPECT_EQ(given->placement.mode, placement::Mode::kExclusive);
  EXPECT_EQ(given->placement.cpus, (CpuSet{2, 3}));
  EXPECT_EQ(committer_->ledger().pool(), (CpuSet{0, 1, 4, 5, 6}));
  EXPECT_FALSE(committer_->ledger().kubelet_hands_out_cpusets()) << "that was before";
  for (const char* id : {"c2", "c3", "c4"}) {
    ASSERT_NE(committer_->ledger().find_by_container(id), nullptr);
    EXPECT_FALSE(committer_->ledger().find_by_container(id)->is_exclusive()) << id;
  }
}

TEST_F(ReconcilerTest, AdoptsThoseWithCpusOfTheirOwnFirst) {
  kubelet_cpus_ = {{{"uid-a", "z"}, {2, 3}}};
  begin({});
  runtime_.put(pod_of("a").sandbox);
  runtime_.put("c1", {.name = "a", .pid = 1});
  runtime_.put("c2", {.name = "z", .pid = 2, .cpus = {2, 3}});
  EXPECT_TRUE(reconcile().has_value());
  ASSERT_NE(committer_->ledger().find_by_container("c1"), nullptr);
  EXPECT_LT(committer_->ledger().find_by_container("c2")->decision,
            committer_->ledger().find_by_container("c1")->decision);
}

TEST_F(ReconcilerTest, LeavesNobodyCpusOfItsOwnWhereNobodyIsToHaveAny) {
  kubelet_cpus_ = {{{"uid-a", "main"}, {2, 3}}};
  Placer::Deps deps = placer_.deps();
  deps.rules.exclusive = placement::ExclusiveRule::kNever;
  placer_ = Placer(std::move(deps));
  begin({});
  runtime_.put(pod_of("a").sandbox);
  runtime_.put("c1", {.name = "main", .pid = 1, .cpus = {2, 3}});
  EXPECT_TRUE(reconcile().has_value());
  EXPECT_EQ(committer_->ledger().find_by_container("c1")->placement.mode, placement::Mode::kShared);
}

TEST_F(ReconcilerTest, BooksWhatTheKubeletGaveToContainersOfOtherHandlers) {
  kubelet_cpus_ = {{{"uid-a", "main"}, {2, 3}}};
  begin({});
  operations::Sandbox sandbox = pod_of("a").sandbox;
  sandbox.runtime_handler = "kata";
  runtime_.put(sandbox);
  runtime_.put("c1", {.name = "main", .pid = 1, .cpus = {2, 3}});
  EXPECT_TRUE(reconcile().has_value());
  EXPECT_EQ(committer_->ledger().find_by_container("c1")->placement.mode, placement::Mode::kForeign);
  EXPECT_EQ(committer_->ledger().pool(), (CpuSet{0, 1, 4, 5, 6, 7}));
}

TEST_F(ReconcilerTest, AsksOnceMoreWhatAContainerIs) {
  begin({});
  runtime_.put(pod_of("a").sandbox);
  runtime_.put("c1", {.pid = 1, .cpus = {2, 3}, .whole_cpus = 2});
  runtime_.fail("ContainerStatus", cri::RuntimeResponse{Code::kUnavailable, "transport is closing", {}});
  bool compared = false;
  reconciler_->run([&compared](const Status&) { compared = true; });
  loop_.run();
  EXPECT_FALSE(compared) << "what it has is not known yet";
  runtime_.fail("ContainerStatus", std::nullopt);
  loop_.advance(seconds(1));
  EXPECT_TRUE(compared);
  ASSERT_NE(committer_->ledger().find_by_container("c1"), nullptr);
  EXPECT_EQ(committer_->ledger().find_by_container("c1")->placement.cpus, (CpuSet{2, 3}));
}

TEST_F(ReconcilerTest, TakesWhoRunsSomewhereUnknownToBeAnywhere) {
  begin({exclusive("e", {7}), in_phase(shared("a"), Phase::kInDoubt)}, {pod_of("a")});
  start_converged("e");
  runtime_.put(pod_of("a").sandbox);
  runtime_.put("c1", {});
  runtime_.put("c2", {.name = "b"});
  runtime_.fail("UpdateContainerResources", cri::RuntimeResponse{Code::kUnavailable, "", {}});
  EXPECT_TRUE(reconcile().has_value());
  for (const char* id : {"c1", "c2"}) {
    ASSERT_NE(committer_->ledger().find_by_container(id), nullptr);
    EXPECT_EQ(committer_->ledger().find_by_container(id)->vacating, CpuSet{7}) << id;
  }
}

TEST_F(ReconcilerTest, OnlyNotesWhatOtherHandlersRun) {
  begin({});
  operations::Sandbox sandbox = pod_of("a").sandbox;
  sandbox.runtime_handler = "kata";
  runtime_.put(sandbox);
  runtime_.put("c1", {.pid = 1, .cpus = {2}});
  EXPECT_TRUE(reconcile().has_value());
  EXPECT_EQ(committer_->ledger().find_by_container("c1")->placement.mode, placement::Mode::kForeign);
  EXPECT_FALSE(mover_->has_queue("c1"));
}

TEST_F(ReconcilerTest, PlacesContainersOfAHandlerThatWasForeignBefore) {
  Allocation before = in_phase(shared("a"), Phase::kRunning);
  before.placement = {placement::Mode::kForeign, {}, {}, {}};
  before.within = {};
  before.workload.runtime_handler = "nvidia-cdi";
  begin({before, exclusive("e", {7})}, {pod_of("a"), pod_of("e")});
  start_converged("e");
  runtime_.put(pod_of("a").sandbox);
  runtime_.put("c-a", {.pid = 4, .cpus = CpuSet::range(2, 7)});
  EXPECT_TRUE(reconcile().has_value());
  const Allocation& now = *committer_->ledger().find_by_container("c-a");
  EXPECT_EQ(now.placement.mode, placement::Mode::kShared);
  EXPECT_EQ(now.placement.cpus, CpuSet::range(2, 6)) << "it keeps what it had but for what is another's";
  EXPECT_TRUE(mover_->has_queue("c-a"));
}

TEST_F(ReconcilerTest, NotesWhatIsOver) {
  begin({exclusive("a", {0}), exclusive("b", {1}), exclusive("c", {2}), shared("d"), exclusive("e", {3}),
         exclusive("f", {4})});
  for (const char* name : {"a", "b", "d", "e"}) start_converged(name);
  for (const char* name : {"a", "b", "c"}) runtime_.put(pod_of(name).sandbox);
  runtime_.exit("c-a", 0);
  runtime_.exit("c-b", 9);
  runtime_.exit("c-e", 0);
  EXPECT_TRUE(reconcile().has_value());
  EXPECT_EQ(find("a")->phase, Phase::kKept);
  EXPECT_EQ(find("b")->phase, Phase::kCrashed);
  EXPECT_EQ(find("c")->phase, Phase::kKept) << "the runtime does not list it";
  for (const char* name : {"e", "f"}) EXPECT_EQ(find(name), nullptr) << name << ": its pod is over as well";
  EXPECT_EQ(find("d")->placement.cpus, CpuSet::range(3, 7));
}

TEST_F(ReconcilerTest, ChangesNothingWhereTheRuntimeDoesNotAnswer) {
  begin({exclusive("a", {0})});
  for (const char* method : {"ListContainers", "ListPodSandbox"}) {
    runtime_.fail(method, cri::RuntimeResponse{Code::kUnavailable, "away", {}});
    const Status status = reconcile();
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, Code::kUnavailable);
    runtime_.fail(method, std::nullopt);
  }
  EXPECT_THAT(take_transitions(), IsEmpty());
}

TEST_F(ReconcilerTest, RunsOnceMoreForAllWhoAskMeanwhile) {
  begin({});
  runtime_.hold();
  int callbacks = 0;
  for (int asked = 0; asked < 3; ++asked) reconciler_->run([&callbacks](const Status&) { ++callbacks; });
  runtime_.release();
  loop_.run();
  EXPECT_EQ(callbacks, 3);
  EXPECT_THAT(runtime_.take_calls(),
              ElementsAre("ListContainers", "ListPodSandbox", "ListContainers", "ListPodSandbox"));
}

TEST_F(ReconcilerTest, BindsACreateInDoubtThatWasMade) {
  begin({exclusive("a", {0}, Phase::kInDoubt)}, {pod_of("a")});
  runtime_.put(pod_of("a").sandbox);
  runtime_.put("c1", {.state = operations::ContainerState::kCreated, .cpus = {0}, .whole_cpus = 1});
  EXPECT_TRUE(reconciler_->has_creates_in_doubt());
  EXPECT_TRUE(reconcile().has_value());
  EXPECT_EQ(find("a")->phase, Phase::kCreated);
  EXPECT_EQ(find("a")->container_id, "c1");
  EXPECT_TRUE(mover_->has_queue("c1"));
  EXPECT_FALSE(reconciler_->has_creates_in_doubt());
}

/// containerd may keep a container that was created, and lose its pod.
TEST_F(ReconcilerTest, GivesNothingToWhatCanNeverRun) {
  operations::Sandbox dead = pod_of("dead").sandbox;
  dead.ready = false;
  begin({});
  runtime_.put(dead);
  runtime_.put("c1",
               {.sandbox_id = "gone", .state = operations::ContainerState::kCreated, .cpus = {2, 3}, .whole_cpus = 2});
  runtime_.put("c2",
               {.sandbox_id = dead.id, .state = operations::ContainerState::kCreated, .cpus = {4, 5}, .whole_cpus = 2});
  runtime_.put("c3", {.sandbox_id = "gone", .name = "b", .pid = 3, .cpus = {6, 7}, .whole_cpus = 2});
  EXPECT_TRUE(reconcile().has_value());
  EXPECT_EQ(committer_->ledger().find_by_container("c1"), nullptr);
  EXPECT_EQ(committer_->ledger().find_by_container("c2"), nullptr);
  ASSERT_NE(committer_->ledger().find_by_container("c3"), nullptr) << "it runs";
  EXPECT_EQ(committer_->ledger().pool(), CpuSet::range(0, 5));
}

TEST_F(ReconcilerTest, ReleasesWhatCanNeverRunAnyMore) {
  operations::Sandbox dead = pod_of("b").sandbox;
  dead.ready = false;
  begin({exclusive("a", {0}, Phase::kCreated), exclusive("b", {1}, Phase::kCreated), exclusive("c", {2}),
         exclusive("d", {3}, Phase::kInDoubt), exclusive("e", {4}, Phase::kCrashed),
         exclusive("f", {5}, Phase::kStarting), exclusive("g", {6}, Phase::kPending)},
        {pod_of("a"), pod_of("b")});
  runtime_.put(pod_of("ready").sandbox);
  runtime_.put(dead);
  for (const char* name : {"a", "b", "f"}) start_converged(name, operations::ContainerState::kCreated);
  start_converged("c");
  EXPECT_TRUE(reconcile().has_value());
  for (const char* name : {"a", "b", "d", "e"}) EXPECT_EQ(find(name), nullptr) << name;
  for (const char* name : {"c", "f", "g"}) EXPECT_NE(find(name), nullptr) << name;
  EXPECT_FALSE(mover_->has_queue("c-a"));
  loop_.advance(seconds(11));
  mover_->resolve_unfinished_starts();
  EXPECT_TRUE(reconcile().has_value());
  EXPECT_EQ(find("f"), nullptr) << "its start came to nothing";
}

TEST_F(ReconcilerTest, ReleasesWhatCanNeverRunAnyMoreAfterARestart) {
  Allocation foreign = in_phase(shared("b"), Phase::kCreated);
  foreign.placement = {placement::Mode::kForeign, {5}, {}, {}};
  begin({exclusive("a", {0}, Phase::kCreated), foreign}, {pod_of("a")});
  for (const char* name : {"a", "b"})
    runtime_.put(std::string("c-") + name, container_of(name, operations::ContainerState::kCreated));
  commit(event::Restarted{});
  EXPECT_TRUE(reconcile().has_value());
  EXPECT_EQ(find("a"), nullptr);
  EXPECT_EQ(find("b"), nullptr);
}

TEST_F(ReconcilerTest, LeavesWhatMayRunInAPodThatIsGone) {
  begin({exclusive("a", {0}, Phase::kInDoubt)}, {pod_of("a")});
  runtime_.put("c1", {.pid = 1, .cpus = {0}, .whole_cpus = 1});
  runtime_.fail("ContainerStatus", cri::RuntimeResponse{Code::kUnavailable, "busy", {}});
  std::optional<Status> done;
  reconciler_->run([&done](const Status& status) { done = status; });
  loop_.advance(seconds(2));
  ASSERT_TRUE(done);
  EXPECT_NE(find("a"), nullptr) << "what became of it is not known";
  runtime_.fail("ContainerStatus", std::nullopt);
  EXPECT_TRUE(reconcile().has_value());
  ASSERT_NE(committer_->ledger().find_by_container("c1"), nullptr);
  EXPECT_EQ(committer_->ledger().find_by_container("c1")->placement.cpus, CpuSet{0});
}

TEST_F(ReconcilerTest, WhatDoesNotRunOverrulesNobody) {
  find_on_cpus_of_others(operations::ContainerState::kCreated);
  EXPECT_NE(find("a"), nullptr);
  EXPECT_NE(find("e"), nullptr);
  for (const char* id : {"c1", "c2"}) {
    ASSERT_NE(committer_->ledger().find_by_container(id), nullptr);
    EXPECT_FALSE(committer_->ledger().find_by_container(id)->is_exclusive());
  }
}

TEST_F(ReconcilerTest, WhatRunsOverrulesWhatDoesNot) {
  find_on_cpus_of_others(operations::ContainerState::kRunning);
  EXPECT_EQ(find("a"), nullptr);
  EXPECT_EQ(find("e"), nullptr);
  for (const char* id : {"c1", "c2"}) {
    ASSERT_NE(committer_->ledger().find_by_container(id), nullptr);
    EXPECT_TRUE(committer_->ledger().find_by_container(id)->is_exclusive());
  }
}

TEST_F(ReconcilerTest, SaysOfWhatItFindsWhetherTheDatabaseWouldKnowIt) {
  why_unknown_ = "the state database is new";
  begin({});
  runtime_.put(pod_of("a").sandbox);
  runtime_.put("c1", {.pid = 1, .cpus = {2, 3}, .whole_cpus = 2});
  runtime_.put("c2", {.name = "b", .state = operations::ContainerState::kCreated});
  EXPECT_TRUE(reconcile().has_value());
  runtime_.put("c3", {.name = "c", .pid = 3});
  EXPECT_TRUE(reconcile().has_value());
  const auto reason = [this](const char* id) { return committer_->ledger().find_by_container(id)->reason; };
  EXPECT_THAT(reason("c1"), StartsWith("already running; the state database is new; it keeps the CPUs"));
  EXPECT_THAT(reason("c2"), StartsWith("already created; the state database is new; "));
  EXPECT_THAT(reason("c3"), StartsWith("found in the runtime, not created through topolet; "));
}

TEST_F(ReconcilerTest, LeavesACreateThatIsUnderWayToItsAnswer) {
  begin({exclusive("a", {0}, Phase::kPending)}, {pod_of("a")});
  runtime_.put(pod_of("a").sandbox);
  runtime_.put("c1", {.state = operations::ContainerState::kCreated, .cpus = {0}, .whole_cpus = 1});
  EXPECT_TRUE(reconcile().has_value());
  EXPECT_THAT(take_transitions(), IsEmpty());
}

TEST_F(ReconcilerTest, LeavesADoubtThatCameAfterTheLists) {
  begin({exclusive("a", {0}, Phase::kPending)}, {pod_of("a")});
  runtime_.put(pod_of("a").sandbox);
  runtime_.put("c1", {.state = operations::ContainerState::kCreated, .cpus = {0}, .whole_cpus = 1});
  runtime_.hold();
  reconciler_->run([](const Status&) {});
  commit(event::CreateLeftInDoubt{guaranteed("a", 1).key, {Code::kUnavailable, "gone"}});
  runtime_.release();
  loop_.run();
  EXPECT_EQ(find("a")->phase, Phase::kInDoubt);
}

TEST_F(ReconcilerTest, RepairsWhatIsElsewhereAfterARestart) {
  begin({exclusive("a", {0}), shared("b")}, {pod_of("a"), pod_of("b")});
  for (const char* name : {"a", "b"}) {
    runtime_.put(pod_of(name).sandbox);
    ScriptedRuntime::Container container = container_of(name);
    container.cpus = CpuSet::range(0, 7);
    runtime_.put(std::string("c-") + name, container);
  }
  commit(event::Restarted{});
  take_transitions();
  EXPECT_TRUE(reconcile().has_value());
  EXPECT_THAT(take_transitions(), Contains("b: vacating >0"));
  EXPECT_EQ(runtime_.container("c-a").cpus(), CpuSet{0});
  EXPECT_EQ(runtime_.container("c-b").cpus(), CpuSet::range(1, 7));
  EXPECT_EQ(find("b")->vacating, CpuSet());
}

/// The database has lost that `a` was made, for which `b` had to leave CPU 0.
TEST_F(ReconcilerTest, TellsNobodyOldCpusBeforeItIsKnownWhatElseRuns) {
  store_regressed_ = true;
  begin({shared("b")}, {});
  ScriptedRuntime::Container b = container_of("b");
  b.cpus = CpuSet::range(1, 7);
  runtime_.put("c-b", b);
  runtime_.put(pod_of("a").sandbox);
  runtime_.put("c-a", {.pid = 300, .cpus = {0}, .whole_cpus = 1});
  runtime_.fail("ContainerStatus", cri::RuntimeResponse{Code::kUnavailable, "busy", {}});
  reconciler_->run([](const Status&) {});
  loop_.run();
  EXPECT_THAT(runtime_.take_calls(), Not(Contains(StartsWith("UpdateContainerResources"))));
  runtime_.fail("ContainerStatus", std::nullopt);
  loop_.advance(std::chrono::seconds(2));
  for (const std::string& call : runtime_.take_calls()) EXPECT_NE(call, "UpdateContainerResources c-b 0-7");
  const Allocation* a = committer_->ledger().find_by_container("c-a");
  ASSERT_NE(a, nullptr);
  EXPECT_TRUE(a->is_exclusive());
  EXPECT_EQ(runtime_.container("c-b").cpus(), CpuSet::range(1, 7));
}

TEST_F(ReconcilerTest, TakesOverWhatIsInPlaceAfterARestart) {
  begin({exclusive("a", {0}), shared("b")}, {pod_of("a"), pod_of("b")});
  for (const char* name : {"a", "b"}) {
    runtime_.put(pod_of(name).sandbox);
    runtime_.put(std::string("c-") + name, container_of(name));
  }
  commit(event::Restarted{});
  take_transitions();
  EXPECT_TRUE(reconcile().has_value());
  EXPECT_THAT(take_transitions(), IsEmpty());
  EXPECT_TRUE(mover_->has_queue("c-a"));
  EXPECT_TRUE(mover_->has_queue("c-b"));
  EXPECT_THAT(runtime_.take_calls(),
              ElementsAre("ListContainers", "ListPodSandbox", "ContainerStatus", "ContainerStatus"));
}

TEST_F(ReconcilerTest, ForgetsWhatHasBeenInDoubtForTooLong) {
  Allocation doubtful = exclusive("a", {0}, Phase::kInDoubt);
  doubtful.doubt_since = seconds(1);
  Allocation kept = exclusive("b", {1}, Phase::kCrashed);
  kept.phase_since = seconds(60);
  begin({doubtful, kept});
  loop_.advance(minutes(4));
  reconciler_->expire();
  EXPECT_NE(find("a"), nullptr);
  loop_.advance(seconds(1));
  reconciler_->expire();
  EXPECT_EQ(find("a"), nullptr);
  EXPECT_NE(find("b"), nullptr);
  loop_.advance(seconds(119));
  reconciler_->expire();
  EXPECT_EQ(find("b"), nullptr);
  loop_.run();
  EXPECT_TRUE(store_->allocations()->empty());
}

TEST_F(ReconcilerTest, KnowsThePodsThatAreListed) {
  begin({}, {pod_of("a")});
  runtime_.put(pod_of("b").sandbox);
  EXPECT_TRUE(reconcile().has_value());
  EXPECT_EQ(committer_->ledger().pods().count("sandbox-a"), 0U);
  EXPECT_EQ(committer_->ledger().pods().count("sandbox-b"), 1U);
}

}  // namespace
}  // namespace topolet::engine
