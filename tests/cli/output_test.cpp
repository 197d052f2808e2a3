#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/run_topolet.hpp"

namespace topolet::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// 1 to `count`.
std::string numbers(const std::string& columns, int count) {
  return "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < " + std::to_string(count) +
         ") SELECT " + columns + " FROM number";
}

class OutputTest : public ::testing::Test {
 protected:
  OutputTest() { state_.open(); }
  std::string in_format(const std::string& format, const std::string& sql) const {
    const Said said = state_.query(sql, {"--format", format});
    EXPECT_EQ(said.code, 0) << said.text;
    return said.text;
  }

  StateDir state_;
};

constexpr const char* kAllKinds =
    "SELECT 7 AS n, 1.5 AS r, NULL AS x, 'a, \"b\"' AS t, '' AS e UNION ALL SELECT -1, 2, 3, 'c', 'd'";

TEST_F(OutputTest, PrintsTables) {
  EXPECT_EQ(in_format("table", kAllKinds),
            "N   R    X  T       E\n"
            "7   1.5  -  a, \"b\"  -\n"
            "-1  2    3  c       d\n");
}

TEST_F(OutputTest, PrintsJson) {
  EXPECT_EQ(in_format("json", kAllKinds), R"([
  {
    "n": 7,
    "r": 1.5,
    "x": null,
    "t": "a, \"b\"",
    "e": ""
  },
  {
    "n": -1,
    "r": 2,
    "x": 3,
    "t": "c",
    "e": "d"
  }
]
)");
  EXPECT_EQ(state_.query(kAllKinds, {"--json"}).text, in_format("json", kAllKinds));
}

TEST_F(OutputTest, PrintsAnObjectPerLine) {
  EXPECT_EQ(in_format("ndjson", kAllKinds),
            "{\"n\":7,\"r\":1.5,\"x\":null,\"t\":\"a, \\\"b\\\"\",\"e\":\"\"}\n"
            "{\"n\":-1,\"r\":2,\"x\":3,\"t\":\"c\",\"e\":\"d\"}\n");
}

TEST_F(OutputTest, PrintsCsv) {
  EXPECT_EQ(in_format("csv", kAllKinds),
            "n,r,x,t,e\r\n"
            "7,1.5,,\"a, \"\"b\"\"\",\"\"\r\n"
            "-1,2,3,c,d\r\n");
  EXPECT_EQ(in_format("csv", "SELECT 'two' || char(10) || 'lines' AS \"a,b\""), "\"a,b\"\r\n\"two\nlines\"\r\n");
}

TEST_F(OutputTest, NoRowsAreNoFailure) {
  const char* nothing = "SELECT decision, pod FROM denials";
  const auto says = [&](const char* format) {
    const Said said = state_.query(nothing, {"--format", format});
    EXPECT_EQ(said.code, 0);
    return said.text;
  };
  EXPECT_EQ(says("table"), "no rows\n");
  EXPECT_EQ(says("json"), "[]\n");
  EXPECT_EQ(says("ndjson"), "");
  EXPECT_EQ(says("csv"), "decision,pod\r\n");
}

TEST_F(OutputTest, ColumnsOfOneNameStayApartInJson) {
  EXPECT_EQ(in_format("ndjson", "SELECT 1 AS a, 2 AS b, 3 AS a"), "{\"a\":1,\"b\":2,\"a:2\":3}\n");
  EXPECT_EQ(in_format("ndjson", "SELECT 1 AS a, 2 AS a, 3 AS \"a:2\""), "{\"a\":1,\"a:3\":2,\"a:2\":3}\n");
}

TEST_F(OutputTest, LaterRowsFitTheWidthsOfTheFirstThousand) {
  const std::string text =
      in_format("table", numbers("CASE n WHEN 1001 THEN 'far too long' ELSE 'x' END AS a, n", 1002));
  EXPECT_THAT(text, AllOf(HasSubstr("x  1000\n"), HasSubstr("\nfar too long  1001\n"), HasSubstr("\nx  1002\n")));
}

TEST_F(OutputTest, EveryRowComesOut) {
  const auto rows = nlohmann::json::parse(in_format("json", numbers("n, hex(zeroblob(50)) AS filler", 5000)));
  ASSERT_EQ(rows.size(), 5000U);
  EXPECT_EQ(rows[4999]["n"], 5000);
}

#ifndef TOPOLET_SANITIZED  // sanitizers reserve far more
TEST_F(OutputTest, LargeResultsNeedLittleMemory) {
  // 200 MB in 160 MiB of address space, of which the program's libraries take some 100.
  const std::string sql = numbers("hex(zeroblob(1000)) AS a", 100'000);
  for (const char* format : {"table", "json", "ndjson", "csv"}) {
    const Said said = shell("ulimit -v 163840; $topolet query '" + sql + "' --state-dir " + state_.path() +
                            " --format " + format + " | wc -l");
    EXPECT_THAT(said.text, ::testing::MatchesRegex("[1-9][0-9]{5}\n")) << format;
  }
}
#endif

TEST_F(OutputTest, FormatsMustBeKnown) {
  const Said unknown = state_.query("SELECT 1", {"--format", "xml"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.text, HasSubstr("table, json, ndjson or csv"));
  EXPECT_EQ(state_.query("SELECT 1", {"--format", "csv", "--json"}).code, 2);
  EXPECT_EQ(state_.query("SELECT 1", {"--format", "json", "--json"}).code, 0);
}

TEST_F(OutputTest, SaysThatTheDiskIsFull) {
  const std::string many = " query '" + numbers("n", 100'000) + "' --state-dir " + state_.path();
  for (const std::string command : {many.c_str(), " --help"}) {
    const Said said = shell("$topolet" + command + " > /dev/full; echo $?");
    EXPECT_EQ(said.text, "topolet: cannot write the output: No space left on device\n1\n");
  }
}

TEST_F(OutputTest, EndsQuietlyWhenTheReaderHasGone) {
  const std::string many = "query '" + numbers("n", 1'000'000) + "' --state-dir " + state_.path();
  EXPECT_EQ(shell("{ $topolet " + many + "; echo $? >&2; } | head -n 2 > /dev/null").text, "1\n");
}

}  // namespace
}  // namespace topolet::testing
