#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/cri/proxy_rig.hpp"

namespace topolet::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

// Every byte value, and no protobuf message.
std::string odd_bytes(const std::string& prefix) {
  std::string bytes = prefix;
  for (int value = 0; value < 256; ++value) bytes.push_back(static_cast<char>(value));
  return bytes;
}

const std::vector<std::string> kRuntimeMethods = {"Version",
                                                  "RunPodSandbox",
                                                  "StopPodSandbox",
                                                  "RemovePodSandbox",
                                                  "PodSandboxStatus",
                                                  "ListPodSandbox",
                                                  "CreateContainer",
                                                  "StartContainer",
                                                  "StopContainer",
                                                  "RemoveContainer",
                                                  "ListContainers",
                                                  "ContainerStatus",
                                                  "ExecSync",
                                                  "ReopenContainerLog",
                                                  "UpdateContainerResources",
                                                  "Exec",
                                                  "Attach",
                                                  "PortForward",
                                                  "ContainerStats",
                                                  "ListContainerStats",
                                                  "PodSandboxStats",
                                                  "ListPodSandboxStats",
                                                  "UpdateRuntimeConfig",
                                                  "Status",
                                                  "CheckpointContainer",
                                                  "CheckpointPod",
                                                  "RestorePod",
                                                  "StreamPodSandboxes",
                                                  "StreamContainers",
                                                  "StreamContainerStats",
                                                  "StreamPodSandboxStats",
                                                  "StreamPodSandboxMetrics",
                                                  "ListMetricDescriptors",
                                                  "ListPodSandboxMetrics",
                                                  "RuntimeConfig",
                                                  "UpdatePodSandboxResources",
                                                  "GetContainerEvents",
                                                  "NotYetInvented"};
const std::vector<std::string> kImageMethods = {"ListImages",  "ImageStatus",  "PullImage",     "RemoveImage",
                                                "ImageFsInfo", "StreamImages", "NotYetInvented"};

std::vector<std::string> all_paths() {
  std::vector<std::string> paths = {"/some.other.Service/Method"};
  for (const std::string version : {"v1", "v1alpha2", "v7"}) {
    for (const auto& method : kRuntimeMethods) paths.push_back("/runtime." + version + ".RuntimeService/" + method);
    for (const auto& method : kImageMethods) paths.push_back("/runtime." + version + ".ImageService/" + method);
  }
  return paths;
}

/// One method for each of the two ways through the proxy.
class ProxyRelay : public ::testing::TestWithParam<std::string> {
 protected:
  std::string method() const { return GetParam().substr(GetParam().rfind('/') + 1); }

  TempDir directory_;
  RecordingRuntime runtime_{directory_.file("runtime.sock")};
  ProxyRig rig_{directory_};
};

INSTANTIATE_TEST_SUITE_P(BothWays, ProxyRelay,
                         ::testing::Values("/runtime.v1.RuntimeService/Status",
                                           "/runtime.v1.RuntimeService/GetContainerEvents"),
                         [](const auto& test) { return test.index == 0 ? "Unary" : "Stream"; });

TEST(ProxyEndpoints, CarriesTheBytesOfEveryMethodBothWays) {
  const TempDir directory;
  RecordingRuntime runtime(directory.file("runtime.sock"));
  ProxyRig rig(directory);
  for (const std::string& path : all_paths()) {
    const std::string method = path.substr(path.rfind('/') + 1);
    runtime.handle(method, RecordingRuntime::answer(odd_bytes("answer to " + path)));
    const RawResponse answer = rig.client.call({.path = path, .message = odd_bytes(path)});
    EXPECT_TRUE(answer.status.ok()) << path << ": " << answer.status.error_message();
    EXPECT_THAT(answer.messages, ElementsAre(odd_bytes("answer to " + path)));
    const auto calls = runtime.calls();
    ASSERT_FALSE(calls.empty());
    EXPECT_EQ(calls.back().path, path);
    EXPECT_THAT(calls.back().messages, ElementsAre(odd_bytes(path)));
  }
}

