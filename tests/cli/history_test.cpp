// The commands that tell what was, on a database that `topolet simulate` has kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
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

/// Two nodes of eight CPUs. At 0:00 web shares, at 0:01 db takes CPUs 0-3 from it, at 0:02 big is denied, and at 0:03
/// db ends.
constexpr const char* kStory = R"({"op":"run_pod","pod":"u1","name":"web","qos":"burstable"}
{"op":"create","pod":"u1","container":"main","cpu_request_milli":500}
{"op":"clock","advance_s":60}
{"op":"run_pod","pod":"u2","name":"db","qos":"guaranteed"}
{"op":"create","pod":"u2","container":"main","cpu_request_milli":4000,"cpu_limit_milli":4000}
{"op":"clock","advance_s":60}
{"op":"run_pod","pod":"u3","name":"big","qos":"guaranteed"}
{"op":"create","pod":"u3","container":"main","cpu_request_milli":40000,"cpu_limit_milli":40000}
{"op":"clock","advance_s":60}
{"op":"exit","pod":"u2","container":"main","exit_code":0}
{"op":"remove_pod","pod":"u2"}
)";
constexpr const char* kBoth = "2026-01-01T00:01:30Z";

class HistoryTest : public ::testing::Test {
 protected:
  HistoryTest() {
    state_.directory().write("story.jsonl", kStory);
    const Said said = testing::simulate({"--topology", "pack:2 numa:1 core:4 pu:2", "--workload",
                                         state_.file("story.jsonl"), "--state-dir", state_.path()});
    EXPECT_EQ(said.code, 0) << said.text;
  }

  json rows(std::vector<std::string> words) const {
    words.emplace_back("--json");
    const Said said = state_.topolet(std::move(words));
    EXPECT_EQ(said.code, 0) << said.text;
    return said.code == 0 ? json::parse(said.text) : json::array();
  }
  std::string said(std::vector<std::string> words, int code) const {
    const Said answer = state_.topolet(std::move(words));
    EXPECT_EQ(answer.code, code) << answer.text;
    return answer.text;
  }

  StateDir state_;
};

TEST_F(HistoryTest, TellsTheCpusOfTheMoment) {
  const json before = rows({"at", "2026-01-01T00:00:30Z"});
  ASSERT_EQ(before.size(), 1U);
  EXPECT_EQ(before[0]["cpus"], "0-15");
  const json both = rows({"at", kBoth});
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0]["pod"], "db");
  EXPECT_EQ(both[0]["cpus"], "0-3");
  EXPECT_EQ(both[1]["pod"], "web");
  EXPECT_EQ(both[1]["cpus"], "4-15");
  EXPECT_EQ(rows({"at", "now"})[0]["cpus"], "0-15");
  EXPECT_THAT(said({"at", "2025-12-31"}, 0), HasSubstr("nothing was held then"));
  EXPECT_THAT(said({"at", "noon"}, 2), HasSubstr("'noon' is no time; write 2026-01-31T12:00:00Z"));
}

TEST_F(HistoryTest, TellsWhoIsOnACpu) {
  const json exclusive = rows({"cpu", "3", "--at", kBoth});
  ASSERT_EQ(exclusive.size(), 1U);
  EXPECT_EQ(exclusive[0]["pod"], "db");
  EXPECT_EQ(exclusive[0]["how"], "runs");
  EXPECT_EQ(rows({"cpu", "3"})[0]["pod"], "web");
  EXPECT_THAT(said({"cpu", "99"}, 1), HasSubstr("the machine has no CPU 99, or it is offline"));
  EXPECT_THAT(said({"cpu", "two"}, 2), HasSubstr("'two' is no CPU"));
  EXPECT_THAT(said({"cpu", "3", "--at", "2025-01-01"}, 0), HasSubstr("nobody is on CPU 3"));
}

TEST_F(HistoryTest, TellsWhatTheNodesHave) {
  const json nodes = rows({"nodes", "--at", kBoth});
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0]["exclusive"], 4);
  EXPECT_EQ(nodes[0]["pool"], 4);
  EXPECT_EQ(nodes[0]["largest_exclusive"], 4);
  EXPECT_EQ(nodes[1]["pool"], 8);
  EXPECT_THAT(said({"nodes"}, 0), AllOf(HasSubstr("EXCLUSIVE POSSIBLE"), HasSubstr("8-15")));
}

