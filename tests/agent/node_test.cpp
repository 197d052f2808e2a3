#include "cluster/agent/node.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
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

/// The updates that a follower has received: the events' names, and the newest data.
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
  EXPECT_THAT(early.events, ElementsAre("agent", "connection"));
  EXPECT_EQ(early.last["connected"], false);
  node.begin(snapshot(), milliseconds(1));
  EXPECT_THAT(early.events, ElementsAre("agent", "connection", "connection", "agent", "state"));
  EXPECT_THAT(pods_of(early.last), ElementsAre("web 0-3"));
  node.apply(delta(11, "own", "2"), milliseconds(2));
  EXPECT_EQ(early.events.back(), "delta");
  EXPECT_EQ(early.last["changed"][0]["pod_name"], "own");
  EXPECT_EQ(early.last["generation"], 11);
  EXPECT_FALSE(early.last.contains("cpus")) << "what has not changed is left out";
  Told late;
  node.follow(late.follower());
  EXPECT_THAT(late.events, ElementsAre("connection", "agent", "state", "delta"))
      << "the state is the one that was told before";
  EXPECT_EQ(late.last["generation"], 11);
}

TEST(NodeTest, TellsWhatIsMeasuredUntilTheConnectionEnds) {
  Node node;
  node.begin(snapshot(), milliseconds(1));
  Told early;
  node.follow(early.follower());
  EXPECT_EQ(early.last.contains("nodes"), false) << "nothing was measured yet";
  watch::v1::Load load;
  load.set_is_settled(true);
  load.add_nodes()->set_node(1);
  load.mutable_nodes(0)->set_used_milli(1500);
  load.add_cpus()->set_cpu(5);
  load.mutable_cpus(0)->set_used_milli(400);
  load.mutable_cpus(0)->set_effective_milli(900);
  node.set_load(load);
  EXPECT_EQ(early.events.back(), "load");
  EXPECT_EQ(early.last["nodes"]["1"], nlohmann::json({{"used_milli", 1500}})) << "what is not known is left out";
  EXPECT_EQ(early.last["cpus"]["5"], nlohmann::json({{"used_milli", 400}, {"effective_milli", 900}}));
  Told late;
  node.follow(late.follower());
  EXPECT_EQ(late.last["is_settled"], true);
  const std::size_t before = early.events.size();
  node.set_connected(false, milliseconds(2));
  EXPECT_THAT(std::vector<std::string>(early.events.begin() + static_cast<std::ptrdiff_t>(before), early.events.end()),
              ::testing::Contains("load"));
  Told last;
  node.follow(last.follower());
  EXPECT_THAT(last.last["cpus"], IsEmpty());
  EXPECT_EQ(node.history(milliseconds(3)).find("used_milli"), std::string::npos);
}

TEST(NodeTest, MakesTheStateOnceForAllWhoFollow) {
  Node node({.version = "0.1", .name = "n1"});
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
            "event: connection\ndata: {\"connected\":true}\n\nevent: agent\ndata: "
            "{\"illnesses\":[],\"node\":\"n1\",\"version\":\"0.1\"}\n\n" +
                *http::make_event("state", whole[0]->data));
  node.apply(delta(11, "own", "2"), milliseconds(2));
  events.clear();
  node.renew(numbers[1]);
  EXPECT_THAT(events, ElementsAre("connection", "agent", "state", "delta"));
  EXPECT_EQ(whole.back(), whole[0]);
  std::uint64_t generation = 12;
  for (std::size_t told = 0; told < 200'000; told += 1000)
    node.apply(delta(generation++, std::string(1000, 'x'), "2"), milliseconds(3));
  events.clear();
  node.renew(numbers[1]);
  EXPECT_NE(whole.back(), whole[0]) << "what changed since was more than a state";
  EXPECT_LT(events.size(), 100U);
  EXPECT_TRUE(nlohmann::json::parse(whole.back()->data)["generation"] > 11);
  node.set_connected(false, milliseconds(5));
  events.clear();
  node.renew(numbers[1]);
  EXPECT_EQ(events.back(), "agent");
}

TEST(NodeTest, TellsNobodyWhoHasLeft) {
  Node node;
  Told told;
  const std::uint64_t number = node.follow(told.follower());
  EXPECT_EQ(node.followers(), 1U);
  node.unfollow(number);
  EXPECT_EQ(node.followers(), 0U);
  node.begin(snapshot(), milliseconds(1));
  EXPECT_THAT(told.events, ElementsAre("agent", "connection"));
}