TEST_P(ProxyRelay, CarriesEmptyMessages) {
  const RawResponse answer = rig_.client.call({.path = GetParam(), .message = ""});
  EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_THAT(answer.messages, ElementsAre(""));
  EXPECT_THAT(runtime_.calls().at(0).messages, ElementsAre(""));
}

TEST_P(ProxyRelay, CarriesMetadataBothWays) {
  runtime_.handle(method(), [](ServerCall& exchange) {
    exchange.read();
    exchange.add_header("header-key", "one");
    exchange.add_header("header-key", "two");
    exchange.add_header("header-bin", std::string("\0\xff", 2));
    exchange.add_trailer("trailer-key", "three");
    exchange.add_trailer("trailer-bin", std::string("\x80\0", 2));
    exchange.write("answer");
    return grpc::Status::OK;
  });
  const RawResponse answer = rig_.client.call(
      {.path = GetParam(),
       .message = "request",
       .metadata = {
           {"traceparent", "00-abc"}, {"many", "first"}, {"many", "second"}, {"x-bin", std::string("\0\x01\xff", 3)}}});
  const Metadata arrived = runtime_.calls().at(0).metadata;
  EXPECT_THAT(arrived, Contains(Pair("traceparent", "00-abc")));
  EXPECT_THAT(arrived, Contains(Pair("x-bin", std::string("\0\x01\xff", 3))));
  EXPECT_EQ(arrived.count("user-agent"), 1U);
  const auto many = arrived.equal_range("many");
  EXPECT_THAT(Metadata(many.first, many.second), ElementsAre(Pair("many", "first"), Pair("many", "second")));
  EXPECT_THAT(answer.header, ElementsAre(Pair("header-bin", std::string("\0\xff", 2)), Pair("header-key", "one"),
                                         Pair("header-key", "two")));
  EXPECT_THAT(answer.trailer, ElementsAre(Pair("trailer-bin", std::string("\x80\0", 2)), Pair("trailer-key", "three")));
}

TEST_P(ProxyRelay, AddsNoMetadataOfItsOwn) {
  RawClient direct(runtime_.endpoint());
  direct.call({.path = GetParam(), .message = "direct"});
  rig_.client.call({.path = GetParam(), .message = "through the proxy"});
  const auto calls = runtime_.calls();
  ASSERT_THAT(calls, SizeIs(2));
  EXPECT_EQ(calls[0].metadata, calls[1].metadata);
}

TEST_P(ProxyRelay, CarriesTheDeadline) {
  const auto before = std::chrono::system_clock::now();
  rig_.client.call({.path = GetParam(), .message = "", .timeout = std::chrono::seconds(1000)});
  const auto deadline = runtime_.calls().at(0).deadline;
  EXPECT_GE(deadline, before + std::chrono::seconds(990));
  EXPECT_LE(deadline, std::chrono::system_clock::now() + std::chrono::seconds(1010));
}

