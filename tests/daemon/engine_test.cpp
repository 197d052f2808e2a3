#include "core/engine/engine.hpp"

#include <algorithm>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "tests/daemon/core_rig.hpp"
#include "tests/daemon/test_policy.hpp"
#include "tests/support/raw_client.hpp"

namespace topolet::daemon {
namespace {

using testing::CoreRig;
using testing::RawClient;
using testing::RuledRig;
using testing::ServerCall;
using Fate = testing::ServedRuntime::Fate;

TEST(Engine, GivesEveryContainerACpuset) {
  CoreRig rig;
  const std::string shared = rig.run({.pod = "shared"});
  EXPECT_EQ(rig.runtime().row(shared).cpus, "0-3");
  const std::string own = rig.run({.pod = "own", .cpus = 2});
  EXPECT_EQ(rig.runtime().row(own).cpus, "0-1");
  const std::string late = rig.run({.pod = "late"});
  EXPECT_EQ(rig.runtime().row(late).cpus, "2-3");
  EXPECT_EQ(rig.held("own"), "0-1");
}

TEST(Engine, AppendsItsPatchToTheUntouchedRequest) {
  CoreRig rig;
  rig.run({.pod = "a"});
  const auto calls = rig.runtime().recorder().calls("CreateContainer");
  ASSERT_EQ(calls.size(), 1U);
  const std::string patch = cri::patch_create_container({CpuSet::range(0, 3), {}});
  const std::string& sent = calls[0].messages.at(0);
  ASSERT_GT(sent.size(), patch.size());
  EXPECT_EQ(sent.substr(sent.size() - patch.size()), patch);
}

TEST(Engine, MovesNeighboursBeforeItGrants) {
  CoreRig rig;
  const std::string shared = rig.run({.pod = "shared"});
  rig.runtime().hold("UpdateContainerResources");
  auto created = std::async(std::launch::async, [&] {
    std::string id;
    const grpc::Status status = rig.create({.pod = "own", .cpus = 1}, id);
    return status.ok() ? id : status.error_message();
  });
  ASSERT_EQ(rig.runtime().recorder().wait_for_arrivals("UpdateContainerResources", 1).size(), 1U);
  EXPECT_EQ(rig.runtime().recorder().calls("CreateContainer").size(), 1U) << "the grant waits for its neighbour";
  rig.runtime().release();
  const std::string own = created.get();
  EXPECT_EQ(rig.runtime().row(own).cpus, "0");
  EXPECT_EQ(rig.runtime().row(shared).cpus, "1-3");
}

TEST(Engine, DeniesWhenNeighboursCannotBeMoved) {
  CoreRig rig;
  rig.run({.pod = "shared"});
  rig.runtime().fail_updates(true);
  std::string id;
  const grpc::Status status = rig.create({.pod = "own", .cpus = 1}, id);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("default/shared/main runs on CPUs 0-3 and cannot be moved"), std::string::npos)
      << status.error_message();
  EXPECT_EQ(rig.held("own"), "");
}

TEST(Engine, GivesCpusBackOnStopExitRemoveAndPodStop) {
  RuledRig rig(testing::keep_nothing);
  const std::string shared = rig.run({.pod = "shared"});
  const auto back = [&](const std::string& how) {
    EXPECT_TRUE(CoreRig::eventually([&] { return rig.runtime().row(shared).cpus == "0-3"; })) << how;
    EXPECT_EQ(rig.held("own"), "") << how;
  };
  std::string own = rig.run({.pod = "own", .cpus = 3});
  EXPECT_EQ(rig.runtime().row(shared).cpus, "3");
  EXPECT_TRUE(rig.stop_container(own).ok());
  back("stop");

  own = rig.run({.pod = "own", .cpus = 3, .attempt = 1});
  rig.runtime().exit(own);
  rig.list();
  back("exit");

  own = rig.run({.pod = "own", .cpus = 3, .attempt = 2});
  EXPECT_TRUE(rig.remove_container(own).ok());
  back("remove");

  const std::string sandbox = rig.run_pod("own");
  own = rig.run({.pod = "own", .cpus = 3, .attempt = 3});
  EXPECT_TRUE(rig.stop_pod(sandbox).ok());
  back("pod stop");
  // Which of the causes is named may be a matter of who learns of it first; that each ended once is not.
  EXPECT_EQ(rig.query("SELECT count(*) FROM ended"), std::vector<std::string>{"4"});
}

TEST(Engine, KeepsTheCpusOfAStoppedContainerThatNeverRan) {
  CoreRig rig;
  std::string id;
  ASSERT_TRUE(rig.create({.pod = "own", .cpus = 1}, id).ok());
  EXPECT_TRUE(rig.stop_container(id).ok());
  EXPECT_EQ(rig.held("own"), "0");
  EXPECT_TRUE(rig.start_container(id).ok()) << "it can still be started";
}

TEST(Engine, ReleasesARefusedCreateAndPassesTheErrorOn) {
  CoreRig rig;
  rig.runtime().next_create(Fate::kRefused);
  std::string id;
  const grpc::Status status = rig.create({.pod = "own", .cpus = 2}, id);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNKNOWN);
  EXPECT_EQ(status.error_message(), "failed to resolve image");
  EXPECT_EQ(rig.held("own"), "");
  EXPECT_EQ(rig.query("SELECT state || ' ' || message FROM outcome"),
            std::vector<std::string>{"refused failed to resolve image"});
}

