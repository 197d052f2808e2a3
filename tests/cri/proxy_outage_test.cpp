// The runtime down, back, lost in the middle of a call; and the end of the proxy itself.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <future>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/base/log.hpp"
#include "tests/cri/proxy_rig.hpp"
#include "tests/support/process.hpp"

namespace topolet::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

grpc::Status wait_for_cancellation(ServerCall& exchange) {
  exchange.read();
  exchange.wait_for_cancellation();
  return grpc::Status::OK;
}

/// Counts on_connected.
class Returns {
 public:
  void add() {
    MutexLock lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  /// False after a minute.
  bool wait_for(int count) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    MutexLock lock(mutex_);
    while (count_ < count) {
      if (!changed_.wait_until(mutex_, give_up)) return false;
    }
    return true;
  }
  int count() {
    MutexLock lock(mutex_);
    return count_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ TOPOLET_GUARDED_BY(mutex_) = 0;
};

// An empty SETTINGS frame, without which a client does not take the connection for established.
const std::string kHttp2Settings("\0\0\0\x04\0\0\0\0\0", 9);
// A HEADERS frame of stream 1: ":status: 200", "content-type: application/grpc".
const std::string kHttp2ResponseHeaders(
    "\0\0\x14\x01\x04\0\0\0\x01\x88\x0f\x10\x10"
    "application/grpc",
    29);

/// Takes connections one by one: waits for the first call on it, sends `response` and hangs up.
class BreakingRuntime {
 public:
  BreakingRuntime(const std::string& path, const std::string& response, int connections = 1) : path_(path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    socket_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(socket_.get(), 8), 0);
    thread_ = std::thread([this, response, connections] {
      for (int served = 0; served < connections; ++served) serve(response);
    });
  }
  ~BreakingRuntime() {
    thread_.join();
    ::unlink(path_.c_str());
  }
  BreakingRuntime(const BreakingRuntime&) = delete;
  BreakingRuntime& operator=(const BreakingRuntime&) = delete;