TEST_P(ProxyRelay, EndsTheRuntimesCallWhenTheDeadlinePasses) {
  runtime_.handle(method(), [](ServerCall& exchange) {
    exchange.wait_for_cancellation();
    return grpc::Status::OK;
  });
  // On a machine that does other things a call may not get to the runtime in time, and the next has longer.
  for (std::chrono::milliseconds timeout(100); runtime_.calls(method()).empty(); timeout *= 2) {
    const RawResponse answer = rig_.client.call({.path = GetParam(), .message = "", .timeout = timeout});
    EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  EXPECT_THAT(runtime_.wait_for_ends(method(), 1), Not(IsEmpty()));
}

TEST_P(ProxyRelay, CancelsTheRuntimesCallWhenTheClientCancels) {
  runtime_.handle(method(), [](ServerCall& exchange) {
    exchange.read();
    exchange.wait_for_cancellation();
    return grpc::Status::OK;
  });
  const auto call = rig_.client.open({.path = GetParam(), .message = {}});
  call->write("request");
  ASSERT_THAT(runtime_.wait_for_arrivals(method(), 1), SizeIs(1));
  call->cancel();
  const auto ended = runtime_.wait_for_ends(method(), 1);
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_TRUE(ended[0].cancelled);
}

TEST_P(ProxyRelay, CarriesAnErrorWithItsDetailsOnce) {
  const std::string details = odd_bytes("google.rpc.Status");
  runtime_.handle(method(), [&](ServerCall& exchange) {
    exchange.read();
    exchange.add_trailer("trailer-key", "value");
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "sandbox \xc3\xa4 is not ready\n", details);
  });
  const RawResponse answer = rig_.client.call({.path = GetParam(), .message = "request"});
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(answer.status.error_message(), "sandbox \xc3\xa4 is not ready\n");
  EXPECT_EQ(answer.status.error_details(), details);
  EXPECT_THAT(answer.messages, IsEmpty());
  EXPECT_THAT(answer.trailer, ElementsAre(Pair("grpc-status-details-bin", details), Pair("trailer-key", "value")));
}

TEST_P(ProxyRelay, KeepsTheRuntimesOwnUnavailableAsItIs) {
  runtime_.handle(method(), RecordingRuntime::refuse({grpc::StatusCode::UNAVAILABLE, "still starting"}));
  const RawResponse answer = rig_.client.call({.path = GetParam(), .message = "request"});
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(answer.status.error_message(), "still starting");
}

TEST_P(ProxyRelay, CarriesCodesThatNobodyKnows) {
  runtime_.handle(method(), RecordingRuntime::refuse({static_cast<grpc::StatusCode>(31), "new"}));
  RawClient direct(runtime_.endpoint());
  const RawResponse expected = direct.call({.path = GetParam(), .message = "request"});
  const RawResponse answer = rig_.client.call({.path = GetParam(), .message = "request"});
  EXPECT_EQ(answer.status.error_code(), expected.status.error_code());
  EXPECT_EQ(answer.status.error_message(), expected.status.error_message());
}

TEST_P(ProxyRelay, CarriesLongErrorMessages) {
  const std::string message(9 << 10, 'e');
  runtime_.handle(method(), RecordingRuntime::refuse({grpc::StatusCode::UNKNOWN, message}));
  const RawResponse answer = rig_.client.call({.path = GetParam(), .message = "request"});
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNKNOWN);
  EXPECT_EQ(answer.status.error_message(), message);
}

TEST_P(ProxyRelay, CarriesErrorsWith64KiBOfMessageAndDetails) {
  const std::string message(64 << 10, 'e');
  const std::string details(64 << 10, '\xff');
  runtime_.handle(method(), RecordingRuntime::refuse({grpc::StatusCode::NOT_FOUND, message, details}));
  const RawResponse answer = rig_.client.call({.path = GetParam(), .message = "request"});
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(answer.status.error_message() == message);
  EXPECT_TRUE(answer.status.error_details() == details);
  EXPECT_EQ(answer.trailer.count("grpc-status-details-bin"), 1U);
}

TEST_P(ProxyRelay, CarriesMessagesOf16MiB) {
  const std::string big = std::string(16 << 20, 'b') + odd_bytes("end");
  runtime_.handle(method(), RecordingRuntime::answer(big));
  const RawResponse answer = rig_.client.call({.path = GetParam(), .message = big});
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  ASSERT_THAT(answer.messages, SizeIs(1));
  EXPECT_TRUE(answer.messages[0] == big);
  EXPECT_TRUE(runtime_.calls().at(0).messages.at(0) == big);
}

TEST_P(ProxyRelay, CarriesAMebibyteOfMetadata) {
  const std::string big(1 << 20, 'm');
  const RawResponse answer = rig_.client.call({.path = GetParam(), .message = "", .metadata = {{"big", big}}});
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_TRUE(runtime_.calls().at(0).metadata.find("big")->second == big);
}

