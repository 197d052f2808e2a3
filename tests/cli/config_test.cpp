// Where the commands find topoletd and its database.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/cli/run_topolet.hpp"
#include "tests/control/daemon_rig.hpp"

namespace topolet::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Config, SaysWhereTheSocketAndTheDatabaseAre) {
  DaemonRig rig;
  rig.configure("enable = nonsense\n[nonsense]\nanswer = none");
  ASSERT_TRUE(rig.start()) << rig.log();
  ASSERT_TRUE(rig.create("web").ok());
  const Said status = topolet({"status", "--config", rig.config()});
  EXPECT_EQ(status.code, 0);
  EXPECT_THAT(status.text, HasSubstr(rig.state_dir() + "/state.db"));
  EXPECT_THAT(topolet({"--config", rig.config(), "ps"}).text, HasSubstr("web"));
}

TEST(Config, OptionsComeBeforeIt) {
  const StateDir state;
  state.open();
  const std::string config = state.directory().write(
      "topolet.conf", "[daemon]\ncontrol = " + state.file("a.sock") + "\nstate-dir = " + state.file("none") + "\n");
  EXPECT_THAT(topolet({"status", "--config", config}).text, HasSubstr(state.file("a.sock")));
  EXPECT_THAT(topolet({"status", "--config", config, "--socket", state.file("b.sock")}).text,
              HasSubstr(state.file("b.sock")));
  EXPECT_THAT(topolet({"query", "SELECT 1", "--config", config}).text, HasSubstr(state.file("none/state.db")));
  EXPECT_EQ(topolet({"query", "SELECT 1", "--config", config, "--state-dir", state.path()}).code, 0);
  EXPECT_EQ(topolet({"query", "SELECT 1", "--config", config, "--database", state.database()}).code, 0);
}

TEST(Config, MistakesInItAreNamed) {
  const TempDir directory;
  const std::string bad = directory.write("bad.conf", "[daemon]\ncontrol = a.sock\n");
  for (const char* command : {"status", "ps"}) {
    const Said said = topolet({command, "--config", bad});
    EXPECT_EQ(said.code, 2);
    EXPECT_THAT(said.text, AllOf(HasSubstr(bad + ":2: daemon.control"), HasSubstr("--config")));
    const Said missing = topolet({command, "--config", directory.file("none.conf")});
    EXPECT_EQ(missing.code, 2);
    EXPECT_THAT(missing.text, HasSubstr(directory.file("none.conf") + ": cannot read"));
  }
}

TEST(Config, PluginsOfItNeedNotBeThere) {
  const TempDir directory;
  const std::string config =
      directory.write("topolet.conf", "[daemon]\ncontrol = " + directory.file("a.sock") +
                                          "\n[plugins]\nenable = ghost\nweight.ghost = 3\n[ghost]\nanswer = 7\n");
  EXPECT_THAT(topolet({"status", "--config", config}).text,
              HasSubstr("does not answer on " + directory.file("a.sock")));
}

}  // namespace
}  // namespace topolet::testing
