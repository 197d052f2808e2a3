#include "core/cri/messages/runtime_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/cri.pb.h"

namespace topolet::cri {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace api = ::runtime::v1;

const std::string kV1 = "/runtime.v1.RuntimeService/";
const std::string kV1Alpha2 = "/runtime.v1alpha2.RuntimeService/";

/// Answers at once from a function, or keeps the calls until the test answers them.
class RuntimeStub : public Runtime {
 public:
  struct Pending {
    std::string path;
    std::string request;
    std::chrono::milliseconds timeout;
    std::function<void(const RuntimeResponse&)> done;
  };

  void call(std::string path, std::string request, std::chrono::milliseconds timeout,
            std::function<void(const RuntimeResponse&)> done) override {
    paths.push_back(path);
    calls.push_back({std::move(path), std::move(request), timeout, std::move(done)});
    if (answer) calls.back().done(answer(calls.back().path));
  }

  std::function<RuntimeResponse(const std::string& path)> answer;
  std::vector<std::string> paths;
  std::vector<Pending> calls;
};

RuntimeResponse refused(const std::string& path) {
  return {Code::kUnimplemented, "unknown service " + path.substr(1, path.rfind('/') - 1), {}};
}

/// A runtime that speaks one version only, with empty answers.
std::function<RuntimeResponse(const std::string&)> speaks(const std::string& prefix) {
  return [prefix](const std::string& path) { return path.rfind(prefix, 0) == 0 ? RuntimeResponse{} : refused(path); };
}

TEST(RuntimeClient, UpdatesTheCpusetOfAContainer) {
  RuntimeStub runtime;
  RuntimeClient client(runtime, {});
  std::optional<Status> status;
  client.update("c1", {CpuSet{0, 1, 2, 5}, NodeSet{1}}, [&](Status s) { status = s; });
  ASSERT_EQ(runtime.calls.size(), 1U);
  EXPECT_EQ(runtime.calls[0].path, kV1 + "UpdateContainerResources");
  EXPECT_EQ(runtime.calls[0].timeout, kUpdateTimeout);
  api::UpdateContainerResourcesRequest sent;
  ASSERT_TRUE(sent.ParseFromString(runtime.calls[0].request));
  EXPECT_EQ(sent.container_id(), "c1");
  EXPECT_EQ(sent.linux().cpuset_cpus(), "0-2,5");
  EXPECT_EQ(sent.linux().cpuset_mems(), "1");
  EXPECT_FALSE(status.has_value());
  runtime.calls[0].done({});
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(status->has_value());
}

TEST(RuntimeClient, NamesTheCallInAnError) {
  RuntimeStub runtime;
  runtime.answer = [](const std::string&) { return RuntimeResponse{Code::kNotFound, "no such container", {}}; };
  RuntimeClient client(runtime, {});
  std::vector<Error> errors;
  client.update("c1", {CpuSet{0}, {}}, [&](const Status& s) { errors.push_back(s.error()); });
  client.inspect("c2", [&](const Result<operations::ContainerDetail>& r) { errors.push_back(r.error()); });
  client.list_containers([&](const Result<std::vector<operations::ContainerInfo>>& r) { errors.push_back(r.error()); });
  client.list_sandboxes([&](const Result<std::vector<operations::Sandbox>>& r) { errors.push_back(r.error()); });
  EXPECT_THAT(errors, ElementsAre(Error{Code::kNotFound, "UpdateContainerResources of container c1: no such container"},
                                  Error{Code::kNotFound, "ContainerStatus of container c2: no such container"},
                                  Error{Code::kNotFound, "ListContainers: no such container"},
                                  Error{Code::kNotFound, "ListPodSandbox: no such container"}));
  EXPECT_EQ(runtime.calls.size(), 4U) << "only UNIMPLEMENTED is worth a second try";
}

TEST(RuntimeClient, ListsContainersUnfiltered) {
  api::ListContainersResponse response;
  api::Container* container = response.add_containers();
  container->set_id("c1");
  container->set_pod_sandbox_id("s1");
  container->mutable_metadata()->set_name("web");
  container->mutable_metadata()->set_attempt(3);
  container->set_state(api::CONTAINER_RUNNING);
  RuntimeStub runtime;
  runtime.answer = [&](const std::string&) { return RuntimeResponse{Code::kOk, {}, response.SerializeAsString()}; };
  RuntimeClient client(runtime, {});
  std::vector<operations::ContainerInfo> listed;
  client.list_containers([&](Result<std::vector<operations::ContainerInfo>> r) { listed = *std::move(r); });
  EXPECT_EQ(runtime.calls.at(0).request, "");
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].id, "c1");
  EXPECT_EQ(listed[0].sandbox_id, "s1");
  EXPECT_EQ(listed[0].name, "web");
  EXPECT_EQ(listed[0].attempt, 3U);
  EXPECT_EQ(listed[0].state, operations::ContainerState::kRunning);
}

