// check_moves, run as people run it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::moves {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTwoNodes = "pack:2 numa:1 core:4 pu:1";
constexpr const char* kWorkload = R"({"op":"run_pod","pod":"a","qos":"guaranteed"}

{"op":"create","pod":"a","container":"main","cpu_request_milli":2000,"cpu_limit_milli":2000,"memory_limit":4096}
{"op":"no such operation"}
{"op":"run_pod","pod":"b","qos":"guaranteed"}
{"op":"create","pod":"b","container":"main","cpu_request_milli":2000,"cpu_limit_milli":2000,"memory_limit":4096}
)";

class TestCheckMoves : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(workload_) << kWorkload;
    // What it says of lines that are wrong is no answer.
    run({"/bin/sh", "-c", "exec \"$0\" \"$@\" 2>/dev/null", TOPOLET_COMMAND, "simulate", "--topology", kTwoNodes,
         "--workload", workload_, "--json"},
        answers_);
  }

  static int run(const std::vector<std::string>& words, const std::string& out) {
    return testing::Process(words, out).wait();
  }

  static std::string text_of(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }

  int check() {
    return run({TOPOLET_CHECK_MOVES, "--topology", kTwoNodes, "--workload", workload_, "--answers", answers_,
                "--placement.heal=all"},
               said_);
  }

  const TempDir directory_;
  const std::string workload_ = directory_.file("workload");
  const std::string answers_ = directory_.file("answers");
  const std::string said_ = directory_.file("said");
};

TEST_F(TestCheckMoves, FindsNothingInWhatTopoletPrints) {
  EXPECT_EQ(check(), 0) << text_of(said_);
  EXPECT_THAT(text_of(said_), HasSubstr("operations: 4, faults: 0"));
}

TEST_F(TestCheckMoves, FindsAnAnswerThatIsWrong) {
  std::string answers = text_of(answers_);
  const std::size_t second = answers.rfind(R"("cpus":"2-3")");
  ASSERT_NE(second, std::string::npos) << answers;
  answers.replace(second, 12, R"("cpus":"1-2")");
  std::ofstream(answers_) << answers;
  EXPECT_EQ(check(), 1);
  EXPECT_THAT(text_of(said_), HasSubstr("b/main: has CPUs 1, which another one has alone"));
}

TEST_F(TestCheckMoves, SaysWhatItCannotRead) {
  std::ofstream(answers_) << "{}\n";
  EXPECT_EQ(check(), 2);
  EXPECT_THAT(text_of(said_), HasSubstr("not an answer of topolet simulate --json"));
}

}  // namespace
}  // namespace topolet::moves
