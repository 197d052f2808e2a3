// HTTP/2: many requests on one connection, and clients that do what they should not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <fstream>
#include <future>
#include <list>

#include "cluster/http/http_server.hpp"
#include "core/base/log.hpp"
#include "core/base/mutex.hpp"
#include "tests/cluster_api/certificates.hpp"
#include "tests/http/silence.hpp"
#include "tests/http/tls_client.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/manual_clock.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::http {
namespace {

using std::chrono::milliseconds;
using testing::Ca;
using testing::Certificate;
using ::testing::Contains;
using testing::eventually;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TlsClient;
using testing::TlsReply;

/// Frames as RFC 9113 has them.
enum FrameType : unsigned char {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kWindow = 8
};
constexpr unsigned char kEndStream = 1;
constexpr unsigned char kEndHeaders = 4;
constexpr const char* kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

std::string number(std::uint32_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) text += static_cast<char>(value >> shift & 0xff);
  return text;
}

std::string frame(FrameType type, unsigned char flags, std::uint32_t stream, const std::string& payload) {
  return number(static_cast<std::uint32_t>(payload.size()), 3) + static_cast<char>(type) + static_cast<char>(flags) +
         number(stream, 4) + payload;
}

/// A POST of /filter, each header as a literal or of the static table (RFC 7541).
std::string post_headers(std::uint32_t stream, unsigned char flags = kEndHeaders) {
  const std::string path = "/filter";
  const std::string host = "h";
  return frame(kHeaders, flags, stream,
               std::string("\x83\x87\x04") + static_cast<char>(path.size()) + path + '\x01' +
                   static_cast<char>(host.size()) + host);
}

/// A client that sends what it is told to.
class RawClient {
 public:
  RawClient(const std::string& address, const Ca& ca, const Certificate& certificate)
      : tls_(make_context(ca, certificate)) {
    const std::size_t colon = address.rfind(':');
    // A small one, so that much of a large answer is still with the server when it has written it.
    stream_.next_layer().open(boost::asio::ip::tcp::v4());
    stream_.next_layer().set_option(boost::asio::socket_base::receive_buffer_size(32 << 10));
    stream_.next_layer().connect({boost::asio::ip::make_address(address.substr(0, colon)),
                                  static_cast<unsigned short>(std::stoi(address.substr(colon + 1)))});
    static constexpr unsigned char kOffered[] = {2, 'h', '2'};
    SSL_set_alpn_protos(stream_.native_handle(), kOffered, sizeof kOffered);
    stream_.handshake(boost::asio::ssl::stream_base::client);
  }
  /// False if the other end has closed.
  bool send(const std::string& bytes) {
    boost::system::error_code error;
    boost::asio::write(stream_, boost::asio::buffer(bytes), error);
    return !error;
  }
  void begin(const std::string& settings = {}) { send(kPreface + frame(kSettings, 0, 0, settings)); }
  /// The type and the payload of the next frame; nothing if the other end has closed.
  std::optional<std::pair<int, std::string>> next_frame() {
    std::string head(9, '\0');
    boost::system::error_code error;
    boost::asio::read(stream_, boost::asio::buffer(head), error);
    if (error) return std::nullopt;
    std::string payload(static_cast<unsigned char>(head[0]) << 16 | static_cast<unsigned char>(head[1]) << 8 |
                            static_cast<unsigned char>(head[2]),
                        '\0');
    boost::asio::read(stream_, boost::asio::buffer(payload), error);
    return std::pair(static_cast<int>(head[3]), payload);
  }
  /// The types of the frames that come until a ping is answered: by then all that was sent has been read.
  std::vector<int> frames_until_ping() {
    send(frame(kPing, 0, 0, "pingping"));
    return frames_until(kPing);
  }
  /// Nothing is there to be read, and the other end has not closed.
  bool is_silent() { return testing::is_silent(stream_.next_layer().native_handle()); }
  /// The types of all frames until the other end closes, or until one of type `last`.
  std::vector<int> frames_until(std::optional<int> last = std::nullopt) {
    std::vector<int> types;
    while (const auto next = next_frame()) {
      types.push_back(next->first);
      if (next->first == last) break;
    }
    return types;
  }

