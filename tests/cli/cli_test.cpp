#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "store/store.hpp"
#include "tests/cli/run_topolet.hpp"
#include "tests/control/daemon_rig.hpp"

namespace topolet::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

/// With a live topoletd behind it.
class CliTest : public ::testing::Test {
 protected:
  Said ask(std::vector<std::string> words) {
    words.insert(words.end(), {"--socket", rig_.control_socket(), "--state-dir", rig_.state_dir()});
    return topolet(words);
  }
  nlohmann::json ask_json(std::vector<std::string> words) {
    words.emplace_back("--json");
    const Said said = ask(std::move(words));
    EXPECT_EQ(said.code, 0) << said.text;
    return nlohmann::json::parse(said.text, nullptr, false);
  }
  void start(const std::string& plugins = "enable = nonsense\n[nonsense]\nanswer = none") {
    rig_.configure(plugins);
    ASSERT_TRUE(rig_.start()) << rig_.log();
  }

  DaemonRig rig_;
};

TEST_F(CliTest, ShowsTheStatus) {
  start();
  ASSERT_TRUE(rig_.create("web").ok());
  const Said said = ask({"status"});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.text, AllOf(HasSubstr("runtime      " + rig_.file("runtime.sock") + ", connected"),
                               HasSubstr("containers   1 shared\n"), HasSubstr("state.db, healthy")));
  EXPECT_EQ(ask_json({"status"})["containers"]["shared"], 1);
}

