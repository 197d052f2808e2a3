#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/run_topolet.hpp"

namespace topolet::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class QueryTest : public ::testing::Test {
 protected:
  QueryTest() { state_.open(); }
  std::string answer(const std::string& sql) const {
    const Said said = state_.query(sql, {"--format", "csv"});
    EXPECT_EQ(said.code, 0) << sql << ": " << said.text;
    return said.text;
  }
  std::string refusal(const std::string& sql) const {
    const Said said = state_.query(sql);
    EXPECT_EQ(said.code, 2) << sql << ": " << said.text;
    return said.text;
  }

  StateDir state_;
};

/// Counts without end.
constexpr const char* kEndless =
    "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number) SELECT n FROM number";

TEST_F(QueryTest, TakesOneStatementWithCommentsAroundIt) {
  EXPECT_EQ(answer("-- what is it?\n\n/* seven */ SELECT 7 AS n; -- that is it\n;\n"), "n\r\n7\r\n");
  EXPECT_EQ(answer("--what is it?\nSELECT 7 AS n"), "n\r\n7\r\n");
  EXPECT_THAT(refusal("SELECT 1; DROP TABLE pod"), HasSubstr("a second statement, which begins with DROP"));
  EXPECT_THAT(refusal(" -- nothing\n;"), HasSubstr("there is no SQL statement"));
  EXPECT_THAT(refusal("SELEC 1"), HasSubstr("syntax error"));
}

TEST_F(QueryTest, ReadsTheStatementFromAFileOrStandardInput) {
  const std::string file = state_.directory().write("query.sql", "\xEF\xBB\xBF-- ours\nSELECT 7 AS n;\n");
  const Said from_file = state_.topolet({"query", "--file", file});
  EXPECT_EQ(from_file.text, "N\n7\n");
  EXPECT_EQ(shell("$topolet query - --state-dir " + state_.path() + " < " + file).text, "N\n7\n");
  EXPECT_EQ(state_.topolet({"query", "SELECT 1", "--file", file}).code, 2);
  EXPECT_EQ(state_.topolet({"query"}).code, 2);
  const Said missing = state_.topolet({"query", "--file", state_.file("none.sql")});
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.text, HasSubstr("cannot read " + state_.file("none.sql")));
  EXPECT_THAT(shell("$topolet query - --state-dir " + state_.path() + " < /dev/zero").text, HasSubstr("is longer"));
}

TEST_F(QueryTest, ReadsWhatDescribesTheDatabase) {
  EXPECT_THAT(answer("PRAGMA table_info(pod)"), HasSubstr("sandbox_id"));
  EXPECT_THAT(answer("SELECT name FROM pragma_table_xinfo('pod')"), HasSubstr("sandbox_id"));
  EXPECT_THAT(answer("SELECT value FROM json_each('[7]')"), HasSubstr("7"));
  EXPECT_THAT(answer("SELECT name FROM sqlite_schema"), HasSubstr("current_placements"));
  EXPECT_THAT(answer("PRAGMA user_version"), HasSubstr("user_version"));
  EXPECT_THAT(answer("EXPLAIN QUERY PLAN SELECT * FROM decision WHERE decision = 1"), HasSubstr("SEARCH"));
}

TEST_F(QueryTest, RefusesWhatDoesMoreThanReading) {
  const std::string elsewhere = state_.file("elsewhere.db");
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"VACUUM INTO '" + elsewhere + "'", "VACUUM is refused"},
      {"ATTACH '" + elsewhere + "' AS other", "ATTACH is refused"},
      {"detach main", "DETACH is refused"},
      {"PRAGMA user_version = 7", "PRAGMA user_version = 7 is refused"},
      {"PRAGMA wal_checkpoint", "PRAGMA wal_checkpoint is refused"},
      {"PRAGMA writable_schema(1)", "PRAGMA writable_schema = 1 is refused"},
      {"UPDATE pod SET pod_uid = ''", "UPDATE is refused"},
      {"WITH a AS (SELECT 1) INSERT INTO retention SELECT 'x', 1 FROM a", "INSERT is refused"},
      {"EXPLAIN DELETE FROM pod", "DELETE is refused"},
      {"CREATE TEMP TABLE mine (a)", "CREATE is refused"},
      {"BEGIN", "BEGIN is refused"},
      {"SELECT load_extension('mine.so')", "the function load_extension() is refused"},
      {".tables", "'.tables' is a command of the sqlite3 shell"},
  };
  for (const auto& [sql, why] : refused) {
    EXPECT_THAT(refusal(sql), AllOf(HasSubstr(why), HasSubstr("topolet backup FILE"))) << sql;
  }
  EXPECT_NE(state_.query("SELECT * FROM pragma_wal_checkpoint").code, 0);
  EXPECT_FALSE(std::filesystem::exists(elsewhere));
}

TEST_F(QueryTest, EndsAfterItsTimeout) {
  const Said said = state_.query(std::string("SELECT max(n) FROM (") + kEndless + ")", {"--timeout", "1"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.text, AllOf(HasSubstr("took longer than 1 s"), HasSubstr("--timeout SECONDS")));
}

TEST_F(QueryTest, EndsAfterItsTimeoutIfNobodyReadsIt) {
  const Said said = shell("mkfifo " + state_.file("pipe") + "; sleep 1000 < " + state_.file("pipe") +
                          " & $topolet query '" + kEndless + "' --timeout 1 --state-dir " + state_.path() + " > " +
                          state_.file("pipe") + "; echo $?; kill $!");
  EXPECT_THAT(said.text, AllOf(HasSubstr("took longer than 1 s"), ::testing::EndsWith("\n1\n")));
}

TEST_F(QueryTest, TimeoutsAreWholeSeconds) {
  EXPECT_EQ(state_.query("SELECT 1", {"--timeout", "0"}).code, 0);
  EXPECT_EQ(state_.query("SELECT 1", {"--timeout=-1"}).code, 2);
  EXPECT_EQ(state_.query("SELECT 1", {"--timeout", "soon"}).code, 2);
}

}  // namespace
}  // namespace topolet::testing