 private:
  static boost::asio::ssl::context make_context(const Ca& ca, const Certificate& certificate) {
    boost::asio::ssl::context context(boost::asio::ssl::context::tls_client);
    context.add_certificate_authority(boost::asio::buffer(ca.pem()));
    context.use_certificate_chain(boost::asio::buffer(certificate.certificate_pem));
    context.use_private_key(boost::asio::buffer(certificate.key_pem), boost::asio::ssl::context::pem);
    return context;
  }

  boost::asio::ssl::context tls_;
  boost::asio::io_context context_;
  boost::asio::ssl::stream<boost::asio::ip::tcp::socket> stream_{context_, tls_};
};

class Http2Test : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string folder = folder_.path().string();
    const Certificate own = ca_.server_certificate({.common_name = "server", .alternative_names = "IP:127.0.0.1"});
    std::ofstream(folder + "/tls.crt") << own.certificate_pem;
    std::ofstream(folder + "/tls.key") << own.key_pem;
    std::ofstream(folder + "/ca.crt") << ca_.pem();
    files_ = *TlsFiles::load({folder + "/tls.crt", folder + "/tls.key", folder + "/ca.crt"}, *log_, clock_.clock());
    HttpServer::Options options;
    options.address = "127.0.0.1:0";
    options.tls = files_.get();
    options.max_body_bytes = 1 << 20;
    options.request_timeout = std::chrono::seconds(1);
    options.idle_timeout = std::chrono::seconds(2);
    options.headers = {{"X-Mine", "yes"}};
    options.clock = clock_.clock();
    HttpServer::Handlers handlers;
    handlers.answer_post = [this](const HttpRequest& request, HttpServer::Handlers::Respond respond) {
      take(request, std::move(respond));
    };
    handlers.answer = [](const HttpRequest& request) -> HttpResponse {
      return {200, "text/plain", "path " + request.path + ", host " + request.host + '\n'};
    };
    handlers.is_stream = [](const HttpRequest& request) { return request.path == "/stream"; };
    handlers.begin_stream = [](const std::shared_ptr<EventStream>& stream) {
      stream->send("state", "all");
      return std::uint64_t{1};
    };
    handlers.end_stream = [](std::uint64_t) {};
    handlers.refuse_client = [](const std::string& name) {
      return name == "stranger" ? std::optional(HttpResponse{403, "text/plain", "no\n"}) : std::nullopt;
    };
    auto opened = HttpServer::open(std::move(options), std::move(handlers));
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    server_ = *std::move(opened);
  }

  /// "wait" is answered with the next one that is not "wait"; "large" with much, and others with themselves.
  void take(const HttpRequest& request, HttpServer::Handlers::Respond respond) {
    MutexLock lock(mutex_);
    ++taken_;
    if (request.body == "wait") return waiting_.push_back(std::move(respond));
    for (const auto& other : std::exchange(waiting_, {})) other({200, "text/plain", "waited"});
    respond({200, "text/plain", request.body == "large" ? std::string(8 << 20, 'x') : request.body});
  }
  static bool accepts(const std::string& address) {
    const std::size_t colon = address.rfind(':');
    boost::asio::io_context context;
    boost::asio::ip::tcp::socket socket(context);
    boost::system::error_code error;
    socket.connect({boost::asio::ip::make_address(address.substr(0, colon)),
                    static_cast<unsigned short>(std::stoi(address.substr(colon + 1)))},
                   error);
    return !error;
  }
  void answer_waiting(const std::string& body) {
    MutexLock lock(mutex_);
    for (const auto& respond : std::exchange(waiting_, {})) respond({200, "text/plain", body});
  }
  int taken() {
    MutexLock lock(mutex_);
    return taken_;
  }

  /// After all that is underway.
  void pass(milliseconds time) {
    server_->run_due();
    clock_.advance(time);
    server_->run_due();
  }

  std::string url(const std::string& path = "/filter") const { return "https://" + server_->address() + path; }
  RawClient raw_client() { return {server_->address(), ca_, ca_.client_certificate("c")}; }
  TlsClient client() { return {ca_, ca_.client_certificate("c")}; }
  void expect_serves() { EXPECT_EQ(client().post(url(), "still there").body, "still there"); }

  /// How much later than it is due a connection may notice that something is: a quarter of the shortest time-out.
  static constexpr milliseconds kLookEvery{250};

  const std::shared_ptr<Log> log_ = make_silent_log();
  testing::ManualClock clock_;
  TempDir folder_;
  Ca ca_;
  std::unique_ptr<TlsFiles> files_;
  Mutex mutex_;
  std::vector<HttpServer::Handlers::Respond> waiting_ TOPOLET_GUARDED_BY(mutex_);
  int taken_ TOPOLET_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(Http2Test, AnswersManyRequestsOnOneConnection) {
  TlsClient many = client();
  std::vector<std::string> bodies;
  for (int i = 0; i < 90; ++i)
    bodies.push_back("body " + std::to_string(i) + std::string(static_cast<std::size_t>(i) * 100, '.'));
  const std::vector<TlsReply> replies = many.post_all(url(), bodies);
  ASSERT_EQ(replies.size(), 90u)
      << "libcurl opens another connection from 101 on, where it has not heard of the limit yet";
  for (std::size_t i = 0; i < replies.size(); ++i) {
    EXPECT_EQ(replies[i].status, 200) << i << " " << curl_easy_strerror(replies[i].result);
    EXPECT_TRUE(replies[i].body == bodies[i]) << replies[i].body.substr(0, 10);
  }
  EXPECT_EQ(many.connections(), 1);
}

