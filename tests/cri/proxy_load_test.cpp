// Many calls at once, calls that are stuck, and readers that are slow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "tests/cri/proxy_rig.hpp"
#include "tests/support/wire_client.hpp"

namespace topolet::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class ProxyLoad : public ::testing::Test {
 protected:
  /// So many calls, each with its request written.
  std::vector<std::unique_ptr<RawCall>> open(const std::string& path, int count) {
    std::vector<std::unique_ptr<RawCall>> calls;
    for (int call = 0; call < count; ++call) {
      calls.push_back(rig_.client.open({.path = path, .message = {}}));
      calls.back()->write(std::to_string(call));
      calls.back()->half_close();
    }
    return calls;
  }
  void pass_other_calls(int count = 50) {
    for (int other = 0; other < count; ++other) {
      EXPECT_TRUE(rig_.client.call({.path = kVersion, .message = ""}).status.ok());
    }
  }

  TempDir directory_;
  RecordingRuntime runtime_{directory_.file("runtime.sock")};
  ProxyRig rig_{directory_};
};

TEST_F(ProxyLoad, Holds1000CallsAtOnceAndAnswersEachWithItsOwn) {
  std::latch go(1);
  runtime_.handle("Status", [&](ServerCall& exchange) {
    const std::string request = exchange.read().value_or("none");
    go.wait();
    exchange.write(request + " answered");
    return grpc::Status::OK;
  });
  auto calls = open("/runtime.v1.RuntimeService/Status", 1000);
  EXPECT_THAT(runtime_.wait_for_arrivals("Status", 1000), SizeIs(1000));
  pass_other_calls(1);
  go.count_down();
  for (std::size_t call = 0; call < calls.size(); ++call) {
    EXPECT_THAT(calls[call]->finish().messages, ElementsAre(std::to_string(call) + " answered"));
  }
}

TEST_F(ProxyLoad, PassesOtherCallsWhileSomeAreStuck) {
  const auto stuck = [](ServerCall& exchange) {
    exchange.read();
    exchange.wait_for_cancellation();
    return grpc::Status::OK;
  };
  runtime_.handle("StopContainer", stuck);
  runtime_.handle("GetContainerEvents", stuck);
  const auto unary = open("/runtime.v1.RuntimeService/StopContainer", 100);
  const auto streams = open(kEvents, 100);
  EXPECT_THAT(runtime_.wait_for_arrivals("StopContainer", 100), SizeIs(100));
  EXPECT_THAT(runtime_.wait_for_arrivals("GetContainerEvents", 100), SizeIs(100));
  pass_other_calls();
}

TEST_F(ProxyLoad, HoldsAtMostTwoMebibytesForAReaderThatStalls) {
  constexpr std::size_t kMessageBytes = 4096;
  std::atomic<std::size_t> written = 0;
  runtime_.handle("GetContainerEvents", [&](ServerCall& exchange) {
    const std::string event(kMessageBytes, 'e');
    while (exchange.write(event)) ++written;
    return grpc::Status::OK;
  });
  // It keeps to HTTP/2's first window, 64 KiB: whatever else was written is in sockets and in the proxy.
  WireClient stalled(directory_.file("topolet.sock"));
  stalled.call(kEvents);
  stalled.message("", true);
  ASSERT_THAT(runtime_.wait_for_arrivals("GetContainerEvents", 1), SizeIs(1));
  // Until no more is written while others pass.
  for (std::size_t before = 0; before == 0 || before != written;) {
    before = written;
    pass_other_calls();
  }
  EXPECT_LE(written * kMessageBytes, std::size_t{2} << 20);
}

TEST_F(ProxyLoad, RunsPostedWorkOnTheThreadThatServesCallsUntilItIsStopped) {
  std::latch ran(2);
  const auto note = [&](std::thread::id* thread) {
    *thread = std::this_thread::get_id();
    ran.count_down();
  };
  std::thread::id first;
  std::thread::id second;
  rig_.proxy.post([&] { note(&first); });
  rig_.proxy.post([&] { note(&second); });
  ran.wait();
  EXPECT_EQ(first, second);
  EXPECT_NE(first, std::this_thread::get_id());
  bool dropped = true;
  rig_.proxy.stop();
  rig_.proxy.post([&] { dropped = false; });
  EXPECT_TRUE(dropped);
}

}  // namespace
}  // namespace topolet::testing
