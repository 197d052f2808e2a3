// Guarantees that hold when calls cross each other, fail or get lost.
#include <future>

#include "core/engine/engine.hpp"
#include "tests/daemon/core_rig.hpp"
#include "tests/support/file_size_limit.hpp"

namespace topolet::daemon {
namespace {

using testing::CoreRig;
using testing::FileSizeLimit;
using testing::RuledRig;
using Fate = testing::ServedRuntime::Fate;
using Strings = std::vector<std::string>;
constexpr const char* kUpdate = "UpdateContainerResources";

runtime::v1::LinuxContainerResources cpuset(const std::string& cpus, const std::string& mems = "") {
  runtime::v1::LinuxContainerResources resources;
  resources.set_cpuset_cpus(cpus);
  resources.set_cpuset_mems(mems);
  return resources;
}

TEST(Contract, ADecisionWhoseCommitFailedIsWrittenLater) {
  CoreRig rig;
  rig.run({.pod = "shared"});
  rig.run_pod("own");
  rig.run_pod("next");
  {
    const FileSizeLimit full_disk(0);
    rig.run({.pod = "own", .cpus = 1});
  }
  ASSERT_TRUE(CoreRig::eventually(
      [&] { return rig.query("SELECT event FROM decided WHERE event = 'gap'") == Strings{"gap"}; }));
  rig.run({.pod = "next", .cpus = 1});
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.held("next") == "1"; }));
  EXPECT_EQ(rig.held("own"), "0");
  EXPECT_EQ(rig.query("SELECT event || ' ' || pod_name FROM decided WHERE event != 'gap' ORDER BY decision"),
            (Strings{"unpinned shared", "unpinned own", "unpinned next"}));
  EXPECT_EQ(rig.query("SELECT d.event || ' ' || d.pod_name FROM outcome o JOIN decided d USING (decision)"),
            (Strings{"unpinned shared", "unpinned own", "unpinned next"}));
}

TEST(Contract, ARefusedUpdateDoesNotTakeBackCpusThatAnotherHasNow) {
  CoreRig rig;
  rig.run_pod("b");
  const std::string a = rig.run({.pod = "a", .cpus = 1});
  ASSERT_EQ(rig.runtime().row(a).cpus, "0");
  rig.runtime().hold(kUpdate);
  auto update = std::async(std::launch::async, [&] { return rig.update(a, cpuset("1")); });
  ASSERT_EQ(rig.runtime().recorder().wait_for_arrivals(kUpdate, 1).size(), 1U);
  auto b = std::async(std::launch::async, [&] { return rig.run({.pod = "b", .cpus = 1, .cpuset = "0"}); });
  ASSERT_TRUE(CoreRig::eventually([&] { return rig.held("b") == "0"; }));
  rig.runtime().fail_updates(true);
  rig.runtime().release();
  EXPECT_FALSE(update.get().ok());
  rig.runtime().fail_updates(false);
  const std::string id = b.get();
  EXPECT_EQ(rig.query("SELECT d.event FROM live JOIN decided d USING (decision) WHERE pod_name = 'b'"),
            Strings{"conflict"})
      << "a may have to stay on it, and the kubelet's word counts";
  EXPECT_EQ(rig.query("SELECT count(*) FROM current_placements WHERE mode = 'exclusive' AND cpus = '0'"), Strings{"1"});
}

TEST(Contract, AStartThatWaitsWhileItsContainerIsSupersededStartsInThePool) {
  CoreRig rig;
  std::string first;
  ASSERT_TRUE(rig.create({.pod = "own", .cpus = 1}, first).ok());
  rig.runtime().hold(kUpdate);
  auto update = std::async(std::launch::async, [&] { return rig.resize(first, 1000); });
  ASSERT_EQ(rig.runtime().recorder().wait_for_arrivals(kUpdate, 1).size(), 1U);
  auto start = std::async(std::launch::async, [&] { return rig.start_container(first); });
  ASSERT_TRUE(rig.has_arrived("StartContainer", 1));
  std::string second;
  const grpc::Status made = rig.create({.pod = "own", .cpus = 1, .attempt = 1}, second);
  ASSERT_TRUE(made.ok()) << made.error_message();
  rig.runtime().release();
  update.get();
  start.get();
  ASSERT_TRUE(rig.start_container(second).ok());
  EXPECT_EQ(rig.runtime().row(second).ran_on, Strings{"0"});
  for (const std::string& cpus : rig.runtime().row(first).ran_on) EXPECT_EQ(cpus, "1-3");
}

