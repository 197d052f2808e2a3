#include "core/plugin_checker/check_plugin.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

namespace topolet::plugin_checker {
namespace {

using testing::HasSubstr;

/// The limit for a case that ends by itself: long, for a busy machine and sanitizers.
constexpr std::chrono::seconds kPatience{300};

struct Checked {
  int status = 0;
  std::string text;
};

Checked check(CheckOptions options) {
  std::ostringstream out;
  const int status = check_plugin(options, out);
  return {status, out.str()};
}

std::string misfit(const std::string& name) { return TOPOLET_MISFIT_DIR "/" + name + ".so"; }
std::string broken(const std::string& name) { return TOPOLET_BROKEN_DIR "/" + name + ".so"; }

std::set<std::string> cases_that(const std::string& outcome, const std::string& file) {
  const CheckOptions options{.file = file, .requests = 20, .time_limit = kPatience, .json = true};
  std::set<std::string> failed;
  const nlohmann::json document = nlohmann::json::parse(check(options).text);
  for (const auto& each : document["cases"]) {
    if (each["outcome"] == outcome) failed.insert(each["case"]);
  }
  return failed;
}

/// Runs one case, which must fail, and returns what is said of it.
std::string failure(const std::string& file, const std::string& only_case) {
  const Checked checked = check({.file = file, .requests = 20, .time_limit = kPatience, .only_case = only_case});
  EXPECT_EQ(checked.status, 1) << checked.text;
  return checked.text;
}

class OurPlugins : public testing::TestWithParam<const char*> {};

TEST_P(OurPlugins, PassEveryCase) {
  const Checked checked =
      check({.file = TOPOLET_BUILT_PLUGINS + std::string("/") + GetParam() + ".so", .time_limit = kPatience});
  EXPECT_EQ(checked.status, 0) << checked.text;
  EXPECT_THAT(checked.text, HasSubstr(" 0 failed, 0 skipped"));
}

INSTANTIATE_TEST_SUITE_P(All, OurPlugins, testing::Values("numa", "gpu", "smt", "load", "foreign-zone"));

TEST(CheckPlugin, WarnsOfDeprecatedCapabilities) {
  const Checked checked = check({.file = TOPOLET_BUILT_PLUGINS + std::string("/smt.so"),
                                 .time_limit = kPatience,
                                 .only_case = "create-defaults",
                                 .deprecated = {{"topolet.pick/1", "topolet.pick/2"}}});
  EXPECT_EQ(checked.status, 0) << checked.text;
  EXPECT_THAT(checked.text, HasSubstr("plugin smt uses deprecated capabilities, which go on working: topolet.pick/1 "
                                      "(use topolet.pick/2)"));
  EXPECT_THAT(checked.text, HasSubstr("1 with a warning"));
}

TEST(CheckPlugin, FailsAWideningPickInItsCaseOnly) {
  EXPECT_EQ(cases_that("FAILED", misfit("widens")), (std::set<std::string>{"never-widens", "random"}));
  EXPECT_THAT(failure(misfit("widens"), "never-widens"), HasSubstr("narrow of 0,64: 64 are not in it"));
}

TEST(CheckPlugin, FailsAProposalOfNodesThatAreNotThere) {
  EXPECT_EQ(cases_that("FAILED", misfit("far-nodes")), (std::set<std::string>{"never-widens", "random"}));
  EXPECT_THAT(failure(misfit("far-nodes"), "never-widens"), HasSubstr("nodes of 960: 960 are not in it"));
}

TEST(CheckPlugin, FailsANarrowingToNothing) {
  EXPECT_EQ(cases_that("FAILED", misfit("empties")), (std::set<std::string>{"never-empty", "random"}));
  EXPECT_THAT(failure(misfit("empties"), "never-empty"), HasSubstr("narrow to none"));
}

TEST(CheckPlugin, FailsAScoreOutOfRange) {
  EXPECT_EQ(cases_that("FAILED", misfit("too-high")), (std::set<std::string>{"in-range", "random"}));
  EXPECT_THAT(failure(misfit("too-high"), "in-range"), HasSubstr("the score 101 on candidate 0"));
}

TEST(CheckPlugin, FailsAnAnswerByTheClock) {
  EXPECT_THAT(failure(misfit("clock"), "repeatable"), HasSubstr("the same answer as before"));
}

TEST(CheckPlugin, FailsAnAnswerThatChangesWhenAskedAgain) {
  const std::string text = failure(misfit("dice"), "repeatable");
  EXPECT_THAT(text, HasSubstr("when asked again (request 1 on machine 1-cpu)"));
  EXPECT_THAT(text, HasSubstr("the same answer as before, 'candidate 0: score "));
}

TEST(CheckPlugin, FailsACrashOnTheMachineItHappensOn) {
  const std::set<std::string> failed = cases_that("FAILED", misfit("few-nodes"));
  EXPECT_EQ(failed.count("machine-24-nodes"), 1U);
  EXPECT_EQ(failed.count("machine-smt-2"), 0U);
  EXPECT_THAT(failure(misfit("few-nodes"), "machine-24-nodes"), HasSubstr("in score (request 1 on machine 24-nodes)"));
  EXPECT_THAT(failure(misfit("few-nodes"), "machine-24-nodes"), HasSubstr("crashed with SIG"));
}

TEST(CheckPlugin, FailsAWriteToATopologyWhosePagesWereReplaced) {
  const std::string text = failure(misfit("unlocks"), "in-range");
  EXPECT_THAT(text, HasSubstr("expected: nothing written to what is lent as const\n"));
  EXPECT_THAT(text, HasSubstr("unlocks: score wrote to memory that it was lent to read (the topology)"));
}

TEST(CheckPlugin, FailsAWriteToWhatIsLentAndNamesTheCall) {
  const std::string text = failure(broken("scribbles"), "machine-1-cpu");
  EXPECT_THAT(text, HasSubstr("expected: nothing written to what is lent as const\n"));
  EXPECT_THAT(text, HasSubstr("actual:   wrote to memory that it was lent to read, in score (request 1 on machine "
                              "1-cpu)\n"));
  EXPECT_THAT(failure(broken("scribbles"), "larger-structs"),
              HasSubstr("wrote to memory that it was lent to read, in "));
  const std::set<std::string> failed = cases_that("FAILED", broken("scribbles"));
  for (const char* only_case : {"in-range", "never-widens", "never-empty", "repeatable", "late", "random"}) {
    EXPECT_EQ(failed.count(only_case), 1U) << only_case;
  }
  EXPECT_EQ(failed.count("create-values"), 0U);
}

TEST(CheckPlugin, FailsACallThatDoesNotReturn) {
  const Checked checked =
      check({.file = misfit("hangs"), .time_limit = std::chrono::seconds(1), .only_case = "machine-1-cpu"});
  EXPECT_EQ(checked.status, 1);
  EXPECT_THAT(checked.text, HasSubstr("no answer within 1 s, in pick (request 1 on machine 1-cpu)"));
}

TEST(CheckPlugin, FailsASlowCallOutsideTheLateCaseOnly) {
  const CheckOptions hurried{
      .file = broken("until-late"), .time_limit = std::chrono::seconds(1), .only_case = "machine-1-cpu"};
  EXPECT_EQ(check(hurried).status, 1);
  EXPECT_EQ(check({.file = broken("until-late"), .only_case = "late"}).status, 0);
}

TEST(CheckPlugin, FailsAPluginThatEndsTheProcess) {
  EXPECT_THAT(failure(misfit("exits"), "machine-1-cpu"), HasSubstr("it ended the process with exit status 3, in pick"));
}

TEST(CheckPlugin, FailsASecondSymbol) {
  const std::string text = failure(misfit("two-symbols"), "one-symbol");
  EXPECT_THAT(text, HasSubstr("actual:   also exported: one_more_symbol\n"));
  EXPECT_THAT(text, HasSubstr("topolet_add_plugin"));
}

TEST(CheckPlugin, WarnsOfAPluginThatGivesUpEachVote) {
  const Checked checked = check({.file = misfit("gives-up"), .only_case = "machine-1-cpu"});
  EXPECT_EQ(checked.status, 0);
  EXPECT_THAT(checked.text, HasSubstr("it declined to vote in all "));
}

TEST(CheckPlugin, FailsFilesLeftOpen) {
  EXPECT_EQ(cases_that("FAILED", misfit("leaks")), (std::set<std::string>{"create-1000", "keeps-descriptors"}));
  EXPECT_THAT(failure(misfit("leaks"), "create-1000"), HasSubstr("1000 more than before"));
}

TEST(CheckPlugin, FailsMemoryKept) {
#ifdef TOPOLET_SANITIZED
  GTEST_SKIP() << "the sanitizers' allocator does not tell how much is in use";
#endif
  EXPECT_THAT(failure(misfit("leaks-memory"), "create-1000"), HasSubstr("KiB of heap"));
}

TEST(CheckPlugin, FailsACapabilityForAnUnknownId) {
  EXPECT_EQ(cases_that("FAILED", misfit("knows-all")), (std::set<std::string>{"capabilities"}));
  EXPECT_THAT(failure(misfit("knows-all"), "capabilities"), HasSubstr("a struct for 'topolet.score/2'"));
}

TEST(CheckPlugin, TellsWhichAnnotationsThePluginReads) {
  const auto defaults = [](const std::string& file) {
    return check({.file = file, .time_limit = kPatience, .only_case = "create-defaults"}).text;
  };
  EXPECT_THAT(defaults(TOPOLET_BUILT_PLUGINS "/smt.so"),
              HasSubstr("topolet.tick/1; reads the annotations smt, cpu-profile"));
  EXPECT_THAT(defaults(TOPOLET_BUILT_PLUGINS "/smt.so"),
              HasSubstr("of these only placement.exclusive-namespaces may use smt = isolate"));
  EXPECT_THAT(defaults(TOPOLET_BUILT_PLUGINS "/gpu.so"), HasSubstr("; reads no annotations"));
  EXPECT_THAT(defaults(broken("nonsense")), HasSubstr("; does not say which annotations it reads"));
}

TEST(CheckPlugin, FailsAStepBySizeof) {
  EXPECT_EQ(cases_that("FAILED", misfit("sizeof-step")), (std::set<std::string>{"larger-structs"}));
  EXPECT_THAT(failure(misfit("sizeof-step"), "larger-structs"),
              HasSubstr("the same answer when a later host's structs and strides are larger\n"));
}

TEST(CheckPlugin, FailsOptionsThatPeopleCannotUse) {
  EXPECT_THAT(failure(misfit("no-help"), "options"), HasSubstr("speed has none"));
  EXPECT_THAT(failure(misfit("no-help"), "create-values"), HasSubstr("create with speed = 'slow': none"));
  // By SIGSEGV, or, with a sanitizer, by its exit.
  EXPECT_THAT(failure(misfit("no-help"), "create-missing"), HasSubstr(", in create without any option"));
}

TEST(CheckPlugin, ShowsTheLoadersRefusalAndSkipsTheRest) {
  EXPECT_THAT(failure(broken("other-major"), "loads"),
              HasSubstr("is built for ABI major 2; this topolet loads major 1"));
  EXPECT_THAT(failure(broken("undefined"), "loads"), HasSubstr("undefined symbol"));
  EXPECT_THAT(failure(broken("bad-default"), "loads"), HasSubstr("the default of option"));
  EXPECT_THAT(failure(broken("no-symbol"), "one-symbol"), HasSubstr("topolet_plugin_v1 is the only exported symbol"));
  EXPECT_EQ(cases_that("FAILED", broken("other-draft")), (std::set<std::string>{"loads"}));
  EXPECT_EQ(cases_that("skipped", broken("other-draft")).count("random"), 1U);
  EXPECT_EQ(cases_that("ok", broken("other-draft")), (std::set<std::string>{"one-symbol"}));
}

TEST(CheckPlugin, FailsACreateThatFails) {
  EXPECT_THAT(failure(broken("create-fails"), "create-defaults"), HasSubstr("the table of kinds is empty"));
  EXPECT_THAT(failure(broken("create-throws"), "create-defaults"), HasSubstr("threw"));
  EXPECT_THAT(failure(broken("create-throws"), "create-missing"), HasSubstr("no exception to cross the boundary"));
  EXPECT_THAT(failure(broken("create-gives-nothing"), "create-defaults"), HasSubstr("create returned no instance"));
}

TEST(CheckPlugin, FailsExceptions) {
  EXPECT_THAT(failure(broken("throws"), "machine-1-cpu"), HasSubstr("threw: index 7 of 4"));
  EXPECT_THAT(failure(broken("throws"), "capabilities"), HasSubstr("destroy threw: not while I live"));
}

TEST(CheckPlugin, SaysHowToRunAFailedCaseAgain) {
  const Checked checked = check({.file = misfit("widens"), .seed = 41, .only_case = "never-widens", .command = "try"});
  EXPECT_THAT(checked.text, HasSubstr("rerun:    try " + misfit("widens") + " --case never-widens --seed 41\n"));
}

TEST(CheckPlugin, FindsARandomRequestAgainByItsOwnSeed) {
  CheckOptions options{.file = misfit("widens"), .seed = 100, .requests = 50, .only_case = "random", .json = true};
  const auto first = nlohmann::json::parse(check(options).text)["cases"][0];
  const std::string again = first["rerun"];
  const auto at = again.find("--seed ");
  ASSERT_NE(at, std::string::npos);
  EXPECT_THAT(again, HasSubstr("--requests 1"));
  options.seed = std::stoull(again.substr(at + 7));
  options.requests = 1;
  EXPECT_EQ(nlohmann::json::parse(check(options).text)["cases"][0]["actual"], first["actual"]);
}

TEST(CheckPlugin, HasItsCasesInTheDocumentForAuthors) {
  std::ostringstream text;
  text << std::ifstream(TOPOLET_SDK_README).rdbuf();
  for (const CaseDescription& each : list_cases()) {
    const std::string name = each.name.starts_with("machine-") ? "machine-…" : each.name;
    EXPECT_THAT(text.str(), HasSubstr('`' + name + '`'));
  }
}

TEST(CheckPlugin, RefusesAFileThatThereIsNot) {
  testing::internal::CaptureStderr();
  const Checked checked = check({.file = misfit("nobody"), .command = "check"});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "check: there is no file " + misfit("nobody") + "\n");
  EXPECT_EQ(checked.status, 2);
  EXPECT_EQ(checked.text, "");
}

TEST(CheckPlugin, RefusesACaseThatThereIsNot) {
  testing::internal::CaptureStderr();
  const Checked checked = check({.file = misfit("widens"), .only_case = "never-flies"});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("there is no case 'never-flies'"));
  EXPECT_EQ(checked.status, 2);
  EXPECT_EQ(checked.text, "");
}

}  // namespace
}  // namespace topolet::plugin_checker