TEST_F(Http2Test, AnswersWhatIsDoneFirst) {
  TlsClient both = client();
  const std::vector<TlsReply> replies = both.post_all(url(), {"wait", "wait", "go"});
  EXPECT_EQ(replies[0].body, "waited");
  EXPECT_EQ(replies[1].body, "waited");
  EXPECT_EQ(replies[2].body, "go");
  EXPECT_EQ(both.connections(), 1);
}

TEST_F(Http2Test, SendsAnswersThatAreLargerThanAnyWindow) {
  const TlsReply reply = client().post(url(), "large");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body.size(), std::size_t{8} << 20);
}

TEST_F(Http2Test, TakesABodyOfTheLargestSizeAndNoLargerOne) {
  TlsClient one = client();
  EXPECT_EQ(one.post(url(), std::string(1 << 20, 'x')).body.size(), std::size_t{1} << 20);
  const TlsReply larger = one.post(url(), std::string((1 << 20) + 1, 'x'));
  EXPECT_EQ(larger.status, 413) << curl_easy_strerror(larger.result);
  EXPECT_EQ(one.post(url(), "x").status, 200);
  EXPECT_EQ(one.connections(), 1);
}

TEST_F(Http2Test, RefusesWhatItDoesNotTake) {
  TlsClient one = client();
  EXPECT_EQ(one.post(url(), "x", "X-Large: " + std::string(20000, 'x')).status, 431);
  EXPECT_EQ(one.get(url("/a?b=/c")).body, "path /a, host " + server_->address() + '\n');
  EXPECT_EQ(one.connections(), 1);
  const TlsReply stranger =
      testing::post_tls(url(), ca_, ca_.client_certificate("stranger"), std::string(1 << 20, 'x'));
  EXPECT_EQ(stranger.status, 403) << curl_easy_strerror(stranger.result);
  EXPECT_EQ(taken(), 0);
}

TEST_F(Http2Test, SendsWhoWantsEventsToHttp1) {
  std::future<void> ending;
  const TlsReply reply = client().get(url("/stream"), [&](const std::string& body) {
    if (ending.valid() || body.find("\n\n") == std::string::npos) return;
    ending = std::async(std::launch::async, [this] { server_->stop(); });
  });
  EXPECT_EQ(reply.version, CURL_HTTP_VERSION_1_1);
  EXPECT_THAT(reply.body, HasSubstr("event: state\ndata: all\n\n"));
}

