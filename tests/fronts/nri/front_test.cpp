#include "tests/fronts/nri/front_fixture.hpp"

namespace topolet::nri {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(NriFrontTest, KnowsWhatCanBeSetByTheTimeThatItIsRegistered) {
  EXPECT_FALSE(settable_.get().scheduler);
  connect("v0.11.0");
  EXPECT_EQ(settable_.get(), (placement::Settable{0, true, true, "NRI 0.11 of containerd"}));
  runtime_.hang_up();
  connect("v0.12.3");
  EXPECT_EQ(settable_.get().memory_modes, placement::all_memory_modes()) << "another runtime has come";
}

TEST_F(NriFrontTest, ReadsWhatACreateAsksFor) {
  connect();
  runtime_.send_call("CreateContainer", create_request());
  const auto create = engine_.creates.take();
  const placement::Workload& workload = create->workload();
  EXPECT_EQ(create->container_id(), "c1");
  EXPECT_EQ(create->neighbours(), operations::Neighbours::kInAnswer);
  EXPECT_EQ(workload.key, (placement::ContainerKey{"u1", "trader", 0, "s1"}));
  EXPECT_EQ(workload.qos, placement::Qos::kGuaranteed);
  EXPECT_EQ(workload.demand.cpu_request_milli, 2000);
  EXPECT_EQ(workload.demand.cpu_limit_milli, 2000);
  EXPECT_EQ(workload.demand.memory_limit_bytes, 1 << 30);
  EXPECT_THAT(workload.env, ElementsAre(std::pair("TOKEN", "a=b"), std::pair("EMPTY", "")));
}

TEST_F(NriFrontTest, AnswersACreateWithItsCpusAndThoseOfItsNeighbours) {
  connect();
  std::future<Outcome> outcome = admit_create();
  EXPECT_EQ(answer_.adjustment().linux().resources().cpu().cpus(), "2-3");
  EXPECT_EQ(answer_.adjustment().linux().resources().cpu().mems(), "");
  ASSERT_EQ(answer_.updates_size(), 1);
  EXPECT_EQ(answer_.updates(0).container_id(), "web");
  EXPECT_EQ(answer_.updates(0).linux().resources().cpu().cpus(), "0-1");
  EXPECT_TRUE(tell("PostCreateContainer", "c1"));
  const Outcome told = wait_for(outcome);
  EXPECT_EQ(told.kind, Outcome::Kind::kDone);
  EXPECT_EQ(told.id, "c1");
}

TEST_F(NriFrontTest, TakesACreateThatIsStoppedForRefused) {
  connect();
  std::future<Outcome> outcome = admit_create();
  EXPECT_TRUE(tell("StopContainer", "c1"));
  EXPECT_EQ(wait_for(outcome).kind, Outcome::Kind::kRefused);
}

TEST_F(NriFrontTest, TakesACreateForRefusedWhoseContainerIsCreatedAgain) {
  connect();
  std::future<Outcome> outcome = admit_create();
  runtime_.send_call("CreateContainer", create_request("c2"));
  EXPECT_EQ(wait_for(outcome).kind, Outcome::Kind::kRefused);
  EXPECT_EQ(engine_.creates.take()->container_id(), "c2");
}

TEST_F(NriFrontTest, KnowsNothingOfACreateWhoseConnectionIsLost) {
  connect();
  std::future<Outcome> outcome = admit_create();
  runtime_.hang_up();
  EXPECT_EQ(wait_for(outcome).kind, Outcome::Kind::kUnknown);
}

TEST_F(NriFrontTest, TakesAnAnswerThatReachesNobodyForRefused) {
  connect();
  runtime_.send_call("CreateContainer", create_request());
  const auto create = engine_.creates.take();
  runtime_.hang_up();
  ASSERT_TRUE(testing::eventually([&] { return create->cancelled(); }));
  std::promise<Outcome> outcome;
  create->admit({operations::ContainerCpuset{{2}, {}}, {}, {}},
                [&outcome](const Outcome& told) { outcome.set_value(told); });
  std::future<Outcome> told = outcome.get_future();
  EXPECT_EQ(wait_for(told).kind, Outcome::Kind::kRefused);
}

TEST_F(NriFrontTest, AnswersWithAnErrorBeforeTheRuntimeGivesUp) {
  connect("v0.12.3", std::chrono::milliseconds(200));
  runtime_.send_call("CreateContainer", create_request());
  const auto create = engine_.creates.take();
  const Result<std::string> answer = runtime_.await_answer();
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("try again"));
  EXPECT_TRUE(testing::eventually([&] { return create->cancelled(); }));
}

