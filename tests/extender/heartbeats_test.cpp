// When nothing is heard of a node's agent any more.
#include "cluster/extender/heartbeats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/extender/node_zones.hpp"
#include "tests/extender/support.hpp"

namespace topolet::extender {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class HeartbeatsTest : public ::testing::Test {
 protected:
  /// Those that have become silent.
  std::vector<std::string> listen(seconds time, bool can_hear = true) {
    std::vector<std::string> silent;
    for (const auto end = now_ + time; now_ < end;) {
      now_ += Heartbeats::kLookEvery;
      for (std::string& name : heartbeats_.pass(now_, can_hear)) silent.push_back(std::move(name));
    }
    return silent;
  }

  Heartbeats heartbeats_;
  Heartbeats::Time now_{std::chrono::hours(5)};
};

TEST_F(HeartbeatsTest, ANodeIsSilentAfterAMinuteInWhichItsHeartbeatStaysTheSame) {
  listen(seconds(100));
  heartbeats_.note("a", "2000-01-01T00:00:00Z");
  heartbeats_.note("b", "2099-01-01T00:00:00Z");
  EXPECT_THAT(listen(seconds(40)), IsEmpty()) << "however old it says it is";
  heartbeats_.note("a", "1999-01-01T00:00:00Z");
  heartbeats_.note("b", "2099-01-01T00:00:00Z");
  EXPECT_THAT(listen(seconds(18)), IsEmpty());
  EXPECT_THAT(listen(seconds(4)), ElementsAre("b"));
  EXPECT_TRUE(heartbeats_.is_silent("b"));
  EXPECT_THAT(listen(seconds(30)), IsEmpty()) << "said once";
  EXPECT_THAT(listen(seconds(10)), ElementsAre("a"));
  EXPECT_FALSE(heartbeats_.note("b", "2099-01-01T00:00:00Z")) << "another program has written the object";
  EXPECT_TRUE(heartbeats_.note("b", "2099-01-01T00:00:01Z"));
  EXPECT_FALSE(heartbeats_.is_silent("b"));
  EXPECT_THAT(listen(seconds(62)), ElementsAre("b"));
}

TEST_F(HeartbeatsTest, TimeInWhichNothingCouldBeHeardIsNoSilence) {
  heartbeats_.note("a", "1");
  listen(seconds(30));
  EXPECT_THAT(listen(seconds(600), false), IsEmpty()) << "the API server is away";
  now_ += seconds(3600);
  EXPECT_THAT(listen(seconds(20)), IsEmpty()) << "this process was frozen";
  EXPECT_THAT(listen(seconds(20)), ElementsAre("a"));
}

TEST_F(HeartbeatsTest, AnObjectWithoutOneIsNeverSilent) {
  heartbeats_.note("a", "");
  heartbeats_.note("b", "1");
  heartbeats_.note("b", "");
  heartbeats_.note("c", "1");
  heartbeats_.forget("c");
  heartbeats_.note("d", "1");
  heartbeats_.keep_only({"a", "b"});
  EXPECT_THAT(listen(seconds(600)), IsEmpty());
  heartbeats_.note("a", "1");
  EXPECT_THAT(listen(seconds(62)), ElementsAre("a"));
}

TEST_F(HeartbeatsTest, StandInTheObject) {
  json object = topology_object({.zones = {{4}}});
  ResourceNames names;
  EXPECT_EQ(read_node_zones(object, names).heartbeat, "");
  object["attributes"].push_back({{"name", "topolet.io/heartbeat"}, {"value", "2026-01-01T00:00:00Z"}});
  EXPECT_EQ(read_node_zones(object, names).heartbeat, "2026-01-01T00:00:00Z");
}

}  // namespace
}  // namespace topolet::extender
