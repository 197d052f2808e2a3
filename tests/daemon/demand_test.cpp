// Demands of containers, from the wire to the runtime: annotations, resizes, restarts, whole pods.
#include <algorithm>
#include <future>

#include "core/engine/engine.hpp"
#include "core/engine/planning/placer.hpp"
#include "core/engine/state/allocation.hpp"
#include "tests/daemon/core_rig.hpp"
#include "tests/daemon/test_policy.hpp"

namespace topolet::daemon {
namespace {

using testing::CoreRig;
using testing::NodePolicy;
using testing::RuledRig;
using Strings = std::vector<std::string>;
using Map = std::map<std::string, std::string>;

constexpr const char* kNewestReason = "SELECT reason FROM decided ORDER BY decision DESC LIMIT 1";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void let_all_namespaces_round_up(CoreRig& rig) { rig.rules.exclusive_namespaces = {"*"}; }

TEST(Annotations, OfThePodAndTheContainerCount) {
  RuledRig rig(let_all_namespaces_round_up);
  rig.run({.pod = "a", .milli = 1500, .pod_annotations = {{"topolet.io/cpus", "exclusive"}}});
  EXPECT_EQ(rig.held("a"), "0-1");
  rig.run({.pod = "b", .cpus = 1, .annotations = {{"topolet.io/cpus", "shared"}}});
  EXPECT_EQ(rig.held("b"), "2-3");
  rig.run({.pod = "c", .cpus = 1, .pod_annotations = {{"topolet.io/containers", R"({"main":{"cpus":"shared"}})"}}});
  EXPECT_EQ(rig.held("c"), "2-3");
  EXPECT_EQ(rig.query("SELECT settings FROM decided WHERE pod_name = 'c'"), Strings{R"({"cpus":"shared"})"});
}

TEST(Annotations, OfTheSandboxCountWhereACreateDoesNotRepeatThem) {
  CoreRig rig;
  rig.run_pod("a", "", {{"topolet.io/cpus", "shared"}});
  rig.run({.pod = "a", .cpus = 1});
  EXPECT_EQ(rig.held("a"), "0-3");
}

TEST(Annotations, ThatAreBadDenyTheContainerAndNameWhatIsWrong) {
  CoreRig rig;
  std::string id;
  for (int i = 0; i < 2; ++i) {
    const grpc::Status status =
        rig.create({.pod = "a", .cpus = 1, .pod_annotations = {{"topolet.io/cpus", "exclusiv"}}}, id);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(status.error_message(),
              "topolet: annotation topolet.io/cpus = 'exclusiv': it must be one of 'exclusive', 'shared', 'none'");
  }
  EXPECT_EQ(rig.query("SELECT times || reason FROM denials"),
            Strings{"2annotation topolet.io/cpus = 'exclusiv': it must be one of 'exclusive', 'shared', 'none'"});
  EXPECT_TRUE(rig.runtime().recorder().calls("CreateContainer").empty());
}

TEST(Annotations, ThatAreNotPermittedAreLeftOutAndNamed) {
  RuledRig rig([](CoreRig& r) { r.rules.annotations = std::vector<std::string>{}; });
  rig.run({.pod = "a", .cpus = 1, .pod_annotations = {{"topolet.io/cpus", "shared"}}});
  EXPECT_EQ(rig.held("a"), "0");
  EXPECT_TRUE(contains(rig.query(kNewestReason).at(0), "annotation topolet.io/cpus is ignored"))
      << rig.query(kNewestReason).at(0);
}

TEST(Annotations, CountAfterARestartToo) {
  RuledRig rig(let_all_namespaces_round_up);
  const std::string id = rig.run({.pod = "a", .milli = 1500, .annotations = {{"topolet.io/cpus", "exclusive"}}});
  rig.stop();
  rig.start();
  EXPECT_TRUE(rig.resize(id, 2500).ok());
  EXPECT_EQ(rig.held("a"), "0-2");
  EXPECT_EQ(rig.query("SELECT mode FROM current_placements"), Strings{"exclusive"});
}

TEST(Isolated, CpusGoToThoseThatAskForThemAndBackToNobody) {
  RuledRig rig([](CoreRig& r) {
    r.isolated = CpuSet{3};
    let_all_namespaces_round_up(r);
  });
  const std::string shared = rig.run({.pod = "shared"});
  EXPECT_EQ(rig.runtime().row(shared).cpus, "0-2");
  const std::string own = rig.run({.pod = "own", .cpus = 1, .pod_annotations = {{"topolet.io/isolated", "require"}}});
  EXPECT_EQ(rig.runtime().row(own).cpus, "3");
  EXPECT_TRUE(rig.stop_container(own).ok());
  EXPECT_EQ(rig.runtime().row(shared).ran_on, Strings{"0-2"});
}

TEST(Resize, GrowsAroundTheCpusItHas) {
  CoreRig rig;
  const std::string shared = rig.run({.pod = "shared"});
  const std::string own = rig.run({.pod = "own", .cpus = 1});
  const std::string other = rig.run({.pod = "other", .cpus = 1});
  ASSERT_EQ(rig.held("other"), "1");
  EXPECT_TRUE(rig.resize(own, 2000).ok());
  EXPECT_EQ(rig.runtime().row(own).cpus, "0,2");
  EXPECT_EQ(rig.runtime().row(shared).cpus, "3");
  EXPECT_EQ(rig.query("SELECT event FROM decided WHERE pod_name = 'own' ORDER BY decision DESC LIMIT 1"),
            Strings{"resized"});
  EXPECT_TRUE(CoreRig::eventually([&] {
    const Strings published_events = rig.published_events();
    return std::find(published_events.begin(), published_events.end(), "resized own 0,2") != published_events.end();
  }));
}

TEST(Resize, IsDeniedWhereThereIsNoRoomAndChangesNothing) {
  CoreRig rig;
  const std::string own = rig.run({.pod = "own", .cpus = 2});
  const auto before = rig.runtime().recorder().calls("UpdateContainerResources").size();
  for (int i = 0; i < 2; ++i) {
    const grpc::Status status = rig.resize(own, 4000);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_TRUE(contains(status.error_message(), "it cannot be resized")) << status.error_message();
    EXPECT_TRUE(contains(status.error_message(), "requested=4, available=3")) << status.error_message();
  }
  EXPECT_EQ(rig.held("own"), "0-1");
  EXPECT_EQ(rig.query("SELECT times FROM denials"), Strings{"2"});
  EXPECT_EQ(rig.runtime().recorder().calls("UpdateContainerResources").size(), before);
  EXPECT_EQ(rig.query("SELECT cpu_request_milli FROM current_placements JOIN decided USING (decision)"),
            Strings{"2000"});
}

TEST(Resize, GivesBackWhatItNoLongerAsksFor) {
  CoreRig rig;
  const std::string shared = rig.run({.pod = "shared"});
  const std::string own = rig.run({.pod = "own", .cpus = 3});
  EXPECT_TRUE(rig.resize(own, 2000).ok());
  EXPECT_EQ(rig.runtime().row(own).cpus, "0-1");
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.runtime().row(shared).cpus == "2-3"; }));
  EXPECT_EQ(rig.held("own"), "0-1");
}