TEST_F(NriFrontTest, RefusesAContainerThatItHasNotPlaced) {
  connect();
  lens::ValidateRequest request;
  request.mutable_container()->set_id("c1");
  request.add_plugins()->set_name("topolet");
  request.mutable_plugins(0)->set_index("50");
  lens::ValidateResponse verdict;
  ASSERT_TRUE(verdict.ParseFromString(
      runtime_.call("ValidateContainerAdjustment", request.SerializeAsString()).value_or("\xff")));
  EXPECT_TRUE(verdict.reject());
  EXPECT_THAT(verdict.reason(), HasSubstr("without being placed"));
  EXPECT_THAT(front_.plugins(), ElementsAre("50-topolet"));

  admit_create();
  ASSERT_TRUE(verdict.ParseFromString(
      runtime_.call("ValidateContainerAdjustment", request.SerializeAsString()).value_or("\xff")));
  EXPECT_FALSE(verdict.reject());
}

TEST_F(NriFrontTest, JudgesWhatAnotherPluginSets) {
  connect();
  admit_create();
  lens::ValidateRequest request;
  request.mutable_container()->set_id("c1");
  auto& owners = *request.mutable_owners()->add_containers();
  owners.set_container_id("c1");
  lens::FieldOwner& owner = *owners.mutable_fields()->add_simple();
  owner.set_field(21);
  owner.set_plugin("50-topolet");
  lens::ValidateResponse verdict;
  ASSERT_TRUE(verdict.ParseFromString(
      runtime_.call("ValidateContainerAdjustment", request.SerializeAsString()).value_or("\xff")));
  EXPECT_FALSE(verdict.reject());
  owner.set_plugin("10-koordlet");
  ASSERT_TRUE(verdict.ParseFromString(
      runtime_.call("ValidateContainerAdjustment", request.SerializeAsString()).value_or("\xff")));
  EXPECT_TRUE(verdict.reject());
}

TEST_F(NriFrontTest, LetsAStartWaitForTheEngine) {
  connect();
  lens::PodEvent event = event_of("c1");
  event.mutable_container()->set_pid(4711);
  runtime_.send_call("StartContainer", event.SerializeAsString());
  const auto start = engine_.starts.take();
  EXPECT_EQ(start->target(), "c1");
  EXPECT_EQ(start->waiting_process(), 4711);
  EXPECT_EQ(start->patience(), std::chrono::seconds(30));
  std::promise<Outcome> outcome;
  start->admit([&outcome](const Outcome& told) { outcome.set_value(told); });
  EXPECT_TRUE(runtime_.await_answer());
  EXPECT_TRUE(tell("PostStartContainer", "c1"));
  std::future<Outcome> told = outcome.get_future();
  EXPECT_EQ(wait_for(told).kind, Outcome::Kind::kDone);
}

TEST_F(NriFrontTest, NeedNotWaitForAsLongAsARuntimeDoes) {
  connect("v0.12.3", std::chrono::milliseconds::max());
  runtime_.send_call("StartContainer", event_of("c1").SerializeAsString());
  const auto start = engine_.starts.take();
  EXPECT_EQ(start->patience(), std::chrono::seconds(30));
  EXPECT_FALSE(start->cancelled());
  start->reject({Code::kUnavailable, "web has not left"});
  EXPECT_THAT(runtime_.await_answer().error().message, HasSubstr("web has not left"));
}

