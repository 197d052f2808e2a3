#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/run_topolet.hpp"

namespace topolet::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ExplainTest : public ::testing::Test {
 protected:
  static store::DecidedRow row_of(const std::string& pod, const std::string& container, const std::string& uid) {
    store::DecidedRow row;
    row.at_ms = 1;
    row.pod_uid = uid;
    row.pod_namespace = "prod";
    row.pod_name = pod;
    row.container = container;
    return row;
  }

  std::int64_t add(const store::DecidedRow& row) {
    const auto decision = store_->add(row);
    EXPECT_TRUE(decision.has_value()) << decision.error().message;
    return *decision;
  }

  /// A decision on a container, which holds nothing.
  std::int64_t denied(const std::string& pod, const std::string& container, const std::string& uid,
                      const std::string& reason = "no room") {
    store::DecidedRow row = row_of(pod, container, uid);
    row.event = "denied";
    row.reason = reason;
    row.holds = false;
    return add(row);
  }
  /// A shared container that was placed on CPUs 0-1 and runs on `cpus` now.
  std::int64_t placed(const std::string& pod, const std::string& container, const std::string& uid,
                      const std::string& cpus, const std::string& container_id) {
    store::DecidedRow row = row_of(pod, container, uid);
    row.event = "placed";
    row.mode = "shared";
    row.cpus = {0, 1};
    const std::int64_t decision = add(row);
    const store::Columns columns = {{"state", "bound"},
                                    {"container_id", container_id},
                                    {"cpus", cpus},
                                    {"pending_since_ms", std::int64_t{1}},
                                    {"pod_uid", uid},
                                    {"container", container},
                                    {"pod_namespace", "prod"},
                                    {"pod_name", pod}};
    EXPECT_TRUE(store_->put_allocation(decision, columns).has_value());
    EXPECT_TRUE(store_->add(store::OutcomeRow{decision, 2, "bound", container_id, 0, ""}).has_value());
    return decision;
  }
  /// Records an observation of a container, without a decision.
  std::int64_t recorded(const std::string& event, const std::string& pod, const std::string& uid,
                        const std::string& reason, const std::string& container_id = "") {
    store::DecidedRow row = row_of(pod, "main", uid);
    row.event = event;
    row.mode = "shared";
    row.cpus = {0, 1};
    row.reason = reason;
    row.container_id = container_id;
    row.holds = false;
    return add(row);
  }
  void end(std::int64_t decision) { EXPECT_TRUE(store_->add(store::EndedRow{decision, 3, 1, "removed"}).has_value()); }

  /// Records the warnings logged about the annotations of the pod.
  void warned(const std::string& uid, const std::string& json) {
    const store::Columns pod = {{"sandbox_id", "sandbox-" + uid}, {"pod_uid", uid},
                                {"pod_namespace", "prod"},        {"pod_name", "web"},
                                {"runtime_handler", ""},          {"warned", json}};
    EXPECT_TRUE(store_->put_pod(pod).has_value());
  }
  std::string explained(std::vector<std::string> words) {
    words.insert(words.begin(), "explain");
    const Said said = state_.topolet(std::move(words));
    EXPECT_EQ(said.code, 0) << said.text;
    return said.text;
  }
  std::string refused(std::vector<std::string> words) {
    words.insert(words.begin(), "explain");
    const Said said = state_.topolet(std::move(words));
    EXPECT_EQ(said.code, 2) << said.text;
    return said.text;
  }

 private:
  StateDir state_;
  std::unique_ptr<store::Store> store_ = state_.open();
};

TEST_F(ExplainTest, TakesTheNewestOfOneNameAndCountsTheOthers) {
  denied("sts-0", "main", "uid-1", "first");
  denied("sts-0", "main", "uid-2", "second");
  denied("sts-0", "main", "uid-3", "third");
  for (const char* name : {"prod/sts-0/main", "sts-0/main", "main", "prod/sts-0", "sts-0"}) {
    EXPECT_THAT(explained({name}), AllOf(HasSubstr("reason when denied: third\n"),
                                         HasSubstr("\n2 older pods with a container of this name: --uid uid-2, --uid "
                                                   "uid-1\n")))
        << name;
  }
  const auto json = nlohmann::json::parse(explained({"main", "--json"}));
  EXPECT_EQ(json["older_uids"], nlohmann::json({"uid-2", "uid-1"}));
}