TEST(Resize, ToAPartOfACpuLeavesItsOwnForThePool) {
  CoreRig rig;
  const std::string shared = rig.run({.pod = "shared"});
  const std::string own = rig.run({.pod = "own", .cpus = 2});
  EXPECT_TRUE(rig.resize(own, 2500).ok());
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.runtime().row(own).cpus == "0-3"; }));
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.runtime().row(shared).cpus == "0-3"; }));
  EXPECT_EQ(rig.query("SELECT mode FROM current_placements WHERE pod = 'own'"), Strings{"shared"});
  EXPECT_EQ(
      rig.query("SELECT reason FROM current_placements WHERE pod = 'own'"),
      Strings{"runs in the shared pool: its CPU request is not a whole number; it has left the CPUs it had before"});
}

TEST(Resize, ThatTheRuntimeRefusesLeavesEverythingAsItWas) {
  for (const std::int64_t milli : {2500, 1000, 3000}) {
    CoreRig rig;
    const std::string own = rig.run({.pod = "own", .cpus = 2});
    rig.runtime().fail_updates(true);
    EXPECT_EQ(rig.resize(own, milli).error_message(), "cgroup is busy");
    rig.runtime().fail_updates(false);
    EXPECT_EQ(rig.held("own"), "0-1") << milli;
    EXPECT_EQ(rig.query("SELECT mode FROM current_placements"), Strings{"exclusive"});
    EXPECT_EQ(rig.run({.pod = "other", .cpus = 1}).empty(), false);
    EXPECT_EQ(rig.held("other"), "2") << milli;
  }
}

