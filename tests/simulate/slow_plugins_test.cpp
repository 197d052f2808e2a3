// `topolet simulate` with plugins that take longer than they may.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::simulate {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

std::string guaranteed(const std::string& pod) {
  return R"({"op":"run_pod","pod":")" + pod + R"(","qos":"guaranteed"})" + '\n' + R"({"op":"create","pod":")" + pod +
         R"(","container":"main","cpu_limit_milli":1000,"memory_limit":4096})" + '\n';
}

class SlowPlugins : public ::testing::Test {
 protected:
  SlowPlugins() {
    EXPECT_EQ(::mkfifo(fifo_.c_str(), 0600), 0);
    held_.open(fifo_, std::ios::in | std::ios::out);
  }

  /// Standard output and standard error. The plugin "hangs" waits in score() for ever; its exit handler aborts the
  /// process if a call is inside.
  std::string run(const std::string& workload, std::vector<std::string> more) {
    std::vector<std::string> words = {TOPOLET_COMMAND,
                                      "simulate",
                                      "--topology",
                                      "pack:2 numa:1 core:4 pu:1",
                                      "--workload",
                                      directory_.write("workload.jsonl", workload),
                                      "--daemon.plugin-dir=" TOPOLET_BROKEN_DIR};
    words.insert(words.end(), more.begin(), more.end());
    const std::string out = directory_.file("out" + std::to_string(++runs_));
    EXPECT_EQ(testing::Process(words, out).wait(), 0);
    std::ostringstream text;
    text << std::ifstream(out).rdbuf();
    return text.str();
  }

  /// Only `hangs` is asked, and late however slow this machine is.
  std::vector<std::string> hanging(std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--plugins.enable=hangs", "--hangs.on=" + fifo_, "--placement.deadline-ms=1",
                             "--placement.decision-ms=600000"});
    return more;
  }
  /// When `hangs` has been abandoned, the time of the decision is over.
  std::vector<std::string> without_time_for_nonsense(std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--plugins.enable=hangs", "--hangs.on=" + fifo_, "--plugins.enable=nonsense",
                             "--nonsense.answer=none", "--placement.deadline-ms=1", "--placement.decision-ms=1"});
    return more;
  }

  static std::vector<json> lines(const std::string& text) {
    std::vector<json> all;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      if (line.rfind('{', 0) == 0) all.push_back(json::parse(line));
    }
    return all;
  }

  TempDir directory_;
  const std::string fifo_ = directory_.file("fifo");
  std::fstream held_;  ///< so that opening it does not wait
  int runs_ = 0;
};

TEST_F(SlowPlugins, AreToldOfInTheAnswerAndAtTheEnd) {
  const std::string text = run(guaranteed("a") + guaranteed("b"), hanging({"--json"}));
  const std::vector<json> all = lines(text);
  ASSERT_THAT(all, SizeIs(4));
  EXPECT_FALSE(all[0].contains("lost_votes"));
  EXPECT_EQ(all[1]["outcome"], "unpinned");
  EXPECT_EQ(all[1]["lost_votes"], json({"hangs: score: no answer within 2 ms"}));
  EXPECT_THAT(all[1]["reason"].get<std::string>(), HasSubstr("; hangs lost its vote"));
  EXPECT_EQ(all[3]["lost_votes"], json({"hangs: an earlier call has not returned"}));
  EXPECT_THAT(text, HasSubstr("topolet simulate: votes were lost because plugins took too long: hangs (1 late, 1 not "
                              "asked); on another machine, or when this one has less to do, containers may be placed "
                              "differently; raise placement.deadline-ms (1) and placement.decision-ms (600000) to wait "
                              "longer\n"));
}

