// One proxy takes another one's place while clients call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "tests/cri/proxy_rig.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/unsent_call.hpp"

namespace topolet::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kPull = "/runtime.v1.ImageService/PullImage";
constexpr std::chrono::minutes kEnough{1};

/// The core of a proxy: keeps what it is given.
struct Core {
  cri::ProxyHooks hooks() {
    return {.intercepted = {"CreateContainer"},
            .on_call =
                [this](std::shared_ptr<cri::Call> call) {
                  MutexLock lock(mutex);
                  calls.push_back(std::move(call));
                  came.notify_all();
                },
            .observed = {},
            .on_observed = {},
            .on_own_call = {},
            .on_connected = {}};
  }
  std::shared_ptr<cri::Call> wait_for_call() {
    MutexLock lock(mutex);
    while (calls.empty()) came.wait(mutex);
    return calls.front();
  }

  Mutex mutex;
  CondVar came;
  std::vector<std::shared_ptr<cri::Call>> calls TOPOLET_GUARDED_BY(mutex);
};

class TakeOver : public ::testing::Test {
 protected:
  TakeOver() : runtime_(directory_.file("runtime.sock")) {}

  void begin(ProxyRig& old, bool ask_to_reconnect = true) {
    std::vector<UniqueFd> connections = old.listener->stop_accepting();
    if (ask_to_reconnect) old.proxy.ask_to_reconnect(std::move(connections));
    old.proxy.forward_to("unix://" + directory_.file("topolet.sock"));
  }
  /// Serves what the old one accepts no more.
  std::unique_ptr<ProxyRig> make_successor(ProxyRig& old, cri::ProxyHooks hooks = {}) {
    cri::Listener::Sockets sockets = old.listener->duplicate_sockets();
    old.listener->disown_file();
    return std::make_unique<ProxyRig>(directory_, std::move(hooks), cri::ProxyOptions{},
                                      cri::ListenerOptions{.inherited_fd = sockets.socket.release(),
                                                           .inherited_lock_fd = sockets.lock.release(),
                                                           .max_memory_bytes = kNoMemoryLimit});
  }

  TempDir directory_;
  RecordingRuntime runtime_;
};

TEST_F(TakeOver, NoCallFailsAndAllClientsMoveToTheSuccessor) {
  auto rig = std::make_unique<ProxyRig>(directory_);
  std::atomic<bool> stop = false;
  std::atomic<int> answered = 0;
  std::vector<std::future<std::string>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::async(std::launch::async, [&] {
      RawClient client("unix://" + directory_.file("topolet.sock"));
      while (!stop) {
        const auto call = [&client] { return client.call({.path = kVersion, .message = "request"}).status; };
        grpc::Status status = call();
        if (testing::was_given_up_unsent(status)) status = call();
        if (!status.ok()) return status.error_message();
        ++answered;
      }
      return std::string();
    }));
  }
  const auto wait_for_calls = [&](int more) {
    for (const int enough = answered + more; answered < enough;) std::this_thread::yield();
  };
  std::vector<std::unique_ptr<ProxyRig>> replaced;
  for (int round = 0; round < 5; ++round) {
    wait_for_calls(100);
    begin(*rig);
    auto next = make_successor(*rig);
    replaced.push_back(std::exchange(rig, std::move(next)));
    EXPECT_TRUE(eventually([&] { return replaced.back()->listener->open_connections() == 0; })) << "in round " << round;
  }
  wait_for_calls(100);
  stop = true;
  for (auto& client : clients) EXPECT_EQ(client.get(), "");
}

TEST_F(TakeOver, AClientThatDoesNotReadHoldsUpNobody) {
  std::atomic<int> sent = 0;
  runtime_.handle("GetContainerEvents", [&](ServerCall& call) {
    call.read();
    const std::string event(1 << 20, 'e');
    while (call.write(event)) ++sent;
    return grpc::Status::OK;
  });
  ProxyRig old(directory_);
  RawClient other("unix://" + directory_.file("topolet.sock"));
  const auto events = other.open({.path = kEvents, .message = {}});
  events->write("request");
  events->half_close();
  EXPECT_TRUE(events->read());
  // Until all that is on the way is full, so that the proxy waits for the client: it would take more between calls.
  for (int before = -1, calls = 0; calls < 100; ++calls) {
    if (std::exchange(before, sent) != sent) calls = 0;
    ASSERT_TRUE(old.client.call({.path = kVersion, .message = "request"}).status.ok());
  }
  begin(old);
  EXPECT_TRUE(eventually([&] { return old.listener->open_connections() == 1; }))
      << "only the one that reads nothing stays";
  old.proxy.stop();
}