TEST(Engine, CountsRepeatedDenials) {
  CoreRig rig;
  rig.run_pod("big");
  std::string id;
  for (int i = 0; i < 3; ++i) {
    const grpc::Status status = rig.create({.pod = "big", .cpus = 4}, id);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_NE(status.error_message().find("requested=4, available=3"), std::string::npos) << status.error_message();
  }
  EXPECT_EQ(rig.query("SELECT times FROM denials"), std::vector<std::string>{"3"});
  EXPECT_TRUE(rig.runtime().recorder().calls("CreateContainer").empty());
}

TEST(Engine, PlacesAContainerMadePastItBeforeItStarts) {
  CoreRig rig;
  const std::string own = rig.run({.pod = "own", .cpus = 2});
  const std::string id = rig.runtime().make("past", "0-3");
  EXPECT_TRUE(rig.start_container(id).ok());
  EXPECT_EQ(rig.runtime().row(id).ran_on.front(), "2-3");
}

TEST(Engine, UpdatesACreateThatWasInFlightWhenItsSetChanged) {
  CoreRig rig;
  rig.run_pod("own");
  rig.run_pod("shared");
  rig.runtime().hold("CreateContainer");
  auto shared = std::async(std::launch::async, [&] { return rig.run({.pod = "shared"}); });
  ASSERT_EQ(rig.runtime().recorder().wait_for_arrivals("CreateContainer", 1).size(), 1U);
  auto own = std::async(std::launch::async, [&] { return rig.run({.pod = "own", .cpus = 2}); });
  ASSERT_EQ(rig.runtime().recorder().wait_for_arrivals("CreateContainer", 2).size(), 2U);
  rig.runtime().release();
  EXPECT_EQ(rig.runtime().row(own.get()).cpus, "0-1");
  const auto row = rig.runtime().row(shared.get());
  EXPECT_EQ(row.cpus, "2-3");
  EXPECT_EQ(row.ran_on.front(), "2-3") << "it never ran on the other's CPUs";
}

TEST(Engine, ClampsTheKubeletsUpdateToTheLedger) {
  CoreRig rig;
  const std::string shared = rig.run({.pod = "shared"});
  rig.run({.pod = "own", .cpus = 1});
  runtime::v1::LinuxContainerResources resources;
  resources.set_cpu_shares(512);
  EXPECT_TRUE(rig.update(shared, resources).ok());
  EXPECT_EQ(rig.runtime().row(shared).cpus, "1-3");
  resources.set_cpuset_cpus("0-1");
  EXPECT_TRUE(rig.update(shared, resources).ok());
  EXPECT_EQ(rig.runtime().row(shared).cpus, "1") << "the kubelet's bound without the other's CPU";
}

TEST(Engine, TakesARefusedUpdateBack) {
  CoreRig rig;
  const std::string shared = rig.run({.pod = "shared"});
  rig.runtime().fail_updates(true);
  runtime::v1::LinuxContainerResources resources;
  resources.set_cpuset_cpus("0-1");
  EXPECT_EQ(rig.update(shared, resources).error_message(), "cgroup is busy");
  EXPECT_EQ(rig.held("shared"), "0-3");
}

