#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <future>
#include <optional>
#include <thread>

#include "tests/cri/proxy_rig.hpp"

namespace topolet::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

/// Values handed from the I/O thread to the test's.
template <class T>
class Mailbox {
 public:
  void put(T value) {
    MutexLock lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  /// Blocks until there is one; a default value after a minute.
  T take() {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    MutexLock lock(mutex_);
    while (values_.empty()) {
      if (!changed_.wait_until(mutex_, give_up)) return T();
    }
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }
  bool empty() {
    MutexLock lock(mutex_);
    return values_.empty();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::deque<T> values_ TOPOLET_GUARDED_BY(mutex_);
};

/// An observed message, copied.
struct Observed {
  Observed() = default;
  explicit Observed(const cri::ObservedMessage& seen) : path(seen.path) {
    for (const std::string_view piece : seen.response) response += piece;
  }
  std::string path;
  std::string response;
};

class ProxyIntercept : public ::testing::Test {
 protected:
  cri::ProxyHooks hooks() {
    return {.intercepted = {"CreateContainer", "NotYetInvented"},
            .on_call = [this](std::shared_ptr<cri::Call> call) { calls_.put(std::move(call)); },
            .observed = {"ListContainers", "GetContainerEvents"},
            .on_observed = [this](const cri::ObservedMessage& seen) { observed_.put(Observed(seen)); },
            .rewritten = {"ListContainers", "GetContainerEvents"},
            .rewrite = [](const cri::ObservedMessage& seen) { return rewritten(Observed(seen).response); },
            .on_connected = {}};
  }
  static std::optional<std::string> rewritten(const std::string& answer) {
    return answer == "few" ? std::optional<std::string>("few and one") : std::nullopt;
  }
  std::future<RawResponse> create(const std::string& message = "request") {
    return std::async(std::launch::async,
                      [this, message] { return rig_.client.call({.path = kCreate, .message = message}); });
  }
  std::function<void(const cri::RuntimeResponse&)> keep_answer() {
    return [this](const cri::RuntimeResponse& answer) { answers_.put(answer); };
  }
  /// Until the proxy has learned that the client is gone.
  static void wait_until_cancelled(const cri::Call& call) {
    while (!call.cancelled()) std::this_thread::yield();
  }

  Mailbox<std::shared_ptr<cri::Call>> calls_;
  Mailbox<Observed> observed_;
  Mailbox<cri::RuntimeResponse> answers_;
  TempDir directory_;
  RecordingRuntime runtime_{directory_.file("runtime.sock")};
  ProxyRig rig_{directory_, hooks()};
};

TEST_F(ProxyIntercept, ShowsTheRequestAndForwardsItWithThePatchBehind) {
  runtime_.handle("CreateContainer", RecordingRuntime::answer("created"));
  auto answered = create("request");
  const auto call = calls_.take();
  ASSERT_NE(call, nullptr);
  EXPECT_EQ(call->path(), kCreate);
  EXPECT_EQ(call->method(), "CreateContainer");
  EXPECT_EQ(call->request(), "request");
  EXPECT_FALSE(call->cancelled());
  EXPECT_THAT(runtime_.calls(), IsEmpty());

  call->forward(" and patch", keep_answer());
  const cri::RuntimeResponse answer = answers_.take();
  EXPECT_EQ(answer.code, Code::kOk);
  EXPECT_EQ(answer.body, "created");
  EXPECT_TRUE(rig_.client.call({.path = kVersion, .message = ""}).status.ok());
  EXPECT_EQ(answered.wait_for(std::chrono::seconds(0)), std::future_status::timeout)
      << "a later call was answered, and this one before it is finished";
  call->finish();
  EXPECT_THAT(answered.get().messages, ElementsAre("created"));
  EXPECT_THAT(runtime_.calls().at(0).messages, ElementsAre("request and patch"));
}

TEST_F(ProxyIntercept, ForwardsTheRequestUntouchedWithoutAPatch) {
  for (const std::string& message : {std::string(), std::string(16 << 20, 'r')}) {
    auto answered = create(message);
    const auto call = calls_.take();
    ASSERT_NE(call, nullptr);
    EXPECT_TRUE(call->request() == message);
    call->forward("", keep_answer());
    answers_.take();
    call->finish();
    EXPECT_TRUE(answered.get().status.ok());
    EXPECT_TRUE(runtime_.calls().back().messages.at(0) == message);
  }
}

TEST_F(ProxyIntercept, FinishesWithTheAnswerExactlyAsItCame) {
  runtime_.handle("CreateContainer", [](ServerCall& exchange) {
    exchange.read();
    exchange.add_header("header-key", "one");
    exchange.add_trailer("trailer-bin", std::string("\0\x01", 2));
    return grpc::Status(grpc::StatusCode::ALREADY_EXISTS, "name is taken", "details");
  });
  auto answered = create();
  const auto call = calls_.take();
  ASSERT_NE(call, nullptr);
  call->forward("patch", keep_answer());
  const cri::RuntimeResponse answer = answers_.take();
  EXPECT_EQ(answer.code, Code::kAlreadyExists);
  EXPECT_EQ(answer.message, "name is taken");
  EXPECT_EQ(answer.body, "");
  call->finish();
  const RawResponse got = answered.get();
  EXPECT_EQ(got.status.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(got.status.error_message(), "name is taken");
  EXPECT_EQ(got.status.error_details(), "details");
  EXPECT_THAT(got.trailer,
              ElementsAre(Pair("grpc-status-details-bin", "details"), Pair("trailer-bin", std::string("\0\x01", 2))));
}

TEST_F(ProxyIntercept, RejectsWithoutTheRuntimeEverKnowing) {
  auto answered = create();
  const auto call = calls_.take();
  ASSERT_NE(call, nullptr);
  call->reject({Code::kResourceExhausted, "no CPUs left"});
  const RawResponse answer = answered.get();
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(answer.status.error_message(), "no CPUs left");
  EXPECT_THAT(runtime_.calls(), IsEmpty());
}

TEST_F(ProxyIntercept, RejectsAfterTheRuntimeAnswered) {
  auto answered = create();
  const auto call = calls_.take();
  ASSERT_NE(call, nullptr);
  call->forward("", keep_answer());
  EXPECT_EQ(answers_.take().code, Code::kOk);
  call->reject({Code::kInternal, "the store is gone"});
  EXPECT_EQ(answered.get().status.error_message(), "the store is gone");
}

TEST_F(ProxyIntercept, AnswersUnavailableWhenTheCallIsDropped) {
  auto answered = create();
  ASSERT_NE(calls_.take(), nullptr);
  const RawResponse answer = answered.get();
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(answer.status.error_message(), HasSubstr("CreateContainer"));
}

TEST_F(ProxyIntercept, AnswersUnavailableWhenTheCallIsDroppedAfterTheRuntimesAnswer) {
  auto answered = create();
  auto call = calls_.take();
  ASSERT_NE(call, nullptr);
  call->forward("", keep_answer());
  answers_.take();
  call.reset();
  EXPECT_EQ(answered.get().status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ProxyIntercept, TellsOfAClientThatWentAwayAndForwardsNothingForIt) {
  const auto client = rig_.client.open({.path = kCreate, .message = {}});
  client->write("request");
  const auto call = calls_.take();
  ASSERT_NE(call, nullptr);
  client->cancel();
  wait_until_cancelled(*call);
  call->forward("patch", keep_answer());
  EXPECT_EQ(answers_.take().code, Code::kCancelled);
  call->finish();
  call->reject({Code::kInternal, "too late"});
  EXPECT_EQ(rig_.client.call({.path = "/runtime.v1.RuntimeService/Version", .message = ""}).status.error_code(),
            grpc::StatusCode::OK);
  EXPECT_THAT(runtime_.calls("CreateContainer"), IsEmpty());
}

TEST_F(ProxyIntercept, CancelsTheForwardedCallWithTheClientAndStillReports) {
  runtime_.handle("CreateContainer", [](ServerCall& exchange) {
    exchange.read();
    exchange.wait_for_cancellation();
    return grpc::Status::OK;
  });
  const auto client = rig_.client.open({.path = kCreate, .message = {}});
  client->write("request");
  const auto call = calls_.take();
  ASSERT_NE(call, nullptr);
  call->forward("", keep_answer());
  ASSERT_THAT(runtime_.wait_for_arrivals("CreateContainer", 1), SizeIs(1));
  client->cancel();
  EXPECT_EQ(answers_.take().code, Code::kCancelled);
  const auto ended = runtime_.wait_for_ends("CreateContainer", 1);
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_TRUE(ended[0].cancelled);
  EXPECT_TRUE(answers_.empty());
}

TEST_F(ProxyIntercept, SurvivesCancellationAtAnyMoment) {
  constexpr int kRounds = 300;
  std::atomic<int> reported = 0;
  for (int round = 0; round < kRounds; ++round) {
    const auto client = rig_.client.open({.path = kCreate, .message = {}});
    client->write("request");
    const auto call = calls_.take();
    ASSERT_NE(call, nullptr);
    std::thread canceller([&] { client->cancel(); });
    call->forward("patch", [&, call](const cri::RuntimeResponse&) {
      ++reported;
      call->finish();
      answers_.put({});
    });
    canceller.join();
    answers_.take();
  }
  EXPECT_EQ(reported, kRounds);
}

TEST_F(ProxyIntercept, InterceptsByNameInTheVersionsItKnowsOnly) {
  auto invented = std::async(std::launch::async, [&] {
    return rig_.client.call({.path = "/runtime.v1alpha2.RuntimeService/NotYetInvented", .message = "invented"});
  });
  const auto call = calls_.take();
  ASSERT_NE(call, nullptr);
  EXPECT_EQ(call->request(), "invented");
  call->reject({Code::kUnimplemented, "no"});
  EXPECT_EQ(invented.get().status.error_code(), grpc::StatusCode::UNIMPLEMENTED);

  EXPECT_TRUE(rig_.client.call({.path = "/runtime.v2.RuntimeService/CreateContainer", .message = ""}).status.ok());
  EXPECT_TRUE(rig_.client.call({.path = "/some.other.Service/CreateContainer", .message = ""}).status.ok());
  EXPECT_TRUE(calls_.empty());
}

TEST_F(ProxyIntercept, ShowsObservedCallsWithoutHoldingThem) {
  runtime_.handle("ListContainers", RecordingRuntime::answer("containers"));
  const RawResponse answer =
      rig_.client.call({.path = "/runtime.v1.RuntimeService/ListContainers", .message = "filter"});
  EXPECT_THAT(answer.messages, ElementsAre("containers"));
  const Observed seen = observed_.take();
  EXPECT_EQ(seen.path, "/runtime.v1.RuntimeService/ListContainers");
  EXPECT_EQ(seen.response, "containers");
}

TEST_F(ProxyIntercept, HasAnswersAsTheCoreSays) {
  const auto listed = [this](const char* method) {
    return rig_.client.call({.path = std::string("/runtime.v1.RuntimeService/") + method, .message = ""});
  };
  for (const char* method : {"ListContainers", "ListPodSandbox"})
    runtime_.handle(method, RecordingRuntime::answer("few"));
  EXPECT_THAT(listed("ListContainers").messages, ElementsAre("few and one"));
  EXPECT_THAT(listed("ListPodSandbox").messages, ElementsAre("few")) << "the core does not say anything of these";
  runtime_.handle("ListContainers", RecordingRuntime::answer("many"));
  EXPECT_THAT(listed("ListContainers").messages, ElementsAre("many"));
  runtime_.handle("ListContainers", RecordingRuntime::refuse({grpc::StatusCode::INTERNAL, "few"}));
  EXPECT_EQ(listed("ListContainers").status.error_code(), grpc::StatusCode::INTERNAL);
}

TEST_F(ProxyIntercept, HasTheMessagesOfStreamsAsTheCoreSays) {
  runtime_.handle("GetContainerEvents", [](ServerCall& exchange) {
    exchange.read();
    for (const char* event : {"many", "few", "many"}) exchange.write(event);
    exchange.wait_for_cancellation();
    return grpc::Status::OK;
  });
  const auto call = rig_.client.open({.path = "/runtime.v1.RuntimeService/GetContainerEvents", .message = {}});
  call->write("request");
  for (const char* event : {"many", "few and one", "many"}) {
    EXPECT_EQ(call->read(), event);
    EXPECT_EQ(observed_.take().response, event);
  }
}

TEST_F(ProxyIntercept, ShowsEveryMessageOfAnObservedStreamOnceTheClientHasIt) {
  runtime_.handle("GetContainerEvents", [](ServerCall& exchange) {
    exchange.read();
    exchange.write("first");
    exchange.write("second");
    exchange.wait_for_cancellation();
    return grpc::Status::OK;
  });
  const auto call = rig_.client.open({.path = "/runtime.v1.RuntimeService/GetContainerEvents", .message = {}});
  call->write("request");
  EXPECT_EQ(call->read(), "first");
  EXPECT_EQ(call->read(), "second");
  for (const char* event : {"first", "second"}) {
    const Observed seen = observed_.take();
    EXPECT_EQ(seen.path, "/runtime.v1.RuntimeService/GetContainerEvents");
    EXPECT_EQ(seen.response, event);
  }
}

TEST_F(ProxyIntercept, ObservesNoFailures) {
  runtime_.handle("ListContainers", RecordingRuntime::refuse({grpc::StatusCode::INTERNAL, "no"}));
  rig_.client.call({.path = "/runtime.v1.RuntimeService/ListContainers", .message = ""});
  runtime_.handle("ListContainers", RecordingRuntime::answer("second"));
  rig_.client.call({.path = "/runtime.v1.RuntimeService/ListContainers", .message = ""});
  EXPECT_EQ(observed_.take().response, "second");
}

TEST_F(ProxyIntercept, MakesCallsOfItsOwn) {
  runtime_.handle("ContainerStatus", RecordingRuntime::answer("status"));
  runtime_.handle("UpdateContainerResources", RecordingRuntime::refuse({grpc::StatusCode::NOT_FOUND, "no such"}));
  rig_.proxy.call("/runtime.v1.RuntimeService/ContainerStatus", "which", std::chrono::minutes(1), keep_answer());
  EXPECT_EQ(answers_.take().body, "status");
  EXPECT_THAT(runtime_.calls().at(0).messages, ElementsAre("which"));
  rig_.proxy.call("/runtime.v1.RuntimeService/UpdateContainerResources", "", std::chrono::minutes(1), keep_answer());
  const cri::RuntimeResponse refused = answers_.take();
  EXPECT_EQ(refused.code, Code::kNotFound);
  EXPECT_EQ(refused.message, "no such");
}

TEST_F(ProxyIntercept, GivesUpOnAnOwnCallThatTakesTooLong) {
  runtime_.handle("ContainerStatus", [](ServerCall& exchange) {
    exchange.wait_for_cancellation();
    return grpc::Status::OK;
  });
  rig_.proxy.call("/runtime.v1.RuntimeService/ContainerStatus", "", std::chrono::milliseconds(50), keep_answer());
  EXPECT_EQ(answers_.take().code, Code::kDeadlineExceeded);
}

}  // namespace
}  // namespace topolet::testing
