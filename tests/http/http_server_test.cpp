#include "cluster/http/http_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <list>

#include "core/base/mutex.hpp"
#include "tests/http/http_client.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/manual_clock.hpp"

namespace topolet::http {
namespace {

using testing::eventually;
using ::testing::HasSubstr;
using testing::http_get;
using testing::HttpConnection;
using ::testing::Not;
using ::testing::StartsWith;

using std::chrono::milliseconds;

class HttpServerTest : public ::testing::Test {
 protected:
  void open(HttpServer::Options options = {}) { open(std::move(options), clock_.clock()); }
  void open(HttpServer::Options options, Clock clock) {
    options.address = "127.0.0.1:0";
    options.clock = std::move(clock);
    HttpServer::Handlers handlers;
    handlers.answer = [this](const HttpRequest& request) -> HttpResponse {
      if (request.path == "/slow") {
        slow_begun_.set_value();
        slow_may_end_.get_future().wait();
      }
      if (request.path == "/large") return {200, "text/plain", std::string(kLarge, 'x')};
      if (request.path == "/none") return {404, "text/plain", "nothing\n"};
      return {200, "text/plain", "path " + request.path + ", host " + request.host + '\n'};
    };
    handlers.is_stream = [](const HttpRequest& request) { return request.path == "/stream"; };
    handlers.begin_stream = [this](std::shared_ptr<EventStream> stream) {
      MutexLock lock(mutex_);
      streams_.push_back(std::move(stream));
      return static_cast<std::uint64_t>(streams_.size());
    };
    if (renews_) {
      handlers.renew_stream = [this](std::uint64_t number) {
        stream(number - 1)->begin_anew(make_event("whole", "new"));
        MutexLock lock(mutex_);
        ++renewed_;
      };
    }
    handlers.end_stream = [this](std::uint64_t) {
      MutexLock lock(mutex_);
      ++ended_;
    };
    auto opened = HttpServer::open(std::move(options), std::move(handlers));
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    server_ = *std::move(opened);
  }
  std::shared_ptr<EventStream> stream(std::size_t number) {
    EXPECT_TRUE(eventually([&] {
      MutexLock lock(mutex_);
      return streams_.size() > number;
    }));
    MutexLock lock(mutex_);
    return streams_.at(number);
  }
  /// After all that is underway.
  void pass(milliseconds time) {
    server_->run_due();
    clock_.advance(time);
    server_->run_due();
  }
  int ended() {
    MutexLock lock(mutex_);
    return ended_;
  }
  int renewed() {
    MutexLock lock(mutex_);
    return renewed_;
  }
  static std::string request(const std::string& path) { return "GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n"; }

  /// More than sockets take.
  static constexpr std::size_t kLarge = 64 << 20;