TEST(Engine, PassesForeignHandlersUntouched) {
  CoreRig rig;
  rig.run_pod("vm", "kata");
  const std::string id = rig.run({.pod = "vm", .cpus = 2});
  EXPECT_EQ(rig.runtime().row(id).cpus, "");
  EXPECT_EQ(rig.query("SELECT mode FROM current_placements"), std::vector<std::string>{"foreign"});
}

TEST(Engine, KeepsEverythingOverARestart) {
  RuledRig rig(testing::keep_nothing);
  const std::string shared = rig.run({.pod = "shared"});
  const std::string own = rig.run({.pod = "own", .cpus = 2});
  rig.stop();
  rig.start();
  const std::string second = rig.run({.pod = "second", .cpus = 1});
  EXPECT_EQ(rig.runtime().row(own).cpus, "0-1");
  EXPECT_EQ(rig.runtime().row(second).cpus, "2");
  EXPECT_EQ(rig.runtime().row(shared).cpus, "3");
  EXPECT_TRUE(rig.stop_container(own).ok());
  EXPECT_EQ(rig.held("own"), "");
}

TEST(Engine, TellsPluginsWhatHappensToContainers) {
  RuledRig rig(testing::keep_nothing);
  rig.run({.pod = "shared"});
  const std::string own = rig.run({.pod = "own", .cpus = 1});
  EXPECT_TRUE(rig.stop_container(own).ok());
  const std::vector<std::string> expected = {"placed shared 0-3", "started shared 0-3", "moved shared 1-3",
                                             "placed own 0",      "started own 0",      "exited own 0",
                                             "released own 0",    "moved shared 0-3"};
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.published_events() == expected; }))
      << ::testing::PrintToString(rig.published_events());
  rig.stop();
  rig.start();
  EXPECT_TRUE(CoreRig::eventually([&] {
    const auto published_events = rig.published_events();
    return std::count(published_events.begin(), published_events.end(), "placed shared 0-3") == 2;
  })) << "after a restart too: "
      << ::testing::PrintToString(rig.published_events());
}

/// Puts who has a variable NODE on that node.
placement::Vote by_variable() {
  return {std::make_shared<testing::NodePolicy>([](const placement::PolicyRequest& request) {
    for (const auto& [name, value] : request.workload.env) {
      if (name == "NODE") return NodeSet{static_cast<std::uint32_t>(std::stoi(value))};
    }
    return NodeSet{};
  })};
}

TEST(Engine, ShowsPoliciesTheEnvironmentOfAContainerThatIsMovedOrResized) {
  for (const bool restart : {false, true}) {
    SCOPED_TRACE(restart);
    RuledRig rig(testing::keep_nothing);
    rig.votes = {by_variable()};
    rig.stop();
    rig.start();
    const std::string first = rig.run({.pod = "first", .cpus = 1, .env = {{"NODE", "1"}}});
    const std::string second = rig.run({.pod = "second", .cpus = 1, .env = {{"NODE", "1"}}});
    ASSERT_EQ(rig.runtime().row(first).cpus, "2");
    ASSERT_EQ(rig.runtime().row(second).cpus, "3");
    EXPECT_TRUE(rig.stop_container(first).ok());
    rig.stop();
    if (restart) rig.offline = {3};
    rig.start();
    if (!restart) rig.request_move("second");
    EXPECT_TRUE(CoreRig::eventually([&] { return rig.runtime().row(second).cpus == "2"; }))
        << "it stays on its node: " << rig.runtime().row(second).cpus;
  }
}

TEST(Engine, MovesAContainerThatAPluginWishesToBePlacedAnew) {
  RuledRig rig(testing::keep_nothing);
  const std::string shared = rig.run({.pod = "shared"});
  const std::string first = rig.run({.pod = "first", .cpus = 1});
  const std::string second = rig.run({.pod = "second", .cpus = 1});
  ASSERT_EQ(rig.runtime().row(second).cpus, "1");
  EXPECT_TRUE(rig.stop_container(first).ok());
  rig.request_move("second");
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.runtime().row(second).cpus == "0"; }));
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.runtime().row(shared).cpus == "1-3"; })) << "what it left is free";
  EXPECT_EQ(rig.held("second"), "0");
  EXPECT_EQ(rig.runtime().row(shared).ran_on.back(), "1-3");
  const auto why = rig.query("SELECT reason FROM decided WHERE event = 're-placed' ORDER BY decision");
  ASSERT_FALSE(why.empty());
  EXPECT_NE(why[0].find("plugin test requested a move: to see it move"), std::string::npos) << why[0];
}