TEST_F(SlowPlugins, AreToldOfInTheTable) {
  const std::string text = run(guaranteed("a"), hanging({"--explain"}));
  EXPECT_THAT(text, HasSubstr("; hangs lost its vote"));
  EXPECT_THAT(text, HasSubstr("lost vote: hangs: score: no answer within 2 ms"));
  EXPECT_THAT(text, HasSubstr("hangs (1 late, 0 not asked)"));
}

TEST_F(SlowPlugins, LeaveOthersNoTimeToBeAsked) {
  const std::string text = run(guaranteed("a"), without_time_for_nonsense({"--json"}));
  const std::vector<json> all = lines(text);
  ASSERT_THAT(all, SizeIs(2));
  ASSERT_THAT(all[1]["lost_votes"], SizeIs(2));
  EXPECT_EQ(all[1]["lost_votes"][1],
            "nonsense: was not asked to score the candidates: the decision had taken 1 ms already "
            "(placement.decision-ms)");
  EXPECT_THAT(all[1]["reason"].get<std::string>(), HasSubstr("; nonsense lost its vote"));
  EXPECT_THAT(text, HasSubstr("nonsense (0 late, 1 not asked)"));
}

TEST_F(SlowPlugins, AreNotAskedByTheNextDaemonEither) {
  const std::string text = run(guaranteed("a") + "{\"op\":\"restart\"}\n" + guaranteed("b"), hanging({"--json"}));
  const std::vector<json> all = lines(text);
  ASSERT_THAT(all, SizeIs(5));
  EXPECT_EQ(all[4]["lost_votes"], json({"hangs: in quarantine: a call from before the restart has not returned"}));
  EXPECT_THAT(text, HasSubstr("hangs (1 late, 1 not asked)"));
}

TEST_F(SlowPlugins, AreTriedAgainTenMinutesOfTheSimulatedClockLater) {
  // It says that it is late, works on until it is told, and may still be inside when the next pod comes.
  const auto pods = [](const std::string& prefix) {
    std::string all;
    for (int i = 0; i < 60; ++i) {
      const std::string pod = prefix + std::to_string(i);
      all += guaranteed(pod) + R"({"op":"remove_pod","pod":")" + pod + "\"}\n";
    }
    return all;
  };
  std::string text = run(pods("a") + "{\"op\":\"clock\",\"advance_s\":600}\n" + pods("b"),
                         {"--json", "--plugins.enable=nonsense", "--nonsense.answer=none-in-time",
                          "--placement.deadline-ms=1", "--placement.decision-ms=600000"});
  // Standard error comes in the middle of what is long.
  const std::size_t warning = text.find("topolet simulate: votes were lost");
  ASSERT_NE(warning, std::string::npos);
  text.erase(warning, text.find('\n', warning) + 1 - warning);
  std::vector<std::string> lost;
  std::size_t before = 0;
  for (const json& line : lines(text)) {
    if (line["op"] == "clock") before = lost.size();
    if (line.contains("lost_votes")) lost.push_back(line["lost_votes"][0]);
  }
  ASSERT_GT(before, 0U);
  ASSERT_GT(lost.size(), before);
  EXPECT_THAT(lost[before - 1], HasSubstr("nonsense: in quarantine: late 3 times in 10 minutes"));
  EXPECT_THAT(lost[before], HasSubstr("nonsense: score: no answer within ")) << "the trial";
  EXPECT_THAT(lost.back(), HasSubstr("nonsense: in quarantine: late in its trial: nonsense: score: no answer"));
}

TEST_F(SlowPlugins, ThatAreInTimeAreNotToldOf) {
  const std::string text = run(guaranteed("a"), {"--json", "--plugins.enable=nonsense", "--nonsense.answer=none",
                                                 "--plugins.enable=throws", "--placement.deadline-ms=60000"});
  const std::vector<json> all = lines(text);
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[1]["lost_votes"], json({"throws: score threw: index 7 of 4"}));
  EXPECT_THAT(text, Not(HasSubstr("took too long"))) << "another machine would not differ";
}

}  // namespace
}  // namespace topolet::simulate
