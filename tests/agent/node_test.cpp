#include "cluster/agent/node.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace topolet::agent {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

watch::v1::Container container(const std::string& pod, const std::string& cpus) {
  watch::v1::Container made;
  made.mutable_key()->set_pod_uid("uid-" + pod);
  made.mutable_key()->set_name("main");
  made.set_pod_name(pod);
  made.set_cpus(cpus);
  return made;
}

watch::v1::Snapshot snapshot() {
  watch::v1::Snapshot made;
  made.set_instance("i");
  made.set_generation(10);
  made.set_reconciled(true);
  *made.add_containers() = container("web", "0-3");
  return made;
}

watch::v1::Delta delta(std::uint64_t generation, const std::string& pod, const std::string& cpus) {
  watch::v1::Delta made;
  made.set_generation(generation);
  *made.add_changed() = container(pod, cpus);
  return made;
}

/// What a follower has been told: the events' names, and the newest data.
struct Told {
  std::vector<std::string> events;
  nlohmann::json last;

  Node::Follower follower() {
    return [this](const std::shared_ptr<const Node::Update>& update) {
      events.push_back(update->event);
      last = nlohmann::json::parse(update->data);
    };
  }
};

std::vector<std::string> pods_of(const nlohmann::json& state) {
  std::vector<std::string> pods;
  for (const auto& one : state["containers"]) {
    pods.push_back(one["pod_name"].get<std::string>() + " " + one["cpus"].get<std::string>());
  }
  return pods;
}

TEST(NodeTest, TellsAFollowerAllThatIsThereAndThenWhatChanges) {
  Node node;
  Told early;
  node.follow(early.follower());
  EXPECT_THAT(early.events, ElementsAre("connection"));
  EXPECT_EQ(early.last["connected"], false);
  node.begin(snapshot(), milliseconds(1));
  EXPECT_THAT(early.events, ElementsAre("connection", "connection", "state"));
  EXPECT_THAT(pods_of(early.last), ElementsAre("web 0-3"));
  node.apply(delta(11, "own", "2"), milliseconds(2));
  EXPECT_EQ(early.events.back(), "delta");
  EXPECT_EQ(early.last["changed"][0]["pod_name"], "own");
  EXPECT_EQ(early.last["generation"], 11);
  EXPECT_FALSE(early.last.contains("cpus")) << "what has not changed is left out";
  Told late;
  node.follow(late.follower());
  EXPECT_THAT(late.events, ElementsAre("connection", "state", "delta")) << "the state is the one that was told before";
  EXPECT_EQ(late.last["generation"], 11);
}

