#include "core/fronts/nri/front.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>

#include "core/fronts/nri/nri.pb.h"
#include "tests/fronts/nri/fake_runtime.hpp"
#include "tests/support/error_log.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::nri {
namespace {

using operations::Outcome;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A value that one thread gives and another one waits for, in order.
template <class Value>
class Mailbox {
 public:
  void put(Value value) {
    const std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  Value take() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::minutes(1), [this] { return !values_.empty(); })) {
      ADD_FAILURE() << "nothing came";
      return Value();
    }
    Value value = std::move(values_.front());
    values_.pop_front();
    return value;
  }
  bool is_empty() {
    const std::lock_guard lock(mutex_);
    return values_.empty();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Value> values_;
};

/// An engine that hands what it is asked to the test.
class AskedEngine final : public operations::OperationHandler {
 public:
  void create(std::shared_ptr<operations::CreateOperation> operation) override { creates.put(std::move(operation)); }
  void update(std::shared_ptr<operations::UpdateOperation> operation) override { updates.put(std::move(operation)); }
  void start(std::shared_ptr<operations::TargetOperation> operation) override { starts.put(std::move(operation)); }
  void stop(std::shared_ptr<operations::TargetOperation> operation) override { note("stop", *operation); }
  void remove(std::shared_ptr<operations::TargetOperation> operation) override { note("remove", *operation); }
  void run_sandbox(std::shared_ptr<operations::RunSandboxOperation> operation) override {
    notes.put("run " + operation->sandbox().pod_name);
    operation->answer();
  }
  void stop_sandbox(std::shared_ptr<operations::TargetOperation> operation) override { note("stop pod", *operation); }
  void remove_sandbox(std::shared_ptr<operations::TargetOperation> operation) override {
    note("remove pod", *operation);
  }
  void on_exits(std::vector<operations::ExitSeen> exits) override {
    for (const operations::ExitSeen& exit : exits)
      notes.put("exit " + exit.container_id + " " + std::to_string(exit.exit_code.value_or(-1)));
  }
  void on_connected() override { notes.put("connected"); }
  void on_own_update(std::string container_id, operations::ContainerCpuset /*sent*/,
                     std::function<void(const operations::ContainerCpuset&)> tell) override {
    notes.put("own " + container_id);
    tell(now);
  }
  bool shows_quotas() const override { return false; }
  std::optional<operations::CfsQuota> quota_to_show(const std::string& /*container_id*/) const override { return {}; }

  Mailbox<std::shared_ptr<operations::CreateOperation>> creates;
  Mailbox<std::shared_ptr<operations::UpdateOperation>> updates;
  Mailbox<std::shared_ptr<operations::TargetOperation>> starts;
  Mailbox<std::string> notes;
  operations::ContainerCpuset now;  ///< what a container is to have by the time that an update comes back

 private:
  void note(const std::string& what, operations::TargetOperation& operation) {
    notes.put(what + " " + operation.target());
    operation.answer();
  }
};

/// A runtime that takes every update, and answers when the test says so.
class HeldUpdates final : public operations::ContainerRuntime {
 public:
  void update(const std::string& /*container_id*/, const operations::ContainerCpuset& set,
              std::function<void(Status)> done) override {
    sent = set;
    under_way = std::move(done);
  }
  void list_containers(std::function<void(Result<std::vector<operations::ContainerInfo>>)> done) override {
    done(std::vector<operations::ContainerInfo>());
  }
  void list_sandboxes(std::function<void(Result<std::vector<operations::Sandbox>>)> done) override {
    done(std::vector<operations::Sandbox>());
  }
  void inspect(const std::string& /*container_id*/,
               std::function<void(Result<operations::ContainerDetail>)> done) override {
    done(Error{Code::kNotFound, "no such container"});
  }
  operations::ContainerCpuset sent;
  std::function<void(Status)> under_way;
};