 private:
  void serve(const std::string& response) const {
    const UniqueFd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    send(connection, kHttp2Settings);
    std::string received;
    std::array<char, 4096> chunk{};
    while (received.find("request") == std::string::npos) {
      const ssize_t size = ::read(connection.get(), chunk.data(), chunk.size());
      if (size <= 0) return;
      received.append(chunk.data(), static_cast<std::size_t>(size));
    }
    send(connection, response);
  }
  static void send(const UniqueFd& connection, const std::string& bytes) {
    EXPECT_EQ(::write(connection.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }

  const std::string path_;
  UniqueFd socket_;
  std::thread thread_;
};

/// A runtime that can be killed as kill −9 kills it.
class KillableRuntime {
 public:
  explicit KillableRuntime(const std::string& socket) {
    const std::string pipe = socket + ".out";
    EXPECT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    // Without waiting for somebody who writes. From now on it does.
    out_.reset(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    process_.emplace(std::vector<std::string>{TOPOLET_KILLABLE_RUNTIME, socket}, pipe);
    EXPECT_EQ(::fcntl(out_.get(), F_SETFL, 0), 0);
    ::unlink(pipe.c_str());
    EXPECT_EQ(next_line(), "ready");
  }

  /// Blocks until a call has arrived; its path.
  std::string next_line() {
    std::string line;
    char byte = 0;
    while (::read(out_.get(), &byte, 1) == 1 && byte != '\n') line += byte;
    return line;
  }
  /// Its socket takes connections on, but nothing is said on them.
  void freeze() const { process_->signal(SIGSTOP); }
  void thaw() const { process_->signal(SIGCONT); }
  void kill() { process_.reset(); }

 private:
  UniqueFd out_;
  std::optional<Process> process_;
};

class ProxyOutage : public ::testing::Test {
 protected:
  cri::ProxyHooks hooks() {
    cri::ProxyHooks hooks;
    hooks.intercepted = {"CreateContainer"};
    hooks.on_call = [this](std::shared_ptr<cri::Call> call) { intercepted_.set_value(std::move(call)); };
    hooks.on_connected = [this] { returns_.add(); };
    return hooks;
  }

  Returns returns_;
  std::promise<std::shared_ptr<cri::Call>> intercepted_;
  TempDir directory_;
  std::string socket_ = directory_.file("runtime.sock");
};

TEST_F(ProxyOutage, NamesTheEndpointWhileTheRuntimeIsDownAndWorksOnceItIsUp) {
  ProxyRig rig(directory_, hooks());
  for (const char* path : {kVersion, kEvents}) {
    const RawResponse answer = rig.client.call({.path = path, .message = ""});
    EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_THAT(answer.status.error_message(), HasSubstr("unix://" + socket_));
    EXPECT_THAT(answer.status.error_message(), HasSubstr("'runtime'"));
  }
  RecordingRuntime runtime(socket_);
  ASSERT_TRUE(returns_.wait_for(1));
  for (const char* path : {kVersion, kEvents}) {
    EXPECT_TRUE(rig.client.call({.path = path, .message = ""}).status.ok());
  }
}

TEST_F(ProxyOutage, TellsOfEveryReturnOfTheRuntimeButNotOfTheFirstConnection) {
  std::optional<RecordingRuntime> runtime(socket_);
  ProxyRig rig(directory_, hooks());
  EXPECT_TRUE(rig.client.call({.path = kVersion, .message = ""}).status.ok());
  EXPECT_EQ(returns_.count(), 0);
  for (int restart = 1; restart <= 3; ++restart) {
    runtime.reset();
    runtime.emplace(socket_);
    ASSERT_TRUE(returns_.wait_for(restart));
    EXPECT_TRUE(rig.client.call({.path = kVersion, .message = ""}).status.ok());
  }
}

TEST_F(ProxyOutage, IsLoggedOnceWhenItBeginsAndOnceWhenItEnds) {
  std::optional<RecordingRuntime> runtime(socket_);
  ProxyRig rig(directory_, hooks());
  EXPECT_TRUE(rig.client.call({.path = kVersion, .message = ""}).status.ok());
  std::ostringstream lines;
  const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(lines);
  sink->set_pattern("%l %v");
  rig.log->sinks() = {sink};
  rig.log->set_level(spdlog::level::info);
  runtime.reset();
  for (int i = 0; i < 30; ++i) {
    EXPECT_FALSE(rig.client.call({.path = kVersion, .message = ""}).status.ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  runtime.emplace(socket_);
  ASSERT_TRUE(returns_.wait_for(1));
  rig.proxy.stop();
  const std::string said = lines.str();
  EXPECT_THAT(said,
              ::testing::MatchesRegex("warning no connection to the container runtime at unix://.*'runtime'[^\n]*\n"
                                      "info connected to the container runtime at unix://[^\n]* again\n"));
}

TEST_F(ProxyOutage, TellsOfAReturnThatWasTooQuickForAFailedAttempt) {
  // The socket listens all the time; only the connection breaks.
  BreakingRuntime runtime(socket_, "", /*connections=*/2);
  ProxyRig rig(directory_, hooks());
  EXPECT_FALSE(rig.client.call({.path = kVersion, .message = "request"}).status.ok());
  EXPECT_TRUE(returns_.wait_for(1));
  EXPECT_FALSE(rig.client.call({.path = kVersion, .message = "request"}).status.ok());
}

TEST_F(ProxyOutage, WaitsForARuntimeThatIsSlowToAccept) {
  KillableRuntime runtime(directory_.file("runtime.sock"));
  runtime.freeze();
  ProxyRig rig(directory_, hooks());
  const auto call = rig.client.open({.path = kEvents, .message = {}});
  call->write("");
  const RawResponse impatient =
      rig.client.call({.path = kVersion, .message = "", .timeout = std::chrono::milliseconds(500)});
  EXPECT_EQ(impatient.status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  runtime.thaw();
  EXPECT_EQ(runtime.next_line(), kEvents);
}

TEST_F(ProxyOutage, SaysUnavailableWhenTheRuntimeDiesDuringACall) {
  std::optional<RecordingRuntime> runtime(socket_);
  runtime->handle("Version", wait_for_cancellation);
  ProxyRig rig(directory_, hooks());
  auto answered =
      std::async(std::launch::async, [&] { return rig.client.call({.path = kVersion, .message = "request"}); });
  ASSERT_THAT(runtime->wait_for_arrivals("Version", 1), SizeIs(1));
  runtime.reset();
  const grpc::Status status = answered.get().status;
  EXPECT_TRUE(status.error_code() == grpc::StatusCode::UNAVAILABLE ||
              status.error_code() == grpc::StatusCode::CANCELLED)
      << status.error_message();
}

TEST_F(ProxyOutage, SaysUnavailableForEveryKindOfCallWhenTheRuntimeIsKilled) {
  std::optional<KillableRuntime> runtime(std::in_place, socket_);
  ProxyRig rig(directory_, hooks());
  const auto open = [&](const std::string& path) {
    auto call = rig.client.open({.path = path, .message = {}});
    call->write("request");
    return call;
  };
  std::vector<std::unique_ptr<RawCall>> calls;
  for (const char* path : {"/runtime.v1.RuntimeService/StopContainer", "/runtime.v1.ImageService/PullImage", kEvents,
                           "/runtime.v1.RuntimeService/StreamContainers", "/runtime.v9.Unknown/Talk"}) {
    calls.push_back(open(path));
    EXPECT_EQ(runtime->next_line(), path);
  }
  calls.push_back(open("/runtime.v1.RuntimeService/CreateContainer"));
  const std::shared_ptr<cri::Call> create = intercepted_.get_future().get();
  std::promise<cri::RuntimeResponse> created;
  create->forward("patch", [&](const cri::RuntimeResponse& answer) {
    created.set_value(answer);
    create->finish();
  });
  EXPECT_EQ(runtime->next_line(), create->path());
  std::promise<cri::RuntimeResponse> own;
  rig.proxy.call("/runtime.v1.RuntimeService/ContainerStatus", "", std::chrono::hours(1),
                 [&](const cri::RuntimeResponse& answer) { own.set_value(answer); });
  runtime->next_line();
  for (const std::size_t stream : {2U, 3U, 4U}) EXPECT_EQ(calls[stream]->read(), "first");

  runtime->kill();
  for (const auto& call : calls) {
    const grpc::Status status = call->finish().status;
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_THAT(status.error_message(), HasSubstr("unix://" + socket_));
  }
  EXPECT_EQ(created.get_future().get().code, Code::kUnavailable);
  EXPECT_EQ(own.get_future().get().code, Code::kUnavailable);

  ::unlink(socket_.c_str());
  runtime.emplace(socket_);
  ASSERT_TRUE(returns_.wait_for(1));
  EXPECT_TRUE(rig.client.call({.path = kVersion, .message = "request"}).status.ok());
}

TEST_F(ProxyOutage, NamesTheEndpointWhenTheConnectionBreaksDuringACall) {
  for (const std::string& response : {std::string(), kHttp2ResponseHeaders}) {
    for (const char* path : {kVersion, kEvents}) {
      const BreakingRuntime runtime(socket_, response);
      ProxyRig rig(directory_, hooks());
      const RawResponse answer = rig.client.call({.path = path, .message = "request"});
      EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNAVAILABLE) << answer.status.error_message();
      EXPECT_THAT(answer.status.error_message(), HasSubstr("unix://" + socket_));
    }
  }
}

TEST_F(ProxyOutage, StopsWhileStreamsAreOpen) {
  RecordingRuntime runtime(socket_);
  runtime.handle("GetContainerEvents", wait_for_cancellation);
  ProxyRig rig(directory_, hooks());
  const auto call = rig.client.open({.path = kEvents, .message = {}});
  call->write("request");
  ASSERT_THAT(runtime.wait_for_arrivals("GetContainerEvents", 1), SizeIs(1));
  rig.proxy.stop();
  EXPECT_FALSE(call->finish().status.ok());
  const auto ended = runtime.wait_for_ends("GetContainerEvents", 1);
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_TRUE(ended[0].cancelled);
}

TEST_F(ProxyOutage, EndsWhatOutlastsTheGraceAsUnavailableOnceTheListenerHangsUp) {
  RecordingRuntime runtime(socket_);
  runtime.handle("GetContainerEvents", wait_for_cancellation);
  runtime.handle("Version", wait_for_cancellation);
  ProxyRig rig(directory_, hooks(), {.runtime_endpoint = {}, .drain_timeout = std::chrono::milliseconds(1)});
  std::vector<std::unique_ptr<RawCall>> calls;
  for (const char* path : {kEvents, kVersion}) {
    calls.push_back(rig.client.open({.path = path, .message = {}}));
    calls.back()->write("request");
  }
  ASSERT_THAT(runtime.wait_for_arrivals("", 2), SizeIs(2));
  rig.listener->stop();
  rig.proxy.drain();
  rig.listener->disconnect_all();
  rig.proxy.stop();
  for (const auto& call : calls) EXPECT_EQ(call->finish().status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ProxyOutage, LetsAUnaryCallFinishBeforeItStops) {
  RecordingRuntime runtime(socket_);
  std::promise<void> release;
  runtime.handle("Version", [&](ServerCall& exchange) {
    exchange.read();
    release.get_future().wait();
    exchange.write("version");
    return grpc::Status::OK;
  });
  ProxyRig rig(directory_, hooks(),
               {.runtime_endpoint = {}, .image_endpoint = {}, .drain_timeout = std::chrono::minutes(1)});
  auto answered = std::async(std::launch::async, [&] { return rig.client.call({.path = kVersion, .message = ""}); });
  ASSERT_THAT(runtime.wait_for_arrivals("Version", 1), SizeIs(1));
  auto stopped = std::async(std::launch::async, [&] { rig.proxy.stop(); });
  const RawRequest other = {.path = "/runtime.v1.RuntimeService/Status", .message = ""};
  while (rig.client.call(other).status.ok()) {
  }
  for (int refused = 0; refused < 50; ++refused) {
    EXPECT_THAT(rig.client.call(other).status.error_message(), HasSubstr("topoletd is shutting down"));
  }
  release.set_value();
  EXPECT_TRUE(answered.get().status.ok());
  stopped.get();
}

TEST_F(ProxyOutage, CancelsAUnaryCallThatOutlastsTheGrace) {
  RecordingRuntime runtime(socket_);
  runtime.handle("Version", wait_for_cancellation);
  ProxyRig rig(directory_, hooks(),
               {.runtime_endpoint = {}, .image_endpoint = {}, .drain_timeout = std::chrono::milliseconds(1)});
  auto answered = std::async(std::launch::async, [&] { return rig.client.call({.path = kVersion, .message = ""}); });
  ASSERT_THAT(runtime.wait_for_arrivals("Version", 1), SizeIs(1));
  rig.proxy.stop();
  rig.proxy.stop();
  EXPECT_FALSE(answered.get().status.ok());
  EXPECT_TRUE(runtime.wait_for_ends("Version", 1).at(0).cancelled);
}

TEST_F(ProxyOutage, KeepsTheCoresHandlesUsableAfterItsEnd) {
  RecordingRuntime runtime(socket_);
  auto rig = std::make_unique<ProxyRig>(
      directory_, hooks(),
      cri::ProxyOptions{.runtime_endpoint = {}, .image_endpoint = {}, .drain_timeout = std::chrono::milliseconds(1)});
  const auto client = rig->client.open({.path = "/runtime.v1.RuntimeService/CreateContainer", .message = {}});
  client->write("request");
  const std::shared_ptr<cri::Call> call = intercepted_.get_future().get();
  rig->proxy.stop();
  EXPECT_TRUE(call->cancelled());
  Code code = Code::kOk;
  call->forward("", [&](const cri::RuntimeResponse& answer) { code = answer.code; });
  EXPECT_EQ(code, Code::kCancelled);
  call->finish();
  call->reject({Code::kInternal, "too late"});
  rig->proxy.call(kVersion, "", std::chrono::seconds(1),
                  [&](const cri::RuntimeResponse& answer) { code = answer.code; });
  EXPECT_EQ(code, Code::kUnavailable);
  client->finish();
  rig.reset();
  EXPECT_EQ(call->request(), "request");
  EXPECT_THAT(runtime.calls(), IsEmpty());
}

TEST_F(ProxyOutage, StopsUnderTrafficAtAnyMoment) {
  RecordingRuntime runtime(socket_);
  for (int round = 0; round < 20; ++round) {
    ProxyRig rig(directory_, hooks(),
                 {.runtime_endpoint = {}, .image_endpoint = {}, .drain_timeout = std::chrono::milliseconds(1)});
    std::atomic<int> answered = 0;
    std::vector<std::thread> clients;
    for (const char* path : {kVersion, kEvents}) {
      clients.emplace_back([&, path] {
        while (rig.client.call({.path = path, .message = "request"}).status.ok()) ++answered;
      });
    }
    clients.emplace_back([&] {
      std::atomic<bool> closed = false;
      while (!closed) {
        std::promise<void> done;
        rig.proxy.call(kVersion, "", std::chrono::minutes(1), [&](const cri::RuntimeResponse& answer) {
          closed = answer.code != Code::kOk;
          done.set_value();
        });
        done.get_future().wait();
      }
    });
    while (answered < round) std::this_thread::yield();
    rig.listener->stop();
    rig.proxy.stop();
    for (std::thread& client : clients) client.join();
  }
}

TEST_F(ProxyOutage, EndsOwnCallsWhenItStops) {
  RecordingRuntime runtime(socket_);
  runtime.handle("Version", wait_for_cancellation);
  ProxyRig rig(directory_, hooks());
  std::promise<Code> ended;
  rig.proxy.call(kVersion, "", std::chrono::hours(1),
                 [&](const cri::RuntimeResponse& answer) { ended.set_value(answer.code); });
  ASSERT_THAT(runtime.wait_for_arrivals("Version", 1), SizeIs(1));
  rig.proxy.stop();
  EXPECT_EQ(ended.get_future().get(), Code::kCancelled);
}

}  // namespace
}  // namespace topolet::testing
