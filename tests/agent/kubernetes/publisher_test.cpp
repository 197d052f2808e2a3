// When the agent writes this node's NodeResourceTopology, in virtual time.
#include "cluster/agent/kubernetes/publisher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "cluster/agent/kubernetes/zones.hpp"
#include "tests/agent/kubernetes/paths.hpp"
#include "tests/cluster_api/virtual_api.hpp"

namespace topolet::agent {
namespace {

using nlohmann::json;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

auto is_within(milliseconds least, milliseconds most) { return AllOf(Ge(least), Le(most)); }

/// A machine of one node with four CPUs. What is written is not told to the publisher, as a watch would.
class PublisherTest : public ::testing::Test {
 protected:
  PublisherTest() {
    api_.put(kNodes, {{"metadata", {{"name", "n1"}}}});
    node_.set_instance("first");
    node_.set_reconciled(true);
    watch::v1::Node& node = *node_.mutable_machine()->add_nodes();
    node.set_cpus("0-3");
    node_.mutable_cpus()->set_allowed("0-3");
    fits_.set_instance("first");
    fits_.set_reconciled(true);
    fits_.set_gives_exclusive_cpus(true);
    fits_.add_nodes()->set_exclusive_cpus(4);
  }
  Publisher::Deps deps() {
    return {.api = api_,
            .node_state = [this] { return is_node_known_ ? std::optional(node_) : std::nullopt; },
            .ask_what_fits =
                [this](const watch::v1::FitsRequest& request, auto on_answer) {
                  asked_ = request;
                  asked_what_fits_.push_back(passed());
                  answer_ = [this, on_answer] { on_answer(fits_); };
                  if (!is_topoletd_slow_) time_.after({}, answer_);
                },
            .pods = [this] { return &pods_; },
            .devices = [this] { return &devices_; },
            .log = *log_};
  }
  void pass(milliseconds time) {
    const milliseconds end = time_.now() + time;
    while (time_.step(end)) {
    }
  }
  milliseconds passed() const { return time_.now() - begin_; }
  /// When an object was written, or tried to be.
  std::vector<milliseconds> writes() const {
    std::vector<milliseconds> times = api_.times("POST", kTopologies);
    const std::vector<milliseconds> updates = api_.times("PUT", kTopologies);
    times.insert(times.end(), updates.begin(), updates.end());
    for (milliseconds& time : times) time -= begin_;
    return times;
  }
  std::size_t count_writes() const { return writes().size(); }
  json object() { return api_.get(kTopologies + "/n1"); }
  static std::string attribute(const json& object, const std::string& name) {
    for (const json& attribute : object["attributes"]) {
      if (attribute["name"] == name) return attribute["value"];
    }
    return "";
  }
  /// The first object is written, touched, and long out of mind.
  void settle() {
    publisher_.take_object(json());
    pass(hours(1));
    ASSERT_THAT(writes(), SizeIs(2));
  }
  void fit(std::uint32_t cpus) {
    fits_.mutable_nodes(0)->set_exclusive_cpus(cpus);
    publisher_.something_changed();
  }
  void bind(const std::string& uid) {
    pods_.apply("ADDED", {{"metadata", {{"namespace", "default"}, {"name", "pod-" + uid}, {"uid", uid}}},
                          {"status", {{"phase", "Pending"}}}});
    publisher_.pod_was_bound();
  }
  /// Another program writes the object.
  void write_as_another(const json& changed) { publisher_.take_object(api_.put(kTopologies, changed)); }
  json with_other_zones() {
    json changed = object();
    changed["zones"][0]["resources"] =
        json::array({{{"name", "cpu"}, {"capacity", "1"}, {"allocatable", "1"}, {"available", "1"}}});
    return changed;
  }