TEST(Resize, ToWholeCpusCountsFromTheNextStart) {
  CoreRig rig;
  const std::string first = rig.run({.pod = "own", .milli = 1500});
  EXPECT_TRUE(rig.resize(first, 2000).ok());
  EXPECT_EQ(rig.runtime().row(first).cpus, "0-3");
  EXPECT_TRUE(contains(rig.query(kNewestReason).at(0), "when it is next created")) << rig.query(kNewestReason).at(0);
  rig.runtime().exit(first, 1);
  rig.run({.pod = "own", .cpus = 2, .attempt = 1});
  EXPECT_EQ(rig.held("own"), "0-1");
}

TEST(CrashHold, KeepsTheCpusOfAContainerThatFailedForItsNextAttempt) {
  CoreRig rig;
  rig.run({.pod = "first", .cpus = 1});
  const std::string own = rig.run({.pod = "own", .cpus = 1});
  ASSERT_EQ(rig.held("own"), "1");
  rig.runtime().exit(own, 3);
  rig.list();
  EXPECT_TRUE(CoreRig::eventually(
      [&] { return rig.query("SELECT state FROM current_placements WHERE pod = 'own'") == Strings{"crashed"}; }));
  EXPECT_TRUE(rig.remove_container(own).ok()) << "the kubelet clears away what is left of it";
  EXPECT_EQ(rig.run({.pod = "other", .cpus = 1}).empty(), false);
  EXPECT_EQ(rig.held("other"), "2");
  const std::string next = rig.run({.pod = "own", .cpus = 1, .attempt = 1});
  EXPECT_EQ(rig.runtime().row(next).cpus, "1");
  EXPECT_EQ(rig.query("SELECT count(*) FROM live"), Strings{"3"});
  EXPECT_EQ(rig.query("SELECT cause FROM ended JOIN decided USING (decision) WHERE pod_name = 'own'"),
            Strings{"superseded"});
}

TEST(CrashHold, GoesToAContainerThatIsMadeAgainUnderTheSameName) {
  CoreRig rig;
  rig.run({.pod = "first", .cpus = 1});
  const std::string own = rig.run({.pod = "own", .cpus = 1});
  rig.runtime().exit(own, 3);
  rig.list();
  ASSERT_TRUE(CoreRig::eventually(
      [&] { return rig.query("SELECT state FROM live ORDER BY decision DESC LIMIT 1") == Strings{"crashed"}; }));
  EXPECT_TRUE(rig.remove_container(own).ok());
  const std::string again = rig.run({.pod = "own", .cpus = 1});
  EXPECT_EQ(rig.runtime().row(again).cpus, "1");
  EXPECT_EQ(rig.query("SELECT state FROM live"), (Strings{"bound", "bound"}));
}

TEST(CrashHold, IsToldToPluginsAsTheEndOfTheContainer) {
  CoreRig rig;
  const std::string own = rig.run({.pod = "own", .cpus = 1});
  rig.runtime().exit(own, 3);
  rig.list();
  const Strings expected = {"placed own 0", "started own 0", "exited own 0", "released own 0"};
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.published_events() == expected; }))
      << ::testing::PrintToString(rig.published_events());
}

TEST(CrashHold, KeepsWhatItHadWhereItFailsWhileItIsResized) {
  CoreRig rig;
  const std::string own = rig.run({.pod = "own", .cpus = 2});
  rig.runtime().hold("ContainerStatus");
  rig.runtime().exit(own, 3);
  auto resized = std::async(std::launch::async, [&] { return rig.resize(own, 3000); });
  rig.list();
  rig.runtime().release();
  resized.get();
  ASSERT_TRUE(CoreRig::eventually([&] { return rig.query("SELECT state FROM live") == Strings{"crashed"}; }));
  EXPECT_EQ(rig.query("SELECT cpus FROM live"), Strings{"0-1"});
  EXPECT_EQ(rig.query("SELECT count(*) FROM decided WHERE event = 'resized'"), Strings{"0"});
}