TEST_F(NriFrontTest, FailsAStartThatTheEngineRejects) {
  connect();
  runtime_.send_call("StartContainer", event_of("c1").SerializeAsString());
  engine_.starts.take()->reject({Code::kUnavailable, "web has not left"});
  const Result<std::string> answer = runtime_.await_answer();
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("web has not left"));
}
TEST_F(NriFrontTest, HearsOfPodsAndExits) {
  connect();
  EXPECT_TRUE(tell("RunPodSandbox", ""));
  EXPECT_EQ(engine_.notes.take(), "run trader-0");
  EXPECT_TRUE(tell("StopContainer", "c1"));
  EXPECT_EQ(engine_.notes.take(), "exit c1 -1") << "it is being stopped, and its code is not known";
  lens::PodEvent ended = event_of("c1");
  ended.mutable_container()->set_state(4);
  ended.mutable_container()->set_exit_code(137);
  EXPECT_TRUE(runtime_.call("StopContainer", ended.SerializeAsString()));
  EXPECT_EQ(engine_.notes.take(), "exit c1 137");
  EXPECT_TRUE(tell("RemoveContainer", "c1"));
  EXPECT_EQ(engine_.notes.take(), "exit c1 -1");
  EXPECT_EQ(engine_.notes.take(), "remove c1");
  EXPECT_TRUE(tell("StopPodSandbox", ""));
  EXPECT_EQ(engine_.notes.take(), "stop pod s1");
  EXPECT_TRUE(tell("RemovePodSandbox", ""));
  EXPECT_EQ(engine_.notes.take(), "remove pod s1");
}

TEST_F(NriFrontTest, ServesRuntimesThatTellMostEventsByOneMethod) {
  connect("v0.9.0");
  lens::ConfigureResponse response;
  ASSERT_TRUE(response.ParseFromString(configured_));
  // A runtime refuses plugins that want what it does not know: such as to validate.
  EXPECT_EQ(response.events() & (1 << 13), 0);
  EXPECT_NE(response.events() & (1 << 3), 0);
  EXPECT_TRUE(change_state(Event::kRunPodSandbox, ""));
  EXPECT_EQ(engine_.notes.take(), "run trader-0");
  std::future<Outcome> outcome = admit_create();
  EXPECT_TRUE(change_state(Event::kPostCreateContainer, "c1"));
  EXPECT_EQ(wait_for(outcome).kind, Outcome::Kind::kDone);
  EXPECT_TRUE(change_state(Event::kRemovePodSandbox, ""));
  EXPECT_EQ(engine_.notes.take(), "remove pod s1");
}

TEST_F(NriFrontTest, IsComparedWithTheRuntimeOnceItIsSynchronised) {
  connect();
  lens::SynchronizeRequest request;
  request.set_more(true);
  lens::SynchronizeResponse response;
  ASSERT_TRUE(response.ParseFromString(runtime_.call("Synchronize", request.SerializeAsString()).value_or("\xff")));
  EXPECT_TRUE(response.more());
  EXPECT_TRUE(engine_.notes.is_empty());
  request.set_more(false);
  EXPECT_TRUE(runtime_.call("Synchronize", request.SerializeAsString()));
  EXPECT_EQ(engine_.notes.take(), "connected");
}

TEST_F(NriFrontTest, RefusesWhatItCannotRead) {
  connect();
  for (const char* method : {"CreateContainer", "UpdateContainer", "StartContainer", "RunPodSandbox", "StateChange"}) {
    const Result<std::string> answer = runtime_.call(method, "\xff\xff");
    ASSERT_FALSE(answer) << method;
    EXPECT_THAT(answer.error().message, HasSubstr("cannot be read"));
  }
  lens::PodEvent event = event_of("c1");
  event.mutable_container()->mutable_linux()->mutable_resources()->mutable_cpu()->set_cpus("3-1");
  EXPECT_THAT(runtime_.call("CreateContainer", event.SerializeAsString()).error().message, HasSubstr("cpu.cpus"));
  EXPECT_TRUE(runtime_.call("UpdatePodSandbox", "anything"));
}

}  // namespace
}  // namespace topolet::nri