  testing::ManualClock clock_;
  std::promise<void> slow_begun_;
  std::promise<void> slow_may_end_;
  Mutex mutex_;
  std::vector<std::shared_ptr<EventStream>> streams_ TOPOLET_GUARDED_BY(mutex_);
  int ended_ TOPOLET_GUARDED_BY(mutex_) = 0;
  int renewed_ TOPOLET_GUARDED_BY(mutex_) = 0;
  bool renews_ = false;  ///< streams that are behind
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersOneRequestAfterTheOther) {
  open({.headers = {{"X-Mine", "yes"}}});
  HttpConnection connection(server_->address());
  for (const char* path : {"/a", "/b?x=/c"}) {
    ASSERT_TRUE(connection.send(request(path)));
    const std::string answer = connection.read_until(", host h\n");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(answer, HasSubstr("\r\nX-Mine: yes\r\n"));
    EXPECT_THAT(answer, HasSubstr(path == std::string("/a") ? "path /a," : "path /b,"));
  }
  EXPECT_THAT(http_get(server_->address(), "/none"), StartsWith("HTTP/1.1 404 Not Found"));
  const std::string head = http_get(server_->address(), "/a", "h", "HEAD");
  EXPECT_THAT(head, HasSubstr("Content-Length: 16\r\n"));
  EXPECT_THAT(head, ::testing::EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, RefusesWhatItDoesNotTake) {
  open();
  EXPECT_THAT(http_get(server_->address(), "/a", "h", "POST"), StartsWith("HTTP/1.1 405"));
  HttpConnection body(server_->address());
  body.send("GET /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabcde");
  EXPECT_THAT(body.read_all(), StartsWith("HTTP/1.1 413"));
  HttpConnection large(server_->address());
  large.send("GET /a HTTP/1.1\r\nX: " + std::string(20000, 'x') + "\r\n\r\n");
  EXPECT_THAT(large.read_all(), StartsWith("HTTP/1.1 431"));
  HttpConnection nonsense(server_->address());
  nonsense.send("nonsense\r\n\r\n");
  EXPECT_EQ(nonsense.read_all(), "");
  EXPECT_THAT(http_get(server_->address(), "/a"), HasSubstr("path /a")) << "it goes on";
}

TEST_F(HttpServerTest, LetsGoOfWhoSaysNothing) {
  open({.idle_timeout = std::chrono::seconds(1)});
  HttpConnection slow(server_->address());
  slow.send("GET /a HTTP/1.1\r\n");
  http_get(server_->address(), "/a");  // which comes after the other is accepted
  pass(milliseconds(999));
  EXPECT_TRUE(slow.is_silent());
  pass(milliseconds(1));
  EXPECT_EQ(slow.read_all(), "");
}

TEST_F(HttpServerTest, LooksByItselfUntilItIsTime) {
  std::atomic<int> looks = 0;
  std::atomic<bool> is_time = false;
  // The connection is due 5 ms after all looks but the first, for as long as it is not time.
  Clock clock;
  clock.steady = [&] { return std::chrono::steady_clock::time_point(milliseconds(looks++ == 0 || is_time ? 5 : 0)); };
  open({.idle_timeout = std::chrono::seconds(0)}, std::move(clock));
  HttpConnection connection(server_->address());
  EXPECT_TRUE(eventually([&] { return looks > 5; }));
  EXPECT_TRUE(connection.is_silent());
  is_time = true;
  EXPECT_TRUE(eventually([&] { return !connection.is_silent(); }));
  server_->stop();
}

TEST_F(HttpServerTest, CountsTheTimeOfEachRequestFromTheAnswerBefore) {
  open({.idle_timeout = std::chrono::seconds(1)});
  HttpConnection connection(server_->address());
  for (int i = 0; i < 3; ++i) {
    connection.send(request("/a"));
    EXPECT_THAT(connection.read_until("host h\n"), HasSubstr("path /a"));
    ASSERT_TRUE(connection.is_silent());
    pass(milliseconds(900));
  }
  EXPECT_TRUE(connection.is_silent());
}

TEST_F(HttpServerTest, LetsGoOfWhoDoesNotSendTheWholeBody) {
  open({.request_timeout = std::chrono::seconds(1), .idle_timeout = std::chrono::hours(1), .max_body_bytes = 10});
  HttpConnection slow(server_->address());
  slow.send("GET /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab");
  // Nobody tells when the headers have been read.
  ASSERT_TRUE(eventually([&] {
    pass(milliseconds(100));
    return !slow.is_silent();
  }));
  EXPECT_EQ(slow.read_all(), "");
}

TEST_F(HttpServerTest, LetsGoOfWhoDoesNotReadTheAnswer) {
  open({.request_timeout = std::chrono::seconds(1)});
  HttpConnection lazy(server_->address());
  lazy.send(request("/large"));
  const std::string head = lazy.read_until("\r\n\r\n");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 OK\r\n"));
  pass(std::chrono::seconds(1));
  EXPECT_LT(lazy.read_all().size(), kLarge);
}

TEST_F(HttpServerTest, LetsAnAnswerTakeItsTime) {
  open({.request_timeout = std::chrono::seconds(1), .idle_timeout = std::chrono::seconds(1)});
  HttpConnection patient(server_->address());
  patient.send(request("/slow"));
  slow_begun_.get_future().wait();
  pass(std::chrono::hours(1));
  slow_may_end_.set_value();
  EXPECT_THAT(patient.read_until("host h\n"), HasSubstr("path /slow"));
}

TEST_F(HttpServerTest, ServesSoManyConnectionsAndClosesIdleOnesForNewOnes) {
  open({.max_connections = 3});
  std::list<HttpConnection> idle;
  for (int i = 0; i < 3; ++i) {
    idle.emplace_back(server_->address());
    idle.back().send(request("/a"));
    idle.back().read_until("host h\n");
  }
  HttpConnection fourth(server_->address());
  fourth.send(request("/a"));
  EXPECT_THAT(fourth.read_until("host h\n"), HasSubstr("path /a"));
  EXPECT_EQ(idle.front().read_all(), "") << "the oldest";
  idle.back().send(request("/b"));
  EXPECT_THAT(idle.back().read_until("host h\n"), HasSubstr("path /b")) << "the others stay";
}

TEST_F(HttpServerTest, ClosesNoneThatSomethingIsDoneFor) {
  open({.max_connections = 2});
  std::list<HttpConnection> streams;
  for (std::size_t i = 0; i < 2; ++i) {
    streams.emplace_back(server_->address());
    streams.back().send(request("/stream"));
    stream(i);
  }
  HttpConnection third(server_->address());
  third.send(request("/a"));
  EXPECT_EQ(third.read_all(), "");
  EXPECT_EQ(ended(), 0);
}

TEST_F(HttpServerTest, StreamsEventsUntilTheClientGoes) {
  open();
  {
    HttpConnection connection(server_->address());
    connection.send(request("/stream"));
    const auto events = stream(0);
    EXPECT_THAT(connection.read_until("\r\n\r\n"), HasSubstr("Content-Type: text/event-stream\r\n"));
    events->send("state", "{\"a\":1}");
    events->send("delta", "two\nlines");
    EXPECT_EQ(connection.read_until("lines\n\n"),
              "event: state\ndata: {\"a\":1}\n\nevent: delta\ndata: two\ndata: lines\n\n");
    EXPECT_EQ(ended(), 0);
  }
  EXPECT_TRUE(eventually([&] { return ended() == 1; }));
  stream(0)->send("late", "to nobody");
}

TEST_F(HttpServerTest, KeepsAStreamAliveWhereNothingHappens) {
  open({.request_timeout = std::chrono::seconds(1), .heartbeat = std::chrono::seconds(1)});
  HttpConnection connection(server_->address());
  connection.send(request("/stream"));
  stream(0);
  connection.read_until("\r\n\r\n");
  for (int i = 0; i < 3; ++i) {
    pass(milliseconds(999));
    EXPECT_TRUE(connection.is_silent());
    pass(milliseconds(1));
    EXPECT_EQ(connection.read_until("\n\n"), ":\n\n");
  }
}

TEST_F(HttpServerTest, DisconnectsWhoDoesNotReadAStream) {
  open({.max_unsent_bytes = 1 << 20});
  HttpConnection lazy(server_->address());
  lazy.send(request("/stream"));
  const auto events = stream(0);
  for (int i = 0; i < 200; ++i) events->send("delta", std::string(100000, 'x'));
  EXPECT_TRUE(eventually([&] { return ended() == 1; }));
}

TEST_F(HttpServerTest, LeavesOutWhatAStreamThatIsNotReadMisses) {
  renews_ = true;
  open({.max_unsent_bytes = 1 << 20});
  HttpConnection slow(server_->address());
  slow.send(request("/stream"));
  const auto events = stream(0);
  slow.read_until("\r\n\r\n");
  const EventText large = make_event("delta", std::string(100'000, 'x'));
  for (int i = 0; i < 200; ++i) events->send(large);
  EXPECT_TRUE(eventually([&] { return large.use_count() < 50; })) << "they are shared, and few of them are kept";
  EXPECT_EQ(ended(), 0);
  const std::string read = slow.read_until("event: whole\ndata: new\n\n");
  EXPECT_LT(read.size(), 200 * large->size()) << "some were left out";
  EXPECT_EQ(renewed(), 1);
  events->send("delta", "after");
  EXPECT_EQ(slow.read_until("after\n\n"), "event: delta\ndata: after\n\n");
}

TEST_F(HttpServerTest, BeginsAnewWithoutWhatWaits) {
  open({.max_unsent_bytes = 2 * kLarge});
  HttpConnection slow(server_->address());
  slow.send(request("/stream"));
  const auto events = stream(0);
  slow.read_until("\r\n\r\n");
  events->send(make_event("delta", std::string(16 << 20, 'x')));
  events->send("delta", "void");
  events->begin_anew(make_event("state", "new"));
  EXPECT_THAT(slow.read_until("data: new\n\n"), Not(HasSubstr("void")));
}

TEST_F(HttpServerTest, DisconnectsAStreamThatIsNeverRead) {
  renews_ = true;
  open({.max_unsent_bytes = 1 << 20, .heartbeat = std::chrono::seconds(1)});
  HttpConnection lazy(server_->address());
  lazy.send(request("/stream"));
  stream(0)->send("delta", std::string(kLarge, 'x'));
  EXPECT_TRUE(eventually([&] {
    pass(milliseconds(1000));
    return ended() == 1;
  }));
}

TEST(LoopbackHostTest, IsTheWholeHeader) {
  for (const char* host : {"localhost", "localhost:9470", "LocalHost:1", "127.0.0.1", "127.0.0.1:80", "[::1]",
                           "[::1]:9470", "[0:0:0:0:0:0:0:1]:80"})
    EXPECT_TRUE(is_loopback_host(host)) << host;
  for (const char* host : {"",
                           ":80",
                           "127.0.0.1:80.evil.com",
                           "localhost:80.evil.com",
                           "localhost:evil.com",
                           "localhost:",
                           "127.0.0.1:",
                           "[::1]:",
                           "localhost.",
                           "localhost.evil.com",
                           "127.0.0.1.evil.com",
                           "127.0.0.1.",
                           "evil.com",
                           "user@localhost",
                           "localhost@evil.com",
                           "localhost:80@evil.com",
                           "[::1].evil.com",
                           "[::1]evil.com",
                           "[::1",
                           "::1",
                           "[::1]:80:90",
                           "localhost:80:90",
                           "localhost:65536",
                           "localhost:-1",
                           "localhost:+1",
                           "localhost: 1",
                           "localhost ",
                           " localhost",
                           "[::1%lo]",
                           "[::2]",
                           "[127.0.0.1]",
                           "[localhost]",
                           "[]",
                           "127.1",
                           "0x7f.1",
                           "2130706433",
                           "[::ffff:127.0.0.1]",
                           "localhost/evil.com"})
    EXPECT_FALSE(is_loopback_host(host)) << host;
}

TEST_F(HttpServerTest, EndsThoughClientsAreConnected) {
  open();
  HttpConnection idle(server_->address());
  HttpConnection streaming(server_->address());
  streaming.send(request("/stream"));
  stream(0);
  server_.reset();
  EXPECT_EQ(ended(), 1);
  streaming.read_all();
  EXPECT_EQ(idle.read_all(), "");
}

TEST(ListenAddressTest, IsReadOrExplained) {
  EXPECT_TRUE(parse_listen_address("127.0.0.1:80")->is_loopback);
  EXPECT_TRUE(parse_listen_address("[::1]:80")->is_loopback);
  EXPECT_FALSE(parse_listen_address("0.0.0.0:80")->is_loopback);
  EXPECT_EQ(parse_listen_address("[::]:9470")->port, 9470);
  for (const char* wrong : {"", "80", ":80", "localhost:80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "::1:80",
                            "[127.0.0.1]:80", "127.0.0.1:65536", "127.0.0.1:80 "}) {
    const auto parsed = parse_listen_address(wrong);
    ASSERT_FALSE(parsed.has_value()) << wrong;
    EXPECT_THAT(parsed.error().message, HasSubstr("write ADDRESS:PORT"));
  }
}

TEST_F(HttpServerTest, TellsThatTheAddressIsTaken) {
  open();
  const auto second = HttpServer::open({.address = server_->address()}, {});
  ASSERT_FALSE(second.has_value());
  EXPECT_THAT(second.error().message, HasSubstr("cannot listen on " + server_->address()));
}

}  // namespace
}  // namespace topolet::http
