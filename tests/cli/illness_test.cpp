// How `topolet status` shows what is ill.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/made_up_status.hpp"
#include "tests/cli/run_topolet.hpp"
#include "tests/control/daemon_rig.hpp"
#include "tests/support/eventually.hpp"

namespace topolet::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

control::v1::StatusResponse well() {
  control::v1::StatusResponse status;
  status.mutable_illnesses();
  return status;
}

void add(control::v1::StatusResponse& status, const std::string& code, const std::string& severity,
         const std::string& subject, const std::string& sentence, std::uint32_t count = 1) {
  control::v1::Illness& illness = *status.mutable_illnesses()->add_illnesses();
  illness.set_code(code);
  illness.set_severity(severity);
  illness.set_subject(subject);
  illness.set_sentence(sentence);
  illness.set_count(count);
}

Said checked(const control::v1::StatusResponse& status, const std::vector<std::string>& options = {}) {
  const TempDir directory;
  const MadeUpStatus daemon(directory.file("control.sock"), status);
  std::vector<std::string> words = {"status", "--check", "--socket", directory.file("control.sock")};
  words.insert(words.end(), options.begin(), options.end());
  return topolet(words);
}

TEST(StatusHealth, SaysInOneLineHowTheNodeIs) {
  EXPECT_THAT(said_of_status({}), Not(HasSubstr("\nhealth "))) << "one that is older does not tell";
  EXPECT_THAT(said_of_status(well()), HasSubstr("\nhealth       well\n"));
  control::v1::StatusResponse status = well();
  add(status, "foreign", "notice", "runtime handler kata", "2 containers not placed");
  EXPECT_THAT(said_of_status(status), HasSubstr("\nhealth       well (1 notice)\n"));
  add(status, "plugin-late", "warning", "plugin numa", "late once in ten minutes");
  add(status, "denied", "warning", "d/p/a", "denied: why", 3);
  EXPECT_THAT(said_of_status(status), HasSubstr("\nhealth       NEEDS SOMEBODY: 3 denied, 1 plugin-late (1 notice)\n"));
  add(status, "runtime-unreachable", "critical", "runtime /run/x", "it is away");
  EXPECT_THAT(said_of_status(status), HasSubstr("\nhealth       NO POD CAN START: "));
}

TEST(StatusHealth, NamesWhatNoOtherLineNames) {
  control::v1::StatusResponse status = well();
  add(status, "plugin-quarantined", "warning", "plugin numa", "in quarantine until its trial: late 3 times");
  add(status, "plugin-late", "warning", "plugin gpu", "late once in ten minutes");
  add(status, "denied", "warning", "d/p/\x1b[31m", "denied 2 times (too-few-free-cpus): why");
  status.mutable_illnesses()->mutable_illnesses(2)->set_since_ms(1);
  add(status, "waiting", "notice", "d/p/w", "it waits with its start until d/q/o has left CPU 5");
  add(status, "stuck", "warning", "d/p/stuck", "told by its own line");
  const std::string said = said_of_status(status);
  EXPECT_THAT(said, HasSubstr("\nplugin       numa: in quarantine until its trial: late 3 times\n"
                              "             gpu: late once in ten minutes\n"));
  EXPECT_THAT(said, HasSubstr("\ndenied       d/p/\\x1b[31m: denied 2 times (too-few-free-cpus): why (for "));
  EXPECT_THAT(said, HasSubstr("\nwaiting      d/p/w: it waits"));
  EXPECT_THAT(said, Not(HasSubstr("told by its own line")));
  for (int i = 0; i < 20; ++i) add(status, "denied", "warning", "d/p/" + std::to_string(i), "denied: why");
  add(status, "denied", "warning", "77 more", "of the same", 77);
  EXPECT_THAT(said_of_status(status), HasSubstr("             and 88 more denied: `--json` lists them\n"));
}

TEST(StatusHealth, SaysBesideTheRuntimeWhatIsTheMatterWithIt) {
  control::v1::StatusResponse status = well();
  status.set_runtime("/run/x");
  status.set_runtime_connected(true);
  EXPECT_THAT(said_of_status(status), HasSubstr("\nruntime      /run/x, connected\ndatabase "));
  add(status, "runtime-unreachable", "critical", "runtime /run/x", "it stands still");
  EXPECT_THAT(said_of_status(status),
              HasSubstr("\nruntime      /run/x, connected\n             it stands still\ndatabase "));
}

