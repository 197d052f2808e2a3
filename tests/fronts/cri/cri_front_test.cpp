#include "core/fronts/cri/cri_front.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/cri/messages/lens.pb.h"
#include "tests/engine/scripted_call.hpp"
#include "tests/support/error_log.hpp"

namespace topolet::cri {
namespace {

using engine::ScriptedCall;
using operations::Outcome;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// An engine that only notes what it is asked.
class NotingHandler final : public operations::OperationHandler {
 public:
  void create(std::shared_ptr<operations::CreateOperation> operation) override { created = std::move(operation); }
  void update(std::shared_ptr<operations::UpdateOperation> operation) override { updated = std::move(operation); }
  void start(std::shared_ptr<operations::TargetOperation> operation) override { note("start", *operation); }
  void stop(std::shared_ptr<operations::TargetOperation> operation) override { note("stop", *operation); }
  void remove(std::shared_ptr<operations::TargetOperation> operation) override { note("remove", *operation); }
  void run_sandbox(std::shared_ptr<operations::RunSandboxOperation> operation) override { run = std::move(operation); }
  void stop_sandbox(std::shared_ptr<operations::TargetOperation> operation) override { note("stop pod", *operation); }
  void remove_sandbox(std::shared_ptr<operations::TargetOperation> operation) override {
    note("remove pod", *operation);
  }
  void on_exits(std::vector<operations::ExitSeen> exits) override { seen = std::move(exits); }
  void on_own_update(std::string /*container_id*/, operations::ContainerCpuset sent,
                     std::function<void(const operations::ContainerCpuset&)> tell) override {
    tell(sent);
  }
  void on_connected() override {}
  bool shows_quotas() const override { return !shown.empty(); }
  std::optional<operations::CfsQuota> quota_to_show(const std::string& container_id) const override {
    if (container_id != shown) return std::nullopt;
    return operations::CfsQuota{50000, 100000};
  }

  std::shared_ptr<operations::CreateOperation> created;
  std::shared_ptr<operations::UpdateOperation> updated;
  std::shared_ptr<operations::RunSandboxOperation> run;
  std::vector<std::string> targets;
  std::vector<operations::ExitSeen> seen;
  std::string shown;  ///< the id of the container that is shown another quota

 private:
  void note(const std::string& what, const operations::TargetOperation& operation) {
    targets.push_back(what + " " + operation.target());
  }
};

class CriFrontTest : public ::testing::Test {
 protected:
  std::shared_ptr<ScriptedCall> call(const std::string& method, std::string request) {
    auto made = std::make_shared<ScriptedCall>(method, std::move(request));
    front_.on_call(made);
    return made;
  }
  static std::string create_request() {
    lens::CreateContainerRequest request;
    request.set_sandbox_id("pod-1");
    request.mutable_config()->mutable_metadata()->set_name("main");
    return request.SerializeAsString();
  }
  static std::string target(const std::string& id) {
    lens::Target target;
    target.set_id(id);
    return target.SerializeAsString();
  }
  /// Returns the outcome of a create that is admitted and answered so.
  Outcome outcome_of_create(RuntimeResponse answer) {
    const auto made = call("CreateContainer", create_request());
    Outcome seen;
    engine_.created->admit({operations::ContainerCpuset{{1, 2}, {}}, {}, {}},
                           [&seen](const Outcome& outcome) { seen = outcome; });
    made->answer(std::move(answer));
    return seen;
  }