TEST_F(HistoryTest, TellsWhoWasMovedBecauseOfWhom) {
  const json moves = rows({"moves", "--since", "2026-01-01T00:00:00Z"});
  ASSERT_EQ(moves.size(), 2U);
  EXPECT_EQ(moves[0]["time"], "2026-01-01T00:01:00.000Z");
  EXPECT_EQ(moves[0]["pod"], "web");
  EXPECT_EQ(moves[0]["from"], "0-15");
  EXPECT_EQ(moves[0]["to"], "4-15");
  EXPECT_EQ(moves[0]["because of"], "placed default/db/main");
  EXPECT_EQ(moves[1]["because of"], "ended default/db/main");
  EXPECT_THAT(said({"moves"}, 0), HasSubstr("no container was moved in that time"));
}

TEST_F(HistoryTest, CountsDenials) {
  const json denials = rows({"denials", "--since", "2026-01-01"});
  ASSERT_EQ(denials.size(), 1U);
  EXPECT_EQ(denials[0]["code"], "too-few-free-cpus");
  const json reasons = rows({"denials", "--since", "2026-01-01", "--by", "reason"});
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_EQ(reasons[0]["reason"], "too-few-free-cpus");
  EXPECT_EQ(reasons[0]["times"], 1);
  EXPECT_THAT(said({"denials", "--by", "colour"}, 2), HasSubstr("--by must be reason, namespace, pod or plugin"));
  EXPECT_THAT(said({"denials"}, 0), HasSubstr("nothing was denied in that time"));
}

TEST_F(HistoryTest, CountsAContainerOnceForEachPluginThatRejectedIt) {
  {
    const auto store = state_.open();
    store::DecidedRow row;
    row.at_ms = 1'767'225'900'000;
    row.event = "denied";
    row.holds = false;
    row.verdicts =
        R"({"candidates":3,"rejected":{"numa: node 0 is full":1,"numa: node 1 is full":1,"core: too few free CPUs":2}})";
    ASSERT_TRUE(store->add(row).has_value());
  }
  const json plugins = rows({"denials", "--since", "2026-01-01", "--by", "plugin"});
  ASSERT_EQ(plugins.size(), 2U);
  EXPECT_EQ(plugins[0],
            json({{"plugin", "core"}, {"containers", 1}, {"times", 1}, {"last", "2026-01-01T00:05:00.000Z"}}));
  EXPECT_EQ(plugins[1],
            json({{"plugin", "numa"}, {"containers", 1}, {"times", 1}, {"last", "2026-01-01T00:05:00.000Z"}}));
}

TEST_F(HistoryTest, FindsDecisionsByTheCodesOfPlugins) {
  {
    const auto store = state_.open();
    store::DecidedRow row;
    row.at_ms = 1'767'225'900'000;
    row.event = "denied";
    row.holds = false;
    row.pod_name = "coded";
    row.reason_code = "plugin-rejected";
    row.verdicts =
        R"json({"candidates":1,"best":[],"rejected":{"numa: full (numa/full)":1},"codes":["numa/full"]})json";
    ASSERT_TRUE(store->add(row).has_value());
    row.pod_name = "other";
    row.verdicts = R"({"candidates":1,"best":[],"rejected":{"numa: numa/full":1},"codes":["numa/fuller"]})";
    ASSERT_TRUE(store->add(row).has_value());
  }
  const json found = rows({"audit", "--since", "2026-01-01", "--reason", "numa/full"});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0]["pod"], "coded");
  EXPECT_EQ(found[0]["code"], "plugin-rejected");
  EXPECT_THAT(said({"audit", "--since", "2026-01-01", "--reason", "gpu/full"}, 0),
              HasSubstr("nothing like that is recorded of that time"));
}