TEST(Contract, NeighboursAreNotWidenedOntoCpusThatAnUpdateHasNotLeftYet) {
  CoreRig rig;
  const std::string shared = rig.run({.pod = "shared"});
  const std::string a = rig.run({.pod = "a", .cpus = 1});
  ASSERT_EQ(rig.runtime().row(a).cpus, "0");
  const auto before = rig.runtime().recorder().calls(kUpdate).size();
  rig.runtime().hold(kUpdate);
  auto update = std::async(std::launch::async, [&] { return rig.update(a, cpuset("1")); });
  ASSERT_TRUE(CoreRig::eventually([&] {
    const auto calls = rig.runtime().recorder().calls(kUpdate);
    return calls.size() > before && !calls.back().messages.empty();
  }));
  const auto calls = rig.runtime().recorder().calls(kUpdate);
  runtime::v1::UpdateContainerResourcesRequest sent;
  ASSERT_TRUE(sent.ParseFromString(calls.back().messages.at(0)));
  EXPECT_EQ(sent.container_id(), shared);
  EXPECT_EQ(sent.linux().cpuset_cpus(), "2-3") << "a is still alone on 0, and may stay there if the runtime says no";
  rig.runtime().release();
  EXPECT_TRUE(update.get().ok());
}

TEST(Contract, DoubtEndsThoughRetriesAreRefused) {
  CoreRig rig;
  rig.stop();
  rig.options.doubt_timeout = std::chrono::milliseconds(2500);
  rig.time_stands = true;
  rig.start();
  rig.runtime().next_create(Fate::kNotCreatedAnswerLost);
  std::string id;
  EXPECT_FALSE(rig.create({.pod = "own", .cpus = 2}, id).ok());
  for (int i = 0; i < 6; ++i) {
    rig.pass(std::chrono::milliseconds(400));
    rig.runtime().next_create(Fate::kRefused);
    EXPECT_FALSE(rig.create({.pod = "own", .cpus = 2}, id).ok());
  }
  EXPECT_EQ(rig.held("own"), "0-1") << "after 2.4 s";
  rig.pass(std::chrono::milliseconds(600));  // it looks once a second
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.held("own").empty(); }));
  EXPECT_EQ(rig.query("SELECT cause FROM ended"), Strings{"pending-timeout"});
}

TEST(Contract, CpusStayTheContainersOwnUntilAResizeIntoThePoolIsTaken) {
  CoreRig rig;
  rig.stop();
  rig.rules.min_shared_cpus = 0;
  rig.start();
  const std::string own = rig.run({.pod = "own", .cpus = 4});
  ASSERT_EQ(rig.runtime().row(own).cpus, "0-3");
  rig.runtime().fail_updates(true);
  rig.runtime().hold(kUpdate);
  auto resized = std::async(std::launch::async, [&] { return rig.resize(own, 3500); });
  ASSERT_EQ(rig.runtime().recorder().wait_for_arrivals(kUpdate, 1).size(), 1U);
  std::string other;
  EXPECT_FALSE(rig.create({.pod = "other", .cpus = 1}, other).ok());
  rig.runtime().release();
  EXPECT_FALSE(resized.get().ok());
  EXPECT_EQ(rig.query("SELECT mode FROM current_placements WHERE pod = 'own'"), Strings{"exclusive"});
  rig.runtime().fail_updates(false);
  EXPECT_TRUE(rig.resize(own, 3500).ok());
  EXPECT_EQ(rig.query("SELECT mode FROM current_placements WHERE pod = 'own'"), Strings{"shared"});
  EXPECT_TRUE(rig.create({.pod = "other", .cpus = 1}, other).ok());
}

TEST(Contract, ARepeatedCreateThatAsksForSomethingElseIsDecidedAnew) {
  CoreRig rig;
  rig.runtime().next_create(Fate::kNotCreatedAnswerLost);
  std::string id;
  EXPECT_FALSE(rig.create({.pod = "own", .cpus = 1}, id).ok());
  ASSERT_EQ(rig.held("own"), "0");
  ASSERT_TRUE(rig.create({.pod = "own", .milli = 1500}, id).ok());
  EXPECT_EQ(rig.held("own"), "0-3");
  EXPECT_EQ(rig.runtime().row(id).cpus, "0-3");
}

