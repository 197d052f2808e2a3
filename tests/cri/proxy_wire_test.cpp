// Bytes that a well-behaved gRPC library would not send, written onto the socket by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <future>
#include <random>
#include <vector>

#include "core/base/resident_memory.hpp"
#include "core/cri/wire/call_admission.hpp"
#include "tests/cri/proxy_rig.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/manual_clock.hpp"
#include "tests/support/wire_client.hpp"

namespace topolet::testing {
namespace {

using cri::CallAdmission;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr std::size_t kPlentyBytes = std::size_t{2} << 30;
constexpr const char* kTalk = "/runtime.v9.Unknown/Talk";

class ProxyWire : public ::testing::TestWithParam<const char*> {
 protected:
  TempDir directory_;
  RecordingRuntime runtime_{directory_.file("runtime.sock")};
  ProxyRig rig_{directory_};
};

INSTANTIATE_TEST_SUITE_P(BothWays, ProxyWire, ::testing::Values(kVersion, kTalk),
                         [](const auto& test) { return test.index == 0 ? "Unary" : "Stream"; });

TEST_P(ProxyWire, DropsMetadataThatGrpcWouldAbortOn) {
  WireClient wire(directory_.file("topolet.sock"));
  wire.call(GetParam(), {{"good", "value"}, {"not-ascii", "\xc3\xa4\x80"}, {"control", "a\tb\x01"}});
  wire.message("request", true);
  EXPECT_TRUE(wire.wait_for_end());
  const auto calls = runtime_.calls();
  ASSERT_THAT(calls, SizeIs(1));
  EXPECT_THAT(calls[0].messages, ElementsAre("request"));
  EXPECT_THAT(calls[0].metadata, Contains(Pair("good", "value")));
  EXPECT_EQ(calls[0].metadata.count("not-ascii"), 0U);
  EXPECT_EQ(calls[0].metadata.count("control"), 0U);
}

TEST_P(ProxyWire, LeavesACallWithoutAMessageToTheRuntime) {
  const std::string path = GetParam();
  runtime_.handle(path.substr(path.rfind('/') + 1), [](ServerCall& exchange) {
    EXPECT_EQ(exchange.read(), std::nullopt);
    return grpc::Status(grpc::StatusCode::INTERNAL, "where is it?");
  });
  const auto call = rig_.client.open({.path = path, .message = {}});
  call->half_close();
  EXPECT_EQ(call->finish().status.error_message(), "where is it?");
  EXPECT_THAT(runtime_.calls(), SizeIs(1));
}

TEST_P(ProxyWire, CancelsTheRuntimesCallWhenTheConnectionBreaks) {
  const std::string path = GetParam();
  const std::string method = path.substr(path.rfind('/') + 1);
  runtime_.handle(method, [](ServerCall& exchange) {
    exchange.read();
    exchange.wait_for_cancellation();
    return grpc::Status::OK;
  });
  {
    WireClient client(directory_.file("topolet.sock"));
    client.call(path);
    client.message("request", true);
    ASSERT_THAT(runtime_.wait_for_arrivals(method, 1), SizeIs(1));
  }
  const auto ended = runtime_.wait_for_ends(method, 1);
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_TRUE(ended[0].cancelled);
}

TEST_P(ProxyWire, SurvivesClientsThatHangUpAnywhere) {
  {
    WireClient silent(directory_.file("topolet.sock"));
    WireClient in_headers(directory_.file("topolet.sock"));
    in_headers.call(GetParam(), {});
    WireClient after_message(directory_.file("topolet.sock"));
    after_message.call(GetParam(), {});
    after_message.message("request", false);
  }
  EXPECT_TRUE(rig_.client.call({.path = GetParam(), .message = ""}).status.ok());
}

class BadClients : public ::testing::Test {
 protected:
  /// `more_bytes`: that the process may use; without, as many as it likes.
  explicit BadClients(std::size_t more_bytes = kNoMemoryLimit)
      : rig_(directory_, {}, {},
             {.max_memory_bytes = more_bytes == kNoMemoryLimit ? more_bytes : settled_bytes() + more_bytes}) {}

  /// Without what the tests before have left.
  static std::size_t settled_bytes() {
    ::malloc_trim(0);
    return resident_bytes();
  }

  void expect_service() { EXPECT_TRUE(rig_.client.call({.path = kVersion, .message = ""}).status.ok()); }