TEST_F(CliTest, ListsAndResetsPlugins) {
  start("enable = throws");
  for (const char* pod : {"a", "b", "c"}) ASSERT_TRUE(rig_.create(pod).ok());
  EXPECT_THAT(ask({"plugin", "list"}).text,
              AllOf(HasSubstr("throws"), HasSubstr("quarantined"), HasSubstr("topolet.score/1 topolet.pick/1"),
                    HasSubstr("throws: failed 3 times in 10 minutes")));
  EXPECT_EQ(ask({"plugin", "reset", "throws"}).code, 0);
  EXPECT_EQ(ask_json({"plugin", "list"})[0]["state"], "active");
  EXPECT_TRUE(rig_.eventually([this] { return rig_.audited().size() == 2; }));
  EXPECT_THAT(ask({"audit"}).text, AllOf(HasSubstr("quarantined"), HasSubstr("plugin throws is not asked any more"),
                                         HasSubstr("quarantine-ended")));
  const Said unknown = ask({"plugin", "reset", "ghost"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_EQ(unknown.text, "topolet: no plugin 'ghost' is enabled; there are: throws\n");
}

TEST_F(CliTest, ReloadsAndSaysWhatARestartNeeds) {
  start("");
  rig_.configure("enable = throws", "deadline-ms = 70");
  const Said said = ask({"reload"});
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.text, "reloaded; plugins: throws\nplacement.deadline-ms has changed; restart topoletd to apply it\n");
  rig_.configure("enable = throws\nweight.throws = much");
  const Said refused = ask({"reload"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.text, AllOf(HasSubstr("the configuration was not changed"), HasSubstr("weight.throws")));
}

TEST_F(CliTest, SetsShowsAndClearsACapacity) {
  start();
  EXPECT_THAT(ask({"capacity", "show"}).text, HasSubstr("nothing is told of any NUMA node"));
  const Said set = ask({"capacity", "set", "--node", "0", "--milli", "1", "--for", "10m"});
  EXPECT_EQ(set.code, 0) << set.text;
  EXPECT_THAT(set.text, AllOf(HasSubstr("node 0: 1 of "), HasSubstr("000 milli-CPUs until 20")));
  const nlohmann::json shown = ask_json({"capacity", "show"});
  ASSERT_THAT(shown, SizeIs(1));
  EXPECT_EQ(shown[0]["milli"], 1);
  EXPECT_EQ(shown[0]["source"], "operator");
  EXPECT_TRUE(shown[0]["below_since"].is_string());
  EXPECT_EQ(shown[0]["missing_cpus"], 0) << "not yet";
  EXPECT_EQ(ask_json({"status"})["capacities"], shown);
  EXPECT_THAT(ask({"status"}).text, HasSubstr("\ncapacity     node 0: 1 of "));
  EXPECT_THAT(ask({"capacity", "show"}).text, HasSubstr("BELOW 90% SINCE"));
  EXPECT_EQ(ask_json({"nodes"})[0]["told_milli"], 1);
  EXPECT_THAT(ask({"nodes"}).text, AllOf(HasSubstr("CPUS TOLD"), HasSubstr("0.001")));
  EXPECT_TRUE(ask_json({"nodes", "--at", "1s"})[0]["told_milli"].is_null()) << "the database has the present only";
  EXPECT_THAT(ask({"audit"}).text, HasSubstr("told by operator"));

  const Said cut = ask({"capacity", "set", "--node", "0", "--milli", "999999999", "--for", "1h", "--source", "me"});
  EXPECT_EQ(cut.code, 0);
  EXPECT_THAT(cut.text, HasSubstr(", as node 0 has no more"));
  EXPECT_EQ(ask_json({"capacity", "show"})[0]["source"], "me");
  EXPECT_EQ(ask({"capacity", "clear", "--node", "0"}).text, "node 0: its nominal capacity counts again\n");
  EXPECT_EQ(ask({"capacity", "clear", "--node", "0"}).text, "node 0: nothing was told of it\n");
  EXPECT_THAT(ask({"nodes"}).text, Not(HasSubstr("CPUS TOLD")));
}

TEST_F(CliTest, HealsOrSaysWhatItWouldDo) {
  start();
  ASSERT_TRUE(rig_.create("web").ok());
  EXPECT_EQ(ask({"heal", "--dry-run"}).text, "no container would be moved\n");
  EXPECT_EQ(ask({"heal"}).text, "no container was moved\n");
  const nlohmann::json healed = ask_json({"heal", "--dry-run"});
  EXPECT_EQ(healed["dry_run"], true);
  EXPECT_TRUE(healed["moved"].empty());
}

TEST_F(CliTest, TakesBackWhatWasDoneToContainers) {
  start();
  ASSERT_TRUE(rig_.create("web").ok());
  EXPECT_EQ(ask_json({"status"})["released"], "");
  EXPECT_EQ(
      ask({"release", "--all"}).text,
      "0 containers have more than before\nUntil topoletd starts again, BestEffort containers give way to nobody.\n");
  EXPECT_THAT(ask({"status"}).text, HasSubstr("\nreleased     BestEffort containers give way to nobody, until"));
  const nlohmann::json released = ask_json({"release", "--cpusets"});
  EXPECT_EQ(released["cpusets"], true);
  EXPECT_TRUE(released["untold"].empty());
  EXPECT_EQ(ask_json({"status"})["released"], "cpusets");
  const Said misused = topolet({"release"});
  EXPECT_EQ(misused.code, 2) << misused.text;
  EXPECT_THAT(misused.text, HasSubstr("needs --all (all but the CPUs of containers) or --cpusets"));
}

TEST_F(CliTest, SaysWhatIsWrongWithACapacity) {
  const auto misuse = [](std::vector<std::string> words, const std::string& why) {
    words.insert(words.begin(), {"capacity", "set"});
    const Said said = topolet(words);
    EXPECT_EQ(said.code, 2) << said.text;
    EXPECT_THAT(said.text, HasSubstr(why));
  };
  misuse({"--milli", "1", "--for", "1m"}, "--node is missing");
  misuse({"--node", "0", "--for", "1m"}, "--milli is missing");
  misuse({"--node", "0", "--milli", "1"}, "--for is missing: say for how long, as in --for 10m");
  misuse({"--node", "-1", "--milli", "1", "--for", "1m"}, "--node must be 0 or more");
  misuse({"--node", "0", "--milli", "-1", "--for", "1m"}, "--milli must be 0 or more, not -1");
  misuse({"--node", "0", "--milli", "1.5", "--for", "1m"}, "milli");
  misuse({"--node", "0", "--milli", "1", "--for", "0s"}, "--for must be more than 0 and at most 31 days, not 0s");
  misuse({"--node", "0", "--milli", "1", "--for", "999999999d"}, "at most 31 days");
  misuse({"--node", "0", "--milli", "1", "--for", "soon"}, "--for: 'soon' is no duration; write 90s");
  start();
  const Said nowhere = ask({"capacity", "set", "--node", "4711", "--milli", "1", "--for", "1m"});
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_EQ(nowhere.text, "topolet: there is no NUMA node 4711; `topolet nodes` lists them\n");
  EXPECT_EQ(ask({"capacity", "clear", "--node", "4711"}).code, 1);
}

TEST_F(CliTest, ShowsPlacementsAuditAndQueries) {
  start();
  EXPECT_EQ(ask({"ps"}).text, "no container is placed\n");
  ASSERT_TRUE(rig_.create("web").ok());
  ASSERT_TRUE(rig_.create("batch").ok());
  EXPECT_THAT(ask({"ps"}).text, AllOf(HasSubstr("REASON WHEN PLACED"), HasSubstr("web"), HasSubstr("batch")));
  EXPECT_THAT(ask_json({"ps"}), SizeIs(2));
  const nlohmann::json audit = ask_json({"audit", "--pod", "web", "--limit", "1"});
  ASSERT_THAT(audit, SizeIs(1));
  EXPECT_EQ(audit[0]["event"], "bound");
  EXPECT_EQ(ask({"audit", "--pod", "nobody"}).text, "nothing is recorded about pod 'nobody'\n");
  const nlohmann::json rows = ask_json({"query", "SELECT pod, 7 AS n, 1.5 AS r, NULL AS x FROM current_placements"});
  EXPECT_EQ(rows[0], nlohmann::json({{"pod", "batch"}, {"n", 7}, {"r", 1.5}, {"x", nullptr}}));
}

TEST_F(CliTest, DrawsTheMachineOfALiveDaemon) {
  start();
  ASSERT_TRUE(rig_.create("web").ok());
  const Said map = ask({"map"});
  EXPECT_EQ(map.code, 0);
  EXPECT_THAT(map.text, HasSubstr(". pool"));
  EXPECT_FALSE(ask_json({"map"}).empty());
}

TEST_F(CliTest, QueriesCannotWriteAndMustBeSql) {
  start();
  ASSERT_TRUE(rig_.create("web").ok());
  EXPECT_EQ(ask({"query", "SELEC pod"}).code, 2);
  const Said written = ask({"query", "DELETE FROM allocation_row"});
  EXPECT_EQ(written.code, 2);
  EXPECT_THAT(written.text, HasSubstr("DELETE is refused"));
  EXPECT_THAT(ask_json({"ps"}), SizeIs(1));
}

TEST_F(CliTest, ExplainsAContainerByNameOrId) {
  start("enable = throws");
  ASSERT_TRUE(rig_.create("web").ok());
  const Said said = ask({"explain", "main"});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.text, AllOf(HasSubstr("default/web/main"), HasSubstr("reason when placed: "), HasSubstr("lost vote"),
                               HasSubstr("threw: index 7 of 4")));
  const std::string id = ask_json({"query", "SELECT container_id FROM current_placements"})[0]["container_id"];
  EXPECT_EQ(ask_json({"explain", id.substr(0, id.size() - 1)})["pod"], "web");
  EXPECT_EQ(ask_json({"explain", "web/main"})["mode"], "shared");
  EXPECT_EQ(ask({"explain", "nobody"}).code, 1);

  ASSERT_TRUE(rig_.create("batch").ok());
  const Said two = ask({"explain", "main"});
  EXPECT_EQ(two.code, 2);
  EXPECT_THAT(two.text, AllOf(HasSubstr("default/web/main"), HasSubstr("default/batch/main")));
}

TEST(Cli, SaysWhatAnEndReleased) {
  const StateDir state;
  {
    const auto opened = state.open();
    store::Store& store = *opened;
    store::DecidedRow row;
    row.at_ms = 1;
    row.event = "placed";
    row.pod_namespace = "shop";
    row.pod_name = "till";
    row.container = "app";
    row.mode = "exclusive";
    row.cpus = {1};
    row.reason = "fits one node";
    const auto decision = store.add(row);
    ASSERT_TRUE(decision.has_value()) << decision.error().message;
    const store::Columns columns = {
        {"state", "bound"}, {"container_id", "c-1"}, {"cpus", "1"}, {"pending_since_ms", std::int64_t{1}}};
    ASSERT_TRUE(store.put_allocation(*decision, columns).has_value());
    ASSERT_TRUE(store.add(store::EndedRow{*decision, 2, 1, "pod-stopped"}).has_value());
  }
  EXPECT_THAT(state.topolet({"audit"}).text,
              AllOf(HasSubstr("released CPUs 1 "), HasSubstr("  pod stopped"), HasSubstr("exclusive, CPUs 1")));
  const auto audit = nlohmann::json::parse(state.topolet({"audit", "--json"}).text);
  ASSERT_THAT(audit, SizeIs(2));
  EXPECT_EQ(audit[1]["what"], "");
  EXPECT_EQ(audit[1]["reason"], "pod-stopped");
  EXPECT_THAT(state.topolet({"explain", "app"}).text,
              AllOf(HasSubstr("released CPUs 1 (pod stopped) "), HasSubstr("reason when placed: fits one node\n")));
}

TEST(Cli, SaysHowToStartADaemonThatIsNotThere) {
  const TempDir directory;
  const Said said = topolet({"status", "--socket", directory.file("none.sock")});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.text, AllOf(HasSubstr("topoletd does not answer on " + directory.file("none.sock")),
                               HasSubstr("systemctl start topoletd")));
  const Said no_database = topolet({"ps", "--state-dir", directory.file("none")});
  EXPECT_EQ(no_database.code, 1);
  EXPECT_THAT(no_database.text, HasSubstr(directory.file("none/state.db")));
}