TEST(CrashHold, SurvivesARestart) {
  CoreRig rig;
  const std::string own = rig.run({.pod = "own", .cpus = 2});
  rig.runtime().exit(own, 3);
  rig.list();
  ASSERT_TRUE(CoreRig::eventually([&] { return rig.query("SELECT state FROM live") == Strings{"crashed"}; }));
  rig.stop();
  rig.start();
  rig.run({.pod = "other", .cpus = 1});
  EXPECT_EQ(rig.held("other"), "2");
  const std::string next = rig.run({.pod = "own", .cpus = 2, .attempt = 1});
  EXPECT_EQ(rig.runtime().row(next).cpus, "0-1");
}

TEST(CrashHold, CountsWhenTheContainerFailedWhileTopoletWasAway) {
  CoreRig rig;
  const std::string own = rig.run({.pod = "own", .cpus = 2});
  rig.stop();
  rig.runtime().exit(own, 3);
  rig.start();
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.query("SELECT state FROM live") == Strings{"crashed"}; }));
}

TEST(CrashHold, GivesWayBeforeAnotherIsDenied) {
  CoreRig rig;
  const std::string older = rig.run({.pod = "older", .cpus = 1});
  const std::string newer = rig.run({.pod = "newer", .cpus = 1});
  const auto crash = [&](const std::string& id) {
    const auto held = rig.query("SELECT count(*) FROM live WHERE state = 'crashed'");
    rig.runtime().exit(id, 1);
    rig.list();
    EXPECT_TRUE(
        CoreRig::eventually([&] { return rig.query("SELECT count(*) FROM live WHERE state = 'crashed'") != held; }));
  };
  crash(older);
  crash(newer);
  std::string id;
  EXPECT_FALSE(rig.create({.pod = "huge", .cpus = 4}, id).ok());
  EXPECT_EQ(rig.query("SELECT count(*) FROM live"), Strings{"2"}) << "it would not have helped";
  rig.run({.pod = "big", .cpus = 2});
  EXPECT_EQ(rig.held("newer"), "");
  EXPECT_EQ(rig.held("older"), "0");
  EXPECT_EQ(rig.query("SELECT cause FROM ended JOIN decided USING (decision) WHERE pod_name = 'newer'"),
            Strings{"yielded"});
}

TEST(CrashHold, EndsWithThePod) {
  CoreRig rig;
  const std::string stopped = rig.run({.pod = "stopped", .cpus = 1});
  EXPECT_TRUE(rig.stop_container(stopped).ok());
  EXPECT_EQ(rig.query("SELECT state FROM live"), Strings{"kept"});
  EXPECT_TRUE(rig.remove_container(stopped).ok());
  EXPECT_EQ(rig.held("stopped"), "0") << "it stays without the container";
  const std::string sandbox = rig.run_pod("pod");
  const std::string crashed = rig.run({.pod = "pod", .cpus = 1});
  rig.runtime().exit(crashed, 1);
  rig.list();
  EXPECT_TRUE(CoreRig::eventually([&] {
    return rig.query("SELECT state FROM live ORDER BY state") == Strings{"crashed", "kept"};
  }));
  EXPECT_TRUE(rig.stop_pod(sandbox).ok());
  EXPECT_EQ(rig.held("pod"), "");
}

TEST(CrashHold, CountsNoFailureThatIsSeenWhileTheKubeletStopsTheContainer) {
  CoreRig rig;
  const std::string own = rig.run({.pod = "own", .cpus = 1});
  rig.runtime().hold("StopContainer");
  auto stopped = std::async(std::launch::async, [&] { return rig.stop_container(own).ok(); });
  ASSERT_EQ(rig.runtime().recorder().wait_for_arrivals("StopContainer", 1).size(), 1U);
  rig.runtime().exit(own, 137);
  rig.list();
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.query("SELECT state FROM live") == Strings{"kept"}; }));
  EXPECT_EQ(rig.query("SELECT message FROM outcome WHERE state = 'kept'"),
            Strings{"it was stopped; CPU 0 kept for its next attempt"});
  EXPECT_EQ(rig.query("SELECT count(*) FROM outcome WHERE state = 'crashed'"), Strings{"0"});
  rig.runtime().release();
  EXPECT_TRUE(stopped.get());
}

TEST(CrashHold, EndsInTimeAndIsOffAtZero) {
  RuledRig rig([](CoreRig& r) { r.rules.crash_hold = std::chrono::milliseconds(1); });
  std::string own = rig.run({.pod = "own", .cpus = 1});
  rig.runtime().exit(own, 1);
  rig.list();
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.held("own").empty(); }));
  EXPECT_EQ(rig.query("SELECT cause FROM ended"), Strings{"crash-hold"});
  rig.stop();
  rig.rules.crash_hold = std::chrono::milliseconds(0);
  rig.start();
  own = rig.run({.pod = "own", .cpus = 1, .attempt = 1});
  rig.runtime().exit(own, 1);
  rig.list();
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.held("own").empty(); }));
  EXPECT_EQ(rig.query("SELECT cause FROM ended ORDER BY decision DESC LIMIT 1"), Strings{"exited"});
}