TEST_F(ExplainTest, SaysHowMuchMemoryAMoveLeftBehind) {
  store::DecidedRow row = row_of("web", "main", "uid-1");
  row.event = "re-placed";
  row.holds = false;
  row.memory_cost = R"({"nodes":"0","bytes":1572864,"follows":false})";
  add(row);
  EXPECT_THAT(explained({"main"}), HasSubstr("\nmemory: 1.5 MiB on nodes 0 stayed behind\n"));
  row.memory_cost = R"({"nodes":"0-1","bytes":null,"follows":true})";
  add(row);
  EXPECT_THAT(explained({"main"}), HasSubstr("\nmemory: unknown how much on nodes 0-1 was to follow it "
                                             "(placement.memory-migrate)\n"));
  EXPECT_EQ(nlohmann::json::parse(explained({"main", "--json"}))["memory_cost"]["bytes"], nullptr);
  row.memory_cost.clear();
  add(row);
  EXPECT_THAT(explained({"main"}), Not(HasSubstr("memory: ")));
}

TEST_F(ExplainTest, TakesThePodOrTheDecisionThatIsNamed) {
  const std::int64_t first = denied("sts-0", "main", "uid-1", "first");
  denied("sts-0", "main", "uid-2", "second");
  EXPECT_THAT(explained({"main", "--uid", "uid-1"}), AllOf(HasSubstr("first"), Not(HasSubstr("older"))));
  EXPECT_THAT(explained({"--uid", "uid-1"}), HasSubstr("first"));
  EXPECT_THAT(explained({"--decision", std::to_string(first)}), HasSubstr("first"));
  refused({"main", "--decision", "1"});
  refused({});
}

TEST_F(ExplainTest, ListsContainersOfDifferentNames) {
  denied("web", "main", "uid-1");
  denied("web", "sidecar", "uid-1");
  denied("batch", "main", "uid-2");
  EXPECT_THAT(refused({"web"}),
              AllOf(HasSubstr("\n  prod/web/sidecar"), HasSubstr("\n  prod/web/main"), Not(HasSubstr("batch"))));
  EXPECT_THAT(refused({"main"}), AllOf(HasSubstr("\n  prod/web/main"), HasSubstr("\n  prod/batch/main")));
  EXPECT_THAT(refused({"--uid", "uid-1"}), HasSubstr("\n  prod/web/sidecar"));
  EXPECT_THAT(explained({"batch"}), HasSubstr("prod/batch/main"));
  EXPECT_THAT(explained({"sidecar"}), HasSubstr("prod/web/sidecar"));
}

TEST_F(ExplainTest, PrefersWhatHoldsSomethingNow) {
  denied("batch", "main", "uid-1");
  placed("web", "main", "uid-2", "0-1", "c0ffee");
  denied("other", "main", "uid-3");
  EXPECT_THAT(explained({"main"}), HasSubstr("prod/web/main"));
}

TEST_F(ExplainTest, ExplainsTheDecisionAndListsWhatWasOnlyRecordedSince) {
  end(placed("web", "main", "uid-0", "0-1", "facade"));
  const std::int64_t decision = placed("web", "main", "uid-1", "0-1", "c0ffee");
  recorded("overlap", "web", "uid-1", "runs on CPU 7, which prod/db/main has exclusively", "c0ffee");
  const std::int64_t over = recorded("overlap", "web", "uid-1", "over: it has left CPU 7", "c0ffee");
  for (const char* name : {"prod/web/main", "web", "main", "c0ffee"}) {
    EXPECT_THAT(
        explained({name}),
        AllOf(HasSubstr(fmt::format("\nplaced 1970-01-01T00:00:00.001Z, decision {}, bound\n", decision)),
              HasSubstr("\nsince then: overlap 1970-01-01T00:00:00.001Z: runs on CPU 7, which prod/db/main has "
                        "exclusively\nsince then: overlap 1970-01-01T00:00:00.001Z: over: it has left CPU 7\n")))
        << name;
  }
  const auto json = nlohmann::json::parse(explained({"web", "--json"}));
  EXPECT_EQ(json["event"], "placed");
  ASSERT_EQ(json["recorded_since"].size(), 2U);
  EXPECT_EQ(json["recorded_since"][0]["decision"], over) << "the newest first";
  EXPECT_EQ(json["older_uids"], nlohmann::json({"uid-0"}));
  EXPECT_THAT(explained({"--decision", std::to_string(over)}),
              AllOf(HasSubstr("\noverlap 1970-"), HasSubstr("\nreason when recorded: over: it has left CPU 7\n"),
                    Not(HasSubstr("winner")), Not(HasSubstr("since then"))));
}

TEST_F(ExplainTest, ExplainsWhatHasEndedThoughAnOverlapWasRecordedLast) {
  end(placed("web", "main", "uid-1", "0-1", "c0ffee"));
  recorded("overlap", "web", "uid-1", "over: it has ended on CPU 7", "c0ffee");
  for (const char* name : {"web", "c0ffee"}) {
    EXPECT_THAT(explained({name}), AllOf(HasSubstr("\nended (removed) "), HasSubstr("over: it has ended on CPU 7")))
        << name;
  }
  recorded("overlap", "gone", "uid-2", "its decision is deleted");
  EXPECT_THAT(explained({"gone"}), HasSubstr("reason when recorded: its decision is deleted"));
}

