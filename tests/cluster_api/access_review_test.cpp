// A program's review of its rights, against an API server in virtual time.
#include "cluster/api/access_review.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/base/log.hpp"
#include "tests/support/virtual_time.hpp"

namespace topolet::api {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Allows what is not forbidden.
class Judge final : public Api {
 public:
  explicit Judge(topolet::testing::VirtualTime& time) : time_(time) {}

  void request(ApiRequest request, OnAnswer on_answer) override {
    ++asked;
    ApiAnswer answer;
    answer.status = status;
    if (status != 201) answer.error = "it does not want to";
    const nlohmann::json& attributes = request.body["spec"]["resourceAttributes"];
    newest = attributes;
    const std::string what = attributes["verb"].get<std::string>() + ' ' + attributes["resource"].get<std::string>();
    if (status == 201) answer.body = {{"status", {{"allowed", forbidden.count(what) == 0}}}};
    time_.after({}, [on_answer = std::move(on_answer), answer] { on_answer(answer); });
  }
  void after(milliseconds delay, std::function<void()> task) override { time_.after(delay, std::move(task)); }
  Clock::time_point now() const override { return time_.clock().steady(); }

  int status = 201;
  int asked = 0;
  nlohmann::json newest;
  std::set<std::string> forbidden;

 private:
  topolet::testing::VirtualTime& time_;
};

class AccessReviewTest : public ::testing::Test {
 protected:
  void advance(milliseconds duration) {
    const milliseconds end = time_.now() + duration;
    while (time_.step(end)) {
    }
  }
  void start() {
    review_.start([this] { ++changes_; });
    advance(milliseconds(10));
  }

  topolet::testing::VirtualTime time_;
  Judge judge_{time_};
  std::shared_ptr<Log> log_ = make_silent_log();
  int changes_ = 0;
  AccessReview review_{
      judge_,
      {{.verb = "list", .group = "", .resource = "pods", .field = "spec.nodeName", .field_value = "n1"},
       {.verb = "create", .group = "", .resource = "pods", .subresource = "binding"}},
      minutes(1),
      *log_};
};

TEST_F(AccessReviewTest, KnowsWhatIsMissingOnceAllWasAnswered) {
  judge_.forbidden = {"create pods"};
  EXPECT_FALSE(review_.missing().has_value());
  start();
  ASSERT_TRUE(review_.missing().has_value());
  EXPECT_THAT(*review_.missing(), ElementsAre("create pods/binding"));
  EXPECT_EQ(judge_.newest["subresource"], "binding");
  EXPECT_EQ(changes_, 1);
}

TEST_F(AccessReviewTest, SeesSoonThatARightIsGrantedAndLaterThatItIsTaken) {
  judge_.forbidden = {"list pods"};
  start();
  judge_.forbidden.clear();
  advance(seconds(5));
  EXPECT_THAT(*review_.missing(), IsEmpty());
  judge_.forbidden = {"list pods"};
  advance(seconds(50));
  EXPECT_THAT(*review_.missing(), IsEmpty()) << "nobody is asked all the time";
  advance(seconds(20));
  EXPECT_THAT(*review_.missing(), ElementsAre("list pods"));
  EXPECT_EQ(changes_, 3);
}

TEST_F(AccessReviewTest, HoldsToWhatWasSaidWhileTheServerIsAway) {
  for (const int status : {0, 429, 500, 503}) {
    judge_.status = status;
    start();
    EXPECT_FALSE(review_.missing().has_value()) << status;
    advance(minutes(2));
    EXPECT_FALSE(review_.missing().has_value()) << status << ": nothing is known yet";
  }
  EXPECT_LT(judge_.asked, 200);
  judge_.status = 201;
  advance(minutes(1));
  EXPECT_THAT(*review_.missing(), IsEmpty());
  judge_.status = 0;
  judge_.forbidden = {"list pods"};
  advance(minutes(10));
  EXPECT_THAT(*review_.missing(), IsEmpty());
  EXPECT_EQ(changes_, 1) << "it does not come and go";
}

TEST_F(AccessReviewTest, MissesNothingWhereNobodyMayAsk) {
  for (const int status : {403, 404}) {
    judge_.status = status;
    start();
    ASSERT_TRUE(review_.missing().has_value());
    EXPECT_THAT(*review_.missing(), IsEmpty()) << status;
  }
}

TEST_F(AccessReviewTest, SendsTheSelectorThatItAlwaysUses) {
  judge_.forbidden = {"list pods"};
  judge_.status = 0;
  start();
  const auto requirement = judge_.newest["fieldSelector"]["requirements"][0];
  EXPECT_EQ(requirement["key"], "spec.nodeName");
  EXPECT_EQ(requirement["values"][0], "n1");
}

}  // namespace
}  // namespace topolet::api
