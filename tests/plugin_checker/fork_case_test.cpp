#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "core/base/descendants.hpp"
#include "core/plugin_checker/check_plugin.hpp"

namespace topolet::plugin_checker {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// The result of one case of a check.
struct Said {
  std::string outcome;
  std::string text;
};

class ForkCase : public testing::Test {
 protected:
  ~ForkCase() override { ::unsetenv("TOPOLET_TEST_FORK"); }

  static Said check(const std::string& what, const std::string& only_case = "fork") {
    ::setenv("TOPOLET_TEST_FORK", what.c_str(), 1);
    std::ostringstream out;
    check_plugin({.file = TOPOLET_MISFIT_DIR "/forks.so", .requests = 2, .only_case = only_case, .json = true}, out);
    const auto result = nlohmann::json::parse(out.str())["cases"][0];
    const std::string note = result["note"], actual = result["actual"];
    return {result["outcome"], note + actual};
  }

  static std::size_t processes_left() { return descendants_of(::getpid()).size(); }
};

TEST_F(ForkCase, NamesTheCallFromWhichAForkedProcessComesBack) {
  for (const char* call : {"load", "create", "get_capability", "score", "notify", "tick", "destroy", "unload"}) {
    const std::string step = std::string(call) == "get_capability" ? "create" : call;
    const Said said = check(std::string(call) + " back");
    EXPECT_EQ(said.outcome, "FAILED") << call;
    EXPECT_THAT(said.text, StartsWith("a process that it forked came back from " + step)) << call;
    EXPECT_EQ(processes_left(), 0U) << call;
  }
}

TEST_F(ForkCase, NamesItHoweverTheProcessWasMade) {
  for (const char* how : {"back-vfork", "back-raw"}) {
    EXPECT_THAT(check(std::string("score ") + how).text, StartsWith("a process that it forked came back from score"))
        << how;
    EXPECT_EQ(processes_left(), 0U) << how;
  }
}

TEST_F(ForkCase, NamesWhatWasLeftBehindAndEndsIt) {
  for (const char* how : {"sleep", "sleep-vfork"}) {
    const Said said = check(std::string("create ") + how);
    EXPECT_EQ(said.outcome, "FAILED") << how;
    EXPECT_EQ(said.text, "1 of those that it started, first in create, left behind: sleep") << how;
    EXPECT_EQ(processes_left(), 0U) << how;
  }
  for (const char* how : {"stays", "session"}) {
    EXPECT_THAT(check(std::string("create ") + how).text, HasSubstr("first in create, left behind: ")) << how;
    EXPECT_EQ(processes_left(), 0U) << how;
  }
  for (const char* how : {"zombie", "thread"}) {
    EXPECT_THAT(check(std::string("create ") + how).text, HasSubstr(" (ended, not waited for)")) << how;
  }
}

TEST_F(ForkCase, EndsAPluginWithTooManyProcesses) {
  for (const char* call : {"load", "create", "score"}) {
    const Said said = check(std::string(call) + " bomb");
    EXPECT_EQ(said.outcome, "FAILED") << call;
    EXPECT_THAT(said.text, StartsWith("64 processes were there, in " + std::string(call))) << call;
    EXPECT_EQ(processes_left(), 0U) << call;
  }
}

TEST_F(ForkCase, EndsAPluginWithTooManyThreads) {
  EXPECT_EQ(check("create threads").text, "1500 threads were there, in create");
  EXPECT_EQ(processes_left(), 0U);
}

TEST_F(ForkCase, WarnsOfProcessesThatEndInTheirCall) {
  for (const char* how : {"waits", "spawns"}) {
    const Said said = check(std::string("create ") + how);
    EXPECT_EQ(said.outcome, "warning") << how;
    EXPECT_EQ(said.text, "it started 1 process, first in create; each has ended and was waited for") << how;
  }
}

TEST_F(ForkCase, FailsAnyProcessOnTheWayOfADecision) {
  for (const char* how : {"waits", "spawns"}) {
    const Said said = check(std::string("score ") + how);
    EXPECT_EQ(said.outcome, "FAILED") << how;
    EXPECT_THAT(said.text, StartsWith("it started one in score (request 1 on ")) << how;
  }
  // It has left the session of the call, and its parent has gone.
  EXPECT_THAT(check("score session").text, HasSubstr("first in score (request 1 on machine 1-cpu), left behind: "));
  EXPECT_EQ(processes_left(), 0U);
}

TEST_F(ForkCase, IsToldByAnotherCaseThatIsRunAlone) {
  EXPECT_THAT(check("score back", "in-range").text, StartsWith("a process that it forked came back from score"));
}

TEST_F(ForkCase, FailsBesideTheCaseThatFindsWhatIsKept) {
  ::setenv("TOPOLET_TEST_FORK", "create back", 1);
  std::ostringstream out;
  check_plugin({.file = TOPOLET_MISFIT_DIR "/forks.so", .requests = 2, .json = true}, out);
  const auto document = nlohmann::json::parse(out.str());
  std::set<std::string> failed;
  for (const auto& each : document["cases"]) {
    if (each["outcome"] != "ok") failed.insert(each["case"]);
  }
  EXPECT_EQ(failed, (std::set<std::string>{"create-1000", "fork"})) << out.str();
}

}  // namespace
}  // namespace topolet::plugin_checker
