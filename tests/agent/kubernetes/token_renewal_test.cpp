// The token of an agent that is a unit of its node, in virtual time.
#include "cluster/agent/kubernetes/token_renewal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <spdlog/sinks/ostream_sink.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "tests/support/temp_dir.hpp"
#include "tests/support/virtual_time.hpp"

namespace topolet::agent {
namespace {

using nlohmann::json;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

std::string base64_for_urls(const std::string& text) {
  std::string encoded(text.size() / 3 * 4 + 5, '\0');
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  encoded.resize(static_cast<std::size_t>(length));
  while (encoded.ends_with('=')) encoded.pop_back();
  std::replace(encoded.begin(), encoded.end(), '+', '-');
  std::replace(encoded.begin(), encoded.end(), '/', '_');
  return encoded;
}

/// As an API server makes them; the signature is of no interest here.
std::string token_of(const json& bound_to, seconds issued, seconds expires) {
  json own = {{"namespace", "topolet-system"}, {"serviceaccount", {{"name", "topolet-agent"}, {"uid", "u"}}}};
  own.update(bound_to);
  const json claims = {{"iat", issued.count()}, {"exp", expires.count()}, {"kubernetes.io", own}};
  return "e30." + base64_for_urls(claims.dump()) + ".c2ln";
}

const json kBoundToNode = {{"node", {{"name", "n1"}, {"uid", "uid-n1"}}}};

class TokenRequests final : public api::Api {
 public:
  explicit TokenRequests(testing::VirtualTime& time) : time_(time) {}

  void request(api::ApiRequest request, OnAnswer on_answer) override {
    asked.push_back(std::move(request));
    time_.after({}, [on_answer = std::move(on_answer), answer = answer] { on_answer(answer); });
  }
  void after(milliseconds delay, std::function<void()> task) override { time_.after(delay, std::move(task)); }
  Clock::time_point now() const override { return time_.clock().steady(); }
  milliseconds wall_time() const override { return time_.clock().wall(); }

  std::vector<api::ApiRequest> asked;
  api::ApiAnswer answer;

 private:
  testing::VirtualTime& time_;
};

class TokenRenewalTest : public ::testing::Test {
 protected:
  /// It lasts for 30 hours from now on.
  void start(const json& bound_to = kBoundToNode) {
    folder_.write("token", token_of(bound_to, now(), now() + hours(30)) + '\n');
    renewal_.start();
  }
  seconds now() const { return std::chrono::floor<seconds>(time_.clock().wall()); }
  void pass(hours time) {
    const milliseconds end = time_.now() + time;
    while (time_.step(end)) {
    }
  }
  std::string token() const {
    std::ostringstream text;
    text << std::ifstream(folder_.file("token")).rdbuf();
    return text.str();
  }

  TempDir folder_;
  testing::VirtualTime time_;
  TokenRequests api_{time_};
  std::ostringstream said_;
  std::shared_ptr<Log> log_ = std::make_shared<Log>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(said_));
  TokenRenewal renewal_{api_, folder_.file("token"), *log_};
};

TEST_F(TokenRenewalTest, TakesAnotherOneBetweenHalfAndTwoThirdsOfItsTime) {
  start();
  const std::string next = token_of(kBoundToNode, now() + hours(20), now() + hours(50));
  api_.answer.status = 201;
  api_.answer.body = {{"status", {{"token", next}}}};
  pass(hours(15));
  EXPECT_THAT(api_.asked, IsEmpty());
  pass(hours(6));
  ASSERT_THAT(api_.asked, SizeIs(1)) << said_.str();
  EXPECT_EQ(api_.asked[0].method, "POST");
  EXPECT_EQ(api_.asked[0].path, "/api/v1/namespaces/topolet-system/serviceaccounts/topolet-agent/token");
  const json spec = api_.asked[0].body["spec"];
  EXPECT_EQ(spec["expirationSeconds"], 30 * 3600);
  EXPECT_EQ(spec["boundObjectRef"], json({{"apiVersion", "v1"}, {"kind", "Node"}, {"name", "n1"}, {"uid", "uid-n1"}}));
  EXPECT_EQ(token(), next);
  struct stat status {};
  ASSERT_EQ(::stat(folder_.file("token").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  pass(hours(10));
  EXPECT_THAT(api_.asked, SizeIs(1)) << "the next one has its own time";
}

TEST_F(TokenRenewalTest, LeavesWhatOthersRenew) {
  for (const json& bound_to : std::vector<json>{json::object(),
                                                {{"pod", {{"name", "p"}, {"uid", "u"}}}},
                                                {{"pod", {{"name", "p"}, {"uid", "u"}}}, {"node", {{"name", "n1"}}}}}) {
    start(bound_to);
    pass(hours(31));
    EXPECT_THAT(api_.asked, IsEmpty()) << bound_to;
  }
  for (const char* strange : {"", "secret", "a.b", "a.!.c", "a.e30.c", "a.bnVsbA.c", ".."}) {
    folder_.write("token", strange);
    pass(hours(1));
    EXPECT_THAT(api_.asked, IsEmpty()) << strange;
  }
}

TEST_F(TokenRenewalTest, SaysOnceThatItMayNotAndWhenThatMatters) {
  start();
  const std::string first = token();
  api_.answer.status = 403;
  api_.answer.error = "the API server answered 403: no";
  pass(hours(29));
  EXPECT_GT(api_.asked.size(), 10U) << "it is tried again";
  EXPECT_EQ(token(), first);
  const std::string said = said_.str();
  EXPECT_THAT(said, HasSubstr("agent-token.yaml"));
  EXPECT_THAT(said, HasSubstr("agent-kubeconfig"));
  EXPECT_EQ(said.find("cannot be renewed"), said.rfind("cannot be renewed"));
  EXPECT_THAT(renewal_.trouble(), HasSubstr("agent-kubeconfig"));
  folder_.write("token", token_of(kBoundToNode, now(), now() + hours(30)));
  pass(hours(1));
  EXPECT_EQ(renewal_.trouble(), "") << "somebody has put another one there";
}

TEST_F(TokenRenewalTest, KeepsTheOneThatItHasWhereTheAnswerHasNone) {
  start();
  const std::string first = token();
  api_.answer.status = 201;
  api_.answer.body = {{"status", {{"token", "half"}}}};
  pass(hours(25));
  EXPECT_EQ(token(), first);
  EXPECT_THAT(said_.str(), HasSubstr("the API server answered without a token"));
}

}  // namespace
}  // namespace topolet::agent
