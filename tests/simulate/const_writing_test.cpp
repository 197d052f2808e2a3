// `topolet simulate` with a plugin that writes to the ledger that it is shown.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/index_set.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::simulate {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

/// The answers to one exclusive pod after the other.
std::vector<json> place_pods(const std::vector<std::string>& plugins) {
  const TempDir directory;
  std::string workload;
  for (const std::string pod : {"a", "b", "c", "d"}) {
    workload += R"({"op":"run_pod","pod":")" + pod + R"(","qos":"guaranteed"})" + '\n' + R"({"op":"create","pod":")" +
                pod + R"(","container":"main","cpu_limit_milli":2000,"memory_limit":4096})" + '\n';
  }
  std::vector<std::string> words = {TOPOLET_COMMAND,
                                    "simulate",
                                    "--json",
                                    "--topology",
                                    "pack:1 numa:2 core:5 pu:1",
                                    "--workload",
                                    directory.write("workload.jsonl", workload)};
  words.insert(words.end(), plugins.begin(), plugins.end());
  const std::string out = directory.file("out");
  EXPECT_EQ(testing::Process(words, out).wait(), 0);
  std::ifstream lines(out);
  std::vector<json> created;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind('{', 0) != 0) continue;
    json answer = json::parse(line);
    if (answer["op"] == "create") created.push_back(std::move(answer));
  }
  return created;
}

TEST(ConstWritingPlugin, GivesNobodyTheCpusOfAnother) {
  const std::vector<json> alone = place_pods({});
  const std::vector<json> beside = place_pods({"--daemon.plugin-dir=" TOPOLET_BROKEN_DIR, "--plugins.enable=scribbles",
                                               "--scribbles.in=score", "--scribbles.to=entry-cpus"});
  ASSERT_THAT(beside, SizeIs(4));
  ASSERT_THAT(alone, SizeIs(4));
  CpuSet taken;
  for (std::size_t i = 0; i < 4; ++i) {
    ASSERT_EQ(beside[i]["mode"], "exclusive") << beside[i];
    const CpuSet cpus = CpuSet::parse(beside[i]["cpus"].get<std::string>()).value();
    EXPECT_EQ(cpus.size(), 2U);
    EXPECT_FALSE(taken.intersects(cpus)) << beside[i];
    taken |= cpus;
    EXPECT_EQ(beside[i]["cpus"], alone[i]["cpus"]);
  }
  // The ledger that the first one is placed by has no entry yet.
  EXPECT_FALSE(beside[0].contains("lost_votes"));
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(beside[i]["lost_votes"], json({"scribbles: score wrote to memory that it was lent to read (the ledger)"}))
        << beside[i];
  }
}

TEST(ConstWritingPlugin, IsNamedWhereItWritesToPagesThatAreReadOnly) {
  const TempDir directory;
  const std::string out = directory.file("out");
  const std::string workload = directory.write(
      "workload.jsonl", R"({"op":"run_pod","pod":"a","qos":"guaranteed"})"
                        "\n"
                        R"({"op":"create","pod":"a","container":"main","cpu_limit_milli":2000,"memory_limit":4096})"
                        "\n");
  EXPECT_NE(testing::Process({TOPOLET_COMMAND, "simulate", "--topology", "pack:1 numa:2 core:5 pu:1", "--workload",
                              workload, "--daemon.plugin-dir=" TOPOLET_BROKEN_DIR, "--plugins.enable=scribbles",
                              "--scribbles.in=score", "--scribbles.to=topology"},
                             out)
                .wait(),
            0);
  std::ostringstream text;
  text << std::ifstream(out).rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("topolet simulate crashes: SIGSEGV (a write to memory that it was lent to read) in "
                                    "score() of plugin scribbles\n"));
}

TEST(MischievousPlugin, HasNoChildThatItForksWhenTheProgramEnds) {
  const TempDir directory;
  const std::string out = directory.file("out");
  EXPECT_EQ(testing::Process({TOPOLET_COMMAND, "simulate", "--topology", "pack:1 numa:2 core:5 pu:1", "--workload",
                              directory.write("workload.jsonl", ""), "--daemon.plugin-dir=" TOPOLET_BROKEN_DIR,
                              "--plugins.enable=mischief", "--mischief.how=fork-at-exit"},
                             out)
                .wait(),
            0);
  std::ostringstream text;
  text << std::ifstream(out).rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("the parent goes on"));
  EXPECT_THAT(text.str(), HasSubstr("plugin mischief forked a process when its program ended"));
  EXPECT_THAT(text.str(), Not(HasSubstr("the child goes on")));
}

}  // namespace
}  // namespace topolet::simulate