TEST_F(Http2Test, ClosesAConnectionThatSpeaksNoHttp2) {
  RawClient nonsense = raw_client();
  nonsense.send("POST /filter HTTP/1.1\r\nHost: h\r\n\r\n");
  nonsense.frames_until();
  RawClient wrong = raw_client();
  wrong.begin();
  wrong.send(frame(kData, 0, 1, "data of no stream"));
  EXPECT_THAT(wrong.frames_until(), Contains(static_cast<int>(kGoAway)));
  expect_serves();
}

TEST_F(Http2Test, LetsGoOfARequestThatIsNotFinished) {
  RawClient slow = raw_client();
  slow.begin();
  slow.send(post_headers(1) + frame(kData, 0, 1, "half"));
  slow.frames_until_ping();
  pass(std::chrono::seconds(1));
  EXPECT_THAT(slow.frames_until_ping(), Not(Contains(static_cast<int>(kReset)))) << "it has a second";
  pass(kLookEvery);
  EXPECT_THAT(slow.frames_until(kReset), Contains(static_cast<int>(kReset)));
  slow.send(post_headers(3) + frame(kData, kEndStream, 3, "whole"));
  EXPECT_THAT(slow.frames_until(kData), Contains(static_cast<int>(kData))) << "the connection goes on";
  EXPECT_EQ(taken(), 1);
}

TEST_F(Http2Test, LetsGoOfAnAnswerThatIsNotRead) {
  RawClient lazy = raw_client();
  // Its window is 0 bytes, and is never made larger.
  lazy.begin(number(4, 2) + number(0, 4));
  lazy.send(post_headers(1) + frame(kData, kEndStream, 1, "large"));
  EXPECT_THAT(lazy.frames_until(kHeaders), Contains(static_cast<int>(kHeaders)));
  pass(std::chrono::seconds(1));
  EXPECT_THAT(lazy.frames_until_ping(), Not(Contains(static_cast<int>(kReset))));
  pass(kLookEvery);
  EXPECT_THAT(lazy.frames_until(kReset), Contains(static_cast<int>(kReset)));
}

TEST_F(Http2Test, LetsGoOfWhoSaysNothing) {
  RawClient idle = raw_client();
  idle.begin();
  idle.frames_until_ping();
  RawClient silent = raw_client();
  silent.frames_until(kWindow);
  pass(std::chrono::seconds(2));
  EXPECT_TRUE(idle.is_silent());
  EXPECT_TRUE(silent.is_silent());
  pass(kLookEvery);
  EXPECT_THAT(idle.frames_until(), Contains(static_cast<int>(kGoAway)));
  EXPECT_THAT(silent.frames_until(), Contains(static_cast<int>(kGoAway)));
  expect_serves();
}

TEST_F(Http2Test, HoldsNoMoreThanTwoLargeBodiesOfAConnection) {
  RawClient greedy = raw_client();
  greedy.begin();
  const std::string part = frame(kData, 0, 0, std::string(16000, 'x')).substr(9);
  // Three requests of which none is finished.
  for (const std::uint32_t stream : {1u, 3u, 5u}) greedy.send(post_headers(stream));
  std::vector<int> seen;
  for (int i = 0; i < 60; ++i) {
    for (const std::uint32_t stream : {1u, 3u, 5u}) greedy.send(frame(kData, 0, stream, part));
  }
  EXPECT_THAT(greedy.frames_until(kHeaders), Contains(static_cast<int>(kHeaders))) << "one is told that it is too much";
  EXPECT_EQ(taken(), 0);
  expect_serves();
}

TEST_F(Http2Test, SurvivesFloods) {
  std::string pings;
  for (int i = 0; i < 20000; ++i) pings += frame(kPing, 0, 0, "pingping");
  RawClient pinging = raw_client();
  pinging.begin();
  for (int i = 0; i < 5 && pinging.send(pings); ++i) {
  }
  std::string resets;
  for (std::uint32_t stream = 1; stream < 20000; stream += 2)
    resets += post_headers(stream) + frame(kReset, 0, stream, number(8, 4));
  RawClient resetting = raw_client();
  resetting.begin();
  resetting.send(resets);
  std::string settings;
  for (int i = 0; i < 20000; ++i) settings += frame(kSettings, 0, 0, "");
  RawClient setting = raw_client();
  setting.begin();
  for (int i = 0; i < 5 && setting.send(settings); ++i) {
  }
  expect_serves();
}

