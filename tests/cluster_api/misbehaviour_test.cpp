// The stand-in for the API server, as one that misbehaves, and what clients see of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "tests/cluster_api/apiserver_client.hpp"

namespace topolet::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST_F(ApiServerTest, AnswersAsToldSoManyTimes) {
  server_.misbehave({.method = "GET",
                     .path_prefix = kPods,
                     .times = 2,
                     .action = ApiServer::AnswerStatus{.code = 429, .headers = {{"Retry-After", "3"}}}});
  EXPECT_EQ(client_.get(kNodes).code, 200) << "another path";
  EXPECT_EQ(client_.send("POST", kPods, pod("a")).code, 405) << "another method";
  for (int i = 0; i < 2; ++i) {
    const Reply refused = client_.get(kPods);
    EXPECT_EQ(refused.code, 429);
    EXPECT_EQ(refused.reason(), "TooManyRequests");
    EXPECT_THAT(refused.headers, HasSubstr("Retry-After: 3\r\n"));
  }
  EXPECT_EQ(client_.get(kPods).code, 200);
  misbehave_once(ApiServer::AnswerStatus{.code = 410}, "WATCH");
  EXPECT_EQ(client_.get(kPods).code, 200) << "no watch";
  EXPECT_EQ(client_.get(kPods + "?watch=1").code, 410);
  misbehave_once(ApiServer::AnswerText{});
  EXPECT_TRUE(client_.get(kPods).json().is_discarded());
  misbehave_once(ApiServer::Drop{});
  server_.behave();
  EXPECT_EQ(client_.get(kPods).code, 200);
}

TEST_F(ApiServerTest, CutsAnswersOff) {
  misbehave_once(ApiServer::HalfBody{}, "POST");
  const Reply half = client_.send("POST", kWebPods, pod("a"));
  EXPECT_NE(half.result, CURLE_OK);
  EXPECT_EQ(half.code, 201);
  EXPECT_THAT(half.text, StartsWith("{"));
  EXPECT_TRUE(half.json().is_discarded());
  EXPECT_TRUE(server_.get(kWebPods, "a").has_value());

  client_.get(kPods);
  misbehave_once(ApiServer::LoseAnswer{}, "DELETE");
  EXPECT_EQ(client_.send("DELETE", kWebPods + "/a").code, 404)
      << "libcurl repeats it, as the connection was used before";
  EXPECT_THAT(server_.requests("DELETE"), SizeIs(2));
  EXPECT_FALSE(server_.get(kWebPods, "a").has_value());
  server_.misbehave({.method = "POST", .path_prefix = "", .times = 9, .action = ApiServer::Drop{}});
  EXPECT_NE(client_.send("POST", kWebPods, pod("a")).result, CURLE_OK);
  EXPECT_FALSE(server_.get(kWebPods, "a").has_value());
}

TEST_F(ApiServerTest, IsSilentOrSlow) {
  misbehave_once(ApiServer::Silence{});
  Client leaving(server_);
  auto silent = std::async(std::launch::async, [&] { return leaving.get(kPods); });
  ASSERT_TRUE(server_.wait_for([&] { return server_.requests().size() == 1; }));
  EXPECT_EQ(server_.requests()[0].answered, 0u);
  leaving.leave();
  silent.get();
  EXPECT_TRUE(server_.wait_for([&] { return server_.open_connections() == 0; })) << "the client's end is noticed";
  misbehave_once(ApiServer::Silence{.time = std::chrono::milliseconds(1)});
  EXPECT_EQ(get_as_time_passes(kPods).result, CURLE_GOT_NOTHING);
  misbehave_once(ApiServer::Delay{.time = std::chrono::milliseconds(1)});
  EXPECT_EQ(get_as_time_passes(kPods).code, 200);

  misbehave_once(ApiServer::Delay{}, "POST");
  auto slow = std::async(std::launch::async, [&] { return client_.send("POST", kWebPods, pod("a")); });
  ASSERT_TRUE(server_.wait_for([&] { return server_.requests("POST").size() == 1; }));
  EXPECT_FALSE(server_.get(kWebPods, "a").has_value()) << "not done yet";
  server_.release();
  EXPECT_EQ(slow.get().code, 201);
}

TEST_F(ApiServerTest, CutsAWatchInTheMiddleOfALine) {
  misbehave_once(ApiServer::CutWatch{.after_events = 1}, "WATCH");
  Watch watch(server_, watch_target(kPods));
  ASSERT_TRUE(is_watched());
  server_.put(kWebPods, pod("a"));
  EXPECT_THAT(watch.events(1), ElementsAre("ADDED a"));
  EXPECT_TRUE(watch.goes_on());
  server_.put(kWebPods, pod("b"));
  EXPECT_NE(watch.reply().result, CURLE_OK);
  EXPECT_THAT(watch.text_with(""), Not(::testing::EndsWith("\n")));
  EXPECT_THAT(watch.events(1), SizeIs(1));
}

