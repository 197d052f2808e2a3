#include "tests/store/scratch.hpp"

namespace topolet::store {
namespace {

using Rows = std::vector<std::vector<std::string>>;

class ViewsTest : public StoreTest {
 protected:
  /// One container after another: placed and bound, resized, stopped; one shared; one denied twice.
  void play_a_story() const {
    const auto store = open();
    DecidedRow app = exclusive_row("app", {0, 1});
    app.withheld = {4, 5};
    app.verdicts = R"({"candidates":3,"best":[)"
                   R"({"nodes":"0","score":64,"words":[["numa","score",64,"fits one node"],["gpu","abstain",0,""]]},)"
                   R"({"nodes":"1","score":-5,"words":[["numa","score",-5,"farther away"]]},)"
                   R"({"nodes":"0-1","score":0,"rejected":true,"words":[["numa","reject",0,"one node is enough"]]}],)"
                   R"("rejected":{"numa: one node is enough":1},)"
                   R"("lost_votes":["smt: late"],"dropped":["gpu: would leave no CPU"]})";
    const auto placed = add_with_allocation(*store, app);
    ASSERT_TRUE(placed.has_value()) << message(placed);
    ASSERT_TRUE(store->add(OutcomeRow{*placed, app.at_ms + 7, "bound", "c-1", 0, ""}).has_value());
    DecidedRow resized = exclusive_row("app", {0, 1, 2});
    resized.event = "resized";
    resized.at_ms += 1000;
    resized.supersedes = *placed;
    resized.container_id = "c-1";
    ASSERT_TRUE(add_with_allocation(*store, resized).has_value());
    const auto shared = add_with_allocation(*store, shared_row("log", {3, 6}, {3, 6, 7}));
    ASSERT_TRUE(store->add(OutcomeRow{*shared, app.at_ms + 9, "bound", "c-2", 0, ""}).has_value());
    ASSERT_TRUE(
        store->update_allocation(*shared, {{"state", "bound"}, {"container_id", "c-2"}, {"cpus", "6-7"}}).has_value());
    DecidedRow denied = denied_row("huge");
    denied.at_ms += 2000;
    denied.verdicts = R"({"candidates":2,"best":[],"rejected":{"numa: too small":2}})";
    const auto no = store->add(denied);
    ASSERT_TRUE(store->count_repeat(*no, denied.at_ms + 500).has_value());
    const auto refused = add_with_allocation(*store, exclusive_row("bad", {7}));
    ASSERT_TRUE(store->add(OutcomeRow{*refused, app.at_ms + 20, "refused", "", 3, "no such image"}).has_value());
    ASSERT_TRUE(store->add(EndedRow{*refused, app.at_ms + 20, 6, "refused"}).has_value());
  }
};

TEST_F(ViewsTest, ShowWhoIsWhereNow) {
  play_a_story();
  const Rows expected{{"shop", "till", "app", "2", "c-1", "pending", "exclusive", "0-2", "", "0",
                       "2023-11-14T22:13:21.123Z", "numa: fits one node"},
                      {"shop", "till", "log", "2", "c-2", "bound", "shared", "6-7", "", "0", "2023-11-14T22:13:20.123Z",
                       "numa: fits one node"}};
  EXPECT_EQ(rows("SELECT namespace, pod, container, attempt, container_id, state, mode, cpus, withheld, mems, since, "
                 "reason FROM current_placements",
                 12),
            expected);
}

TEST_F(ViewsTest, TellTheAuditInTheOrderOfTime) {
  play_a_story();
  const Rows expected{
      {"2023-11-14T22:13:20.123Z", "placed", "app", "exclusive, CPUs 0-1, withheld 4-5, memory nodes 0",
       "numa: fits one node"},
      {"2023-11-14T22:13:20.123Z", "placed", "log", "shared, CPUs 3,6, memory nodes 0", "numa: fits one node"},
      {"2023-11-14T22:13:20.123Z", "placed", "bad", "exclusive, CPUs 7, memory nodes 0", "numa: fits one node"},
      {"2023-11-14T22:13:20.130Z", "bound", "app", "container c-1", ""},
      {"2023-11-14T22:13:20.132Z", "bound", "log", "container c-2", ""},
      {"2023-11-14T22:13:20.143Z", "refused", "bad", "status code 3", "no such image"},
      {"2023-11-14T22:13:20.143Z", "ended", "bad", "", "refused"},
      {"2023-11-14T22:13:21.123Z", "ended", "app", "", "superseded"},
      {"2023-11-14T22:13:21.123Z", "resized", "app", "exclusive, CPUs 0-2, memory nodes 0, in place of 1",
       "numa: fits one node"},
      {"2023-11-14T22:13:22.123Z", "denied", "huge", "", "no node has 64 CPUs free"}};
  EXPECT_EQ(rows("SELECT time, event, container, what, reason FROM audit", 5), expected);
}

TEST_F(ViewsTest, CountDenials) {
  play_a_story();
  EXPECT_EQ(rows("SELECT first, last, times, namespace, pod, container, attempt, reason FROM denials", 8),
            (Rows{{"2023-11-14T22:13:22.123Z", "2023-11-14T22:13:22.623Z", "2", "shop", "till", "huge", "2",
                   "no node has 64 CPUs free"}}));
}

TEST_F(ViewsTest, JoinADecisionWithItsOutcomeAndItsEnd) {
  play_a_story();
  const Rows expected{{"1", "placed", "c-1", "bound", "0", "superseded", "0"},
                      {"2", "resized", "c-1", "pending", "", "", "0"},
                      {"3", "placed", "c-2", "bound", "0", "", "0"},
                      {"4", "denied", "", "", "", "", "1"},
                      {"5", "placed", "", "refused", "3", "refused", "0"}};
  EXPECT_EQ(rows("SELECT decision, event, container_id, outcome, outcome_code, ended_cause, repeats FROM decision "
                 "ORDER BY decision",
                 7),
            expected);
}

TEST_F(ViewsTest, GiveVerdictsBackAsRows) {
  play_a_story();
  const Rows expected{{"1", "1", "0", "64", "0", "numa", "score", "64", "fits one node"},
                      {"1", "1", "0", "64", "0", "gpu", "abstain", "0", ""},
                      {"1", "2", "1", "-5", "0", "numa", "score", "-5", "farther away"},
                      {"1", "3", "0-1", "0", "1", "numa", "reject", "0", "one node is enough"}};
  EXPECT_EQ(rows("SELECT decision, rank, nodes, sum, rejected, policy, kind, score, reason FROM verdict", 9), expected);
  const Rows notes{{"1", "dropped", "gpu: would leave no CPU", ""},
                   {"1", "lost vote", "smt: late", ""},
                   {"1", "rejected", "numa: one node is enough", "1"},
                   {"4", "rejected", "numa: too small", "2"}};
  EXPECT_EQ(rows("SELECT decision, kind, note, candidates FROM verdict_note ORDER BY decision, kind", 4), notes);
}

TEST_F(ViewsTest, ShowEveryMillisecondAsItIs) {
  const auto store = open();
  ASSERT_TRUE(store->begin().has_value());
  for (const std::int64_t at_ms : {0, 1, 999, 1000, 59'999}) {
    DecidedRow row = denied_row("app");
    row.at_ms = at_ms;
    ASSERT_TRUE(store->add(row).has_value());
  }
  for (int i = 0; i < 5000; ++i) {
    DecidedRow row = denied_row("app");
    row.at_ms = 1'700'000'000'000 + std::int64_t{i} * 7'777'777;
    ASSERT_TRUE(store->add(row).has_value());
  }
  ASSERT_TRUE(store->commit().has_value());
  EXPECT_EQ(value("SELECT time FROM decision WHERE at_ms = 59999"), "1970-01-01T00:00:59.999Z");
  EXPECT_EQ(value("SELECT count(*) FROM decision WHERE time <> strftime('%Y-%m-%dT%H:%M:%S', at_ms / 1000, "
                  "'unixepoch') || printf('.%03dZ', at_ms % 1000)"),
            "0");
}

}  // namespace
}  // namespace topolet::store