TEST(Engine, AsksTheRuntimeBeforeItPlacesTheNextAttemptOrDenies) {
  CoreRig rig;
  const std::string first = rig.run({.pod = "own", .cpus = 3});
  rig.runtime().exit(first);
  const std::string second = rig.run({.pod = "own", .cpus = 3, .attempt = 1});
  EXPECT_EQ(rig.runtime().row(second).cpus, rig.runtime().row(first).cpus);
  rig.runtime().exit(second);
  const std::string other = rig.run({.pod = "other", .cpus = 3});
  EXPECT_EQ(rig.runtime().row(other).cpus, rig.runtime().row(first).cpus);
  EXPECT_EQ(rig.query("SELECT count(*) FROM denials"), std::vector<std::string>{"0"});
}

TEST(Engine, TakesFromTheSandboxWhoThePodIs) {
  CoreRig rig;
  const std::string sandbox = rig.run_pod("pod");
  runtime::v1::CreateContainerRequest request;
  request.set_pod_sandbox_id(sandbox);
  request.mutable_config()->mutable_metadata()->set_name("main");
  RawClient client("unix://" + rig.file("topolet.sock"));
  const auto answer =
      client.call({.path = "/runtime.v1.RuntimeService/CreateContainer", .message = request.SerializeAsString()});
  EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(rig.held("pod"), "0-3");
}

TEST(Engine, LearnsOfAnExitFromTheEventsThatTheKubeletReads) {
  RuledRig rig(testing::keep_nothing);
  const std::string shared = rig.run({.pod = "shared"});
  const std::string own = rig.run({.pod = "own", .cpus = 3});
  rig.runtime().exit(own);
  rig.runtime().recorder().handle("GetContainerEvents", [shared, own](ServerCall& exchange) {
    exchange.read();
    runtime::v1::ContainerEventResponse event;
    event.set_container_id(shared);
    event.set_container_event_type(runtime::v1::CONTAINER_STARTED_EVENT);
    exchange.write(event.SerializeAsString());
    event.set_container_id(own);
    event.set_container_event_type(runtime::v1::CONTAINER_STOPPED_EVENT);
    exchange.write(event.SerializeAsString());
    exchange.wait_for_cancellation();
    return grpc::Status::OK;
  });
  RawClient kubelet("unix://" + rig.file("topolet.sock"));
  const auto events = kubelet.open({.path = "/runtime.v1.RuntimeService/GetContainerEvents", .message = {}});
  events->write("");
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.held("own").empty(); }));
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.runtime().row(shared).cpus == "0-3"; }));
  EXPECT_EQ(rig.held("shared"), "0-3");
}

TEST(Engine, FindsOutAfterARestartWhatHappenedMeanwhile) {
  RuledRig rig(testing::keep_nothing);
  const std::string exited = rig.run({.pod = "exited", .cpus = 1});
  const std::string gone = rig.run({.pod = "gone", .cpus = 1});
  const std::string drifted = rig.run({.pod = "drifted"});
  rig.stop();
  rig.runtime().exit(exited);
  rig.runtime().forget(gone);
  rig.runtime().set_cpus(drifted, "0");
  rig.start();
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.runtime().row(drifted).cpus == "0-3"; }));
  EXPECT_EQ(rig.held("exited"), "");
  EXPECT_EQ(rig.held("gone"), "");
  EXPECT_EQ(rig.query("SELECT count(*) FROM decided WHERE event = 'drift'"), std::vector<std::string>{"1"});
}

TEST(Engine, BindsAfterARestartWhatWasInFlight) {
  CoreRig rig;
  rig.run_pod("own");
  rig.runtime().hold("CreateContainer");
  auto created = std::async(std::launch::async, [&] {
    std::string id;
    return rig.create({.pod = "own", .cpus = 2}, id).ok();
  });
  ASSERT_EQ(rig.runtime().recorder().wait_for_arrivals("CreateContainer", 1).size(), 1U);
  rig.stop();
  EXPECT_FALSE(created.get());
  rig.runtime().release();
  ASSERT_TRUE(CoreRig::eventually([&] { return rig.runtime().ids().size() == 1; }));
  rig.start();
  EXPECT_TRUE(CoreRig::eventually([&] {
    return rig.query("SELECT state || ' ' || cpus FROM current_placements") == std::vector<std::string>{"bound 0-1"};
  }));
}