  std::vector<std::string> errors_;
  const std::shared_ptr<Log> log_ = testing::make_error_log(errors_);
  NotingHandler engine_;
  CriFront front_{{engine_, {}, *log_}};
};

TEST_F(CriFrontTest, HandsOverCallsAsOperations) {
  call("CreateContainer", create_request());
  ASSERT_NE(engine_.created, nullptr);
  EXPECT_EQ(engine_.created->workload().key.name, "main");
  EXPECT_EQ(engine_.created->neighbours(), operations::Neighbours::kByUs);
  lens::UpdateContainerResourcesRequest update;
  update.set_container_id("c1");
  update.mutable_linux()->set_cpu_shares(2048);
  call("UpdateContainerResources", update.SerializeAsString());
  ASSERT_NE(engine_.updated, nullptr);
  EXPECT_EQ(engine_.updated->update().container_id, "c1");
  EXPECT_EQ(engine_.updated->update().cpu_shares, 2048);
  call("RunPodSandbox", "");
  EXPECT_NE(engine_.run, nullptr);
  for (const char* method :
       {"StartContainer", "StopContainer", "RemoveContainer", "StopPodSandbox", "RemovePodSandbox"})
    call(method, target("x"));
  EXPECT_THAT(engine_.targets, ElementsAre("start x", "stop x", "remove x", "stop pod x", "remove pod x"));
}

TEST_F(CriFrontTest, SetsFilesOfTheCgroupButThoseThatAnUpdateSetsItself) {
  const operations::ContainerCpuset set{{1, 2}, {}, std::nullopt, {{"memory.high", "4096"}}};
  const auto high_of = [](const lens::Resources& resources) {
    std::vector<std::string> values;
    for (const lens::Entry& file : resources.unified()) values.push_back(file.value());
    return values;
  };
  const auto created = call("CreateContainer", create_request());
  engine_.created->admit({set, {}, {}}, [](const Outcome&) {});
  lens::CreateContainerRequest sent;
  ASSERT_TRUE(sent.ParseFromString(created->request() + created->patch()));
  EXPECT_THAT(high_of(sent.config().linux().resources()), ElementsAre("4096"));
  lens::UpdateContainerResourcesRequest update;
  update.set_container_id("c1");
  const auto sent_for = [&] {
    const auto made = call("UpdateContainerResources", update.SerializeAsString());
    engine_.updated->admit(set, [](const Outcome&) {});
    lens::UpdateContainerResourcesRequest told;
    EXPECT_TRUE(told.ParseFromString(made->request() + made->patch()));
    return high_of(told.linux());
  };
  EXPECT_THAT(sent_for(), ElementsAre("4096"));
  lens::Entry& file = *update.mutable_linux()->add_unified();
  file.set_key("memory.high");
  file.set_value("1");
  EXPECT_THAT(sent_for(), ElementsAre("1"));
}

TEST_F(CriFrontTest, RejectsWhatItCannotReadWhereThatMakesOrChangesAContainer) {
  for (const char* method : {"CreateContainer", "StartContainer", "UpdateContainerResources"}) {
    const auto made = call(method, "\x0a\x7f");
    ASSERT_TRUE(made->kubelet_answer()) << method;
    EXPECT_EQ(made->kubelet_answer()->code, Code::kInvalidArgument) << method;
    EXPECT_FALSE(made->is_forwarded()) << method;
  }
  for (const char* method :
       {"RunPodSandbox", "StopPodSandbox", "RemovePodSandbox", "StopContainer", "RemoveContainer", "Version"}) {
    const auto made = call(method, "\x0a\x7f");
    EXPECT_TRUE(made->is_forwarded()) << method << ": the runtime refuses it in its own words";
    made->drop();
  }
}

TEST_F(CriFrontTest, TellsRefusalsFromAnswersThatLeaveDoubt) {
  const Outcome made = outcome_of_create({Code::kOk, "", target("c1")});
  EXPECT_EQ(made.kind, Outcome::Kind::kDone);
  EXPECT_EQ(made.id, "c1");
  EXPECT_EQ(outcome_of_create({Code::kInvalidArgument, "no such image", ""}).kind, Outcome::Kind::kRefused);
  for (const Code code : {Code::kCancelled, Code::kDeadlineExceeded, Code::kUnavailable})
    EXPECT_EQ(outcome_of_create({code, "lost", ""}).kind, Outcome::Kind::kUnknown);
  EXPECT_THAT(errors_, IsEmpty());
  EXPECT_EQ(outcome_of_create({Code::kOk, "", "\x0a\x7f"}).kind, Outcome::Kind::kUnknown);
  EXPECT_THAT(errors_, ElementsAre(HasSubstr("CreateContainer: ")));
}

TEST_F(CriFrontTest, AnswersWithTheRuntimesAnswerOrSaysThatThereIsNone) {
  const auto unanswered = call("CreateContainer", create_request());
  engine_.created->admit({}, [](const Outcome&) {});
  engine_.created->answer();
  ASSERT_TRUE(unanswered->kubelet_answer());
  EXPECT_EQ(unanswered->kubelet_answer()->code, Code::kDeadlineExceeded);
  const auto refused = call("CreateContainer", create_request());
  engine_.created->admit({}, [](const Outcome&) {});
  refused->answer({Code::kInternal, "its own words", ""});
  engine_.created->answer();
  ASSERT_TRUE(refused->kubelet_answer());
  EXPECT_EQ(refused->kubelet_answer()->message, "its own words");
}

TEST_F(CriFrontTest, ShowsAnotherQuotaOnlyOfWhomTheEngineSaysIt) {
  lens::ContainerStatusResponse answer;
  answer.mutable_status()->set_id("c1");
  answer.mutable_status()->mutable_resources()->mutable_linux()->set_cpu_quota_us(-1);
  const std::string bytes = answer.SerializeAsString();
  const ObservedMessage observed{"/runtime.v1.RuntimeService/ContainerStatus", {bytes}};
  EXPECT_EQ(front_.rewrite(observed), std::nullopt);
  engine_.shown = "another";
  EXPECT_EQ(front_.rewrite(observed), std::nullopt);
  engine_.shown = "c1";
  const std::optional<std::string> shown = front_.rewrite(observed);
  ASSERT_TRUE(shown);
  ASSERT_TRUE(answer.ParseFromString(*shown));
  EXPECT_EQ(answer.status().resources().linux().cpu_quota_us(), 50000);
}

TEST_F(CriFrontTest, TellsOfContainersThatHaveEnded) {
  lens::ContainerEvent event;
  event.set_container_id("c1");
  event.set_type(2);
  const std::string bytes = event.SerializeAsString();
  front_.on_observed({"/runtime.v1.RuntimeService/GetContainerEvents", {bytes}});
  EXPECT_THAT(engine_.seen, ElementsAre(operations::ExitSeen{"c1", {}}));
}

}  // namespace
}  // namespace topolet::cri