TEST(RuntimeClient, ListsSandboxes) {
  api::ListPodSandboxResponse response;
  response.add_items()->set_id("s1");
  response.mutable_items(0)->mutable_metadata()->set_uid("u1");
  RuntimeStub runtime;
  runtime.answer = [&](const std::string&) { return RuntimeResponse{Code::kOk, {}, response.SerializeAsString()}; };
  RuntimeClient client(runtime, {});
  std::vector<operations::Sandbox> listed;
  client.list_sandboxes([&](Result<std::vector<operations::Sandbox>> r) { listed = *std::move(r); });
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].id, "s1");
  EXPECT_EQ(listed[0].pod_uid, "u1");
}

TEST(RuntimeClient, AsksForTheVerboseStatus) {
  api::ContainerStatusResponse response;
  response.mutable_status()->set_id("c1");
  RuntimeStub runtime;
  runtime.answer = [&](const std::string&) { return RuntimeResponse{Code::kOk, {}, response.SerializeAsString()}; };
  RuntimeClient client(runtime, {});
  std::string id;
  client.inspect("c1", [&](const Result<operations::ContainerDetail>& r) { id = r->info.id; });
  EXPECT_EQ(id, "c1");
  api::ContainerStatusRequest sent;
  ASSERT_TRUE(sent.ParseFromString(runtime.calls.at(0).request));
  EXPECT_EQ(sent.container_id(), "c1");
  EXPECT_TRUE(sent.verbose());
}

TEST(RuntimeClient, SaysWhenAnAnswerIsGarbage) {
  RuntimeStub runtime;
  runtime.answer = [](const std::string&) { return RuntimeResponse{Code::kOk, {}, "\x0f\xff"}; };
  RuntimeClient client(runtime, {});
  Error error;
  client.list_containers([&](const Result<std::vector<operations::ContainerInfo>>& r) { error = r.error(); });
  EXPECT_EQ(error.code, Code::kInternal);
  EXPECT_THAT(error.message, HasSubstr("ListContainers: ListContainersResponse cannot be parsed"));
}

TEST(RuntimeClient, FallsBackToTheOlderVersionAndRemembersIt) {
  RuntimeStub runtime;
  runtime.answer = speaks(kV1Alpha2);
  RuntimeClient client(runtime, {});
  int fine = 0;
  const auto count = [&](const Status& s) { fine += s.has_value() ? 1 : 0; };
  client.update("c1", {CpuSet{0}, {}}, count);
  client.update("c2", {CpuSet{0}, {}}, count);
  EXPECT_EQ(fine, 2);
  EXPECT_THAT(runtime.paths, ElementsAre(kV1 + "UpdateContainerResources", kV1Alpha2 + "UpdateContainerResources",
                                         kV1Alpha2 + "UpdateContainerResources"));
  EXPECT_EQ(runtime.calls[0].request, runtime.calls[1].request);
  EXPECT_EQ(runtime.calls[1].timeout, kUpdateTimeout);
}

TEST(RuntimeClient, ComesBackWhenTheRuntimeWasReplacedByANewerOne) {
  RuntimeStub runtime;
  runtime.answer = speaks(kV1Alpha2);
  RuntimeClient client(runtime, {});
  int fine = 0;
  const auto count = [&](const Status& s) { fine += s.has_value() ? 1 : 0; };
  client.update("c1", {CpuSet{0}, {}}, count);
  runtime.answer = speaks(kV1);
  client.update("c1", {CpuSet{0}, {}}, count);
  runtime.paths.clear();
  client.update("c1", {CpuSet{0}, {}}, count);
  EXPECT_EQ(fine, 3);
  EXPECT_THAT(runtime.paths, ElementsAre(kV1 + "UpdateContainerResources"));
}

TEST(RuntimeClient, ReportsTheFirstRefusalWhenNoVersionIsKnown) {
  RuntimeStub runtime;
  runtime.answer = refused;
  RuntimeClient client(runtime, {});
  Error error;
  const auto keep = [&](const Status& s) { error = s.error(); };
  client.update("c1", {CpuSet{0}, {}}, keep);
  EXPECT_EQ(error.code, Code::kUnimplemented);
  EXPECT_THAT(error.message, HasSubstr("unknown service runtime.v1.RuntimeService"));
  runtime.paths.clear();
  client.update("c1", {CpuSet{0}, {}}, keep);
  EXPECT_EQ(runtime.paths.front(), kV1 + "UpdateContainerResources") << "a double refusal teaches nothing";
}

TEST(RuntimeClient, MayGoAwayBeforeItsAnswersCome) {
  RuntimeStub runtime;
  auto client = std::make_unique<RuntimeClient>(runtime, operations::DemandRules{});
  std::optional<Status> status;
  client->update("c1", {CpuSet{0}, {}}, [&](Status s) { status = s; });
  client.reset();
  auto first = std::move(runtime.calls.at(0).done);
  first(refused(kV1));
  ASSERT_EQ(runtime.paths.size(), 2U) << "the second try needs no client either";
  runtime.calls.at(1).done({});
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(status->has_value());
}

}  // namespace
}  // namespace topolet::cri