TEST(NodeTest, MakesTheStateOnceForAllWhoFollow) {
  Node node;
  node.begin(snapshot(), milliseconds(1));
  std::vector<std::shared_ptr<const Node::Update>> whole;
  std::vector<std::string> events;
  std::vector<std::uint64_t> numbers;
  for (int i = 0; i < 3; ++i) {
    numbers.push_back(node.follow([&](const auto& update) {
      events.push_back(update->event);
      if (update->begins_anew) whole.push_back(update);
    }));
  }
  ASSERT_EQ(whole.size(), 3U);
  EXPECT_EQ(whole[0], whole[1]);
  EXPECT_EQ(whole[0], whole[2]);
  EXPECT_EQ(*whole[0]->text,
            "event: connection\ndata: {\"connected\":true}\n\n" + *http::make_event("state", whole[0]->data));
  node.apply(delta(11, "own", "2"), milliseconds(2));
  events.clear();
  node.renew(numbers[1]);
  EXPECT_THAT(events, ElementsAre("connection", "state", "delta"));
  EXPECT_EQ(whole.back(), whole[0]);
  std::uint64_t generation = 12;
  for (std::size_t told = 0; told < 200'000; told += 1000)
    node.apply(delta(generation++, std::string(1000, 'x'), "2"), milliseconds(3));
  events.clear();
  node.renew(numbers[1]);
  EXPECT_NE(whole.back(), whole[0]) << "what changed since was more than a state";
  EXPECT_LT(events.size(), 100U);
  EXPECT_TRUE(nlohmann::json::parse(whole.back()->data)["generation"] > 11);
  node.set_connected(false);
  events.clear();
  node.renew(numbers[1]);
  EXPECT_EQ(events.back(), "connection");
}

TEST(NodeTest, TellsNobodyWhoHasLeft) {
  Node node;
  Told told;
  const std::uint64_t number = node.follow(told.follower());
  EXPECT_EQ(node.followers(), 1U);
  node.unfollow(number);
  EXPECT_EQ(node.followers(), 0U);
  node.begin(snapshot(), milliseconds(1));
  EXPECT_THAT(told.events, ElementsAre("connection"));
}

TEST(NodeTest, TellsOnceThatTheConnectionIsLost) {
  Node node;
  node.begin(snapshot(), milliseconds(1));
  Told told;
  node.follow(told.follower());
  node.set_connected(false);
  node.set_connected(false);
  EXPECT_THAT(told.events, ElementsAre("connection", "state", "connection"));
  EXPECT_EQ(told.last["connected"], false);
  EXPECT_FALSE(node.summary().connected);
  EXPECT_TRUE(node.summary().known) << "what was told last is still shown";
}

TEST(NodeTest, RemembersAnHour) {
  Node node({.history = milliseconds(1000), .max_history_bytes = 1 << 20});
  node.begin(snapshot(), milliseconds(100));
  watch::v1::Delta ended;
  ended.set_generation(11);
  *ended.add_ended() = container("web", "").key();
  node.apply(ended, milliseconds(200));
  node.apply(delta(12, "a", "1"), milliseconds(900));
  node.apply(delta(13, "b", "2"), milliseconds(1150));
  auto past = nlohmann::json::parse(node.history(milliseconds(1150)));
  EXPECT_THAT(pods_of(past["base"]), ElementsAre("web 0-3"));
  EXPECT_EQ(past["deltas"].size(), 3U);
  past = nlohmann::json::parse(node.history(milliseconds(1500)));
  EXPECT_THAT(pods_of(past["base"]), IsEmpty()) << "as it was after the oldest change that is forgotten";
  EXPECT_EQ(past["base_time_ms"], 200);
  EXPECT_EQ(past["base"]["generation"], 11);
  ASSERT_EQ(past["deltas"].size(), 2U);
  EXPECT_EQ(past["deltas"][0]["generation"], 12);
}

TEST(NodeTest, RemembersLessWhereMuchHappens) {
  Node node({.history = std::chrono::hours(1), .max_history_bytes = 2000});
  node.begin(snapshot(), milliseconds(1));
  for (std::uint64_t i = 11; i < 1011; ++i) node.apply(delta(i, "pod" + std::to_string(i), "1"), milliseconds(2));
  const auto past = nlohmann::json::parse(node.history(milliseconds(3)));
  EXPECT_LT(past["deltas"].size(), 100U);
  EXPECT_GT(past["deltas"].size(), 10U);
  EXPECT_EQ(past["base"]["containers"].size() + past["deltas"].size(), 1001U) << "nothing is lost of how it is";
}

TEST(NodeTest, IsKnownForCertainOnlyWhileConnectedAndReconciled) {
  Node node;
  EXPECT_FALSE(node.reconciled_state().has_value());
  watch::v1::Snapshot unsure = snapshot();
  unsure.set_reconciled(false);
  node.begin(unsure, milliseconds(0));
  EXPECT_FALSE(node.reconciled_state().has_value());
  watch::v1::Delta reconciled;
  reconciled.set_generation(11);
  reconciled.set_reconciled(true);
  int heard = 0;
  node.set_listener([&heard](const watch::v1::Delta*) { ++heard; });
  node.apply(reconciled, milliseconds(1));
  ASSERT_TRUE(node.reconciled_state().has_value());
  EXPECT_EQ(node.reconciled_state()->containers_size(), 1);
  node.set_connected(false);
  EXPECT_FALSE(node.reconciled_state().has_value());
  node.set_connected(false);
  EXPECT_EQ(heard, 2) << "what changes nothing is not told";
}

TEST(NodeTest, ForgetsWhatAnotherTopoletdToldBefore) {
  Node node;
  node.begin(snapshot(), milliseconds(1));
  node.apply(delta(11, "own", "2"), milliseconds(2));
  node.begin(snapshot(), milliseconds(3));
  const auto past = nlohmann::json::parse(node.history(milliseconds(4)));
  EXPECT_EQ(past["base_time_ms"], 3);
  EXPECT_TRUE(past["deltas"].empty());
  EXPECT_EQ(node.summary().containers, 1U);
}

}  // namespace
}  // namespace topolet::agent