TEST(NextAttempt, GetsItsOldCpusIfTheyAreFree) {
  RuledRig rig(testing::keep_nothing);
  const std::string first = rig.run({.pod = "first", .cpus = 1});
  const std::string own = rig.run({.pod = "own", .cpus = 1});
  ASSERT_EQ(rig.held("own"), "1");
  rig.runtime().exit(own, 0);
  rig.list();
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.held("own").empty(); }));
  EXPECT_TRUE(rig.stop_container(first).ok());
  std::string next = rig.run({.pod = "own", .cpus = 1, .attempt = 1});
  EXPECT_EQ(rig.runtime().row(next).cpus, "1") << "0 is free too";
  EXPECT_TRUE(rig.stop_container(next).ok());
  rig.run({.pod = "big", .cpus = 3});
  EXPECT_EQ(rig.held("big"), "0-2");
  EXPECT_FALSE(rig.create({.pod = "own", .cpus = 1, .attempt = 2}, next).ok());
}

/// Scores node 1 for the first container of a pod, and then the pod's nodes.
std::vector<placement::Vote> keeping_pods_together() {
  return {{std::make_shared<NodePolicy>([](const placement::PolicyRequest& request) {
    if (!request.workload.pod_demand) return NodeSet();
    return request.workload.pod_nodes.empty() ? NodeSet{1} : request.workload.pod_nodes;
  })}};
}

TEST(PodScope, TellsLaterContainersWhereTheFirstWasPutUntilThePodIsRemoved) {
  RuledRig rig([](CoreRig& r) { r.votes = keeping_pods_together(); });
  const std::string sandbox = rig.run_pod("pod");
  rig.run({.pod = "pod", .name = "first", .cpus = 1, .pod_cpus = 2});
  EXPECT_EQ(rig.query("SELECT nodes FROM pod"), Strings{"1"});
  rig.stop();
  rig.votes = {{std::make_shared<NodePolicy>(
      [](const placement::PolicyRequest& request) { return request.workload.pod_nodes; })}};
  rig.start();
  rig.run({.pod = "pod", .name = "second", .cpus = 1, .pod_cpus = 2});
  EXPECT_EQ(rig.query("SELECT cpus FROM current_placements ORDER BY container"), (Strings{"2", "3"}));
  EXPECT_TRUE(rig.stop_pod(sandbox).ok());
  EXPECT_TRUE(rig.remove_pod(sandbox).ok());
  EXPECT_EQ(rig.query("SELECT count(*) FROM pod"), Strings{"0"});
}

TEST(PodScope, IsNotThereWhereThePodsResourcesAreNotToldOrNoPolicyIsAsked) {
  RuledRig rig([](CoreRig& r) { r.votes = keeping_pods_together(); });
  rig.run({.pod = "pod", .cpus = 1});
  rig.run({.pod = "none", .cpus = 1, .pod_annotations = {{"topolet.io/cpus", "none"}}, .pod_cpus = 1});
  EXPECT_EQ(rig.query("SELECT nodes FROM pod"), (Strings{"", ""}));
}

/// Keeps pods named after a node there, as long as it has CPUs left.
std::vector<placement::Vote> by_name() {
  return {{std::make_shared<NodePolicy>([](const placement::PolicyRequest& request) {
    const std::string& pod = request.workload.pod_name;
    const NodeSet wanted{static_cast<std::uint32_t>(pod.back() - '0')};
    for (const placement::Candidate& candidate : request.candidates) {
      if (candidate.nodes == wanted && !candidate.cpus.intersects(request.ledger.pool)) return NodeSet();
    }
    return wanted;
  })}};
}

