// `topolet moves` and what `topolet nodes` says of fragmentation, on databases that `topolet simulate` has kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/run_topolet.hpp"

namespace topolet::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Two nodes of four CPUs, in two caches each. A shared container on each node; "big" gets one of the nodes.
constexpr const char* kRoomIsMade = R"({"op":"run_pod","pod":"u1","name":"web","qos":"burstable"}
{"op":"create","pod":"u1","container":"main","cpu_request_milli":500,"memory_request":536870912}
{"op":"run_pod","pod":"u2","name":"api","qos":"burstable"}
{"op":"create","pod":"u2","container":"main","cpu_request_milli":500,"memory_request":536870912}
{"op":"clock","advance_s":60}
{"op":"run_pod","pod":"u3","name":"big","qos":"guaranteed"}
{"op":"create","pod":"u3","container":"main","cpu_request_milli":4000,"cpu_limit_milli":4000,"memory_limit":1048576}
{"op":"clock","advance_s":60}
{"op":"run_pod","pod":"u4","name":"one","qos":"guaranteed"}
{"op":"create","pod":"u4","container":"main","cpu_request_milli":1000,"cpu_limit_milli":1000,"memory_limit":1048576}
)";
/// After the third one, each node has one CPU free.
constexpr const char* kWide = R"({"op":"run_pod","pod":"u1","name":"a","qos":"guaranteed"}
{"op":"create","pod":"u1","container":"main","cpu_request_milli":3000,"cpu_limit_milli":3000,"memory_limit":1048576}
{"op":"run_pod","pod":"u2","name":"b","qos":"guaranteed"}
{"op":"create","pod":"u2","container":"main","cpu_request_milli":3000,"cpu_limit_milli":3000,"memory_limit":1048576}
{"op":"run_pod","pod":"u3","name":"c","qos":"guaranteed"}
{"op":"create","pod":"u3","container":"main","cpu_request_milli":2000,"cpu_limit_milli":2000,"memory_limit":1048576}
)";

class MovesTest : public ::testing::Test {
 protected:
  void simulate(const char* story, const std::string& more = "--placement.min-shared-cpus=0") const {
    state_.directory().write("story.jsonl", story);
    const Said said =
        testing::simulate({"--topology", "pack:2 numa:1 l3:2 core:2 pu:1", "--workload", state_.file("story.jsonl"),
                           "--plugins.enable=numa", more, "--state-dir", state_.path()});
    ASSERT_EQ(said.code, 0) << said.text;
  }

  Said said(std::vector<std::string> words) const {
    words.insert(words.begin() + 1, {"--since", "2026-01-01"});
    return state_.topolet(std::move(words));
  }

  json rows(std::vector<std::string> words) const {
    words.emplace_back("--json");
    const Said shown = said(std::move(words));
    EXPECT_EQ(shown.code, 0) << shown.text;
    return json::parse(shown.text);
  }

  StateDir state_;
};

TEST_F(MovesTest, SaysWhatAMoveGainedAndWhatItCost) {
  simulate(kRoomIsMade);
  const json room = rows({"moves", "--kind", "room"});
  ASSERT_EQ(room.size(), 1U) << room;
  EXPECT_EQ(room[0]["kind"], "room");
  EXPECT_EQ(room[0]["nodes_before"], 1);
  EXPECT_EQ(room[0]["nodes_after"], 1);
  EXPECT_EQ(room[0]["l3s_before"], 2);
  EXPECT_EQ(room[0]["l3s_after"], 2);
  EXPECT_EQ(room[0]["moved_cpus"], 4);
  EXPECT_EQ(room[0]["remote_cpus_before"], nullptr) << "it names no device";
  EXPECT_GT(room[0]["memory_left_bytes"].get<std::int64_t>(), 500 << 20);
  EXPECT_THAT(said({"moves", "--kind", "room"}).text, HasSubstr("4 CPUs, 51"));
}

TEST_F(MovesTest, TellsThoseThatFollowThePoolFromOthers) {
  simulate(kRoomIsMade);
  const json pool = rows({"moves", "--kind", "pool"});
  ASSERT_EQ(pool.size(), 2U) << pool;
  for (const json& move : pool) {
    EXPECT_EQ(move["kind"], "pool");
    EXPECT_EQ(move["moved_cpus"], 0) << "it only has a CPU less";
    EXPECT_EQ(move["memory_left_bytes"], 0);
  }
  EXPECT_EQ(rows({"moves"}).size(), 3U);
  EXPECT_EQ(rows({"moves", "--kind", "heal"}).size(), 0U);
  EXPECT_EQ(said({"moves", "--kind", "heal"}).text, "no container was moved in that time\n");
}

TEST_F(MovesTest, KnowsTheKinds) {
  simulate(kRoomIsMade);
  const Said wrong = said({"moves", "--kind", "heel"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.text, AllOf(HasSubstr("'heel' is none of heal, room, crowd"), HasSubstr("did you mean heal?")));
}

TEST_F(MovesTest, NodesSayHowManyContainersCouldBeNarrower) {
  simulate(kWide);
  const json nodes = json::parse(state_.topolet({"nodes", "--json"}).text);
  EXPECT_EQ(nodes[0]["could_be_narrower"], 1);
  EXPECT_EQ(nodes[1]["could_be_narrower"], 1);
  EXPECT_THAT(state_.topolet({"nodes"}).text, HasSubstr("COULD BE NARROWER"));
}

/// Two nodes hold five CPUs, and no single one does.
TEST_F(MovesTest, NodesDoNotCountContainersThatNeedTheirNodes) {
  simulate(R"({"op":"run_pod","pod":"u1","name":"a","qos":"guaranteed"}
{"op":"create","pod":"u1","container":"main","cpu_request_milli":5000,"cpu_limit_milli":5000,"memory_limit":1048576}
)");
  EXPECT_THAT(state_.topolet({"nodes"}).text, Not(HasSubstr("COULD BE NARROWER")));
  EXPECT_EQ(json::parse(state_.topolet({"nodes", "--json"}).text)[0]["could_be_narrower"], 0);
}

}  // namespace
}  // namespace topolet::testing
