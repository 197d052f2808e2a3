#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "core/base/unique_fd.hpp"
#include "tests/control/daemon_rig.hpp"
#include "tests/support/wire_client.hpp"

namespace topolet::testing {
namespace {

using control::v1::Plugin;
using ::testing::_;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ControlTest : public ::testing::Test {
 protected:
  grpc::Status status(control::v1::StatusResponse& response) {
    grpc::ClientContext context;
    return rig_.control().Status(&context, {}, &response);
  }

  DaemonRig rig_;
};

TEST_F(ControlTest, TellsHowTheDaemonIs) {
  ASSERT_TRUE(rig_.start()) << rig_.log();
  ASSERT_TRUE(rig_.create("web").ok());
  control::v1::StatusResponse response;
  const grpc::Status answer = status(response);
  ASSERT_TRUE(answer.ok()) << answer.error_message();
  EXPECT_EQ(response.listen(), rig_.file("topolet.sock"));
  EXPECT_EQ(response.runtime(), rig_.file("runtime.sock"));
  EXPECT_TRUE(response.runtime_connected());
  EXPECT_FALSE(response.store_degraded());
  EXPECT_EQ(response.containers().at("shared"), 1U);
  EXPECT_EQ(response.pool_cpus(), response.allowed_cpus());
  EXPECT_GT(response.generation(), 0U);
}

TEST_F(ControlTest, ListensForItsOwnerAloneAndCleansUp) {
  ASSERT_TRUE(rig_.start()) << rig_.log();
  struct stat file {};
  ASSERT_EQ(::stat(rig_.control_socket().c_str(), &file), 0);
  EXPECT_TRUE(S_ISSOCK(file.st_mode));
  EXPECT_EQ(file.st_mode & 0777U, 0600U);
  EXPECT_EQ(rig_.stop(), 0);
  EXPECT_NE(::stat(rig_.control_socket().c_str(), &file), 0);
}

TEST_F(ControlTest, ReplacesTheFileOfADeadDaemonAndRefusesASecond) {
  ASSERT_TRUE(rig_.start()) << rig_.log();
  rig_.process().signal(SIGKILL);
  rig_.wait_for_end();
  ASSERT_TRUE(rig_.start()) << rig_.log();
  Process second({TOPOLET_DAEMON, "--config", rig_.config(), "--daemon.listen=" + rig_.file("other.sock")},
                 rig_.file("log"));
  EXPECT_EQ(second.wait(), 1);
  EXPECT_THAT(rig_.log(), HasSubstr("another topoletd serves " + rig_.control_socket()));
}

TEST_F(ControlTest, ServesAndEndsThoughNobodyReadsItsLog) {
  ASSERT_EQ(::mkfifo(rig_.file("log").c_str(), 0600), 0);
  const UniqueFd full(::open(rig_.file("log").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  const std::string filling(4096, '\n');
  while (::write(full.get(), filling.data(), filling.size()) > 0) continue;
  ASSERT_TRUE(rig_.start());
  EXPECT_TRUE(rig_.create("web").ok());
  EXPECT_TRUE(rig_.reload().ok());
  EXPECT_EQ(rig_.stop(), 0);
}

TEST_F(ControlTest, IsNotReachableOnTheKubeletsSocket) {
  ASSERT_TRUE(rig_.start()) << rig_.log();
  const auto stub = control::v1::Control::NewStub(
      grpc::CreateChannel("unix://" + rig_.file("topolet.sock"), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  control::v1::StatusResponse response;
  // It goes to the runtime like any other call that topolet does not know.
  stub->Status(&context, {}, &response);
  EXPECT_EQ(response.version(), "");
  EXPECT_EQ(rig_.runtime().recorder().calls("Status").size(), 1U);
}

TEST_F(ControlTest, LeadsNoCallToTheRuntime) {
  ASSERT_TRUE(rig_.start()) << rig_.log();
  const auto channel = grpc::CreateChannel("unix://" + rig_.control_socket(), grpc::InsecureChannelCredentials());
  const auto runtime = runtime::v1::RuntimeService::NewStub(channel);
  const auto images = runtime::v1::ImageService::NewStub(channel);
  const std::size_t calls_before = rig_.runtime().recorder().calls("Version").size();
  grpc::ClientContext for_version;
  runtime::v1::VersionResponse version;
  const grpc::Status refused = runtime->Version(&for_version, {}, &version);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(refused.error_message(),
              HasSubstr("the control socket has no method /runtime.v1.RuntimeService/Version"));
  grpc::ClientContext for_create;
  runtime::v1::CreateContainerResponse created;
  EXPECT_EQ(runtime->CreateContainer(&for_create, {}, &created).error_code(), grpc::StatusCode::UNIMPLEMENTED);
  grpc::ClientContext for_images;
  runtime::v1::ListImagesResponse listed;
  EXPECT_EQ(images->ListImages(&for_images, {}, &listed).error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(rig_.runtime().recorder().calls("Version").size(), calls_before);
  EXPECT_EQ(rig_.runtime().recorder().calls("CreateContainer").size(), 0U);
  EXPECT_EQ(rig_.runtime().recorder().calls("ListImages").size(), 0U);
}

TEST_F(ControlTest, RefusesARequestThatIsTooLargeOrMeaningless) {
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_EQ(rig_.reset(std::string(100 << 10, 'x')).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  grpc::GenericStub stub(grpc::CreateChannel("unix://" + rig_.control_socket(), grpc::InsecureChannelCredentials()));
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  const grpc::Slice cut_short("\x0a\xff");
  const auto call = stub.PrepareUnaryCall(&context, "/topolet.control.v1.Control/ResetPlugin",
                                          grpc::ByteBuffer(&cut_short, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status answer;
  call->Finish(&response, &answer, nullptr);
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_EQ(answer.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(answer.error_message(),
              HasSubstr("the request of /topolet.control.v1.Control/ResetPlugin cannot be read"));
  control::v1::StatusResponse response_after;
  EXPECT_TRUE(status(response_after).ok());
}

// Each thread that polls in gRPC takes events that are for the others, and hands them over.
TEST_F(ControlTest, HasNoServerWithThreadsOfItsOwn) {
  ASSERT_TRUE(rig_.start()) << rig_.log();
  control::v1::StatusResponse response;
  ASSERT_TRUE(status(response).ok());
  std::vector<std::string> names;
  for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", rig_.process().pid()))) {
    std::ifstream(task.path() / "comm") >> names.emplace_back();
  }
  EXPECT_THAT(names, Contains("topolet-io"));
  EXPECT_THAT(names, Not(Contains(HasSubstr("grpcpp_sync"))));
}

TEST_F(ControlTest, DescribesPlugins) {
  rig_.configure(
      "enable = nonsense\nenable = throws\nweight.nonsense = 7\non-failure.throws = open\n[nonsense]\n"
      "answer = score-too-high");
  ASSERT_TRUE(rig_.start()) << rig_.log();
  ASSERT_TRUE(rig_.create("web").ok());
  const Plugin nonsense = rig_.plugin("nonsense");
  EXPECT_EQ(nonsense.version(), "1");
  EXPECT_EQ(nonsense.weight(), 7);
  EXPECT_EQ(nonsense.state(), Plugin::ACTIVE);
  EXPECT_THAT(nonsense.capabilities(), ElementsAre("topolet.score/1", "topolet.propose/1", "topolet.pick/1"));
  ASSERT_EQ(nonsense.options_size(), 1);
  EXPECT_EQ(nonsense.options(0).value(), "score-too-high");
  EXPECT_EQ(nonsense.options(0).default_value(), "");
  EXPECT_GT(nonsense.calls(), 0U);
  EXPECT_EQ(nonsense.lost_votes().failed(), 1U);
  EXPECT_GT(nonsense.p99_us(), 0U);
  EXPECT_GT(rig_.plugin("throws").lost_votes().failed(), 0U);
}

TEST_F(ControlTest, ResetsAQuarantine) {
  rig_.configure("enable = throws");
  ASSERT_TRUE(rig_.start()) << rig_.log();
  for (const char* pod : {"a", "b", "c"}) ASSERT_TRUE(rig_.create(pod).ok());
  EXPECT_EQ(rig_.plugin("throws").state(), Plugin::QUARANTINED);
  EXPECT_THAT(rig_.plugin("throws").reason(), HasSubstr("failed 3 times in 10 minutes"));
  const grpc::Status reset = rig_.reset("throws");
  EXPECT_TRUE(reset.ok()) << reset.error_message();
  EXPECT_EQ(rig_.plugin("throws").state(), Plugin::ACTIVE);
}

TEST_F(ControlTest, SaysWhenAPluginThatWasLateIsTriedAgain) {
  rig_.configure("enable = nonsense\n[nonsense]\nanswer = none-in-time", "deadline-ms = 1\ndecision-ms = 600000");
  ASSERT_TRUE(rig_.start()) << rig_.log();
  int pods = 0;
  ASSERT_TRUE(rig_.eventually([&] {
    EXPECT_TRUE(rig_.create("p" + std::to_string(pods++)).ok());
    return rig_.plugin("nonsense").state() == Plugin::QUARANTINED;
  })) << rig_.log();
  const Plugin late = rig_.plugin("nonsense");
  EXPECT_THAT(late.reason(), HasSubstr("late 3 times in 10 minutes, last: nonsense: score: no answer within "));
  EXPECT_GT(late.trial_at_ms(), 0);
  EXPECT_TRUE(rig_.logs("is tried again in 10 minutes"));
}

TEST_F(ControlTest, AuditsAQuarantineAndItsEnd) {
  rig_.configure("enable = throws");
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_TRUE(rig_.reset("throws").ok());
  for (const char* pod : {"a", "b", "c"}) ASSERT_TRUE(rig_.create(pod).ok());
  const auto audited = [this](std::size_t count) {
    EXPECT_TRUE(rig_.eventually([this, count] { return rig_.audited().size() >= count; }));
    return rig_.audited();
  };
  EXPECT_THAT(audited(1),
              ElementsAre(AllOf(HasSubstr("quarantined: plugin throws is not asked any more: failed 3 times"),
                                HasSubstr("index 7 of 4"))));
  EXPECT_TRUE(rig_.reset("throws").ok());
  EXPECT_THAT(audited(2), ElementsAre(_, "quarantine-ended: plugin throws is asked again"));
  for (const char* pod : {"d", "e", "f"}) ASSERT_TRUE(rig_.create(pod).ok());
  ASSERT_TRUE(rig_.reload().ok());
  EXPECT_THAT(audited(4), ElementsAre(_, _, HasSubstr("quarantined: "), HasSubstr("quarantine-ended: ")));
}

TEST_F(ControlTest, AuditsWhatDecisionsAreMadeWith) {
  rig_.configure("enable = throws");
  ASSERT_TRUE(rig_.start()) << rig_.log();
  ASSERT_TRUE(rig_.create("before").ok());
  rig_.configure("", "exclusive = never");
  ASSERT_TRUE(rig_.reload().ok());
  ASSERT_TRUE(rig_.create("after").ok());
  EXPECT_EQ(rig_.stop(), 0);
  EXPECT_THAT(rig_.query("SELECT setup || ' ' || plugins FROM setup ORDER BY setup"),
              ElementsAre(AllOf(HasSubstr("1 "), HasSubstr("\"name\":\"throws\"")), "2 []"));
  EXPECT_THAT(rig_.query("SELECT text FROM config ORDER BY first_ms"),
              ElementsAre(AllOf(HasSubstr("plugins.enable = throws\n"), HasSubstr("daemon.store-patience = 20s\n")),
                          AllOf(Not(HasSubstr("throws")), Not(HasSubstr("exclusive = never")))))
      << "what needs a restart is not in force";
  EXPECT_THAT(rig_.query("SELECT pod_name || ' ' || setup FROM decided WHERE event <> 'gap' ORDER BY decision"),
              ElementsAre("before 1", "after 2"));
  EXPECT_THAT(rig_.query("SELECT count(*) FROM decided WHERE json_extract(phases, '$.decide_us') > 0"),
              ElementsAre("2"));
  EXPECT_THAT(rig_.query("SELECT json_type(phases, '$.plugins.throws') FROM decided WHERE pod_name = 'before'"),
              ElementsAre("integer"));
  EXPECT_THAT(rig_.query("SELECT count(*) FROM outcome WHERE json_extract(phases, '$.runtime_us') > 0"),
              ElementsAre("2"));
  EXPECT_THAT(rig_.query("SELECT count(*) FROM topology"), ElementsAre("1"));
  EXPECT_THAT(rig_.query("SELECT count(*) > 0 FROM topology_cpu JOIN topology_node USING (topology, node)"),
              ElementsAre("1"));
}

TEST_F(ControlTest, SaysWhatIsWrongWithAReset) {
  rig_.configure("enable = throws");
  ASSERT_TRUE(rig_.start()) << rig_.log();
  const grpc::Status unknown = rig_.reset("thrwos");
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(unknown.error_message(), "no plugin 'thrwos' is enabled; there are: throws");
  EXPECT_EQ(rig_.reset("").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(rig_.reset("throws").ok());
}

TEST_F(ControlTest, CannotResetAPluginThatACallIsInsideOf) {
  ASSERT_EQ(::mkfifo(rig_.file("fifo").c_str(), 0600), 0);
  // Held open for writing, so that reading it waits.
  std::fstream held(rig_.file("fifo"), std::ios::in | std::ios::out);
  rig_.configure("enable = hangs\n[hangs]\non = " + rig_.file("fifo"));
  ASSERT_TRUE(rig_.start()) << rig_.log();
  ASSERT_TRUE(rig_.create("web").ok());
  EXPECT_EQ(rig_.plugin("hangs").state(), Plugin::STUCK);
  const grpc::Status reset = rig_.reset("hangs");
  EXPECT_EQ(reset.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(reset.error_message(), HasSubstr("restart needed: an abandoned call has not returned"));

  held << "go" << std::endl;
  EXPECT_TRUE(rig_.eventually([this] { return rig_.reset("hangs").ok(); }));
  EXPECT_EQ(rig_.plugin("hangs").state(), Plugin::ACTIVE);
}

TEST_F(ControlTest, EndsAtOnceWithACallInside) {
  ASSERT_EQ(::mkfifo(rig_.file("fifo").c_str(), 0600), 0);
  std::fstream held(rig_.file("fifo"), std::ios::in | std::ios::out);
  rig_.configure("enable = hangs\n[hangs]\non = " + rig_.file("fifo"));
  ASSERT_TRUE(rig_.start()) << rig_.log();
  ASSERT_TRUE(rig_.create("web").ok());
  EXPECT_EQ(rig_.stop(), 0);
}

TEST_F(ControlTest, DisconnectsWhoeverFillsTheMemoryAndNoKubelet) {
#if defined(TOPOLET_SANITIZED)
  GTEST_SKIP() << "with a sanitizer this client writes more slowly than it is read, and so is no flood";
#endif
  constexpr std::size_t kPlenty = std::size_t{1} << 30;
  constexpr const char* kVersion = "/runtime.v1.RuntimeService/Version";
  rig_.configure("", "", "max-memory-mib = 128");
  ASSERT_TRUE(rig_.start()) << rig_.log();
  const std::string more = WireClient::continuation(WireClient::Fields(100, {"endless", std::string(100, 'e')}));
  WireClient kubelet(rig_.file("topolet.sock"));
  kubelet.call(kVersion, {}, 1, /*last=*/false);
  for (std::size_t sent = 0; sent < 1 << 20; sent += more.size()) kubelet.raw(more);
  WireClient endless(rig_.control_socket());
  endless.call("/topolet.control.v1.Control/Status", {}, 1, /*last=*/false);
  for (std::size_t sent = 0; endless.is_open() && sent < kPlenty; sent += more.size()) endless.raw(more);
  EXPECT_FALSE(endless.is_open());
  kubelet.raw(more);
  EXPECT_TRUE(kubelet.is_open()) << rig_.log();
  EXPECT_THAT(rig_.log(), Not(HasSubstr("2 connections")));
  control::v1::StatusResponse response;
  EXPECT_TRUE(status(response).ok());
}

}  // namespace
}  // namespace topolet::testing