// In pieces: gRPC reads a value that spans many frames anew with each frame.
TEST_P(ProxyRelay, Carries15MiBOfMetadataEachWay) {
  constexpr std::size_t kEntries = std::size_t{15} * 128;
  const std::string value(8 << 10, 'm');
  runtime_.handle(method(), [&](ServerCall& exchange) {
    exchange.read();
    for (std::size_t entry = 0; entry < kEntries; ++entry) {
      exchange.add_header("header", value);
      exchange.add_trailer("trailer", value);
    }
    exchange.write("answer");
    return grpc::Status::OK;
  });
  RawRequest request{.path = GetParam(), .message = ""};
  for (std::size_t entry = 0; entry < kEntries; ++entry) request.metadata.emplace("request", value);
  const RawResponse answer = rig_.client.call(request);
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  const Metadata arrived = runtime_.calls().at(0).metadata;
  for (const auto& [metadata, key] :
       {std::pair{&arrived, "request"}, std::pair{&answer.header, "header"}, std::pair{&answer.trailer, "trailer"}}) {
    ASSERT_EQ(metadata->count(key), kEntries) << key;
    EXPECT_TRUE(metadata->find(key)->second == value) << key;
  }
}

TEST_P(ProxyRelay, CarriesTheCountOfTheClientsRetries) {
  const RawResponse answer =
      rig_.client.call({.path = GetParam(), .message = "", .metadata = {{"grpc-previous-rpc-attempts", "2"}}});
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_THAT(runtime_.calls().at(0).metadata, Contains(Pair("grpc-previous-rpc-attempts", "2")));
}

TEST_P(ProxyRelay, NamesTheEndpointWhenAnAnswerIsTooLarge) {
  const TempDir directory;
  RecordingRuntime runtime(directory.file("runtime.sock"));
  ProxyRig rig(directory, {}, {.runtime_endpoint = {}, .image_endpoint = {}, .max_message_bytes = 1000});
  runtime.handle(method(), RecordingRuntime::answer(std::string(1001, 'b')));
  const RawResponse answer = rig.client.call({.path = GetParam(), .message = "request"});
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(answer.status.error_message(), HasSubstr(runtime.endpoint()));
}

TEST_P(ProxyRelay, ServesManyCallsAtOnce) {
  constexpr int kThreads = 8;
  constexpr int kCalls = 50;
  std::atomic<int> wrong = 0;
  runtime_.handle(method(), [](ServerCall& exchange) {
    exchange.write(exchange.read().value_or("") + " answered");
    return grpc::Status::OK;
  });
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int call = 0; call < kCalls; ++call) {
        const std::string message = std::to_string(thread) + "." + std::to_string(call);
        const RawResponse answer = rig_.client.call({.path = GetParam(), .message = message});
        if (answer.messages != std::vector<std::string>{message + " answered"}) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

constexpr const char* kInvented = "/runtime.v9.Unknown/Talk";

class ProxyStream : public ::testing::Test {
 protected:
  TempDir directory_;
  RecordingRuntime runtime_{directory_.file("runtime.sock")};
  ProxyRig rig_{directory_};
};

TEST_F(ProxyStream, CarriesEveryEventOfAServerStream) {
  runtime_.handle("GetContainerEvents", [](ServerCall& exchange) {
    exchange.read();
    for (int event = 0; event < 10000; ++event) exchange.write("event " + std::to_string(event));
    return grpc::Status(grpc::StatusCode::ABORTED, "enough");
  });
  const RawResponse answer = rig_.client.call({.path = kEvents, .message = "request"});
  ASSERT_THAT(answer.messages, SizeIs(10000));
  EXPECT_EQ(answer.messages.front(), "event 0");
  EXPECT_EQ(answer.messages.back(), "event 9999");
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::ABORTED);
}