TEST(Cli, HelpsWithEveryCommand) {
  const std::vector<std::vector<std::string>> commands = {
      {"status"}, {"ps"},     {"explain"},        {"audit"},           {"query"},         {"map"},
      {"backup"}, {"reload"}, {"plugin", "list"}, {"plugin", "reset"}, {"plugin", "new"}, {"config", "check"}};
  const Said all = topolet({"--help"});
  for (std::vector<std::string> command : commands) {
    const std::string words = command.size() == 1 ? command[0] : command[0] + " " + command[1];
    EXPECT_THAT(all.text, HasSubstr("  " + words));
    command.emplace_back("--help");
    const Said said = topolet(command);
    EXPECT_EQ(said.code, 0);
    EXPECT_THAT(said.text, HasSubstr("Example: topolet " + words));
  }
}

TEST(Cli, RefusesWrongUse) {
  const auto misuse = [](const std::vector<std::string>& words) {
    const Said said = topolet(words);
    EXPECT_EQ(said.code, 2) << said.text;
    return said.text;
  };
  EXPECT_THAT(misuse({"staus"}), HasSubstr("did you mean status?"));
  EXPECT_THAT(misuse({"plugin", "rest", "numa"}), HasSubstr("did you mean plugin reset?"));
  EXPECT_THAT(misuse({"plugin"}), HasSubstr("needs a second word: list, reset, new"));
  EXPECT_THAT(misuse({"explain"}), HasSubstr("usage: topolet explain CONTAINER"));
  EXPECT_THAT(misuse({"ps", "web"}), HasSubstr("usage: topolet ps"));
  EXPECT_THAT(misuse({"ps", "--pod", "web"}),
              AllOf(HasSubstr("topolet ps: "), HasSubstr("'--pod'"), HasSubstr("topolet ps --help")));
  EXPECT_THAT(misuse({"--limit", "3", "ps"}), HasSubstr("topolet ps: "));
  EXPECT_THAT(misuse({"audit", "--limit", "0"}), HasSubstr("--limit"));
  EXPECT_THAT(misuse({"status", "--sock", "x"}), HasSubstr("--sock"));
  misuse({});
}