TEST(Contract, AKubeletsUpdateUnderWayIsInTheWayOfAGrant) {
  CoreRig rig;
  rig.run_pod("b");
  const std::string shared = rig.run({.pod = "shared"});
  ASSERT_TRUE(rig.update(shared, cpuset("1")).ok());
  ASSERT_EQ(rig.runtime().row(shared).cpus, "1");
  rig.runtime().hold(kUpdate);
  auto update = std::async(std::launch::async, [&] { return rig.update(shared, cpuset("0-1")); });
  ASSERT_EQ(rig.runtime().recorder().wait_for_arrivals(kUpdate, 2).size(), 2U);
  auto b = std::async(std::launch::async, [&] { return rig.run({.pod = "b", .cpus = 1, .cpuset = "0"}); });
  ASSERT_TRUE(CoreRig::eventually([&] { return rig.held("b") == "0"; }));
  rig.settle();
  rig.list();  // behind what it has sent to the runtime
  EXPECT_EQ(rig.runtime().ids().size(), 1U) << "b runs on CPU 0 while an update of the neighbour to 0-1 is under way";
  rig.runtime().release();
  EXPECT_TRUE(update.get().ok());
  const std::string id = b.get();
  EXPECT_EQ(rig.runtime().row(id).cpus, "0");
}

TEST(Contract, AContainerInDoubtDoesNotStartBeforeItsCpusAreSet) {
  CoreRig rig;
  rig.run_pod("own");
  rig.run_pod("shared");
  rig.runtime().hold("ListContainers");  // reconciling comes late
  rig.runtime().next_create(Fate::kCreatedAnswerLost);
  std::string lost;
  EXPECT_FALSE(rig.create({.pod = "shared"}, lost).ok());
  lost = rig.runtime().ids().front();
  const std::string own = rig.run({.pod = "own", .cpus = 1});
  ASSERT_EQ(rig.runtime().row(own).cpus, "0");
  auto start = std::async(std::launch::async, [&] { return rig.start_container(lost); });
  ASSERT_TRUE(rig.has_arrived("StartContainer", 2));
  rig.settle();
  rig.run_pod("later");  // behind what it has sent to the runtime
  rig.runtime().release();
  static_cast<void>(start.get());
  const auto row = rig.runtime().row(lost);
  EXPECT_TRUE(row.ran_on.empty() || row.ran_on.front() == "1-3")
      << "it ran on " << row.ran_on.front() << " beside own on 0";
}

TEST(Contract, TheNextAttemptIsNotDeniedByOneThatWasNeverStarted) {
  CoreRig rig;
  rig.runtime().next_create(Fate::kCreatedAnswerLost);
  std::string id;
  EXPECT_FALSE(rig.create({.pod = "own", .cpus = 2}, id).ok());
  ASSERT_TRUE(
      CoreRig::eventually([&] { return rig.query("SELECT state FROM current_placements") == Strings{"bound"}; }));
  // The kubelet finds a container that is CREATED, makes the next attempt, and keeps the dead one.
  const grpc::Status status = rig.create({.pod = "own", .cpus = 2, .attempt = 1}, id);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST(Contract, DoesNotAdoptWhatEndedWhileItListed) {
  RuledRig rig(testing::keep_nothing);
  const std::string own = rig.run({.pod = "own", .cpus = 1});
  rig.stop();
  rig.runtime().hold("ListPodSandbox");
  const auto before = rig.runtime().recorder().calls("ListPodSandbox").size();
  rig.start();
  rig.runtime().recorder().wait_for_arrivals("ListPodSandbox", before + 1);
  EXPECT_TRUE(rig.stop_container(own).ok());  // the list of containers, made before, says that it runs
  EXPECT_EQ(rig.held("own"), "");
  rig.runtime().release();
  rig.run({.pod = "other"});
  EXPECT_EQ(rig.query("SELECT pod_name FROM decided WHERE event = 'adopted'"), Strings{});
  EXPECT_EQ(rig.held("own"), "") << "an exited container holds CPUs";
}

TEST(Contract, AdoptsNothingAsExclusiveWhereTheRuleIsNever) {
  CoreRig rig;
  rig.stop();
  rig.rules.exclusive = placement::ExclusiveRule::kNever;
  rig.start();
  const std::string big = rig.run({.pod = "big", .cpus = 4});
  const std::string shared = rig.run({.pod = "shared"});
  ASSERT_EQ(rig.held("big"), "0-3");
  rig.stop();
  std::filesystem::remove_all(rig.file("state"));
  rig.start();
  std::string id;
  const grpc::Status status = rig.create({.pod = "third"}, id);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(rig.query("SELECT mode || ' ' || pod FROM current_placements WHERE pod IN ('big', 'shared') ORDER BY pod"),
            (Strings{"shared big", "shared shared"}));
}

TEST(Contract, TheDatabaseFollowsANewPoolAfterARestart) {
  CoreRig rig;
  const std::string shared = rig.run({.pod = "shared"});
  rig.stop();
  rig.reserved = CpuSet{0};
  rig.start();
  ASSERT_TRUE(CoreRig::eventually([&] { return rig.runtime().row(shared).cpus == "1-3"; }));
  EXPECT_EQ(rig.held("shared"), "1-3");
}

TEST(Contract, AConflictEndsWhenTheKubeletSaysItsSetAgain) {
  CoreRig rig;
  const std::string shared = rig.run({.pod = "shared"});
  const std::string old = rig.run({.pod = "old", .cpus = 1, .cpuset = "0"});
  rig.runtime().exit(old);  // the kubelet knows from its event stream
  const std::string young = rig.run({.pod = "young", .cpus = 1, .cpuset = "0"});
  rig.list();
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.held("old").empty(); }));
  EXPECT_TRUE(rig.update(young, cpuset("0")).ok());
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.runtime().row(shared).cpus == "1-3"; }));
  EXPECT_EQ(rig.query("SELECT mode FROM current_placements WHERE pod = 'young'"), Strings{"exclusive"});
}