TEST(Engine, AdoptsContainersMadePastIt) {
  CoreRig rig;
  const std::string own = rig.run({.pod = "own", .cpus = 2});
  const std::string shared = rig.run({.pod = "shared"});
  rig.stop();
  std::filesystem::remove_all(rig.file("state"));
  rig.runtime().set_cpus(shared, "0-3");
  rig.start();
  ASSERT_TRUE(CoreRig::eventually([&] { return rig.runtime().row(shared).cpus == "2-3"; }));
  EXPECT_EQ(rig.held("own"), "0-1");
  EXPECT_EQ(rig.query("SELECT mode FROM current_placements WHERE pod = 'own'"), std::vector<std::string>{"exclusive"});
  EXPECT_EQ(rig.run({.pod = "third", .cpus = 1}).empty(), false);
  EXPECT_EQ(rig.held("third"), "2");
}

TEST(Engine, AsksARuntimeAgainThatIsBackAndDoesNotServeYet) {
  CoreRig rig;
  const std::string own = rig.run({.pod = "own", .cpus = 2});
  rig.runtime().fail_lists(true);
  const std::string id = rig.runtime().make("past", "0-3");
  const std::size_t before = rig.runtime().recorder().calls("ListContainers").size();
  rig.reconnect();
  ASSERT_EQ(rig.runtime().recorder().wait_for_arrivals("ListContainers", before + 2).size(), before + 2);
  EXPECT_EQ(rig.runtime().row(id).cpus, "0-3");
  rig.runtime().fail_lists(false);
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.runtime().row(id).cpus == "2-3"; }));
}

TEST(Engine, RepairsWhatSomebodyElseChanged) {
  CoreRig rig;
  rig.stop();
  rig.options.reconcile_every = std::chrono::milliseconds(1);
  rig.start();
  const std::string shared = rig.run({.pod = "shared"});
  rig.runtime().fail_updates(true);
  runtime::v1::LinuxContainerResources resources;
  resources.set_cpu_shares(512);
  EXPECT_FALSE(rig.update(shared, resources).ok());
  rig.runtime().set_cpus(shared, "0");
  rig.runtime().fail_updates(false);
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.runtime().row(shared).cpus == "0-3"; }))
      << "after an update that failed nobody knows what the container has";
}

TEST(Engine, RefusesASecondCreateOfTheSameContainerWhileTheFirstIsUnderWay) {
  CoreRig rig;
  rig.run_pod("own");
  rig.runtime().hold("CreateContainer");
  auto first = std::async(std::launch::async, [&] {
    std::string id;
    return rig.create({.pod = "own", .cpus = 1}, id).ok();
  });
  ASSERT_EQ(rig.runtime().recorder().wait_for_arrivals("CreateContainer", 1).size(), 1U);
  std::string id;
  EXPECT_EQ(rig.create({.pod = "own", .cpus = 1}, id).error_code(), grpc::StatusCode::ABORTED);
  rig.runtime().release();
  EXPECT_TRUE(first.get());
}

TEST(Engine, RejectsWhatItCannotRead) {
  CoreRig rig;
  std::string id;
  const grpc::Status status = rig.create({.pod = "a", .cpuset = "0-x"}, id);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("0-x"), std::string::npos) << status.error_message();
  EXPECT_TRUE(rig.runtime().recorder().calls("CreateContainer").empty());
}

TEST(Engine, HoldsNothingForACallerThatGaveUpBeforeTheCreateWasSent) {
  CoreRig rig;
  rig.run({.pod = "shared"});
  rig.runtime().hold("UpdateContainerResources");
  std::string id;
  grpc::ClientContext impatient;
  auto create = std::async(std::launch::async, [&] { return rig.create({.pod = "own", .cpus = 1}, id, impatient); });
  EXPECT_EQ(rig.runtime().recorder().wait_for_arrivals("UpdateContainerResources", 1).size(), 1U);
  impatient.TryCancel();
  EXPECT_EQ(create.get().error_code(), grpc::StatusCode::CANCELLED);
  rig.list();  // on the same connection behind the cancellation: once it is answered, that has arrived
  rig.runtime().release();
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.held("own").empty(); }));
  EXPECT_EQ(rig.runtime().recorder().calls("CreateContainer").size(), 1U);
}

}  // namespace
}  // namespace topolet::daemon
