// How the programs deal with those who call them: help, wrong use, and what they cannot reach.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "core/base/unique_fd.hpp"
#include "core/base/unix_address.hpp"
#include "tests/cli/run_topolet.hpp"
#include "tests/support/cri.grpc.pb.h"
#include "tests/support/served_runtime.hpp"

namespace topolet::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

const std::vector<Words> kCommands = {{"status"},
                                      {"ps"},
                                      {"cpu"},
                                      {"at"},
                                      {"nodes"},
                                      {"map"},
                                      {"top"},
                                      {"moves"},
                                      {"denials"},
                                      {"explain"},
                                      {"audit"},
                                      {"query"},
                                      {"backup"},
                                      {"prune"},
                                      {"reload"},
                                      {"simulate"},
                                      {"plugin", "list"},
                                      {"plugin", "reset"},
                                      {"plugin", "new"},
                                      {"plugin", "check"},
                                      {"config", "check"},
                                      {"config", "show"},
                                      {"heal"},
                                      {"capacity", "show"},
                                      {"capacity", "set"},
                                      {"capacity", "clear"}};

Words with(Words words, const std::string& last) {
  words.push_back(last);
  return words;
}

TEST(Manners, EveryCommandHelpsInEveryWay) {
  for (const Words& command : kCommands) {
    const Said help = topolet(with(command, "--help"));
    EXPECT_EQ(help.code, 0);
    EXPECT_THAT(help.text, AllOf(HasSubstr("\n\nUsage: topolet " + command[0]), HasSubstr("\nExample: "),
                                 HasSubstr("\n\nOptions:\n"), HasSubstr("-h [ --help ]")));
    EXPECT_EQ(topolet(with(command, "-h")).text, help.text);
    Words asked = command;
    asked.insert(asked.begin(), "help");
    EXPECT_EQ(topolet(asked).text, help.text);
    asked[0] = "--help";
    EXPECT_EQ(topolet(asked).text, help.text);
  }
}