TEST(NodeTest, TellsOnceThatTheConnectionIsLost) {
  Node node;
  node.begin(snapshot(), milliseconds(1));
  Told told;
  node.follow(told.follower());
  node.set_connected(false, milliseconds(5));
  node.set_connected(false, milliseconds(5));
  EXPECT_THAT(told.events, ElementsAre("connection", "agent", "state", "delta", "connection", "agent"));
  EXPECT_EQ(told.last["illnesses"][0]["code"], "topoletd-unreachable");
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
  node.set_connected(false, milliseconds(5));
  EXPECT_FALSE(node.reconciled_state().has_value());
  node.set_connected(false, milliseconds(5));
  EXPECT_EQ(heard, 2) << "what changes nothing is not told";
}

/// The words of what happened, in the order of the history.
std::vector<std::string> events_of(const nlohmann::json& past) {
  std::vector<std::string> words;
  for (const auto& delta : past["deltas"]) {
    for (const auto& event : delta.value("events", nlohmann::json::array())) words.push_back(event["event"]);
  }
  return words;
}

/// The containers as a page has them that goes through the history to its end.
std::vector<std::string> pods_at_the_end(const nlohmann::json& past) {
  std::map<std::string, std::string> pods;
  const auto put = [&pods](const nlohmann::json& one) { pods[one["pod_name"]] = one["cpus"]; };
  for (const auto& one : past["base"]["containers"]) put(one);
  for (const auto& delta : past["deltas"]) {
    for (const auto& one : delta.value("changed", nlohmann::json::array())) put(one);
    for (const auto& key : delta.value("ended", nlohmann::json::array()))
      pods.erase(key["pod_uid"].get<std::string>().substr(4));
  }
  std::vector<std::string> all;
  for (const auto& [pod, cpus] : pods) all.push_back(pod + ' ' + cpus);
  return all;
}

watch::v1::Snapshot of_another(const std::string& version, std::uint64_t generation) {
  watch::v1::Snapshot made = snapshot();
  made.set_instance("j");
  made.set_version(version);
  made.set_host("host-1");
  made.set_generation(generation);
  made.clear_containers();
  *made.add_containers() = container("web", "0-1");
  *made.add_containers() = container("new", "4");
  return made;
}

TEST(NodeTest, KeepsItsHourWhereAnotherTopoletdTellsAndMarksThat) {
  Node node;
  node.begin(snapshot(), milliseconds(1));
  node.apply(delta(11, "own", "2"), milliseconds(2));
  node.set_connected(false, milliseconds(3));
  node.begin(of_another("2", 12), milliseconds(4003));
  const auto past = nlohmann::json::parse(node.history(milliseconds(4004)));
  EXPECT_EQ(past["base_time_ms"], 1);
  EXPECT_THAT(events_of(past), ElementsAre("disconnected", "restarted"));
  EXPECT_EQ(past["deltas"][1]["connected"], false);
  EXPECT_EQ(past["deltas"][2]["connected"], true);
  EXPECT_EQ(past["deltas"][2]["version"], "2");
  EXPECT_EQ(past["deltas"][2]["host"], "host-1");
  EXPECT_EQ(past["deltas"][2]["time_ms"], 4003);
  EXPECT_EQ(past["deltas"][2]["events"][0]["reason"], "another topoletd serves after 4.0 s: version 2 in place of ");
  EXPECT_THAT(pods_at_the_end(past), ElementsAre("new 4", "web 0-1")) << "what has ended meanwhile is gone";
  EXPECT_EQ(node.summary().containers, 2U);
}

TEST(NodeTest, GoesOnCountingWhereATopoletdHasLostItsState) {
  Node node;
  node.begin(snapshot(), milliseconds(1));
  node.apply(delta(900, "own", "2"), milliseconds(2));
  node.set_connected(false, milliseconds(3));
  node.begin(of_another("1", 1), milliseconds(4));
  node.apply(delta(2, "later", "5"), milliseconds(5));
  const auto past = nlohmann::json::parse(node.history(milliseconds(6)));
  std::vector<int> numbers;
  for (const auto& one : past["deltas"]) numbers.push_back(one["number"]);
  EXPECT_THAT(numbers, ElementsAre(1, 2, 3, 4)) << "by these, not by generations, a page knows what it has";
  EXPECT_EQ(past["number"], 4);
  EXPECT_THAT(past["deltas"][2]["events"][0]["reason"].get<std::string>(),
              ::testing::HasSubstr("it has lost its state database"));
}

