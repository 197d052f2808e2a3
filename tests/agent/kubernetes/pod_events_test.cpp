// Events about topoletd's decisions that pods get, in virtual time.
#include "cluster/agent/kubernetes/pod_events.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/agent/kubernetes/paths.hpp"
#include "tests/cluster_api/virtual_api.hpp"

namespace topolet::agent {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class PodEventsTest : public ::testing::Test {
 protected:
  void start(PodEvents::Options options) {
    options.node_name = "n1";
    events_ = std::make_unique<PodEvents>(
        options, api_, [this] { return &pods_; }, *log_);
  }
  void take(const std::string& event, const std::string& pod, const std::string& reason, const std::string& nodes = "0",
            bool is_remote = false, const std::string& reason_code = "best-score") {
    watch::v1::Event message;
    message.set_event(event);
    message.set_reason_code(reason_code);
    message.set_pod_name(pod);
    message.set_pod_namespace("default");
    message.mutable_key()->set_pod_uid("uid-" + pod);
    message.mutable_key()->set_name("main");
    message.set_reason(reason);
    message.set_nodes(nodes);
    events_->take(message, is_remote);
  }
  void pass(milliseconds time) {
    const milliseconds end = time_.now() + time;
    while (time_.step(end)) {
    }
  }
  /// All versions of events until now.
  std::vector<topolet::testing::Version> written() {
    pass(milliseconds(0));
    return api_.history(kEvents);
  }