lens::PodEvent event_of(const std::string& container_id) {
  lens::PodEvent event;
  event.mutable_pod()->set_id("s1");
  event.mutable_pod()->set_uid("u1");
  event.mutable_pod()->set_name("trader-0");
  event.mutable_pod()->set_pod_namespace("shop");
  event.mutable_pod()->mutable_linux()->set_cgroup_parent("/kubepods/podu1");
  if (container_id.empty()) return event;
  event.mutable_container()->set_id(container_id);
  event.mutable_container()->set_sandbox_id("s1");
  event.mutable_container()->set_name("trader");
  return event;
}

std::string create_request(const std::string& container_id = "c1") {
  lens::PodEvent event = event_of(container_id);
  lens::Resources& resources = *event.mutable_container()->mutable_linux()->mutable_resources();
  resources.mutable_cpu()->mutable_shares()->set_value(2048);
  resources.mutable_cpu()->mutable_quota_us()->set_value(200000);
  resources.mutable_cpu()->mutable_period_us()->set_value(100000);
  resources.mutable_memory()->mutable_limit_bytes()->set_value(1 << 30);
  event.mutable_container()->mutable_linux()->mutable_oom_score_adj()->set_value(-997);
  event.mutable_container()->add_env("TOKEN=a=b");
  event.mutable_container()->add_env("EMPTY");
  return event.SerializeAsString();
}

/// As a runtime tells what it was asked for: what is to stay is zero. `shares`: of CPU time.
std::string update_request(const std::string& container_id, std::uint64_t shares = 0) {
  lens::UpdateRequest request;
  *request.mutable_container() = event_of(container_id).container();
  request.mutable_resources()->mutable_cpu()->mutable_shares()->set_value(shares);
  request.mutable_resources()->mutable_memory()->mutable_limit_bytes()->set_value(0);
  return request.SerializeAsString();
}

lens::CreateResponse create_answer(const Result<std::string>& answer) {
  lens::CreateResponse response;
  EXPECT_TRUE(answer.has_value()) << (answer ? "" : answer.error().message);
  EXPECT_TRUE(response.ParseFromString(answer.value_or("\xff")));
  return response;
}

class NriFrontTest : public ::testing::Test {
 protected:
  void connect(const std::string& nri_version = "v0.12.3",
               std::chrono::milliseconds request_timeout = std::chrono::minutes(1)) {
    runtime_.accept_plugin();
    lens::ConfigureRequest request;
    request.set_runtime_name("containerd");
    request.set_nri_version(nri_version);
    request.set_request_timeout_ms(request_timeout.count());
    configured_ = runtime_.call("Configure", request.SerializeAsString()).value_or("");
  }
  /// Has a create answered with CPUs 2 and 3; returns its outcome.
  std::future<Outcome> admit_create() {
    runtime_.send_call("CreateContainer", create_request());
    const auto create = engine_.creates.take();
    const auto outcome = std::make_shared<std::promise<Outcome>>();
    create->admit({operations::ContainerCpuset{{2, 3}, {}}, {}, {{"web", {{0, 1}, {}}}}},
                  [outcome](const Outcome& told) { outcome->set_value(told); });
    answer_ = create_answer(runtime_.await_answer());
    return outcome->get_future();
  }
  static Outcome wait_for(std::future<Outcome>& outcome) {
    if (outcome.wait_for(std::chrono::minutes(1)) == std::future_status::ready) return outcome.get();
    ADD_FAILURE() << "no outcome came";
    return {};
  }
  Result<std::string> tell(const std::string& method, const std::string& container_id) {
    return runtime_.call(method, event_of(container_id).SerializeAsString());
  }
  Result<std::string> change_state(Event event, const std::string& container_id) {
    const lens::PodEvent about = event_of(container_id);
    lens::StateChange change;
    change.set_event(static_cast<int>(event));
    *change.mutable_pod() = about.pod();
    if (about.has_container()) *change.mutable_container() = about.container();
    return runtime_.call("StateChange", change.SerializeAsString());
  }