TEST(StatusHealth, NamesTheSqueezed) {
  control::v1::StatusResponse status = well();
  status.set_squeezed(2);
  status.set_left_to_kernel(1);
  add(status, "squeezed", "warning", "d/p/less", "CPUs are gone");
  add(status, "left-to-kernel", "warning", "d/p/none", "CPUs are gone");
  EXPECT_THAT(said_of_status(status), AllOf(HasSubstr("no place as it should be is free\n             d/p/less\n"),
                                            HasSubstr("CPUs of others\n             d/p/none\n")));
}

TEST(StatusHealth, TellsProgramsTheSame) {
  control::v1::StatusResponse status = well();
  add(status, "plugin-late", "warning", "plugin numa", "late");
  const json told = json::parse(said_of_status(status, {"--json"}));
  EXPECT_EQ(told["needs_somebody"], true);
  EXPECT_EQ(told["illnesses"][0], (json{{"code", "plugin-late"},
                                        {"severity", "warning"},
                                        {"subject", "plugin numa"},
                                        {"sentence", "late"},
                                        {"since_ms", 0},
                                        {"count", 1}}));
}

TEST(StatusCheck, EndsWithOneWhereSomethingNeedsSomebody) {
  control::v1::StatusResponse status = well();
  EXPECT_EQ(checked(status).code, 0);
  add(status, "foreign", "notice", "runtime handler kata", "2 containers not placed");
  EXPECT_EQ(checked(status).code, 0) << "somebody has set it so";
  add(status, "plugin-late", "warning", "plugin numa", "late");
  const Said said = checked(status);
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.text, AllOf(HasSubstr("NEEDS SOMEBODY: 1 plugin-late"), Not(HasSubstr("topolet: "))));
  EXPECT_EQ(said_of_status(status).empty(), false) << "without --check an answer is a success";
  EXPECT_EQ(checked(status, {"--json"}).code, 1);
}

TEST(StatusCheck, EndsWithThreeWhereNobodyCanTell) {
  const TempDir directory;
  const Said none = topolet({"status", "--check", "--socket", directory.file("control.sock")});
  EXPECT_EQ(none.code, 3) << none.text;
  EXPECT_THAT(none.text, HasSubstr("topoletd does not answer on"));
  EXPECT_EQ(topolet({"status", "--socket", directory.file("control.sock")}).code, 1);
  control::v1::StatusResponse older;
  older.set_version("0.1");
  const Said silent = checked(older);
  EXPECT_EQ(silent.code, 3) << silent.text;
  EXPECT_THAT(silent.text, HasSubstr("topoletd 0.1 does not tell yet what needs somebody"));
  EXPECT_EQ(topolet({"status", "--chek"}).code, 2);
  EXPECT_EQ(checked(well(), {"more"}).code, 2);
}

TEST(StatusOfTopoletd, NamesWhoWasDeniedAlsoAfterARestart) {
  DaemonRig rig;
  rig.configure("", "", "");
  ASSERT_TRUE(rig.start()) << rig.log();
  const auto check = [&] { return topolet({"status", "--check", "--socket", rig.control_socket()}); };
  ASSERT_TRUE(eventually([&] { return check().code == 0; })) << check().text;
  EXPECT_THAT(check().text, HasSubstr("\nhealth       well\n"));
  EXPECT_FALSE(rig.create("huge", 100000).ok());
  const auto named = AllOf(HasSubstr("\nhealth       NEEDS SOMEBODY: 1 denied\n"),
                           HasSubstr("\ndenied       default/huge/main: denied (too-few-free-cpus): "));
  EXPECT_EQ(check().code, 1);
  EXPECT_THAT(check().text, named);
  rig.process().signal(SIGKILL);
  rig.wait_for_end();
  ASSERT_TRUE(rig.start()) << rig.log();
  ASSERT_TRUE(eventually([&] { return check().code == 1; })) << check().text;
  ASSERT_TRUE(eventually([&] { return check().text.find("NO POD CAN START") == std::string::npos; }));
  EXPECT_THAT(check().text, named);
}

}  // namespace
}  // namespace topolet::testing
