// `topolet map`, on databases that `topolet simulate` has kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/run_topolet.hpp"
#include "tests/support/eventually.hpp"

namespace topolet::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Two containers with CPUs of their own, one of which ends and comes again, and one that shares. Pods are called as
/// their uids are, as the map of `topolet simulate` names them by uid.
constexpr const char* kMapStory =
    R"({"op":"run_pod","pod":"a","name":"a","namespace":"default","qos":"guaranteed"}
{"op":"create","pod":"a","container":"main","cpu_request_milli":3000,"cpu_limit_milli":3000,"memory_limit":4096}
{"op":"run_pod","pod":"b","name":"b","namespace":"default","qos":"guaranteed"}
{"op":"create","pod":"b","container":"main","cpu_request_milli":2000,"cpu_limit_milli":2000,"memory_limit":4096}
{"op":"run_pod","pod":"s","name":"s","namespace":"default","qos":"burstable"}
{"op":"create","pod":"s","container":"main","cpu_request_milli":500}
{"op":"exit","pod":"a","container":"main","exit_code":0}
{"op":"create","pod":"a","container":"main","cpu_request_milli":1000,"cpu_limit_milli":1000,"memory_limit":4096}
)";

std::string without(std::string text, const std::string& part) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part)) text.erase(at, part.size());
  return text;
}

class MapTest : public ::testing::Test {
 protected:
  /// Draws a map with `topolet simulate`, with names as `topolet map` has them.
  std::string simulate(const std::string& machine, const std::string& story, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"--topology",  machine,
                                      "--workload",  state_.directory().write("story.jsonl", story),
                                      "--state-dir", state_.path()};
    words.insert(words.end(), more.begin(), more.end());
    const Said said = testing::simulate(words);
    EXPECT_EQ(said.code, 0) << said.text;
    const std::size_t blank = said.text.find("\n\n");
    return blank == std::string::npos ? said.text : said.text.substr(blank + 2);
  }
  std::string drawn(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), "map");
    const Said said = state_.topolet(std::move(more));
    EXPECT_EQ(said.code, 0) << said.text;
    return said.text;
  }

  StateDir state_;
};

class MapOfMachine : public MapTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(MapOfMachine, IsAsTheSimulationDrawsIt) {
  const std::string map = simulate(std::string(TOPOLET_TEST_DATA "/topologies/") + GetParam() + ".xml", kMapStory);
  EXPECT_THAT(map, HasSubstr("A a/main: "));
  EXPECT_EQ(without(drawn(), "default/"), map);
}

INSTANTIATE_TEST_SUITE_P(Recorded, MapOfMachine,
                         ::testing::Values("16amd64-8n2c-cpusets", "16em64t-4s2c2t", "192em64t-24n8c2t",
                                           "24em64t-2n6c2t-pci", "64intel64-fakeKNL-SNC4-hybrid", "nvidia-dgx2",
                                           "power8gpudistances"),
                         [](const auto& machine) {
                           std::string name = machine.param;
                           for (char& sign : name) sign = sign == '-' ? '_' : sign;
                           return name;
                         });

constexpr const char* kSmall = "pack:2 numa:1 core:4 pu:2";

TEST_F(MapTest, TellsAllKindsOfCpusApart) {
  const std::string map = simulate(kSmall, std::string(kMapStory) + "{\"op\":\"offline\",\"cpus\":\"14\"}\n",
                                   {"--plugins.enable=smt", "--smt.isolate-siblings=exclusive",
                                    "--placement.reserved-cpus=8", "--isolated-cpus", "12-13"});
  const std::string text = drawn();
  EXPECT_EQ(without(text, "default/"), map);
  EXPECT_THAT(text, HasSubstr("node 0 (CPUs 0-7)            [..] [A~] [BB] [..]\n"));
  EXPECT_THAT(text, HasSubstr("node 1 (CPUs 8-13,15)        [r.] [..] [ii] [.]\n"));
  EXPECT_THAT(text, HasSubstr("A default/a/main: 2, withholds 3\nB default/b/main: 4-5\noffline: 14\n"));
}