TEST(SharedContainer, IsPlacedAnewBeforeAGrantTakesItsLastCpu) {
  RuledRig rig([](CoreRig& r) { r.votes = by_name(); });
  const std::string shared = rig.run({.pod = "shared-0"});
  EXPECT_EQ(rig.runtime().row(shared).cpus, "0-1");
  rig.runtime().hold("UpdateContainerResources");
  auto created = std::async(std::launch::async, [&] { return rig.run({.pod = "own-0", .cpus = 2}); });
  ASSERT_EQ(rig.runtime().recorder().wait_for_arrivals("UpdateContainerResources", 1).size(), 1U);
  EXPECT_EQ(rig.runtime().recorder().calls("CreateContainer").size(), 1U) << "the grant waits for its neighbour";
  rig.runtime().release();
  EXPECT_EQ(rig.runtime().row(created.get()).cpus, "0-1");
  EXPECT_EQ(rig.runtime().row(shared).cpus, "2-3");
  const Strings why = rig.query("SELECT reason FROM decided WHERE event = 're-placed' AND pod_name = 'shared-0'");
  ASSERT_EQ(why.size(), 1U);
  EXPECT_TRUE(contains(why[0], "its CPUs go to default/own-0/main")) << why[0];
  EXPECT_EQ(rig.query("SELECT within FROM live JOIN decided USING (decision) WHERE pod_name = 'shared-0'"),
            Strings{"0-3"})
      << "its node is full, and the policy has no other wish";
}

TEST(SharedContainer, ThatHasNowhereToGoSendsTheGrantToTheNextCandidate) {
  class Stubborn : public NodePolicy {
   public:
    Stubborn() : NodePolicy([](const placement::PolicyRequest&) { return NodeSet{0}; }) {}
    Result<std::vector<placement::Verdict>> score(const placement::PolicyRequest& request) override {
      auto verdicts = NodePolicy::score(request);
      for (std::size_t i = 0; i < verdicts->size() && request.workload.pod_name == "shared"; ++i) {
        if (request.candidates[i].nodes != NodeSet{0})
          (*verdicts)[i] = {placement::Verdict::Kind::kReject, 0, "here or nowhere"};
      }
      return verdicts;
    }
  };
  RuledRig rig([](CoreRig& r) { r.votes = {{std::make_shared<Stubborn>()}}; });
  const std::string shared = rig.run({.pod = "shared"});
  EXPECT_EQ(rig.runtime().row(shared).cpus, "0-1");
  rig.run({.pod = "own", .cpus = 2});
  EXPECT_EQ(rig.held("own"), "2-3");
  EXPECT_EQ(rig.runtime().row(shared).ran_on, Strings{"0-1"});
}

/// Binds memory to the nodes of a variable; places everything on the machine.
std::vector<placement::Vote> memory_on(const std::shared_ptr<NodeSet>& nodes) {
  return {{std::make_shared<NodePolicy>([](const placement::PolicyRequest&) { return NodeSet(); },
                                        [nodes](const placement::PolicyRequest&) { return *nodes; })}};
}

TEST(Memory, OfARunningContainerOnlyGrows) {
  const auto nodes = std::make_shared<NodeSet>(NodeSet{0});
  RuledRig rig([&](CoreRig& r) { r.votes = memory_on(nodes); });
  const std::string id = rig.run({.pod = "own", .cpus = 1});
  ASSERT_EQ(rig.runtime().row(id).mems, "0");
  *nodes = NodeSet{1};
  rig.request_move("own");
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.runtime().row(id).mems == "0-1"; }));
}

TEST(Memory, OfARunningContainerMovesIfTheRulesSaySo) {
  const auto nodes = std::make_shared<NodeSet>(NodeSet{0});
  RuledRig rig([&](CoreRig& r) {
    r.votes = memory_on(nodes);
    r.rules.memory_migrate = true;
  });
  const std::string id = rig.run({.pod = "own", .cpus = 1});
  *nodes = NodeSet{1};
  rig.request_move("own");
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.runtime().row(id).mems == "1"; }));
}

TEST(Memory, ThatWasNeverBoundStaysSoWhileTheContainerRuns) {
  engine::Allocation before;
  before.phase = engine::Phase::kRunning;
  placement::Placement placement{placement::Mode::kShared, {0}, {}, {1}, {}};
  engine::retain_memory_nodes(before, {}, placement);
  EXPECT_TRUE(placement.mems.empty()) << "it may have memory anywhere";
  before.phase = engine::Phase::kCreated;
  placement.mems = {1};
  engine::retain_memory_nodes(before, {}, placement);
  EXPECT_EQ(placement.mems, NodeSet{1});
}

}  // namespace
}  // namespace topolet::daemon