TEST_F(Http2Test, GivesTheWholeAnswerToAClientThatIsToBeginAnew) {
  TlsClient one = client();
  EXPECT_EQ(one.post(url(), "x").status, 200);
  std::ofstream(folder_.path().string() + "/ca.crt", std::ios::app) << Ca().pem();
  pass(std::chrono::seconds(1));
  const TlsReply last = one.post(url(), "large");
  EXPECT_EQ(last.status, 200) << curl_easy_strerror(last.result);
  EXPECT_EQ(last.body.size(), std::size_t{8} << 20);
  EXPECT_EQ(one.connections(), 1);
  EXPECT_EQ(one.post(url(), "x").status, 200);
  EXPECT_EQ(one.connections(), 2);
}

TEST_F(Http2Test, IsThereUntilSuchAClientHasReadItsAnswer) {
  RawClient one = raw_client();
  const std::uint32_t window = 16 << 20;
  one.begin(number(4, 2) + number(window, 4));
  one.send(frame(kWindow, 0, 0, number(window, 4)));
  one.frames_until_ping();  // the server has it as a connection, so the time that passes is not that of the handshake
  std::ofstream(folder_.path().string() + "/ca.crt", std::ios::app) << Ca().pem();
  pass(std::chrono::seconds(1));
  one.send(post_headers(1) + frame(kData, kEndStream, 1, "large"));
  std::size_t read = 0;
  while (const auto next = one.next_frame()) {
    if (next->first == kData) read += next->second.size();
    // It says something meanwhile, as clients do that tell how much they have read.
    if (next->first == kData) one.send(frame(kPing, 0, 0, "pingping"));
  }
  EXPECT_EQ(read, std::size_t{8} << 20);
}

TEST_F(Http2Test, ClosesConnectionsOfRefusedClientsForNewOnes) {
  const Certificate stranger = ca_.client_certificate("stranger");
  std::list<RawClient> strangers;
  for (int i = 0; i < 64; ++i) {
    strangers.emplace_back(server_->address(), ca_, stranger);
    strangers.back().begin();
    // Refused, and never finished.
    strangers.back().send(post_headers(1));
    strangers.back().frames_until(kData);
  }
  expect_serves();
}

TEST_F(Http2Test, AnswersWhatIsUnderwayWhenItEnds) {
  auto asking = std::async(std::launch::async, [this] { return client().post(url(), "wait"); });
  ASSERT_TRUE(eventually([this] { return taken() == 1; }));
  const std::string address = server_->address();
  auto stopping = std::async(std::launch::async, [this] { server_->stop(); });
  ASSERT_TRUE(eventually([&] { return !accepts(address); }));
  answer_waiting("at last");
  const TlsReply reply = asking.get();
  EXPECT_EQ(reply.body, "at last") << curl_easy_strerror(reply.result);
}

TEST_F(Http2Test, EndsThoughRequestsAreUnderway) {
  RawClient waiting = raw_client();
  waiting.begin();
  waiting.send(post_headers(1) + frame(kData, kEndStream, 1, "wait"));
  ASSERT_TRUE(eventually([this] { return taken() == 1; }));
  auto stopping = std::async(std::launch::async, [this] { server_->stop(); });
  EXPECT_THAT(waiting.frames_until(kGoAway), Contains(static_cast<int>(kGoAway)));
  waiting.frames_until_ping();  // by now it has looked when it began to stop
  clock_.advance(milliseconds(299));
  EXPECT_THAT(waiting.frames_until_ping(), Contains(static_cast<int>(kPing))) << "it waits for the answer";
  clock_.advance(milliseconds(1));
  stopping.get();
  waiting.frames_until();
  answer_waiting("late");
}

}  // namespace
}  // namespace topolet::http