TEST_F(ExplainTest, ListsTheNewestOfMuchThatWasRecorded) {
  placed("web", "main", "uid-1", "0-1", "c0ffee");
  for (int i = 0; i < 7; ++i) recorded("drift", "web", "uid-1", fmt::format("number {}", i));
  EXPECT_THAT(explained({"web"}),
              AllOf(HasSubstr("\nsince then: more than is listed here, see `topolet audit --pod web`\n"),
                    HasSubstr("number 2\n"), HasSubstr("number 6\n"), Not(HasSubstr("number 1\n"))));
}

TEST_F(ExplainTest, SaysWhatWasLoggedOfThePodsAnnotationsUnlessTheReasonDoes) {
  denied("web", "main", "uid-1", "full; unknown annotation topolet.io/cpu");
  denied("web", "side", "uid-1", "full");
  denied("web", "late", "uid-2", "full");
  warned("uid-1", R"(["unknown annotation topolet.io/cpu"])");
  warned("uid-2", "");
  const std::string line = "\nof the pod's annotations: unknown annotation topolet.io/cpu\n";
  EXPECT_THAT(explained({"side"}), HasSubstr(line));
  EXPECT_THAT(explained({"web/main"}), Not(HasSubstr("of the pod's annotations")));
  EXPECT_THAT(explained({"late"}), Not(HasSubstr("of the pod's annotations")));
  const nlohmann::json of_pod = {"unknown annotation topolet.io/cpu"};
  EXPECT_EQ(nlohmann::json::parse(explained({"web/main", "--json"}))["warnings"], of_pod);
  EXPECT_EQ(nlohmann::json::parse(explained({"late", "--json"}))["warnings"], nlohmann::json::array());
}

TEST_F(ExplainTest, FindsContainersByTheBeginningOfTheirIds) {
  end(placed("web", "main", "uid-1", "0-1", "c0ffee-1"));
  end(placed("web", "main", "uid-2", "0-1", "c0ffee-2"));
  EXPECT_THAT(explained({"c0ffee-1"}), HasSubstr("c0ffee-1"));
  EXPECT_THAT(explained({"c0f"}), HasSubstr("c0ffee-2"));
  placed("batch", "main", "uid-3", "0-1", "c0ffee-3");
  EXPECT_THAT(explained({"c0f"}), HasSubstr("prod/batch/main"));
}

TEST_F(ExplainTest, ShowsTheCpusOfNowIfTheyDiffer) {
  placed("web", "main", "uid-1", "1", "id-1");
  placed("batch", "main", "uid-2", "0-1", "id-2");
  const std::int64_t former = placed("old", "main", "uid-3", "1", "id-3");
  end(former);
  EXPECT_THAT(explained({"web"}), HasSubstr("shared on CPUs 1 now (0-1 when decided), withheld -"));
  EXPECT_THAT(explained({"batch"}), HasSubstr("shared on CPUs 0-1, withheld -"));
  EXPECT_THAT(explained({"old"}), HasSubstr("shared on CPUs 0-1, withheld -"));
  EXPECT_EQ(nlohmann::json::parse(explained({"web", "--json"}))["cpus_now"], "1");
  EXPECT_EQ(nlohmann::json::parse(explained({"old", "--json"}))["cpus_now"], nullptr);
}

TEST_F(ExplainTest, TellsWhatPluginsHaveNotedOfTheContainer) {
  store::DecidedRow row = row_of("web", "main", "u1");
  row.event = "denied";
  row.holds = false;
  row.tags = {{"pools/pool", "large"}, {"a/b", ""}};
  row.devices = R"([{"name":"0000:65:00.0","address":"0000:65:00.0","nodes":"1"}])";
  add(row);
  EXPECT_THAT(explained({"web"}), AllOf(HasSubstr("\ntag a/b = \n"), HasSubstr("\ntag pools/pool = large\n")));
  const auto json = nlohmann::json::parse(explained({"web", "--json"}));
  EXPECT_EQ(json["tags"], (nlohmann::json{{"a/b", ""}, {"pools/pool", "large"}}));
  EXPECT_EQ(json["devices"][0]["address"], "0000:65:00.0");
  placed("db", "main", "u2", "0-1", "c2");
  EXPECT_EQ(nlohmann::json::parse(explained({"db", "--json"}))["tags"], nlohmann::json::object());
}

}  // namespace
}  // namespace topolet::testing