  std::vector<std::string> errors_;
  const std::shared_ptr<Log> log_ = testing::make_error_log(errors_);
  TempDir directory_;
  FakeRuntime runtime_{directory_.path() / "nri.sock"};
  AskedEngine engine_;
  HeldUpdates updates_;
  OwnUpdates own_updates_{updates_};
  std::string configured_;
  lens::CreateResponse answer_;
  SettableNow settable_{placement::all_memory_modes()};
  Front front_{directory_.path() / "nri.sock",
               {engine_,
                {},
                own_updates_,
                [](const operations::ForeignCpuset& /*found*/, const operations::OnForeignCpusetJudged& verdict) {
                  verdict("no other plugin may set it");
                },
                std::nullopt,
                *log_,
                [this](const RuntimeFacts& runtime) { settable_.note(runtime); }}};
};

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

TEST_F(NriFrontTest, FailsAStartThatTheEngineRejects) {
  connect();
  runtime_.send_call("StartContainer", event_of("c1").SerializeAsString());
  engine_.starts.take()->reject({Code::kUnavailable, "web has not left"});
  const Result<std::string> answer = runtime_.await_answer();
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("web has not left"));
}

TEST_F(NriFrontTest, RepeatsAllThatAnUpdateAsksFor) {
  connect();
  lens::UpdateRequest request;
  *request.mutable_container() = event_of("c1").container();
  lens::Cpu& cpu = *request.mutable_resources()->mutable_cpu();
  cpu.mutable_shares()->set_value(0);
  cpu.mutable_quota_us()->set_value(300000);
  // A field that is not read here.
  std::string resources = request.resources().SerializeAsString() + "\x32\x02hi";
  std::string payload;
  request.clear_resources();
  payload = request.SerializeAsString();
  payload += "\x1a" + std::string(1, static_cast<char>(resources.size())) + resources;
  runtime_.send_call("UpdateContainer", payload);
  const auto update = engine_.updates.take();
  EXPECT_EQ(update->update().container_id, "c1");
  EXPECT_EQ(update->update().cpu_quota_us, 300000);
  EXPECT_EQ(update->update().cpu_shares, 0);
  std::promise<Outcome> outcome;
  update->admit({{4, 5, 6}, {1}}, [&outcome](const Outcome& told) { outcome.set_value(told); });
  const Result<std::string> answer = runtime_.await_answer();
  ASSERT_TRUE(answer);
  lens::UpdateResponse response;
  ASSERT_TRUE(response.ParseFromString(*answer));
  ASSERT_EQ(response.updates_size(), 1);
  EXPECT_EQ(response.updates(0).container_id(), "c1");
  const lens::Resources& told = response.updates(0).linux().resources();
  EXPECT_EQ(told.cpu().cpus(), "4-6");
  EXPECT_EQ(told.cpu().mems(), "1");
  EXPECT_TRUE(told.cpu().has_shares());
  EXPECT_EQ(told.cpu().quota_us().value(), 300000);
  EXPECT_THAT(told.SerializeAsString(), HasSubstr("\x32\x02hi"));
  EXPECT_TRUE(tell("PostUpdateContainer", "c1"));
  std::future<Outcome> future = outcome.get_future();
  EXPECT_EQ(wait_for(future).kind, Outcome::Kind::kDone);
}

lens::UpdateResponse update_answer(const Result<std::string>& answer) {
  lens::UpdateResponse response;
  EXPECT_TRUE(answer.has_value()) << (answer ? "" : answer.error().message);
  EXPECT_TRUE(response.ParseFromString(answer.value_or("\xff")));
  return response;
}

/// What waits in the runtime names no CPUs: it brings nobody anywhere if topoletd is gone by then.
TEST_F(NriFrontTest, TellsTheCpusOfItsOwnUpdatesWhenTheyComeBack) {
  connect();
  Status over = Error{Code::kUnknown, "not over"};
  own_updates_.update("c1", {{0, 1, 2, 3}, {1}}, [&over](const Status& told) { over = told; });
  EXPECT_EQ(updates_.sent, operations::ContainerCpuset());
  engine_.now = {{0, 1, 2, 3}, {1}};
  const lens::UpdateResponse response = update_answer(runtime_.call("UpdateContainer", update_request("c1")));
  ASSERT_EQ(response.updates_size(), 1);
  EXPECT_EQ(response.updates(0).container_id(), "c1");
  EXPECT_EQ(response.updates(0).linux().resources().cpu().cpus(), "0-3");
  EXPECT_EQ(response.updates(0).linux().resources().cpu().mems(), "1");
  EXPECT_EQ(engine_.notes.take(), "own c1");
  EXPECT_TRUE(engine_.updates.is_empty());
  updates_.under_way({});
  EXPECT_TRUE(over);
}