  TempDir directory_;
  RecordingRuntime runtime_{directory_.file("runtime.sock")};
  ProxyRig rig_;
  std::string socket_ = directory_.file("topolet.sock");
};

class FloodingClients : public BadClients {
 protected:
  FloodingClients() : BadClients(std::size_t{64} << 20) {}
};

TEST_F(BadClients, MayHold1000IdleConnections) {
  std::vector<WireClient> idle;
  for (int client = 0; client < 1000; ++client) idle.emplace_back(socket_, client % 2 == 0);
  expect_service();
  RawClient another("unix://" + socket_);
  EXPECT_TRUE(another.call({.path = kVersion, .message = ""}).status.ok());
}

TEST_F(BadClients, MaySendGarbage) {
  std::mt19937 random(7);
  for (int client = 0; client < 50; ++client) {
    WireClient garbage(socket_, client % 2 == 0);
    std::string bytes(4096, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    garbage.raw(bytes);
  }
  expect_service();
}

TEST_F(FloodingClients, AreHungUpOnWhenTheirEndlessHeadersFillTheMemory) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "with a sanitizer this client writes more slowly than it is read, and so is no flood";
#endif
#endif
  WireClient endless(socket_);
  endless.call(kVersion, {}, 1, /*last=*/false);
  const WireClient::Fields field(100, {"endless", std::string(100, 'e')});
  const std::string more = WireClient::continuation(field);
  for (std::size_t sent = 0; endless.is_open() && sent < kPlentyBytes; sent += more.size()) endless.raw(more);
  EXPECT_FALSE(endless.is_open());
  expect_service();
  EXPECT_THAT(runtime_.calls(), Each(Field(&RecordedCall::path, kVersion)));
  EXPECT_THAT(runtime_.calls("Version"), Each(Field(&RecordedCall::metadata, Not(Contains(Key("endless"))))));
}

TEST_F(BadClients, AreRefusedMetadataBeyondTheLimit) {
  WireClient large(socket_);
  large.call(kVersion, {}, 1, /*last=*/false);
  const WireClient::Fields field(100, {"large", std::string(100, 'l')});
  for (std::size_t sent = 0; sent < (std::size_t{17} << 20); sent += std::size_t{100} * 100)
    large.continue_header(field);
  large.continue_header({}, 1, /*last=*/true);
  large.message("", true);
  EXPECT_TRUE(large.wait_for_end());
  EXPECT_THAT(runtime_.calls(), SizeIs(0));
  expect_service();
}

TEST(LazyClients, GetNoMoreAnswersThanTheyRead) {
  const TempDir directory;
  RecordingRuntime runtime(directory.file("runtime.sock"));
  ManualClock clock;
  cri::ProxyOptions options;
  options.clock = clock.clock();
  std::promise<void> release;
  runtime.handle("ListImages", RecordingRuntime::answer(std::string(CallAdmission::kMostUnreadBytes, 'i')));
  runtime.handle("PullImage", [released = release.get_future().share()](ServerCall& call) {
    call.read();
    released.wait();
    call.write("pulled");
    return grpc::Status::OK;
  });
  ProxyRig rig(directory, {}, std::move(options));
  WireClient unread(directory.file("topolet.sock"));
  for (std::uint8_t call = 0; call < 100; ++call) {
    const auto stream = static_cast<std::uint8_t>(2 * call + 1);
    unread.call("/runtime.v1.ImageService/ListImages", {}, stream);
    unread.message("", true, stream);
  }
  ASSERT_TRUE(unread.wait_for_answer());  // of which it reads no more
  // Another one's wait too, and go when they have waited for as long as calls wait where all is well.
  RawClient other("unix://" + directory.file("topolet.sock"));
  std::vector<std::future<RawResponse>> pulls;
  for (std::size_t call = 0; call <= CallAdmission::kFirstCalls; ++call) {
    pulls.push_back(std::async(std::launch::async, [&other] {
      return other.call({.path = "/runtime.v1.ImageService/PullImage", .message = "request"});
    }));
  }
  EXPECT_THAT(runtime.wait_for_arrivals("PullImage", CallAdmission::kFirstCalls), SizeIs(CallAdmission::kFirstCalls));
  EXPECT_TRUE(eventually([&] {
    clock.advance(std::chrono::seconds(1));
    return runtime.calls("PullImage").size() > CallAdmission::kFirstCalls;
  }));
  EXPECT_TRUE(rig.client.call({.path = kVersion, .message = ""}).status.ok());
  EXPECT_THAT(runtime.calls("ListImages"), SizeIs(CallAdmission::kFirstCalls));
  EXPECT_TRUE(unread.is_open());
  release.set_value();
  for (auto& pull : pulls) EXPECT_TRUE(pull.get().status.ok());
}

TEST_F(FloodingClients, LoseTheAnswersThatTheyDoNotReadWhenThoseFillTheMemory) {
  runtime_.handle("ListImages", RecordingRuntime::answer(std::string(40 << 20, 'i')));
  // Both read no more than HTTP/2's first window, 64 KiB; the second at least takes that out of the socket.
  WireClient deaf(socket_);
  WireClient stalled(socket_);
  for (std::uint8_t call = 0; call < CallAdmission::kFirstCalls; ++call) {
    for (WireClient* one : {&deaf, &stalled}) {
      const auto stream = static_cast<std::uint8_t>(2 * call + 1);
      one->call("/runtime.v1.ImageService/ListImages", {}, stream);
      one->message("", true, stream);
    }
  }
  EXPECT_TRUE(stalled.wait_for_hang_up());
  EXPECT_TRUE(deaf.wait_for_hang_up());
  expect_service();
}

}  // namespace
}  // namespace topolet::testing