TEST(Manners, HelpsWithAllAndWithAGroup) {
  const Said help = topolet({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.text, HasSubstr("Exit status: 0 success"));
  for (const Words& words : std::vector<Words>{{"-h"}, {"help"}, {"help", "help"}}) {
    EXPECT_EQ(topolet(words).text, help.text);
  }
  const Said group = topolet({"plugin", "--help"});
  EXPECT_EQ(group.code, 0);
  EXPECT_THAT(group.text, AllOf(HasSubstr("plugin reset NAME"), HasSubstr("plugin check"), Not(HasSubstr("audit"))));
  for (const Words& words : std::vector<Words>{{"plugin", "-h"}, {"help", "plugin"}}) {
    EXPECT_EQ(topolet(words).text, group.text);
  }
  for (const Words& words :
       std::vector<Words>{{"help", "nonsense"}, {"help", "ps", "ps"}, {"plugin", "nonsense", "-h"}}) {
    EXPECT_EQ(topolet(words).code, 2);
  }
}

TEST(Manners, TellTheVersion) {
  EXPECT_THAT(topolet({"--version"}).text, MatchesRegex("topolet [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  const Said daemon = run_to_its_end({TOPOLET_DAEMON, "--version"});
  EXPECT_EQ(daemon.code, 0);
  EXPECT_THAT(daemon.text, MatchesRegex("topoletd [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  const Said help = run_to_its_end({TOPOLET_DAEMON, "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(run_to_its_end({TOPOLET_DAEMON, "-h"}).text, help.text);
}

TEST(Manners, SuggestOnlyWhatIsNear) {
  const auto misuse = [](const Words& words) {
    const Said said = topolet(words);
    EXPECT_EQ(said.code, 2) << said.text;
    EXPECT_THAT(said.text, HasSubstr("--help"));
    return said.text;
  };
  EXPECT_THAT(misuse({"sp"}), HasSubstr("did you mean ps?"));
  EXPECT_THAT(misuse({"plugin", "lst"}), HasSubstr("did you mean plugin list?"));
  EXPECT_THAT(misuse({"ps", "--fromat", "csv"}), HasSubstr("did you mean --format?"));
  EXPECT_THAT(misuse({"simulate", "--toplogy", "x"}), HasSubstr("did you mean --topology?"));
  for (const Words& far : std::vector<Words>{{"containers"}, {"x"}, {""}, {"plugin", "explode"}, {"ps", "--zzz"}}) {
    EXPECT_THAT(misuse(far), Not(HasSubstr("did you mean")));
  }
}

TEST(Manners, SuggestColumnsAndContainers) {
  const StateDir state;
  {
    store::DecidedRow row;
    row.event = "denied";
    row.pod_namespace = "shop";
    row.pod_name = "web.1";
    row.container = "main";
    row.holds = false;
    ASSERT_TRUE(state.open()->add(row).has_value());
  }
  EXPECT_THAT(state.query("SELECT a.contaner FROM audit a").text, HasSubstr("did you mean container?"));
  EXPECT_THAT(state.query("SELECT zzzzzz FROM audit").text, Not(HasSubstr("did you mean")));
  EXPECT_THAT(state.query("SELECT pod FROM audits").text, HasSubstr("did you mean audit?"));
  EXPECT_THAT(state.topolet({"explain", "wbe.1"}).text, HasSubstr("did you mean web.1?"));
  EXPECT_THAT(state.topolet({"explain", "web.1/mian"}).text, HasSubstr("did you mean web.1/main?"));
  EXPECT_THAT(state.topolet({"explain", "shop/web.1/mai"}).text, HasSubstr("did you mean shop/web.1/main?"));
  EXPECT_THAT(state.topolet({"explain", "db.1"}).text, Not(HasSubstr("did you mean")));
}

TEST(Manners, NameWhatIsWrongInACommandLine) {
  const StateDir state;
  state.open();
  const auto misuse = [&state](Words words) {
    words.insert(words.end(), {"--state-dir", state.path()});
    const Said said = topolet(words);
    EXPECT_EQ(said.code, 2) << said.text;
    return said.text;
  };
  const auto alone = [](const Words& words) {
    const Said said = topolet(words);
    EXPECT_EQ(said.code, 2) << said.text;
    return said.text;
  };
  EXPECT_THAT(alone({"-V"}), HasSubstr("unrecognised option '-V'"));
  EXPECT_THAT(alone({"--versoin"}), HasSubstr("unrecognised option '--versoin'; did you mean --version?"));
  EXPECT_THAT(alone({"--json"}), HasSubstr("no command given"));
  EXPECT_THAT(alone({"--timeout", "5"}), HasSubstr("no command given"));
  EXPECT_THAT(alone({"version"}), HasSubstr("did you mean --version?"));
  EXPECT_THAT(alone({"help", "ps", "x"}), HasSubstr("there is no command 'ps x'; `topolet ps --help` explains ps"));
  EXPECT_THAT(alone({"ps", "--timeout", "x"}), AllOf(HasSubstr("topolet ps: "), HasSubstr("`topolet ps --help`")));
  EXPECT_THAT(alone({"prune", "--older-than"}), HasSubstr("`topolet prune --help`"));
  EXPECT_THAT(misuse({"query", "--file", "/none/at/all"}), HasSubstr("/none/at/all: No such file or directory"));
  EXPECT_THAT(alone({"simulate", "--topology", "core:2 pu:1", "--workload", "/none/at/all"}),
              HasSubstr("/none/at/all: No such file or directory"));
  EXPECT_THAT(misuse({"backup", ""}), HasSubstr("name the file"));
  for (const std::string command : {"audit", "moves", "denials"}) {
    EXPECT_THAT(misuse({command, "--since", "1h", "--until", "2h"}),
                HasSubstr("--since (1h) is later than --until (2h)"));
  }
  EXPECT_THAT(state.topolet({"audit", "--event", "deneid"}).text,
              HasSubstr("no event 'deneid' is recorded; did you mean denied?"));
  EXPECT_THAT(state.topolet({"audit", "--event", "crashd", "--since", "1h"}).text,
              HasSubstr("no event 'crashd' is recorded of that time; did you mean crashed?"));
  EXPECT_THAT(state.topolet({"audit", "--event", "denied"}).text, Not(HasSubstr("did you mean")));
  for (const char* file : {"/dev/zero", "/etc"}) {
    EXPECT_THAT(alone({"ps", "--database", file}), HasSubstr(std::string(file) + " is no regular file"));
  }
}

TEST(Manners, ListNothingWithoutAComplaint) {
  const StateDir state;
  state.open();
  for (const Words& words : std::vector<Words>{{"ps"},
                                               {"ps", "--wide"},
                                               {"ps", "--namespace", "x"},
                                               {"cpu", "0"},
                                               {"at", "now"},
                                               {"nodes"},
                                               {"map"},
                                               {"moves"},
                                               {"denials"},
                                               {"denials", "--by", "plugin"},
                                               {"audit"},
                                               {"audit", "--pod", "x"},
                                               {"query", "SELECT pod FROM denials"}}) {
    const Said said = state.topolet(words);
    EXPECT_EQ(said.code, 0) << words[0] << ": " << said.text;
    EXPECT_NE(said.text, "") << words[0];
    EXPECT_THAT(said.text, Not(StartsWith("topolet:"))) << words[0];
    EXPECT_EQ(state.topolet(with(words, "--json")).text, "[]\n") << words[0];
  }
}

class SocketManners : public ::testing::Test {
 protected:
  Said status(const std::string& socket) const {
    Said said = topolet({"status", "--socket", socket});
    EXPECT_EQ(said.code, 1) << said.text;
    EXPECT_THAT(said.text, HasSubstr(socket));
    return said;
  }
  /// Bound at that path, and closed by the test.
  UniqueFd bound(const std::string& path, int type = SOCK_STREAM) const {
    UniqueFd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
    const auto address = unix_address(path);
    EXPECT_EQ(::bind(socket.get(), as_sockaddr(*address), sizeof(sockaddr_un)), 0);
    return socket;
  }
  std::string file(const std::string& name) const { return directory_.file(name); }

  TempDir directory_;
};

TEST_F(SocketManners, NameWhatIsWrongWithASocket) {
  EXPECT_THAT(status(file("none")).text, AllOf(HasSubstr("No such file"), HasSubstr("systemctl start topoletd")));
  EXPECT_THAT(status(directory_.write("plain", "x")).text, HasSubstr("a file, not a socket"));
  EXPECT_THAT(status(directory_.path().string()).text, HasSubstr("a directory, not a socket"));
  bound(file("left"));
  EXPECT_THAT(status(file("left")).text, HasSubstr("nobody listens"));
  const UniqueFd datagram = bound(file("datagram"), SOCK_DGRAM);
  EXPECT_THAT(status(file("datagram")).text, HasSubstr("another program's socket"));
  EXPECT_EQ(topolet({"status", "--socket", std::string(200, 'x')}).code, 2);
}

TEST_F(SocketManners, WaitForNobodyWhoAcceptsNothing) {
  const UniqueFd deaf = bound(file("deaf"));
  ASSERT_EQ(::listen(deaf.get(), 0), 0);
  const auto address = unix_address(file("deaf"));
  std::vector<UniqueFd> waiting;
  do {
    waiting.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  } while (::connect(waiting.back().get(), as_sockaddr(*address), sizeof(sockaddr_un)) == 0);
  EXPECT_THAT(status(file("deaf")).text, HasSubstr("accepts no connections"));
}

TEST_F(SocketManners, NameTheSocketOfAnotherProgram) {
  ::runtime::v1::RuntimeService::Service cri;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + file("cri.sock"), grpc::InsecureServerCredentials());
  builder.RegisterService(&cri);
  const auto runtime = builder.BuildAndStart();
  EXPECT_THAT(status(file("cri.sock")).text, HasSubstr("not topoletd's control socket"));
  const UniqueFd closing = bound(file("closes"));
  ASSERT_EQ(::listen(closing.get(), 8), 0);
  std::thread server([&] {
    while (true) {
      const UniqueFd client(::accept(closing.get(), nullptr, nullptr));
      if (!client) return;
    }
  });
  EXPECT_THAT(status(file("closes")).text, HasSubstr("does not answer as topoletd would"));
  ::shutdown(closing.get(), SHUT_RDWR);
  server.join();
}

TEST(Manners, SayThatPermissionIsMissing) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  const StateDir state;
  state.open();
  std::filesystem::permissions(state.directory().path(), std::filesystem::perms::all);
  // The program itself may be where only root comes.
  const std::string program = state.file("topolet");
  std::filesystem::copy_file(TOPOLET_COMMAND, program);
  const auto as_nobody = [&](const std::string& words) {
    Said said = run_to_its_end(
        {"/bin/sh", "-c", "exec setpriv --reuid=65534 --regid=65534 --clear-groups " + program + ' ' + words});
    EXPECT_EQ(said.code, 1) << said.text;
    EXPECT_THAT(said.text, AllOf(HasSubstr("Permission denied"), HasSubstr("sudo"), Not(HasSubstr("there is no"))));
    return said;
  };
  for (const std::string command : {"ps", "audit", "map", "nodes", "at now", "cpu 0", "moves", "denials", "explain x",
                                    "query 'SELECT 1'", "backup /tmp/none", "prune --older-than 7d"}) {
    as_nobody(command + " --config /dev/null --state-dir " + state.path());
    as_nobody(command + " --config /dev/null --database " + state.database());
  }
  std::filesystem::permissions(state.path(), std::filesystem::perms::all);
  as_nobody("ps --database " + state.database());
  const ServedRuntime runtime(state.file("root.sock"));
  std::filesystem::permissions(state.file("root.sock"), std::filesystem::perms::owner_all);
  as_nobody("status --socket " + state.file("root.sock"));
}

TEST(Manners, SayThatTheirOutputIsLost) {
  const StateDir state;
  state.open();
  for (const std::string command :
       {"$topolet --help", "$topolet --version", "$topolet ps -h", "$topolet help plugin", "$topolet simulate -h",
        "$topolet plugin check --list", "topolet ps", "topolet audit --json", "topolet map", TOPOLET_DAEMON " --help",
        TOPOLET_DAEMON " --version"}) {
    const std::string line = command[0] == 't' ? '$' + command + " --state-dir " + state.path() : command;
    EXPECT_THAT(shell(line + " > /dev/full; echo $?").text,
                MatchesRegex("topoletd?: cannot write the output: No space left on device\n1\n"))
        << line;
    EXPECT_THAT(shell(line + " >&-; echo $?").text,
                MatchesRegex("topoletd?: cannot write the output: Bad file descriptor\n1\n"))
        << line;
  }
}

}  // namespace
}  // namespace topolet::testing