TEST(Contract, TheKubeletsMemoryNodesReachTheRuntime) {
  CoreRig rig;
  const std::string a = rig.run({.pod = "a", .cpuset = "0-1", .mems = "0"});
  ASSERT_TRUE(rig.update(a, cpuset("0-1", "1")).ok());
  const auto calls = rig.runtime().recorder().calls(kUpdate);
  runtime::v1::UpdateContainerResourcesRequest sent;
  ASSERT_TRUE(sent.ParseFromString(calls.back().messages.at(0)));
  EXPECT_EQ(sent.linux().cpuset_mems(), "1");
}

TEST(Contract, AStartThatNeverReachedTheRuntimeIsNoStart) {
  CoreRig rig;
  rig.run_pod("next");
  std::string own;
  ASSERT_TRUE(rig.create({.pod = "own", .cpus = 1}, own).ok());
  rig.runtime().hold(kUpdate);
  runtime::v1::LinuxContainerResources resources;
  resources.set_memory_limit_in_bytes(128 << 20);
  auto update = std::async(std::launch::async, [&] { return rig.update(own, resources); });
  rig.runtime().recorder().wait_for_arrivals(kUpdate, 1);
  grpc::ClientContext impatient;
  auto start = std::async(std::launch::async, [&] { return rig.start_container(own, impatient); });
  ASSERT_TRUE(rig.has_arrived("StartContainer", 1));
  impatient.TryCancel();  // while it waits for its turn
  EXPECT_FALSE(start.get().ok());
  rig.list();  // on the same connection behind the cancellation: once it is answered, that has arrived
  rig.runtime().release();
  EXPECT_TRUE(update.get().ok());
  EXPECT_TRUE(rig.stop_container(own).ok());  // as containerd: no effect on what never ran
  EXPECT_EQ(rig.held("own"), "0") << "it can still be started";
  const std::string next = rig.run({.pod = "next", .cpus = 1});
  EXPECT_TRUE(rig.start_container(own).ok());
  EXPECT_NE(rig.runtime().row(own).ran_on.front(), rig.runtime().row(next).ran_on.front()) << "two on one CPU";
}

TEST(Contract, ACreateThatOutlivesItsPodDoesNotRun) {
  CoreRig rig;
  rig.run_pod("next");
  rig.run_pod("own");
  rig.runtime().hold("CreateContainer");
  const std::string sandbox = rig.run_pod("own");
  auto own = std::async(std::launch::async, [&] {
    std::string id;
    static_cast<void>(rig.create({.pod = "own", .cpus = 1}, id));
    return id;
  });
  ASSERT_EQ(rig.runtime().recorder().wait_for_arrivals("CreateContainer", 1).size(), 1U);
  EXPECT_TRUE(rig.stop_pod(sandbox).ok());
  EXPECT_EQ(rig.held("own"), "");
  rig.runtime().release();
  const std::string id = own.get();
  const std::string next = rig.run({.pod = "next", .cpus = 1});
  EXPECT_FALSE(!id.empty() && rig.start_container(id).ok()) << "started unmanaged on " << rig.runtime().row(id).cpus;
}

}  // namespace
}  // namespace topolet::daemon