TEST_F(ApiServerTest, SplitsALineOfAWatch) {
  misbehave_once(ApiServer::SplitWatch{}, "WATCH");
  Watch watch(server_, watch_target(kPods));
  ASSERT_TRUE(is_watched());
  server_.put(kWebPods, pod("a"));
  server_.put(kWebPods, pod("b"));
  EXPECT_THAT(watch.text_with("{"), Not(HasSubstr("\n")));
  server_.release();
  EXPECT_THAT(watch.events(2), ElementsAre("ADDED a", "ADDED b"));
}

TEST_F(ApiServerTest, LetsAWatchGoSilent) {
  misbehave_once(ApiServer::SilentWatch{.after_events = 1}, "WATCH");
  Watch silent(server_, watch_target(kPods, "&timeoutSeconds=1"));
  ASSERT_TRUE(is_watched(1));
  Watch other(server_, watch_target(kPods));
  ASSERT_TRUE(is_watched(2));
  server_.put(kWebPods, pod("a"));
  server_.put(kWebPods, pod("b"));
  EXPECT_THAT(other.events(2), SizeIs(2));
  EXPECT_THAT(silent.events(1), ElementsAre("ADDED a"));
  Watch timed(server_, watch_target(kPods, "&timeoutSeconds=1"));
  ASSERT_TRUE(is_watched(3));
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(timed.reply().result, CURLE_OK);
  EXPECT_TRUE(silent.goes_on()) << "past its time";
  server_.release();
  EXPECT_NE(silent.reply().result, CURLE_OK);
}

TEST_F(ApiServerTest, ClosesConnections) {
  Watch watch(server_, watch_target(kPods));
  ASSERT_TRUE(is_watched());
  EXPECT_EQ(server_.open_connections(), 2u);
  server_.close_connections();
  EXPECT_EQ(server_.open_connections(), 0u);
  EXPECT_EQ(server_.open_watches(), 0u);
  EXPECT_NE(watch.reply().result, CURLE_OK);
  EXPECT_EQ(client_.get(kPods).code, 200) << "over a new one";
}

TEST_F(ApiServerTest, RestartsOnThePortItHad) {
  const std::string url = server_.url();
  server_.put(kWebPods, pod("a"));
  Watch watch(server_, watch_target(kPods));
  ASSERT_TRUE(is_watched());
  server_.stop();
  EXPECT_NE(watch.reply().result, CURLE_OK);
  EXPECT_EQ(client_.get(kPods).result, CURLE_COULDNT_CONNECT);
  server_.start();
  EXPECT_EQ(server_.url(), url);
  EXPECT_THAT(names(client_.get(kPods).json()), ElementsAre("a"));
}

TEST_F(ApiServerTest, IgnoresConnections) {
  server_.ignore_new_connections(true);
  client_.timeout_ms = 50;
  EXPECT_EQ(client_.get(kPods).result, CURLE_OPERATION_TIMEDOUT);
  EXPECT_THAT(server_.requests(), IsEmpty());
  server_.ignore_new_connections(false);
  client_.timeout_ms = 60000;
  EXPECT_EQ(client_.get(kPods).code, 200);
}

TEST_F(ApiServerTest, NoticesThatTheClientOfAWatchWentAway) {
  {
    Watch watch(server_, watch_target(kPods));
    ASSERT_TRUE(is_watched());
  }
  EXPECT_TRUE(is_watched(0));
}

TEST(ApiServer, EndsAtOnceWhateverClientsDo) {
  auto server = std::make_unique<ApiServer>(ApiServer::Options{.tokens = {"secret"}});
  Watch watch(*server, kPods + "?watch=1");
  server->misbehave({.method = "GET", .action = ApiServer::Silence{}});
  Client client(*server);
  auto silent = std::async(std::launch::async, [&] { return client.get(kNodes); });
  ASSERT_TRUE(server->wait_for([&] { return server->open_watches() == 1 && server->requests("GET").size() == 1; }));
  server->ignore_new_connections(true);
  Client ignored(*server);
  auto unheard = std::async(std::launch::async, [&] { return ignored.get(kNodes); });
  ASSERT_TRUE(server->wait_for([&] { return server->open_connections() == 3; }));
  server.reset();
  EXPECT_NE(watch.reply().result, CURLE_OK);
  EXPECT_NE(silent.get().result, CURLE_OK);
  EXPECT_NE(unheard.get().result, CURLE_OK);
}

TEST_F(ApiServerTest, ServesManyAtOnce) {
  std::vector<std::future<int>> clients;
  for (int number = 0; number < 8; ++number) {
    clients.push_back(std::async(std::launch::async, [this, number] {
      Client client(server_);
      int created = 0;
      for (int i = 0; i < 20; ++i) {
        const Json made = pod("p-" + std::to_string(number) + '-' + std::to_string(i));
        created += client.send("POST", kWebPods, made).code == 201 ? 1 : 0;
      }
      return created;
    }));
  }
  Watch watch(server_, kPods + "?watch=1");
  for (auto& client : clients) EXPECT_EQ(client.get(), 20);
  EXPECT_THAT(watch.events(160), SizeIs(160));
  EXPECT_THAT(server_.history(kPods), SizeIs(160));
}

}  // namespace
}  // namespace topolet::testing