TEST_F(NriFrontTest, TakesFromItsOwnUpdateWhatTheContainerIsNotToHaveByNow) {
  connect();
  own_updates_.update("c1", {{0, 1, 2, 3}, {}}, [](const Status&) {});
  engine_.now = {{0, 1}, {}};
  const lens::UpdateResponse response = update_answer(runtime_.call("UpdateContainer", update_request("c1")));
  ASSERT_EQ(response.updates_size(), 1);
  EXPECT_EQ(response.updates(0).linux().resources().cpu().cpus(), "0-1");

  // The same once more is not its own: it has come back already.
  runtime_.send_call("UpdateContainer", update_request("c1"));
  engine_.updates.take()->pass();
  EXPECT_TRUE(runtime_.await_answer());
  updates_.under_way({});
}

TEST_F(NriFrontTest, LeavesAContainerWhereItIsThatIsToHaveOtherCpusByNow) {
  connect();
  own_updates_.update("c1", {{0, 1, 2, 3}, {}}, [](const Status&) {});
  EXPECT_EQ(update_answer(runtime_.call("UpdateContainer", update_request("c1"))).updates_size(), 0);
  updates_.under_way({});
}

TEST_F(NriFrontTest, TakesNoUpdateOfAKubeletForItsOwn) {
  connect();
  own_updates_.update("c1", {{0, 1, 2, 3}, {}}, [](const Status&) {});
  runtime_.send_call("UpdateContainer", update_request("c1", 2048));
  const auto update = engine_.updates.take();
  EXPECT_EQ(update->update().cpu_shares, 2048);
  update->pass();
  EXPECT_TRUE(runtime_.await_answer());
  updates_.under_way({});
}

TEST_F(NriFrontTest, SendsUpdatesWholeWhileTheRuntimeDoesNotAsk) {
  own_updates_.update("c1", {{0, 1}, {}}, [](const Status&) {});
  EXPECT_EQ(updates_.sent.cpus, (CpuSet{0, 1}));
  updates_.under_way({});
}

TEST_F(NriFrontTest, ReportsAnUpdateThatTheRuntimeHasNotAskedAbout) {
  connect();
  Status over;
  own_updates_.update("c1", {{0, 1}, {}}, [&over](const Status& told) { over = told; });
  updates_.under_way({});
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, Code::kUnavailable);
}

/// The first one has failed in the runtime, which nothing tells.
TEST_F(NriFrontTest, EndsAnUpdateWhoseContainerIsUpdatedAgain) {
  connect();
  const auto admit = [this](std::promise<Outcome>& outcome) {
    runtime_.send_call("UpdateContainer", update_request("c1", 2048));
    const auto update = engine_.updates.take();
    update->admit({{4}, {}}, [&outcome](const Outcome& told) { outcome.set_value(told); });
    EXPECT_TRUE(runtime_.await_answer());
  };
  std::promise<Outcome> first;
  std::promise<Outcome> second;
  admit(first);
  std::future<Outcome> first_told = first.get_future();
  runtime_.send_call("UpdateContainer", update_request("c1", 1024));
  EXPECT_EQ(wait_for(first_told).kind, Outcome::Kind::kUnknown);
  engine_.updates.take()->admit({{4}, {}}, [&second](const Outcome& told) { second.set_value(told); });
  EXPECT_TRUE(runtime_.await_answer());
  EXPECT_TRUE(tell("PostUpdateContainer", "c1"));
  std::future<Outcome> second_told = second.get_future();
  EXPECT_EQ(wait_for(second_told).kind, Outcome::Kind::kDone);
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