TEST(NodeTest, SaysWhereTheSameTopoletdIsConnectedAgain) {
  Node node;
  node.begin(snapshot(), milliseconds(1));
  node.begin(snapshot(), milliseconds(2));
  const auto past = nlohmann::json::parse(node.history(milliseconds(3)));
  EXPECT_THAT(events_of(past), ElementsAre("reconnected"));
  EXPECT_FALSE(past["deltas"][0].contains("changed")) << "nothing is";
}

TEST(NodeTest, StaysSmallWhereATopoletdEndsAgainAndAgain) {
  Node node({.history = std::chrono::hours(1), .max_history_bytes = 20'000});
  watch::v1::Snapshot large = snapshot();
  for (int i = 0; i < 500; ++i) *large.add_containers() = container(std::to_string(i), "0-3");
  node.begin(large, milliseconds(1));
  for (int i = 0; i < 1000; ++i) {
    node.set_connected(false, milliseconds(i));
    large.set_instance(std::to_string(i));
    node.begin(large, milliseconds(i));
  }
  const auto past = nlohmann::json::parse(node.history(milliseconds(1001)));
  EXPECT_LT(past["deltas"].size(), 300U);
  EXPECT_GT(past["deltas"].size(), 10U);
  EXPECT_EQ(past["base"]["containers"].size(), 501U);
}

TEST(NodeTest, TellsAsIllWhatTopoletdTellsAndWhatOnlyTheAgentKnows) {
  Node node;
  EXPECT_EQ(node.illnesses().at(0).code, "topoletd-unreachable");
  EXPECT_EQ(node.not_ready(), "not connected to topoletd");
  watch::v1::Snapshot told = snapshot();
  watch::v1::Illness& late = *told.mutable_illnesses()->add_illnesses();
  late.set_code("plugin-late");
  late.set_severity("warning");
  node.begin(told, milliseconds(1));
  ASSERT_EQ(node.illnesses().size(), 1U);
  EXPECT_EQ(node.illnesses()[0].code, "plugin-late");
  EXPECT_EQ(node.not_ready(), "") << "pods can start";
  node.set_own_illnesses({{illness::kNotPublished, Severity::kWarning, "node n1", "the API server is away"}},
                         milliseconds(7));
  EXPECT_EQ(node.illnesses().size(), 2U);
  EXPECT_EQ(node.not_ready(), "") << "nothing is forbidden";
  node.set_own_illnesses({{illness::kMayNotPublish, Severity::kWarning, "node n1", "it lacks a right"}},
                         milliseconds(8));
  EXPECT_EQ(node.not_ready(), "node n1: it lacks a right");
  node.set_own_illnesses({{illness::kMayNotPublish, Severity::kWarning, "node n1", "it lacks two rights"}},
                         milliseconds(9));
  EXPECT_EQ(node.illnesses().back().since, milliseconds(8)) << "the same, said in other words";
  node.set_own_illnesses({}, milliseconds(10));
  watch::v1::Delta worse;
  worse.set_generation(11);
  watch::v1::Illness& away = *worse.mutable_illnesses()->add_illnesses();
  away.set_code("runtime-unreachable");
  away.set_severity("critical");
  away.set_subject("runtime /run/x");
  away.set_sentence("it cannot be reached");
  Told page;
  node.follow(page.follower());
  node.apply(worse, milliseconds(2));
  EXPECT_EQ(node.not_ready(), "runtime /run/x: it cannot be reached");
  EXPECT_EQ(page.events.back(), "agent");
  EXPECT_EQ(page.last["illnesses"].size(), 1U);
  EXPECT_EQ(page.last["illnesses"][0]["severity"], "critical");
  node.set_connected(false, milliseconds(3));
  ASSERT_EQ(node.illnesses().size(), 1U) << "of a topoletd that is not there nothing is known";
  EXPECT_EQ(node.illnesses()[0].code, "topoletd-unreachable");
}

}  // namespace
}  // namespace topolet::agent
