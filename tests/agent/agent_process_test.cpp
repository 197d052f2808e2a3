// topolet-agent as a process of its own, beside topoletd.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "tests/control/daemon_rig.hpp"
#include "tests/http/http_client.hpp"
#include "tests/support/eventually.hpp"

namespace topolet::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

class AgentTest : public ::testing::Test {
 protected:
  std::string watch_socket() const { return rig_.file("watch.sock"); }
  void start_daemon() {
    rig_.configure("", "", "watch = unix://" + watch_socket());
    ASSERT_TRUE(rig_.start()) << rig_.log();
  }
  void start_agent() {
    agent_ = std::make_unique<Process>(
        std::vector<std::string>{TOPOLET_AGENT, "--watch", "unix://" + watch_socket(), "--metrics-address",
                                 "127.0.0.1:0", "--page-address", "127.0.0.1:0"},
        rig_.file("agent.log"));
    ASSERT_TRUE(eventually([&] { return !page().empty(); })) << log();
  }
  std::string log() const {
    std::ostringstream text;
    text << std::ifstream(rig_.file("agent.log")).rdbuf();
    return text.str();
  }
  std::string address(const std::string& what) const {
    std::smatch match;
    const std::string text = log();
    return std::regex_search(text, match, std::regex(what + " http://([0-9.:]+)/")) ? match[1].str() : "";
  }
  std::string metrics() const { return address("metrics on"); }
  std::string page() const { return address("the page is on"); }
  bool is_ready() const { return http_get(metrics(), "/readyz").starts_with("HTTP/1.1 200"); }

  DaemonRig rig_;
  std::unique_ptr<Process> agent_;
};

TEST_F(AgentTest, IsReadyWhileItKnowsTheNodeAndComesBackByItself) {
  start_agent();
  EXPECT_THAT(http_get(metrics(), "/healthz"), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("alive")));
  EXPECT_THAT(http_get(metrics(), "/readyz"), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("not connected")));
  EXPECT_TRUE(
      eventually([&] { return log().find("no connection to topoletd on " + watch_socket()) != std::string::npos; }));
  start_daemon();
  EXPECT_TRUE(eventually([&] { return is_ready(); }));
  rig_.process().signal(SIGKILL);
  rig_.wait_for_end();
  EXPECT_TRUE(eventually([&] { return !is_ready(); }));
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_TRUE(eventually([&] { return is_ready(); }));
  EXPECT_THAT(
      http_get(metrics(), "/metrics"),
      AllOf(HasSubstr("\ntopolet_agent_lost_connections_total 1\n"), HasSubstr("\ntopolet_agent_snapshots_total 2\n"),
            HasSubstr("\ntopolet_illness{code=\"topoletd-unreachable\"} 0\n")));
  agent_->signal(SIGTERM);
  EXPECT_EQ(agent_->wait(), 0);
}

TEST_F(AgentTest, ShowsTheNodeToABrowserAsItChanges) {
  start_daemon();
  ASSERT_TRUE(rig_.create("web").ok());
  start_agent();
  ASSERT_TRUE(eventually([&] { return is_ready(); }));
  HttpConnection browser(page());
  browser.send("GET /api/changes HTTP/1.1\r\nHost: localhost\r\n\r\n");
  browser.read_until("event: state\ndata: ");
  const auto state = nlohmann::json::parse(browser.read_until("\n\n"));
  ASSERT_EQ(state["containers"].size(), 1U);
  EXPECT_EQ(state["containers"][0]["pod_name"], "web");
  EXPECT_FALSE(state["machine"]["nodes"].empty());
  ASSERT_TRUE(rig_.create("own", 1).ok());
  nlohmann::json delta;
  while (!delta.contains("events")) {
    ASSERT_NE(browser.read_until("event: delta\ndata: "), "");
    delta = nlohmann::json::parse(browser.read_until("\n\n"));
  }
  EXPECT_EQ(delta["events"][0]["pod_name"], "own");
  const std::string history = http_get(page(), "/api/history");
  const auto past = nlohmann::json::parse(history.substr(history.find("\r\n\r\n") + 4));
  EXPECT_EQ(past["base"]["containers"].size(), 1U);
  EXPECT_FALSE(past["deltas"].empty());
}