TEST_F(TakeOver, ACallToTheOldProxyIsServedByTheSuccessor) {
  ProxyRig old(directory_);
  ASSERT_TRUE(old.client.call({.path = kVersion, .message = "request"}).status.ok());
  begin(old, /*ask_to_reconnect=*/false);
  auto waits = std::async(std::launch::async, [&] { return old.client.call({.path = kCreate, .message = "request"}); });
  Core core;
  const auto successor = make_successor(old, core.hooks());
  core.wait_for_call()->reject({Code::kInvalidArgument, "said by the successor"});
  EXPECT_THAT(waits.get().status.error_message(), HasSubstr("said by the successor"));
}

TEST_F(TakeOver, ALongCallEndsWhereItBeganAndThenItIsQuiet) {
  std::promise<void> release;
  runtime_.handle("PullImage", [&](ServerCall& call) {
    call.read();
    release.get_future().wait();
    call.write("pulled");
    return grpc::Status::OK;
  });
  ProxyRig old(directory_);
  auto pull = std::async(std::launch::async, [&] { return old.client.call({.path = kPull, .message = "request"}); });
  ASSERT_THAT(runtime_.wait_for_arrivals("PullImage", 1), SizeIs(1));
  begin(old);
  const auto successor = make_successor(old);
  EXPECT_TRUE(old.client.call({.path = kVersion, .message = "request"}).status.ok());
  EXPECT_FALSE(old.proxy.is_quiet_for(std::chrono::milliseconds(0)));
  release.set_value();
  const RawResponse pulled = pull.get();
  EXPECT_TRUE(pulled.status.ok()) << pulled.status.error_message();
  EXPECT_TRUE(eventually([&] { return old.proxy.is_quiet_for(std::chrono::milliseconds(0)); }));
}

TEST_F(TakeOver, AStreamEndsUnavailable) {
  runtime_.handle("GetContainerEvents", [](ServerCall& call) {
    call.read();
    call.write("event");
    call.wait_for_cancellation();
    return grpc::Status::OK;
  });
  ProxyRig old(directory_);
  const auto events = old.client.open({.path = kEvents, .message = {}});
  events->write("request");
  events->half_close();
  EXPECT_EQ(events->read(), "event");
  begin(old);
  const auto successor = make_successor(old);
  old.proxy.end_streams();
  const grpc::Status status = events->finish().status;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("replaced by a new process"));
}

TEST_F(TakeOver, WhatTheCoreHeldIsForTheSuccessor) {
  Core core;
  ProxyRig old(directory_, core.hooks());
  auto create =
      std::async(std::launch::async, [&] { return old.client.call({.path = kCreate, .message = "request"}); });
  const auto held = core.wait_for_call();
  begin(old);
  EXPECT_FALSE(old.proxy.wait_for_core(std::chrono::milliseconds(1)));
  old.proxy.take_calls_from_core();
  Core next;
  const auto successor = make_successor(old, next.hooks());
  next.wait_for_call()->reject({Code::kInvalidArgument, "said by the successor"});
  EXPECT_THAT(create.get().status.error_message(), HasSubstr("said by the successor"));
  Code code = Code::kOk;
  held->forward("", [&](const cri::RuntimeResponse& answer) { code = answer.code; });
  EXPECT_EQ(code, Code::kCancelled) << "it is no longer the old core's";
  EXPECT_TRUE(old.proxy.wait_for_core(kEnough));
}

TEST_F(TakeOver, WhatTheCoreHadForwardedGetsTheAnswerOfTheRuntime) {
  std::promise<void> release;
  runtime_.handle("CreateContainer", [&](ServerCall& call) {
    call.read();
    release.get_future().wait();
    call.write("created");
    return grpc::Status::OK;
  });
  Core core;
  ProxyRig old(directory_, core.hooks());
  auto create =
      std::async(std::launch::async, [&] { return old.client.call({.path = kCreate, .message = "request"}); });
  // Called whenever the answer comes, which may be after the test has it.
  core.wait_for_call()->forward("", [](const cri::RuntimeResponse&) {});
  ASSERT_THAT(runtime_.wait_for_arrivals("CreateContainer", 1), SizeIs(1));
  begin(old);
  old.proxy.take_calls_from_core();
  const auto successor = make_successor(old);
  release.set_value();
  const RawResponse created = create.get();
  EXPECT_TRUE(created.status.ok()) << created.status.error_message();
  EXPECT_THAT(created.messages, ::testing::ElementsAre("created"));
  EXPECT_THAT(runtime_.calls(), SizeIs(1));
}

}  // namespace
}  // namespace topolet::testing