TEST_F(MapTest, IsJsonForPrograms) {
  simulate(kSmall, std::string(kMapStory) + "{\"op\":\"offline\",\"cpus\":\"14\"}\n", {"--placement.reserved-cpus=8"});
  const json cpus = json::parse(drawn({"--json"}));
  ASSERT_EQ(cpus.size(), 16U);
  EXPECT_EQ(cpus[2], json({{"cpu", 2}, {"node", 0}, {"core", 2}, {"use", "exclusive"}, {"by", "default/b/main"}}));
  EXPECT_EQ(cpus[8], json({{"cpu", 8}, {"node", 1}, {"core", 8}, {"use", "reserved"}, {"by", nullptr}}));
  EXPECT_EQ(cpus[14], json({{"cpu", 14}, {"node", nullptr}, {"core", nullptr}, {"use", "offline"}, {"by", nullptr}}));
  EXPECT_EQ(cpus[15]["use"], "pool");
}

TEST_F(MapTest, DrawsAMomentOfThePast) {
  simulate(kSmall,
           std::string(kMapStory) + "{\"op\":\"clock\",\"advance_s\":60}\n{\"op\":\"remove_pod\",\"pod\":\"b\"}\n");
  EXPECT_THAT(drawn({"--at", "2026-01-01T00:00:30Z"}), HasSubstr("B default/b/main"));
  EXPECT_THAT(drawn(), Not(HasSubstr("default/b/main")));
  EXPECT_EQ(state_.topolet({"map", "--at", "noon"}).code, 2);
}

TEST_F(MapTest, DrawsACopyToo) {
  simulate(kSmall, kMapStory);
  const std::string copy = state_.file("copy.db");
  ASSERT_EQ(state_.topolet({"backup", copy}).code, 0);
  EXPECT_EQ(testing::topolet({"map", "--database", copy}).text, drawn());
}

TEST_F(MapTest, SaysWhereTheMachineIsNotRecorded) {
  state_.open();
  const Said said = state_.topolet({"map"});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.text, HasSubstr("does not tell what machine this is"));
}

TEST_F(MapTest, DrawsAgainWhatHasChanged) {
  simulate(kSmall, kMapStory);
  const std::string before = drawn();
  Process watcher({TOPOLET_COMMAND, "map", "--watch", "--state-dir", state_.path()}, state_.file("watched"));
  const auto watched = [&] {
    std::ostringstream text;
    text << std::ifstream(state_.file("watched")).rdbuf();
    return text.str();
  };
  // The changes are made one by one, so it may have seen some of them separately.
  const auto wait_for = [&](const std::string& end) { return eventually([&] { return watched().ends_with(end); }); };
  ASSERT_TRUE(wait_for(before)) << watched();
  EXPECT_EQ(watched(), before);
  {
    const auto store = state_.open();
    store::DecidedRow row;
    row.at_ms = 1;
    row.event = "placed";
    row.pod_namespace = "shop";
    row.pod_name = "till";
    row.container = "app";
    row.mode = "exclusive";
    row.cpus = {9};
    const auto decision = store->add(row);
    ASSERT_TRUE(decision.has_value()) << decision.error().message;
    const store::Columns columns = {
        {"state", "bound"}, {"container_id", "c-1"}, {"cpus", "9"}, {"pending_since_ms", std::int64_t{1}}};
    ASSERT_TRUE(store->put_allocation(*decision, columns).has_value());
  }
  const std::string after = drawn();
  EXPECT_THAT(after, HasSubstr("A shop/till/app: 9\n"));
  EXPECT_TRUE(wait_for("\n\n" + after)) << watched();
  EXPECT_THAT(watched(), AllOf(StartsWith(before + "\n"), Not(HasSubstr("\033"))));
  EXPECT_EQ(state_.topolet({"map", "--watch", "--json"}).code, 2);
  EXPECT_EQ(state_.topolet({"map", "--watch", "--at", "12:00"}).code, 2);
}

}  // namespace
}  // namespace topolet::testing