TEST_F(AgentTest, KeepsItsHourAcrossARestartAndTellsWhatIsIll) {
  start_daemon();
  ASSERT_TRUE(rig_.create("web").ok());
  start_agent();
  ASSERT_TRUE(eventually([&] { return is_ready(); }));
  EXPECT_FALSE(rig_.create("huge", 100000).ok());
  ASSERT_TRUE(eventually([&] {
    return http_get(metrics(), "/metrics").find("\ntopolet_illness{code=\"denied\"} 1\n") != std::string::npos;
  })) << http_get(metrics(), "/metrics");
  EXPECT_TRUE(is_ready()) << "one pod is denied, and others can start";
  rig_.process().signal(SIGKILL);
  rig_.wait_for_end();
  EXPECT_TRUE(eventually([&] { return !is_ready(); }));
  EXPECT_THAT(http_get(metrics(), "/metrics"), HasSubstr("\ntopolet_illness{code=\"topoletd-unreachable\"} 1\n"));
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_TRUE(eventually([&] { return is_ready(); }));
  EXPECT_TRUE(eventually([&] {
    return http_get(metrics(), "/metrics").find("\ntopolet_illness{code=\"denied\"} 1\n") != std::string::npos;
  })) << "the database has it";
  const std::string history = http_get(page(), "/api/history");
  const auto past = nlohmann::json::parse(history.substr(history.find("\r\n\r\n") + 4));
  std::set<std::string> words;
  for (const auto& delta : past["deltas"]) {
    for (const auto& event : delta.value("events", nlohmann::json::array())) words.insert(event["event"]);
  }
  EXPECT_THAT(words, IsSupersetOf({"denied", "disconnected", "restarted"}));
}

TEST_F(AgentTest, ServesItsPageToThisHostOnly) {
  start_agent();
  const std::string answer = http_get(page(), "/");
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("Content-Type: text/html; charset=utf-8\r\n"),
                            HasSubstr("Content-Security-Policy: default-src 'none'"),
                            HasSubstr("require-trusted-types-for 'script'"), HasSubstr("frame-ancestors 'none'"),
                            HasSubstr("Cross-Origin-Resource-Policy: same-origin\r\n"), HasSubstr("<html")));
  EXPECT_THAT(http_get(page(), "/icon.svg"), HasSubstr("Content-Type: image/svg+xml"));
  for (const char* host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", ""}) {
    EXPECT_THAT(http_get(page(), "/", host), StartsWith("HTTP/1.1 403")) << host;
    EXPECT_THAT(http_get(page(), "/api/history", host), StartsWith("HTTP/1.1 403")) << host;
    EXPECT_THAT(http_get(page(), "/api/changes", host), StartsWith("HTTP/1.1 403")) << host;
  }
  for (const char* host : {"localhost", "localhost:8080", "127.0.0.1:1", "[::1]:80"}) {
    EXPECT_THAT(http_get(page(), "/", host), StartsWith("HTTP/1.1 200")) << host;
  }
  EXPECT_THAT(http_get(page(), "/../etc/passwd"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(http_get(metrics(), "/"), AllOf(StartsWith("HTTP/1.1 404"), Not(HasSubstr("<html"))));
}

TEST_F(AgentTest, SaysWhatIsWrongWithItsOptions) {
  const auto says = [&](const std::string& option) {
    Process agent({TOPOLET_AGENT, option}, rig_.file("agent.log"));
    EXPECT_EQ(agent.wait(), 2) << option;
    return log();
  };
  EXPECT_THAT(says("--page-address=0.0.0.0:80"), HasSubstr("use a loopback address, such as 127.0.0.1:80"));
  EXPECT_THAT(says("--metrics-address=localhost"), HasSubstr("--metrics-address: 'localhost' is not an address"));
  EXPECT_THAT(says("--watch=watch.sock"), HasSubstr("--watch=watch.sock: write unix:///absolute/path"));
  EXPECT_THAT(says("--log-level=loud"), HasSubstr("--log-level"));
  EXPECT_THAT(says("--bogus"), HasSubstr("--bogus"));
}

}  // namespace
}  // namespace topolet::testing
