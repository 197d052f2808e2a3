#include "cluster/agent/json.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

namespace topolet::agent {
namespace {

/// The fields of each message, as the .proto file has them.
std::map<std::string, std::set<std::string>> fields_in_proto() {
  std::ifstream in(TOPOLET_WATCH_PROTO);
  std::map<std::string, std::set<std::string>> fields;
  std::string message;
  const std::regex begins("^message (\\w+) \\{.*");
  const std::regex field("^ +(?:repeated |optional )?(?:map<[^>]*>|[\\w.]+) (\\w+) = \\d+;.*");
  for (std::string line; std::getline(in, line);) {
    std::smatch match;
    if (std::regex_match(line, match, begins)) message = match[1];
    if (std::regex_match(line, match, field)) fields[message].insert(match[1]);
  }
  return fields;
}

std::set<std::string> names_of(const nlohmann::json& object) {
  std::set<std::string> names;
  for (const auto& [name, value] : object.items()) names.insert(name);
  return names;
}

TEST(JsonTest, HasEveryFieldOfEachMessage) {
  const auto fields = fields_in_proto();
  watch::v1::Snapshot snapshot;
  watch::v1::Container& container = *snapshot.add_containers();
  container.mutable_key()->set_name("main");
  snapshot.add_plugins()->set_id("numa");
  snapshot.add_capacities();
  snapshot.mutable_illnesses()->add_illnesses();
  snapshot.mutable_machine()->add_nodes();
  snapshot.mutable_machine()->add_devices();
  const nlohmann::json state = to_json(snapshot);
  EXPECT_EQ(names_of(state), fields.at("Snapshot"));
  EXPECT_EQ(names_of(state["containers"][0]), fields.at("Container"));
  EXPECT_EQ(names_of(state["containers"][0]["key"]), fields.at("ContainerKey"));
  EXPECT_EQ(names_of(state["plugins"][0]), fields.at("Plugin"));
  EXPECT_EQ(names_of(state["capacities"][0]), fields.at("Capacity"));
  EXPECT_EQ(names_of(state["illnesses"][0]), fields.at("Illness"));
  EXPECT_EQ(names_of(state["cpus"]), fields.at("Cpus"));
  EXPECT_EQ(names_of(state["machine"]), fields.at("Machine"));
  EXPECT_EQ(names_of(state["machine"]["nodes"][0]), fields.at("Node"));
  EXPECT_EQ(names_of(state["machine"]["devices"][0]), fields.at("Device"));
  watch::v1::Delta delta;
  delta.add_changed();
  delta.add_capacities();
  delta.add_capacities_ended(0);
  delta.add_ended();
  watch::v1::Event& event = *delta.add_events();
  event.mutable_key();
  event.add_candidates()->add_opinions();
  delta.mutable_cpus();
  delta.mutable_machine();
  delta.mutable_plugins()->add_plugins();
  delta.set_reconciled(true);
  delta.mutable_illnesses();
  const nlohmann::json change = to_json(delta);
  EXPECT_EQ(names_of(change), fields.at("Delta"));
  EXPECT_EQ(names_of(change["events"][0]), fields.at("Event"));
  EXPECT_EQ(names_of(change["events"][0]["candidates"][0]), fields.at("Candidate"));
  EXPECT_EQ(names_of(change["events"][0]["candidates"][0]["opinions"][0]), fields.at("Opinion"));
}

TEST(JsonTest, SurvivesTextThatIsNoUtf8) {
  watch::v1::Container container;
  container.set_pod_namespace("</script>\n\"");
  const nlohmann::json value = to_json(container);
  EXPECT_EQ(nlohmann::json::parse(text_of(value))["pod_namespace"], "</script>\n\"");
  EXPECT_NE(text_of({{"x", "\xff"}}).find("\xef\xbf\xbd"), std::string::npos);
}

}  // namespace
}  // namespace topolet::agent