  topolet::testing::VirtualTime time_;
  topolet::testing::VirtualApi api_{time_};
  std::shared_ptr<Log> log_ = make_silent_log();
  BoundPods pods_;
  std::unique_ptr<PodEvents> events_;
};

TEST_F(PodEventsTest, CountTheSameInOne) {
  start({.update_period = milliseconds(200)});
  for (int i = 0; i < 4; ++i) take("denied", "web", "too few");
  EXPECT_THAT(written(), SizeIs(1));
  pass(milliseconds(199));
  EXPECT_THAT(written(), SizeIs(1));
  pass(milliseconds(1));
  const auto versions = written();
  ASSERT_THAT(versions, SizeIs(2));
  EXPECT_EQ(versions[0].object["count"], 1);
  EXPECT_EQ(versions[1].object["count"], 4);
  EXPECT_EQ(versions[0].object["metadata"]["name"], versions[1].object["metadata"]["name"]);
  EXPECT_EQ(versions[1].object["firstTimestamp"], versions[0].object["firstTimestamp"]);
  take("denied", "web", "still too few");
  EXPECT_EQ(written().back().object["count"], 1);
}

TEST_F(PodEventsTest, SayWhatHelpsWhoseContainerIsDenied) {
  start({});
  take("denied", "web", "too few");
  const std::string remedy =
      "; the scheduler does not move the pod: delete it, so that it is scheduled anew, or change what it asks for";
  EXPECT_EQ(written().back().object["message"], "container main: too few" + remedy);
  take("denied", "wordy", std::string(5000, 'x'));
  const std::string cut = written().back().object["message"];
  EXPECT_EQ(cut.size(), 1024U) << "the API server takes no longer ones";
  EXPECT_TRUE(cut.ends_with("xx..." + remedy)) << cut;
  take("re-placed", "moved", "made room");
  EXPECT_EQ(written().back().object["message"], "container main: made room");
}

TEST_F(PodEventsTest, AreUpdatedAtMostOnceAPeriodAndAtOnceAfterALongerTime) {
  start({.update_period = seconds(10)});
  take("denied", "web", "too few");
  for (int second = 0; second < 30; ++second) {
    take("denied", "web", "too few");
    pass(seconds(1));
  }
  EXPECT_THAT(written(), SizeIs(4));
  pass(minutes(1));
  EXPECT_THAT(written(), SizeIs(4)) << "nothing has come";
  take("denied", "web", "too few");
  const auto versions = written();
  ASSERT_THAT(versions, SizeIs(5));
  EXPECT_EQ(versions.back().object["count"], 32);
  EXPECT_GT(versions.back().object["lastTimestamp"], versions.front().object["lastTimestamp"]);
}

TEST_F(PodEventsTest, AreNewAfterALongTimeWithoutThem) {
  start({.memory = minutes(10)});
  take("denied", "web", "too few");
  const std::string name = written().front().object["metadata"]["name"];
  pass(minutes(10));
  take("denied", "web", "too few");
  EXPECT_EQ(written().back().object["metadata"]["name"], name);
  pass(minutes(10) + milliseconds(1));
  take("denied", "web", "too few");
  EXPECT_NE(written().back().object["metadata"]["name"], name);
}

TEST_F(PodEventsTest, AreOfMovesAndOfWideOrRemoteOrUnwantedPlacesOnly) {
  start({});
  take("placed", "narrow", "fits");
  take("drift", "web", "repaired");
  EXPECT_THAT(written(), IsEmpty());
  take("placed", "wide", "on two nodes", "0-1");
  EXPECT_EQ(written().back().object["reason"], "Placed");
  take("placed", "remote", "its GPU is elsewhere", "0", true);
  EXPECT_EQ(written().back().object["involvedObject"]["name"], "remote");
  take("re-placed", "web", "it makes room");
  EXPECT_EQ(written().back().object["reason"], "Moved");
  take("placed", "missed", "outside the zone", "0", false, "zone-missed");
  EXPECT_EQ(written().back().object["reason"], "Placed");
  EXPECT_THAT(written(), SizeIs(4));
  take("placed", "yielded", "its GPU is elsewhere", "0", false, "zone-yielded");
  EXPECT_THAT(written(), SizeIs(5));
}

TEST_F(PodEventsTest, OfAStaticPodAreOnItsMirror) {
  json mirror;
  mirror["metadata"]["name"] = "static";
  mirror["metadata"]["uid"] = "uid-of-the-mirror";
  mirror["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "uid-static";
  pods_.apply("ADDED", mirror);
  start({});
  take("denied", "static", "too few");
  EXPECT_EQ(written().at(0).object["involvedObject"]["uid"], "uid-of-the-mirror");
  EXPECT_EQ(written().at(0).object["message"],
            "container main: too few; change what the manifest on the node asks for");
}

TEST_F(PodEventsTest, AreLimited) {
  start({.most_of_pod = 3, .most_at_once = 5, .period = std::chrono::hours(1)});
  for (int i = 0; i < 10; ++i) take("denied", "loud", std::to_string(i));
  for (int i = 0; i < 10; ++i) take("denied", "pod" + std::to_string(i), "too few");
  const auto versions = written();
  EXPECT_THAT(versions, SizeIs(5));
  EXPECT_EQ(std::count_if(versions.begin(), versions.end(),
                          [](const auto& version) { return version.object["involvedObject"]["name"] == "loud"; }),
            3);
  EXPECT_EQ(events_->counts().dropped, 15U);
}

TEST_F(PodEventsTest, MayBeOneMoreEachPeriodAndManyAfterAQuietTime) {
  start({.most_at_once = 5, .period = seconds(1)});
  int pod = 0;
  const auto take_ten = [&] {
    const std::size_t before = written().size();
    for (int i = 0; i < 10; ++i) take("denied", "pod" + std::to_string(++pod), "too few");
    return written().size() - before;
  };
  EXPECT_EQ(take_ten(), 5U);
  pass(milliseconds(990));
  EXPECT_EQ(take_ten(), 0U);
  pass(milliseconds(20));
  EXPECT_EQ(take_ten(), 1U);
  pass(milliseconds(2000));
  EXPECT_EQ(take_ten(), 2U);
  pass(minutes(1));
  EXPECT_EQ(take_ten(), 5U);
}

TEST_F(PodEventsTest, OfOneThatHasExpiredIsANewOne) {
  start({.update_period = milliseconds(100)});
  take("denied", "web", "too few");
  const std::string name = written().at(0).object["metadata"]["name"];
  api_.remove("/api/v1/namespaces/default/events/" + name);
  take("denied", "web", "too few");
  pass(milliseconds(100));
  EXPECT_THAT(api_.times("PATCH", "/api/v1/namespaces/default/events/" + name), SizeIs(1));
  EXPECT_EQ(events_->counts().failed, 1U);
  take("denied", "web", "too few");
  EXPECT_NE(written().back().object["metadata"]["name"], name);
}

}  // namespace
}  // namespace topolet::agent