  topolet::testing::VirtualTime time_;
  const milliseconds begin_ = time_.now();
  topolet::testing::VirtualApi api_{time_};
  std::shared_ptr<Log> log_ = make_silent_log();
  watch::v1::Snapshot node_;
  watch::v1::FitsResponse fits_;
  BoundPods pods_;
  DeviceInventory::State devices_;
  bool is_node_known_ = true;
  bool is_topoletd_slow_ = false;  ///< it answers when answer_ is called
  std::function<void()> answer_;
  std::vector<milliseconds> asked_what_fits_;
  watch::v1::FitsRequest asked_;
  Publisher publisher_{{.node_name = "n1",
                        .scheduler_resync = milliseconds(1000),
                        .heartbeat = hours(10'000),
                        .scheduler_names = {"topolet"}},
                       deps()};
};

/// The same with heartbeats.
class HeartbeatTest : public PublisherTest {
 protected:
  static std::string heartbeat(const json& object) { return attribute(object, "topolet.io/heartbeat"); }
  std::string owner() { return object()["metadata"]["ownerReferences"][0]["uid"]; }
  std::string node_uid() { return api_.get(kNodes + "/n1")["metadata"]["uid"]; }
  /// As a collector of what has no owner: 0.2 s after each write. True if it did.
  bool collect() {
    pass(milliseconds(200));
    const json now = object();
    const json node = api_.get(kNodes + "/n1");
    if (!now.contains("metadata") || now["kind"] == "Status") return false;
    const bool is_owned =
        node.contains("metadata") && node["kind"] != "Status" && node["metadata"].value("uid", "") == owner();
    if (is_owned) return false;
    api_.remove(kTopologies + "/n1");
    beating_.take_object(json());
    return true;
  }