TEST_F(ProxyStream, CarriesAConversationMessageByMessage) {
  runtime_.handle("Talk", [](ServerCall& exchange) {
    while (const auto message = exchange.read()) exchange.write("re: " + *message);
    exchange.write("goodbye");
    return grpc::Status::OK;
  });
  const auto call = rig_.client.open({.path = kInvented, .message = {}});
  for (const std::string message : {"one", "", "three"}) {
    ASSERT_TRUE(call->write(message));
    EXPECT_EQ(call->read(), "re: " + message);
  }
  call->half_close();
  EXPECT_EQ(call->read(), "goodbye");
  EXPECT_TRUE(call->finish().status.ok());
}

TEST_F(ProxyStream, PassesTheHeaderOnBeforeTheFirstMessage) {
  runtime_.handle("Talk", [](ServerCall& exchange) {
    exchange.add_header("ready", "yes");
    exchange.send_header();
    exchange.read();
    return grpc::Status::OK;
  });
  const auto call = rig_.client.open({.path = kInvented, .message = {}});
  EXPECT_THAT(call->read_header(), Contains(Pair("ready", "yes")));
  call->half_close();
  EXPECT_TRUE(call->finish().status.ok());
}

TEST_F(ProxyStream, CarriesACallWithoutAnyMessage) {
  runtime_.handle("Talk", [](ServerCall& exchange) {
    EXPECT_EQ(exchange.read(), std::nullopt);
    return grpc::Status::OK;
  });
  const auto call = rig_.client.open({.path = kInvented, .message = {}});
  call->half_close();
  const RawResponse answer = call->finish();
  EXPECT_TRUE(answer.status.ok());
  EXPECT_THAT(answer.messages, IsEmpty());
}

TEST_F(ProxyStream, LetsTheRuntimeEndACallWhileTheClientStillWrites) {
  runtime_.handle("Talk", RecordingRuntime::refuse({grpc::StatusCode::UNIMPLEMENTED, "no"}));
  const auto call = rig_.client.open({.path = kInvented, .message = {}});
  while (call->write("more")) {
  }
  EXPECT_EQ(call->finish().status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(ProxyStream, SlowsTheRuntimeDownWhenTheClientDoesNotRead) {
  std::atomic<int> written = 0;
  runtime_.handle("GetContainerEvents", [&](ServerCall& exchange) {
    const std::string event(1 << 20, 'e');
    while (exchange.write(event)) ++written;
    return grpc::Status::OK;
  });
  const auto call = rig_.client.open({.path = kEvents, .message = {}});
  ASSERT_TRUE(call->read().has_value());
  // The runtime stalls as soon as buffers are full; an unbounded relay would let it run on while other calls pass.
  for (int other = 0; other < 200; ++other) {
    rig_.client.call({.path = "/runtime.v1.RuntimeService/Version", .message = ""});
  }
  EXPECT_LE(written, 16);
  call->cancel();
  EXPECT_THAT(runtime_.wait_for_ends("GetContainerEvents", 1), SizeIs(1));
}

TEST(ProxyEndpoints, SendsImageCallsToTheImageEndpoint) {
  const TempDir directory;
  RecordingRuntime runtime(directory.file("runtime.sock"));
  RecordingRuntime images(directory.file("images.sock"));
  ProxyRig rig(directory, {}, {.runtime_endpoint = {}, .image_endpoint = images.endpoint()});
  rig.client.call({.path = "/runtime.v1.ImageService/PullImage", .message = "image"});
  rig.client.call({.path = "/runtime.v1.ImageService/NotYetInvented", .message = "image"});
  rig.client.call({.path = "/runtime.v1.RuntimeService/Version", .message = "runtime"});
  EXPECT_THAT(images.calls(), SizeIs(2));
  ASSERT_THAT(runtime.calls(), SizeIs(1));
  EXPECT_EQ(runtime.calls()[0].path, "/runtime.v1.RuntimeService/Version");
}

}  // namespace
}  // namespace topolet::testing
