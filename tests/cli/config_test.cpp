// Where the commands find topoletd and its database, and which files its configuration is in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/cli/run_topolet.hpp"
#include "tests/control/daemon_rig.hpp"

namespace topolet::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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

TEST(Config, MistakesElsewhereDoNotHideHowTopoletdIs) {
  DaemonRig rig;
  ASSERT_TRUE(rig.start()) << rig.log();
  std::ofstream(rig.config(), std::ios::app) << "\n[placement]\nnope = 1\n";
  EXPECT_FALSE(rig.reload().ok());
  const Said status = topolet({"status", "--config", rig.config()});
  EXPECT_EQ(status.code, 0);
  EXPECT_THAT(status.text, AllOf(HasSubstr("unknown key placement.nope"), HasSubstr("configuration-rejected")));
  EXPECT_EQ(topolet({"ps", "--config", rig.config()}).code, 0);
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

/// A file and two parts; @ in the texts is where they are.
class ConfigShow : public ::testing::Test {
 protected:
  ConfigShow() {
    directory_.write("t.conf",
                     "[daemon]\nkeep = 1d\nwatch-group =\n[placement]\nannotations = cpus\nannotations = smt\n"
                     "[plugins]\nenable = ghost\n[ghost]\nanswer = 7\n");
    directory_.write("t.conf.d/10-a.conf", "[daemon]\nkeep = 2d\n[placement]\nannotations = numa-policy\n");
    directory_.write("t.conf.d/20-b.conf", "[daemon]\n\nkeep = 3d # enough\n");
    directory_.write("t.conf.d/20-b.conf~", "[daemon]\nkeep = 4d\n");
  }
  std::string config() const { return directory_.file("t.conf"); }
  Said show(std::vector<std::string> words = {}) const {
    words.insert(words.begin(), {"config", "show", "--config", config()});
    Said said = topolet(words);
    for (std::size_t at = 0; (at = said.text.find(config(), at)) != std::string::npos;)
      said.text.replace(at, config().size(), "@");
    return said;
  }

  TempDir directory_;
};

TEST_F(ConfigShow, SaysWhichFileAndLineSaysWhat) {
  const Said said = show();
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(
      said.text,
      "# @\n# @.d/10-a.conf\n# @.d/20-b.conf\n# not read, as its name is none of a part: @.d/20-b.conf~\n"
      "\n[daemon]\nwatch-group =    # @:3\n"
      "keep = 3d   # @.d/20-b.conf:3; takes the place of 1d in @:2; takes the place of 2d in @.d/10-a.conf:2\n"
      "\n[placement]\n"
      "annotations = numa-policy   # @.d/10-a.conf:4; takes the place of cpus in @:5; takes the place of smt in @:6\n"
      "\n[plugins]\nenable = ghost   # @:8\n\n[ghost]\nanswer = 7   # @:10\n");
}

TEST_F(ConfigShow, CanBeReadAgainAsAConfiguration) {
  const std::string once = show().text;
  directory_.write("once.conf", once);
  const auto values = [](std::string text) {
    std::string kept;
    std::istringstream lines(std::move(text));
    for (std::string line; std::getline(lines, line);) {
      if (line.empty() || line[0] != '#') kept += line.substr(0, line.find("   #")) + '\n';
    }
    return kept;
  };
  EXPECT_EQ(values(topolet({"config", "show", "--config", directory_.file("once.conf")}).text), values(once));
}

TEST_F(ConfigShow, ShowsDefaultsWithAll) {
  const Said said = show({"--all"});
  EXPECT_THAT(said.text,
              AllOf(HasSubstr("\nkeep = 3d   # @.d/20-b.conf:3"), HasSubstr("\nkeep-mib = 1024   # the default\n"),
                    HasSubstr("\nforeign-handlers = kata*   # the default\nforeign-handlers = *firecracker*   ")));
  EXPECT_THAT(said.text, Not(HasSubstr("\nkeep = 30d")));
}

TEST_F(ConfigShow, HasJson) {
  const Said said = show({"--json"});
  EXPECT_THAT(said.text, AllOf(HasSubstr("\"option\": \"daemon.keep\""), HasSubstr("\"file\": \"@.d/20-b.conf\""),
                               HasSubstr("\"line\": 3"), HasSubstr("\"mistakes\": []"), HasSubstr("@.d/20-b.conf~")));
}

TEST_F(ConfigShow, NamesMistakesBehindWhatItShows) {
  directory_.write("t.conf.d/30-c.conf", "[daemon]\nkeep = 5d\nkeep = 6d\nlog-level = loud\n");
  const Said said = show();
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.text, AllOf(HasSubstr("keep = 6d   # @.d/30-c.conf:3"), HasSubstr("@ has mistakes:"),
                               HasSubstr("@.d/30-c.conf:3: daemon.keep is already set in line 2"),
                               HasSubstr("@.d/30-c.conf:4: daemon.log-level: 'loud'")));
  EXPECT_EQ(show({"--json"}).code, 1);
}

TEST(ConfigParts, AreReadByEveryCommandAndAtEveryReload) {
  DaemonRig rig;
  const TempDir elsewhere;
  ASSERT_TRUE(rig.start()) << rig.log();
  const std::string part = rig.config() + ".d/10-a.conf";
  std::filesystem::create_directory(rig.config() + ".d");
  const auto write_part = [&part](const std::string& text) { std::ofstream(part) << text; };
  write_part("[daemon]\nkeep = 1d\n[plugins]\nenable = nonsense\n[nonsense]\nanswer = none\n");
  control::v1::ReloadResponse reloaded;
  ASSERT_TRUE(rig.reload(&reloaded).ok());
  EXPECT_THAT(reloaded.plugins(), ::testing::ElementsAre("nonsense"));
  EXPECT_THAT(reloaded.restart_needed(), ::testing::ElementsAre("daemon.keep"));

  write_part("[plugins]\nenable = nonsense\n\nenable = nonsense\n");
  const grpc::Status refused = rig.reload(&reloaded);
  EXPECT_THAT(refused.error_message(), HasSubstr(part + ":4: plugins.enable"));
  EXPECT_THAT(topolet({"config", "check", rig.config()}).text, HasSubstr(part + ":4: plugins.enable"));
  EXPECT_THAT(topolet({"status", "--config", rig.config()}).text, HasSubstr(part + ":4: plugins.enable"));

  write_part("[daemon]\ncontrol = " + elsewhere.file("other.sock") + "\n");
  EXPECT_THAT(topolet({"status", "--config", rig.config()}).text, HasSubstr(elsewhere.file("other.sock")));
  EXPECT_THAT(topolet({"config", "check", rig.config()}).text, HasSubstr(rig.config() + " is valid, with its parts"));
}

TEST(ConfigParts, AreReadForASimulation) {
  const TempDir directory;
  const std::string config = directory.write("t.conf", "[placement]\nreserved-cpus = 0\n");
  directory.write("t.conf.d/1.conf", "[placement]\nreserved-cpus = 2-3\n");
  const std::string workload = directory.write("w.jsonl", R"({"op":"run_pod","pod":"web","qos":"burstable"})");
  EXPECT_THAT(
      topolet({"simulate", "--topology", "pack:1 numa:1 core:4 pu:1", "--config", config, "--workload", workload}).text,
      HasSubstr("[.] [.] [r] [r]"));
}

}  // namespace
}  // namespace topolet::testing