  Publisher beating_{{.node_name = "n1", .scheduler_resync = milliseconds(1000)}, deps()};
};

TEST_F(PublisherTest, WritesOnceForAllThatComesTogetherAndThenNotWithinASecond) {
  publisher_.take_object(json());
  for (int i = 0; i < 100; ++i) publisher_.something_changed();
  pass(milliseconds(249));
  EXPECT_THAT(api_.requests(), IsEmpty());
  pass(milliseconds(1));
  EXPECT_THAT(writes(), ElementsAre(milliseconds(250)));
  for (std::uint32_t i = 0; i < 100; ++i) fit(i % 4);
  pass(seconds(2));
  EXPECT_THAT(writes(), ElementsAre(milliseconds(250), is_within(milliseconds(1250), milliseconds(1350))));
}

TEST_F(PublisherTest, WritesAPodThatWasJustBoundAtOnceUnlessManyAre) {
  settle();
  const milliseconds begin = passed();
  for (const char* uid : {"1", "2", "3", "4"}) {
    bind(uid);
    pass(milliseconds(9));
    const std::size_t before = count_writes();
    pass(milliseconds(1));
    EXPECT_EQ(count_writes(), before + 1) << uid;
    EXPECT_EQ(writes().back(), passed());
  }
  EXPECT_EQ(passed(), begin + milliseconds(40));
  bind("5");
  pass(seconds(2));
  EXPECT_THAT(writes().back(), is_within(begin + milliseconds(1040), begin + milliseconds(1140)));
  EXPECT_EQ(attribute(object(), "topolet.io/acked"), "1,2,3,4,5");
  pass(seconds(10));
  const std::size_t before = count_writes();
  bind("6");
  pass(milliseconds(10));
  EXPECT_EQ(count_writes(), before + 1);
}

TEST_F(PublisherTest, WritesTheNextChangeNoSoonerForOneThatAPodHasHurried) {
  settle();
  const milliseconds begin = passed();
  fit(1);
  bind("1");
  pass(milliseconds(10));
  ASSERT_THAT(writes(), SizeIs(3));
  fit(2);
  pass(seconds(2));
  ASSERT_THAT(writes(), SizeIs(4));
  EXPECT_THAT(writes()[3], is_within(begin + milliseconds(1010), begin + milliseconds(1110)));
}

TEST_F(PublisherTest, TouchesAChangeOnceSoThatSchedulersLookAgain) {
  publisher_.take_object(json());
  pass(milliseconds(2000));
  fit(1);
  pass(milliseconds(250));
  ASSERT_THAT(writes(), ElementsAre(milliseconds(250), milliseconds(2250)));
  const json before = object();
  EXPECT_EQ(attribute(before, "topolet.io/touched"), "");
  // The scheduler's second, two more, and what any change waits for others.
  pass(milliseconds(3249));
  EXPECT_THAT(writes(), SizeIs(2));
  pass(milliseconds(1));
  EXPECT_THAT(writes(), SizeIs(3));
  EXPECT_NE(attribute(object(), "topolet.io/touched"), "");
  EXPECT_TRUE(tell_the_same(before, object()));
  pass(hours(1));
  EXPECT_THAT(writes(), SizeIs(3));
  EXPECT_EQ(publisher_.counts().touches, 1U);
}

TEST_F(PublisherTest, WritesNothingWhileTheNodeIsNotKnownForCertain) {
  settle();
  is_node_known_ = false;
  bind("1");
  fit(1);
  pass(hours(1));
  EXPECT_THAT(writes(), SizeIs(2));
  is_node_known_ = true;
  publisher_.something_changed();
  pass(milliseconds(250));
  EXPECT_THAT(writes(), SizeIs(3));
}

TEST_F(PublisherTest, AsksAgainEachSecondWhileAnotherTopoletdAnswers) {
  fits_.set_instance("second");
  publisher_.take_object(json());
  pass(milliseconds(3000));
  EXPECT_THAT(asked_what_fits_, ElementsAre(milliseconds(250), milliseconds(1250), milliseconds(2250)));
  EXPECT_THAT(writes(), IsEmpty());
}

TEST_F(PublisherTest, WritesAgainAfterAnotherProgramButInNoHurry) {
  settle();
  const milliseconds begin = passed();
  write_as_another(with_other_zones());
  EXPECT_EQ(publisher_.counts().other_writers, 1U);
  bind("1");
  pass(seconds(20));
  ASSERT_THAT(writes(), SizeIs(::testing::Gt(2U)));
  EXPECT_EQ(writes()[2], begin + seconds(10));
  EXPECT_EQ(attribute(object(), "topolet.io/acked"), "1");
  EXPECT_NE(publisher_.counts().other_writer, "");
  pass(minutes(10));
  EXPECT_EQ(publisher_.counts().other_writer, "") << "it is long ago";
}

TEST_F(PublisherTest, NoticesASecondWriterWhileItAsksWhatFits) {
  settle();
  is_topoletd_slow_ = true;
  json changed = object();
  changed["attributes"].push_back({{"name", "foreign"}, {"value", "1"}});
  write_as_another(changed);
  pass(seconds(3));
  ASSERT_THAT(asked_what_fits_, SizeIs(3)) << "it looks whether that changes anything";
  write_as_another(with_other_zones());
  pass(seconds(3));
  EXPECT_EQ(publisher_.counts().other_writers, 0U);
  is_topoletd_slow_ = false;
  answer_();
  EXPECT_EQ(publisher_.counts().other_writers, 1U);
  pass(milliseconds(9999));
  EXPECT_THAT(writes(), SizeIs(2)) << "in no hurry";
  pass(milliseconds(1));
  EXPECT_THAT(writes(), SizeIs(3));
  EXPECT_EQ(attribute(object(), "foreign"), "1");
}

TEST_F(PublisherTest, TriesAgainLaterAfterEachFailure) {
  settle();
  for (int round = 0; round < 2; ++round) {
    const std::size_t first = count_writes();
    api_.refuse("PUT", 500, 9);
    fit(round == 0 ? 1 : 2);
    pass(hours(1));
    const std::vector<milliseconds> tries = writes();
    std::vector<milliseconds> pauses;
    for (std::size_t i = first + 1; i < first + 10; ++i) pauses.push_back(tries.at(i) - tries[i - 1]);
    std::vector<::testing::Matcher<milliseconds>> expected;
    for (const int pause_ms : {1000, 2000, 4000, 4500, 4500, 4500, 4500, 4500, 4500})
      expected.push_back(is_within(milliseconds(pause_ms), milliseconds(std::min(5000, pause_ms * 11 / 10))));
    EXPECT_THAT(pauses, ElementsAreArray(expected));
  }
  EXPECT_EQ(publisher_.counts().failed_writes, 18U);
}

TEST_F(PublisherTest, WritesAgainAtOnceAfterAConflictButNotAfterMany) {
  settle();
  const milliseconds begin = passed();
  api_.refuse("PUT", 409, 4);
  fit(1);
  pass(seconds(20));
  const std::vector<milliseconds> tries = writes();
  ASSERT_GE(tries.size(), 7U);
  EXPECT_EQ(tries[2], begin + milliseconds(250));
  EXPECT_EQ(tries[3], tries[2] + milliseconds(10));
  for (const std::size_t i : {4, 5, 6})
    EXPECT_THAT(tries[i] - tries[i - 1], is_within(milliseconds(1000), milliseconds(1100))) << i;
  EXPECT_EQ(publisher_.counts().other_writers, 0U);
}

TEST_F(HeartbeatTest, IsWrittenAtLeastEachMinuteAndAtTheBeginning) {
  beating_.take_object(json());
  pass(minutes(10));
  const std::vector<milliseconds> times = writes();
  ASSERT_GE(times.size(), 10U);
  for (std::size_t i = 2; i < times.size(); ++i) EXPECT_LE(times[i] - times[i - 1], minutes(1)) << i;
  EXPECT_LE(times.size(), 20U) << "no more than it takes";
  EXPECT_GE(beating_.counts().heartbeats, 9U);
  const json before = object();
  EXPECT_NE(heartbeat(before), "");
  pass(minutes(1));
  EXPECT_NE(heartbeat(object()), heartbeat(before));
  EXPECT_TRUE(tell_the_same(object(), before));
  // Another process finds the object as it should be.
  const std::string last = heartbeat(object());
  Publisher next({.node_name = "n1"}, deps());
  next.take_object(object());
  pass(seconds(1));
  EXPECT_NE(heartbeat(object()), last);
}

TEST_F(HeartbeatTest, EndsWhileTheNodeIsNotKnownForCertain) {
  beating_.take_object(json());
  pass(minutes(2));
  is_node_known_ = false;
  const std::size_t before = count_writes();
  pass(hours(1));
  EXPECT_EQ(count_writes(), before);
  is_node_known_ = true;
  beating_.something_changed();
  pass(seconds(1));
  EXPECT_EQ(count_writes(), before + 1);
}

TEST_F(HeartbeatTest, GoesWithOtherWritesWhereThereAreAny) {
  beating_.take_object(json());
  for (std::uint32_t i = 0; i < 120; ++i) {
    fits_.mutable_nodes(0)->set_exclusive_cpus(i % 4);
    beating_.something_changed();
    pass(seconds(10));
  }
  EXPECT_EQ(beating_.counts().heartbeats, 0U);
}

TEST_F(HeartbeatTest, BelongsToTheNodeThatWasRegisteredAgain) {
  beating_.take_object(json());
  pass(seconds(10));
  ASSERT_EQ(owner(), node_uid());
  api_.remove(kNodes + "/n1");
  api_.put(kNodes, {{"metadata", {{"name", "n1"}}}});
  ASSERT_TRUE(collect());
  pass(seconds(1));
  EXPECT_EQ(owner(), node_uid());
  EXPECT_FALSE(collect()) << "and stays";
  EXPECT_EQ(beating_.counts().deletions, 1U);
}

TEST_F(HeartbeatTest, IsAskedForANodeThatIsNotThereAndNotWrittenForIt) {
  EXPECT_EQ(beating_.counts().has_node, std::nullopt) << "it was not asked";
  api_.remove(kNodes + "/n1");
  beating_.take_object(json());
  pass(hours(1));
  EXPECT_THAT(writes(), IsEmpty()) << "not registered yet";
  EXPECT_EQ(beating_.counts().has_node, false);
  api_.put(kNodes, {{"metadata", {{"name", "n1"}}}});
  pass(seconds(6));
  ASSERT_GE(count_writes(), 1U);
  EXPECT_EQ(owner(), node_uid());
  EXPECT_EQ(beating_.counts().has_node, true);
  api_.remove(kNodes + "/n1");
  ASSERT_TRUE(collect());
  const std::size_t before = count_writes();
  pass(hours(1));
  EXPECT_EQ(count_writes(), before) << "deleted and not registered again";
}

TEST_F(HeartbeatTest, EndsSomeTimeAfterItsNodeWhereNobodyCollectsTheObject) {
  beating_.take_object(json());
  pass(minutes(2));
  api_.remove(kNodes + "/n1");
  pass(minutes(6));
  const std::size_t before = count_writes();
  pass(hours(1));
  EXPECT_EQ(count_writes(), before);
  api_.put(kNodes, {{"metadata", {{"name", "n1"}}}});
  pass(seconds(6));
  EXPECT_EQ(owner(), node_uid());
}

TEST_F(HeartbeatTest, IsWrittenForANodeThatMayNotBeRead) {
  api_.refuse("GET", 403, 1);
  beating_.take_object(json());
  pass(seconds(1));
  ASSERT_THAT(writes(), SizeIs(1));
  EXPECT_FALSE(object()["metadata"].contains("ownerReferences"));
  pass(minutes(1));
  EXPECT_EQ(owner(), node_uid()) << "it is asked again";
}

TEST_F(HeartbeatTest, IsNotWrittenBeforeItIsKnownWhetherThereIsANode) {
  api_.refuse("GET", 500, 2);
  beating_.take_object(json());
  pass(milliseconds(900));
  EXPECT_THAT(writes(), IsEmpty());
  pass(seconds(4));
  EXPECT_EQ(owner(), node_uid());
}

TEST_F(HeartbeatTest, IsWrittenInNoHurryWhereSomebodyDeletesTheObjectAllTheTime) {
  beating_.take_object(json());
  pass(seconds(30));
  const std::size_t before = count_writes();
  for (int i = 0; i < 600; ++i) {
    pass(milliseconds(100));
    if (object()["kind"] == "Status" || !object().contains("metadata")) continue;
    api_.remove(kTopologies + "/n1");
    beating_.take_object(json());
  }
  EXPECT_LE(count_writes() - before, 9U);
  EXPECT_GE(count_writes() - before, 5U);
}

TEST_F(PublisherTest, TellsWhereDevicesAreIfTopoletdPlacesByThem) {
  devices_.near[{"default", "pod-1"}]["main"] = {1};
  pods_.apply("ADDED", {{"metadata", {{"namespace", "default"}, {"name", "pod-1"}, {"uid", "1"}}},
                        {"spec", {{"containers", {{{"name", "main"}}}}}},
                        {"status", {{"phase", "Pending"}}}});
  publisher_.take_object(json());
  pass(seconds(1));
  ASSERT_EQ(asked_.pending_size(), 1);
  EXPECT_EQ(asked_.pending(0).device_nodes(), "") << "the zone holds";
  node_.add_plugins()->set_id("gpu");
  publisher_.something_changed();
  pass(seconds(2));
  EXPECT_EQ(asked_.pending(0).device_nodes(), "1");
}

TEST_F(PublisherTest, WakesSchedulersOnceASecondWhenThereIsRoomAgainAndPodsWait) {
  const auto wake_ups = [this] { return api_.times("PATCH", kNodes + "/n1").size(); };
  settle();
  fit(0);
  pass(seconds(10));
  api_.put(kPods, {{"metadata", {{"namespace", "default"}, {"name", "waiting"}}},
                   {"spec", {{"schedulerName", "topolet"}}},
                   {"status", {{"phase", "Pending"}}}});
  EXPECT_EQ(wake_ups(), 0U);
  for (std::uint32_t cpus : {1, 2, 3}) {
    fits_.mutable_nodes(0)->set_exclusive_cpus(cpus);
    bind(std::to_string(cpus));
    pass(milliseconds(10));
  }
  EXPECT_EQ(wake_ups(), 1U);
  pass(seconds(2));
  EXPECT_EQ(wake_ups(), 2U) << "for what has grown since";
  fit(4);
  pass(seconds(2));
  EXPECT_EQ(wake_ups(), 3U);
  fit(3);
  pass(seconds(2));
  EXPECT_EQ(wake_ups(), 3U) << "there is less";
  EXPECT_EQ(publisher_.counts().wake_ups, 3U);
}

}  // namespace
}  // namespace topolet::agent