TEST_F(HistoryTest, FindsInTheAudit) {
  const auto events = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "audit");
    std::string text;
    for (const json& row : rows(std::move(words))) {
      text += row["pod"].get<std::string>() + " " + row["event"].get<std::string>() + ", ";
    }
    return text;
  };
  EXPECT_EQ(events({}), "web unpinned, web bound, db unpinned, db bound, big denied, db kept, db ended, ");
  EXPECT_EQ(events({"--limit", "2"}), "db kept, db ended, ");
  EXPECT_EQ(events({"--pod", "db"}), "db unpinned, db bound, db kept, db ended, ");
  EXPECT_EQ(events({"--event", "denied"}), "big denied, ");
  EXPECT_EQ(events({"--event", "bound"}), "web bound, db bound, ");
  EXPECT_EQ(events({"--event", "kept"}), "db kept, ");
  EXPECT_EQ(events({"--event", "ended"}), "db ended, ");
  EXPECT_EQ(events({"--since", "2026-01-01T00:02:00Z"}), "big denied, db kept, db ended, ");
  EXPECT_EQ(events({"--until", "2026-01-01T00:00:30Z"}), "web unpinned, web bound, ");
  const std::string since = "--since=2026-01-01";
  EXPECT_EQ(events({since, "--reason", "too-few-free-cpus"}), "big denied, ");
  EXPECT_EQ(events({since, "--reason", "pod-stopped"}), "db ended, ");
  EXPECT_EQ(events({since, "--cpu", "15"}), "web unpinned, web bound, ");
  EXPECT_EQ(events({since, "--node", "1"}), "web unpinned, web bound, ");
  EXPECT_EQ(events({since, "--namespace", "default", "--pod", "big"}), "big denied, ");
  EXPECT_THAT(said({"audit", since, "--namespace", "other"}, 0), HasSubstr("nothing is recorded of that time"));
  EXPECT_THAT(said({"audit", "--pod", "nobody"}, 0), HasSubstr("nothing is recorded about pod 'nobody'"));
  EXPECT_THAT(said({"audit", "--node", "7"}, 2), HasSubstr("the machine has no NUMA node 7"));
  EXPECT_THAT(said({"audit", "--cpu", "1-", since}, 2), HasSubstr("--cpu"));
  EXPECT_THAT(said({"audit", "--cpu", "1", "--node", "1"}, 2), HasSubstr("cannot be given together"));
}

TEST_F(HistoryTest, FollowsWhatComes) {
  Process follower(
      {TOPOLET_COMMAND, "audit", "--follow", "--limit", "1", "--format", "ndjson", "--state-dir", state_.path()},
      state_.file("followed"));
  const auto lines = [&] {
    std::ostringstream text;
    text << std::ifstream(state_.file("followed")).rdbuf();
    const std::string all = text.str();
    return std::count(all.begin(), all.end(), '\n');
  };
  const auto wait_for = [&](int count) {
    eventually([&] { return lines() >= count; });
    return lines();
  };
  ASSERT_EQ(wait_for(1), 1);
  const auto now =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch());
  {
    const auto store = state_.open();
    store::DecidedRow row;
    row.at_ms = now.count();
    row.event = "drift";
    row.holds = false;
    ASSERT_TRUE(store->add(row).has_value());
  }
  EXPECT_EQ(wait_for(2), 2);
  EXPECT_THAT(said({"audit", "--follow", "--format", "csv"}, 2), HasSubstr("--follow prints a table"));
}

TEST_F(HistoryTest, HasFunctionsInSql) {
  EXPECT_THAT(
      said({"query", "SELECT pod, cpus FROM held_at('2026-01-01T00:01:30Z') ORDER BY pod", "--format", "csv"}, 0),
      HasSubstr("db,0-3\r\nweb,4-15"));
  EXPECT_THAT(said({"query", "SELECT pod FROM on_cpu(3, 1767225690000)"}, 0), HasSubstr("db"));
  EXPECT_THAT(said({"query", "SELECT count(*) AS n FROM moves('2026-01-01')", "--format", "csv"}, 0), HasSubstr("2"));
  EXPECT_THAT(said({"query", "SELECT node, pool FROM node_usage_at('2026-01-01T00:01:30Z')", "--format", "csv"}, 0),
              HasSubstr("0,4\r\n1,8"));
  EXPECT_THAT(said({"query",
                    "SELECT cpu_count('0-3,8') AS five, cpu_count('') AS none, cpu_count(NULL) AS null_, "
                    "moment('2026-01-01T00:01:30Z') AS ms, moment(7) AS seven, moment(NULL) AS null_",
                    "--format", "csv"},
                   0),
              HasSubstr("5,0,,1767225690000,7,\r\n"));
  EXPECT_THAT(said({"query", "SELECT cpu_count('1-')"}, 1), HasSubstr("1-"));
  EXPECT_THAT(said({"query", "SELECT moment('noon')"}, 1), HasSubstr("'noon' is no time"));
  EXPECT_THAT(said({"query", "SELECT * FROM held_at('noon')"}, 1), HasSubstr("'noon' is no time"));
  EXPECT_THAT(said({"query", "SELECT * FROM on_cpu()"}, 1), HasSubstr("needs the number of a CPU"));
}

TEST_F(HistoryTest, PicksAmongThePlacedContainers) {
  EXPECT_EQ(rows({"ps", "--node", "1"}).size(), 1U);
  EXPECT_EQ(rows({"ps", "--wide"})[0]["pod_uid"], "u1");
  EXPECT_THAT(said({"ps", "--namespace", "other"}, 0), HasSubstr("no container is placed there"));
}

}  // namespace
}  // namespace topolet::testing