TEST(Cli, ChecksAConfiguration) {
  const TempDir directory;
  const std::string places = "[daemon]\nlisten = " + directory.file("l.sock") +
                             "\ncontrol = " + directory.file("c.sock") + "\nstate-dir = " + directory.file("state") +
                             "\n";
  const std::string good = directory.write("good.conf", places + "log-level = debug\n");
  EXPECT_EQ(topolet({"config", "check", good}).code, 0);
  const std::string bad = directory.write("bad.conf", "[daemon]\nlog-levle = debug\n[plugins]\nenable = ghost\n");
  const Said said = topolet({"config", "check", bad});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.text, AllOf(HasSubstr(bad + ":2: "), HasSubstr("did you mean"), HasSubstr("plugin ghost: ")));
  EXPECT_EQ(topolet({"config", "check", directory.file("none.conf")}).code, 1);
}

class NewPlugin : public ::testing::TestWithParam<const char*> {};

TEST_P(NewPlugin, BuildsTestsAndIsTried) {
  const TempDir directory;
  const std::string project = directory.file("even-out");
  std::vector<std::string> arguments = {"plugin", "new", "even-out", project};
  if (GetParam() != std::string()) arguments.emplace_back(GetParam());
  const Said created = topolet(arguments);
  ASSERT_EQ(created.code, 0);
  const std::string build = directory.file("build");
  Process configured(
      {TOPOLET_CMAKE, "-S", project, "-B", build, std::string("-DCMAKE_PREFIX_PATH=") + TOPOLET_SDK_PACKAGE,
       std::string("-DCMAKE_CXX_COMPILER=") + TOPOLET_CXX},
      directory.file("log"));
  EXPECT_EQ(configured.wait(), 0);
  EXPECT_EQ(Process({TOPOLET_CMAKE, "--build", build}, directory.file("log")).wait(), 0);
  EXPECT_TRUE(std::filesystem::exists(build + "/even-out.so"));
  EXPECT_EQ(Process({build + "/even-out_test"}, directory.file("log")).wait(), 0);
  EXPECT_EQ(topolet({"plugin", "check", build + "/even-out.so"}).code, 0);
  const std::string machine = "pack:2 numa:1 core:4 pu:2";
  EXPECT_THAT(created.text, HasSubstr("topolet simulate --topology \"" + machine + "\" --plugin " + project +
                                      "/build/even-out.so --workload " + project + "/workload.jsonl --explain"));
  const Said simulated = topolet({"simulate", "--topology", machine, "--plugin", build + "/even-out.so", "--workload",
                                  project + "/workload.jsonl", "--explain", "--placement.deadline-ms=60000"});
  EXPECT_EQ(simulated.code, 0) << simulated.text;
  EXPECT_THAT(simulated.text, HasSubstr("even-out +10: 8 CPUs are free"));
  std::ostringstream log;
  log << std::ifstream(directory.file("log")).rdbuf();
  if (HasFailure()) std::puts(log.str().c_str());

  // And topoletd can run it.
  const std::string config = directory.write(
      "topolet.conf", "[daemon]\nlisten = " + directory.file("l.sock") + "\ncontrol = " + directory.file("c.sock") +
                          "\nstate-dir = " + directory.file("state") + "\nplugin-dir = " + build +
                          "\n[plugins]\nenable = even-out\n");
  const Said checked = topolet({"config", "check", config});
  EXPECT_EQ(checked.code, 0) << checked.text;
}

INSTANTIATE_TEST_SUITE_P(Cli, NewPlugin, ::testing::Values("", "--c"),
                         [](const auto& language) { return language.index == 0 ? "InCpp" : "InC"; });

TEST(Cli, NewPluginsOverwriteNothingAndNeedAPlainName) {
  const TempDir directory;
  directory.write("mine/policy.cpp", "precious");
  const Said refused = topolet({"plugin", "new", "mine", directory.file("mine")});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.text, HasSubstr("nothing is overwritten"));
  EXPECT_FALSE(std::filesystem::exists(directory.file("mine/CMakeLists.txt")));
  for (const char* name : {"My-Plugin", "../x", "plugins", "test", "1st", "", "numa", "gpu", "smt"}) {
    const Said bad = topolet({"plugin", "new", name, directory.file("other")});
    EXPECT_EQ(bad.code, 2) << name << ": " << bad.text;
  }
  EXPECT_FALSE(std::filesystem::exists(directory.file("other")));
}

}  // namespace
}  // namespace topolet::testing
