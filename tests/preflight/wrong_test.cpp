// Configurations with which topoletd cannot start: the checks say so, name what is wrong, and change nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/exit_status.hpp"
#include "core/base/unique_fd.hpp"
#include "core/base/unix_address.hpp"
#include "store/database.hpp"
#include "store/schema.hpp"
#include "tests/control/daemon_rig.hpp"
#include "tests/preflight/node_files.hpp"

namespace topolet::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::string kBroken = TOPOLET_BROKEN_DIR;

struct Wrong {
  std::string name;
  std::map<std::string, std::string> daemon;  ///< keys of [daemon]
  std::string more;                           ///< further lines of the file
  std::vector<std::string> told;              ///< what the check must say; '@' is the directory
  std::function<void(const NodeFiles&)> prepare = {};
};

void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.name; }

std::string plugin(const std::string& name, const std::string& options = "") {
  return "[plugins]\nenable = " + name + "\n[" + name + "]\n" + options + "\n";
}

UniqueFd listening_socket(const std::string& path) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = unix_address(path);
  EXPECT_EQ(::bind(socket.get(), as_sockaddr(*address), sizeof(sockaddr_un)), 0) << path;
  EXPECT_EQ(::listen(socket.get(), 1), 0);
  return socket;
}

std::function<void(const NodeFiles&)> make_file(const std::string& name) {
  return [name](const NodeFiles& node) { std::ofstream(node.expand(name)) << "text\n"; };
}

std::function<void(const NodeFiles&)> make_fifo(const std::string& name) {
  return [name](const NodeFiles& node) { ASSERT_EQ(::mkfifo(node.expand(name).c_str(), 0600), 0); };
}

std::function<void(const NodeFiles&)> make_link(const std::string& to, const std::string& name) {
  return [to, name](const NodeFiles& node) { fs::create_symlink(node.expand(to), node.expand(name)); };
}

std::function<void(const NodeFiles&)> make_folder(const std::string& name) {
  return [name](const NodeFiles& node) { fs::create_directories(node.expand(name)); };
}

void make_newer_database(const NodeFiles& node) {
  const fs::path state = node.expand("@/state");
  fs::create_directory(state);
  fs::permissions(state, fs::perms::owner_all);
  std::ofstream(state / "state.db").flush();
  auto database = store::Database::open(state / "state.db", store::Database::Access::kReadWrite);
  const std::string id = std::to_string(store::kApplicationId);
  ASSERT_TRUE(database->execute("CREATE TABLE t (x); PRAGMA user_version = 99; PRAGMA application_id = " + id,
                                "write a database for a test"));
}

void make_foreign_database(const NodeFiles& node) {
  const fs::path state = node.expand("@/state");
  fs::create_directory(state);
  fs::permissions(state, fs::perms::owner_all);
  std::ofstream(state / "state.db").flush();
  auto database = store::Database::open(state / "state.db", store::Database::Access::kReadWrite);
  ASSERT_TRUE(database->execute("CREATE TABLE recipes (x)", "write a database for a test"));
}

std::vector<Wrong> wrong_texts() {
  return {
      {"NoSuchKey", {{"lisen", "@/a"}}, "", {"unknown key daemon.lisen; did you mean daemon.listen?"}},
      {"NoSuchSection", {}, "[placment]", {"unknown section [placment]"}},
      {"NoEqualsSign", {}, "[placement]\nreserved-cpus 0", {"has no '='"}},
      {"NulByte", {}, std::string("[placement]\nwhen-full = de\0ny", 29), {"NUL byte"}},
      {"NoCpuList", {}, "[placement]\nreserved-cpus = zero", {"placement.reserved-cpus: 'zero'"}},
      {"RelativeSocket", {{"listen", "topolet.sock"}}, "", {"daemon.listen: 'topolet.sock'"}},
      {"TcpSocket", {{"runtime", "tcp://1.2.3.4:5"}}, "", {"daemon.runtime: 'tcp://1.2.3.4:5'"}},
      {"SocketIsADirectorysName", {{"listen", "@/sub/"}}, "", {"daemon.listen: '@/sub/' is not the path of a socket"}},
      {"SocketIsDotDot", {{"control", "@/sub/.."}}, "", {"daemon.control: '@/sub/..'"}},
      {"SocketPathTooLong", {{"listen", "@/" + std::string(120, 'x')}}, "", {"daemon.listen:", "107 bytes"}},
      {"DurationOutOfRange", {}, "[placement]\nplugin-timeout = 1ms", {"placement.plugin-timeout: '1ms'", "1d"}},
      {"AllAnnotationsAndOne",
       {},
       "[placement]\nannotations = all\nannotations = cpus",
       {"conf:8: placement.annotations = all contradicts the others"}},
      {"NamespacePattern",
       {},
       "[placement]\nreserved-namespaces = kube-*",
       {"'kube-*' is not the name of a namespace"}},
  };
}

std::vector<Wrong> wrong_sockets() {
  return {
      {"ControlIsListen", {{"control", "@/topolet.sock"}}, "", {"daemon.control (@/topolet.sock)", "daemon.listen"}},
      {"WatchIsControl", {{"watch", "@/control.sock"}}, "", {"daemon.watch (@/control.sock)", "daemon.control"}},
      {"WatchIsDotDot", {{"watch", "@/sub/.."}}, "", {"daemon.watch: '@/sub/..'"}},
      {"ControlIsListenAsAnAddress", {{"control", "unix://@/topolet.sock"}}, "", {"daemon.control", "daemon.listen"}},
      {"ControlIsListenByDots", {{"control", "@/x/../topolet.sock"}}, "", {"daemon.control", "daemon.listen"}},
      {"RuntimeIsListen", {{"runtime", "@/topolet.sock"}}, "", {"daemon.runtime", "daemon.listen"}},
      {"RuntimeIsControl", {{"runtime", "@/control.sock"}}, "", {"daemon.runtime", "daemon.control"}},
      {"ImageIsListen", {{"image", "@/topolet.sock"}}, "", {"daemon.image", "daemon.listen"}},
      {"ImageIsControl", {{"image", "@//control.sock"}}, "", {"daemon.image", "daemon.control"}},
      {"RuntimeLeadsToListen",
       {{"runtime", "@/link.sock"}},
       "",
       {"daemon.runtime (@/link.sock)", "daemon.listen"},
       make_link("@/topolet.sock", "@/link.sock")},
      {"RuntimeLeadsToListenThroughAFolder",
       {{"runtime", "@/other/topolet.sock"}},
       "",
       {"daemon.runtime (@/other/topolet.sock)", "daemon.listen"},
       make_link("@", "@/other")},
      {"ControlIsTheLockOfListen",
       {{"control", "@/topolet.sock.lock"}},
       "",
       {"daemon.control", "lock file of daemon.listen"}},
      {"ListenIsInTheStateDatabase", {{"listen", "@/state/state.db"}}, "", {"daemon.listen", "@/state/state.db"}},
      {"ListenIsTheStateDir", {{"listen", "@/state"}}, "", {"daemon.listen (@/state)"}},
      {"ControlIsBelowListen", {{"control", "@/topolet.sock/c"}}, "", {"daemon.control (@/topolet.sock/c) is below"}},
      {"ListenIsAFile",
       {},
       "",
       {"daemon.listen: @/topolet.sock exists and is not a socket"},
       make_file("@/topolet.sock")},
      {"ControlIsAFolder",
       {},
       "",
       {"daemon.control: @/control.sock exists and is not a socket"},
       make_folder("@/control.sock")},
      {"ListenIsALink",
       {},
       "",
       {"daemon.listen: @/topolet.sock exists and is not a socket"},
       make_link("@/nowhere", "@/topolet.sock")},
      {"RuntimeIsAFile",
       {},
       "",
       {"daemon.runtime: @/runtime.sock exists and is not a socket"},
       make_file("@/runtime.sock")},
      {"ImageIsAFolder", {{"image", "@"}}, "", {"daemon.image: @ exists and is not a socket"}},
      {"LockOfListenIsALink",
       {},
       "",
       {"daemon.listen: cannot open @/topolet.sock.lock", "; remove it, or choose another socket"},
       make_link("@/nowhere", "@/topolet.sock.lock")},
      {"LockOfControlIsAFolder",
       {},
       "",
       {"daemon.control: cannot open @/control.sock.lock: Is a directory; remove it, or choose another socket"},
       make_folder("@/control.sock.lock")},
      {"ListenIsBelowAFile",
       {{"listen", "@/file/topolet.sock"}},
       "",
       {"daemon.listen: cannot inspect @/file/topolet.sock: Not a directory; choose another socket"},
       make_file("@/file")},
      {"ListenIsBelowALinkToNowhere",
       {{"listen", "@/link/sub/l.sock"}},
       "",
       {"daemon.listen: ", "@/link"},
       make_link("@/nowhere/at/all", "@/link")},
      {"ListenIsInProc",
       {{"listen", "/proc/topolet/l.sock"}},
       "",
       {"daemon.listen: cannot create /proc/topolet/l.sock"}},
      {"ControlIsInSys", {{"control", "/sys/control.sock"}}, "", {"daemon.control: cannot create /sys/control.sock"}},
  };
}

std::vector<Wrong> wrong_state() {
  return {
      {"StateDirIsRelative", {{"state-dir", "state"}}, "", {"daemon.state-dir: 'state'"}},
      {"StateDirIsAFile", {}, "", {"daemon.state-dir", "'@/state' is a file"}, make_file("@/state")},
      {"StateDirIsBelowAFile",
       {{"state-dir", "@/file/state"}},
       "",
       {"daemon.state-dir", "@/file"},
       make_file("@/file")},
      {"StateDirIsInProc", {{"state-dir", "/proc/topolet"}}, "", {"daemon.state-dir", "cannot create '/proc/topolet'"}},
      {"StateDirIsALinkToNowhere", {}, "", {"daemon.state-dir", "@/state"}, make_link("@/nowhere", "@/state")},
      {"StateDirIsEverybodys",
       {},
       "",
       {"state-dir @/state is writable by others"},
       [](const NodeFiles& node) {
         fs::create_directory(node.expand("@/state"));
         fs::permissions(node.expand("@/state"), fs::perms::all);
       }},
      {"DatabaseIsALink", {{"state-dir", "@"}}, "", {"daemon.state-dir", "@/state.db"}, make_link("@/x", "@/state.db")},
      {"DatabaseIsAFolder", {{"state-dir", "@"}}, "", {"daemon.state-dir", "@/state.db"}, make_folder("@/state.db")},
      {"CrashRecordIsAFolder",
       {{"state-dir", "@"}},
       "",
       {"daemon.state-dir", "@/plugin-crashes"},
       make_folder("@/plugin-crashes")},
      {"CrashRecordIsAFifo",
       {{"state-dir", "@"}},
       "",
       {"daemon.state-dir", "@/plugin-crashes, the record of plugin crashes, is not a regular file"},
       make_fifo("@/plugin-crashes")},
      {"LogOfNoDatabaseIsAFolder",
       {{"state-dir", "@"}},
       "",
       {"daemon.state-dir", "@/state.db-wal"},
       make_folder("@/state.db-wal")},
      {"IndexOfNoDatabaseIsAFifo",
       {{"state-dir", "@"}},
       "",
       {"daemon.state-dir", "'@/state.db-shm' is not a regular file"},
       make_fifo("@/state.db-shm")},
      {"DatabaseIsOfANewerTopolet", {}, "", {"daemon.state-dir", "schema version 99"}, make_newer_database},
      {"DatabaseIsAnotherPrograms", {}, "", {"daemon.state-dir", "another program"}, make_foreign_database},
  };
}

std::vector<Wrong> wrong_machines() {
  return {
      {"ReservedCpusBeyondTheMachine",
       {},
       "[placement]\nreserved-cpus = 4000",
       {"conf:8: placement.reserved-cpus", "4000"}},
      {"NothingButReserved", {}, "[placement]\nreserved-cpus = 0-4000", {"placement.reserved-cpus"}},
      {"AllowedCpusBeyondTheMachine",
       {},
       "[placement]\nallowed-cpus = 4000",
       {"conf:8: placement.allowed-cpus", "4000"}},
      {"BothBeyondTheMachine",
       {},
       "[placement]\nallowed-cpus = 4000\nreserved-cpus = 4001",
       {"conf:8: placement.allowed-cpus", "conf:9: placement.reserved-cpus", "4001"}},
      {"AllowedAreReserved", {}, "[placement]\nallowed-cpus = 0\nreserved-cpus = 0", {"placement.reserved-cpus"}},
  };
}

std::vector<Wrong> wrong_plugins() {
  const std::map<std::string, std::string> broken = {{"plugin-dir", kBroken}};
  return {
      {"NoSuchPlugin",
       {},
       plugin("ghost"),
       {"conf:8: plugin ghost: ", "there are: foreign-zone, gpu, load, numa, smt"}},
      {"NoPluginDir", {{"plugin-dir", "@/none"}}, plugin("numa"), {"plugin numa: plugin-dir @/none"}},
      {"PluginDirIsEverybodys",
       {{"plugin-dir", "@/plugins"}},
       plugin("numa"),
       {"plugin numa: @/plugins is writable by"},
       [](const NodeFiles& node) {
         fs::create_directory(node.expand("@/plugins"));
         fs::copy_file(TOPOLET_PLUGIN_BUILD_DIR "/numa.so", node.expand("@/plugins/numa.so"));
         fs::permissions(node.expand("@/plugins"), fs::perms::all);
       }},
      {"PluginIsNoLibrary",
       {{"plugin-dir", "@"}},
       plugin("text"),
       {"plugin text: @/text.so is not an ELF file"},
       make_file("@/text.so")},
      {"PluginOfAnotherDraft", broken, plugin("other-draft"), {"plugin other-draft: ", "draft"}},
      {"PluginWithoutSymbol", broken, plugin("no-symbol"), {"plugin no-symbol: ", "does not export"}},
      {"ReservedMemoryNonsense",
       {},
       plugin("numa", "reserved-memory = lots"),
       {"conf:10: plugin numa: ", "reserved-memory"}},
      {"AlignBySocketOnOneNode",
       {},
       plugin("numa", "policy = single-numa-node\nalign-by-socket = true"),
       {"conf:11: plugin numa: ", "align-by-socket"}},
      {"TwoOrders",
       {},
       plugin("numa", "full-pcpus-only = true\ndistribute-cpus-across-cores = true"),
       {"conf:10: plugin numa: ", "full-pcpus-only"}},
      {"DevicesNonsense", {}, plugin("gpu", "devices = what?"), {"conf:10: plugin gpu: ", "devices"}},
      {"MoreMemoryReservedThanThereIs",
       {},
       plugin("numa", "reserved-memory = 8000000Gi"),
       {"conf:10: plugin numa: ", "reserved-memory: ", " is more than its memory, "}},
      {"MoreMemoryOfANodeReservedThanThereIs",
       {},
       plugin("numa", "reserved-memory = 0:8000000Gi"),
       {"conf:10: plugin numa: ", "for node 0 is more than its memory, "}},
      {"NoSysfs",
       {},
       plugin("gpu", "sysfs-root = /no/such/sys"),
       {"conf:10: plugin gpu: ", "sysfs-root: there is no directory '/no/such/sys'"}},
      {"NodeNameInQuotes", {{"node-name", "'n1'"}}, "", {"daemon.node-name: ''n1'' is not the name of a node"}},
      {"NodeNameInUpperCase", {{"node-name", "N1"}}, "", {"daemon.node-name: 'N1' is not the name of a node"}},
      {"PluginOptionUnknown", {}, plugin("smt", "rond = deny"), {"unknown key smt.rond; did you mean smt.round?"}},
      {"PluginOptionOutOfChoice", {}, plugin("smt", "round = up"), {"smt.round: 'up'"}},
      {"CreateFails", broken, plugin("create-fails"), {"plugin create-fails: create failed: the table of kinds"}},
      {"CreateThrows", broken, plugin("create-throws"), {"plugin create-throws: create threw"}},
      {"CreateGivesNothing",
       broken,
       plugin("create-gives-nothing"),
       {"plugin create-gives-nothing: create returned no"}},
      {"CreateAborts", broken, plugin("at-create", "how = abort"), {"plugin at-create: create crashed with SIGABRT"}},
      {"CreateExits", broken, plugin("at-create", "how = exit"), {"plugin at-create: create ended the process"}},
      {"CreateExitsElsewhere",
       broken,
       plugin("at-create", "how = exit-thread"),
       {"plugin at-create: create ended the"}},
      {"CreateHangs",
       broken,
       "[placement]\nplugin-timeout = 500ms\n" + plugin("at-create", "how = wait"),
       {"plugin at-create: create did not return within"}},
      {"CapabilitiesHang",
       broken,
       "[placement]\nplugin-timeout = 500ms\n" + plugin("never-back", "from = capability"),
       {"plugin never-back: create did not return within"}},
      {"SeveralAtOnce",
       {{"control", "@/topolet.sock"}},
       "[placement]\nreserved-cpus = 4000\n[plugins]\nenable = ghost\nenable = numa\n[numa]\nreserved-memory = lots",
       {"conf:2: daemon.control", "conf:8: placement.reserved-cpus", "conf:10: plugin ghost", "conf:13: plugin numa"}},
  };
}

class WrongConfig : public ::testing::TestWithParam<Wrong> {
 protected:
  void SetUp() override {
    node_.configure(GetParam().daemon, GetParam().more);
    if (GetParam().prepare) GetParam().prepare(node_);
  }
  void expect_told(const std::string& text) const {
    for (const std::string& told : GetParam().told) EXPECT_THAT(text, HasSubstr(node_.expand(told)));
  }

  NodeFiles node_;
};

TEST_P(WrongConfig, FailsTheChecksAndTheStart) {
  const std::string before = node_.listing();
  const ProgramEnd checked = node_.check();
  EXPECT_EQ(checked.code, kExitUsage);
  expect_told(checked.text);
  const ProgramEnd commanded = node_.check_with_command();
  EXPECT_EQ(commanded.code, kExitFailure);
  expect_told(commanded.text);
  EXPECT_EQ(node_.listing(), before) << "a check has changed something";
  ASSERT_FALSE(node_.start()) << node_.log();
  EXPECT_NE(node_.end_of_start(), kExitSuccess);
}

std::string name_of(const ::testing::TestParamInfo<Wrong>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Texts, WrongConfig, ::testing::ValuesIn(wrong_texts()), name_of);
INSTANTIATE_TEST_SUITE_P(Sockets, WrongConfig, ::testing::ValuesIn(wrong_sockets()), name_of);
INSTANTIATE_TEST_SUITE_P(State, WrongConfig, ::testing::ValuesIn(wrong_state()), name_of);
INSTANTIATE_TEST_SUITE_P(Machines, WrongConfig, ::testing::ValuesIn(wrong_machines()), name_of);
INSTANTIATE_TEST_SUITE_P(Plugins, WrongConfig, ::testing::ValuesIn(wrong_plugins()), name_of);

/// A plugin that does this while it is loaded.
class WrongAtLoad : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(WrongAtLoad, FailsTheChecksAndTheStart) {
  NodeFiles node;
  node.configure({{"plugin-dir", kBroken}}, "[placement]\nplugin-timeout = 500ms\n" + plugin("at-load"));
  const AtLoad at_load(GetParam().first);
  const ProgramEnd checked = node.check();
  EXPECT_EQ(checked.code, kExitUsage);
  EXPECT_THAT(checked.text, HasSubstr(std::string("plugin at-load: load ") + GetParam().second));
  EXPECT_EQ(node.check_with_command().code, kExitFailure);
  ASSERT_FALSE(node.start()) << node.log();
  EXPECT_NE(node.end_of_start(), kExitSuccess);
}

INSTANTIATE_TEST_SUITE_P(Plugins, WrongAtLoad,
                         ::testing::Values(std::pair("abort", "crashed with SIGABRT"),
                                           std::pair("exit", "ended the process with exit status 0"),
                                           std::pair("wait", "did not return within 500 ms")));

TEST(WrongSocket, IsTheRuntimesUnderAnotherName) {
  NodeFiles node;
  node.configure({}, "");
  const UniqueFd runtimes = listening_socket(node.expand("@/runtime.sock"));
  fs::create_hard_link(node.expand("@/runtime.sock"), node.expand("@/topolet.sock"));
  const ProgramEnd checked = node.check();
  EXPECT_EQ(checked.code, kExitUsage);
  EXPECT_THAT(checked.text, HasSubstr(node.expand("daemon.runtime (@/runtime.sock) is the same as daemon.listen")));
  ASSERT_FALSE(node.start());
  EXPECT_NE(node.end_of_start(), kExitSuccess);
}

TEST(WrongSocket, IsOneThatAnotherProgramServes) {
  for (const char* option : {"listen", "control"}) {
    NodeFiles node;
    node.configure({{option, "@/taken.sock"}}, "");
    const UniqueFd others = listening_socket(node.expand("@/taken.sock"));
    const ProgramEnd checked = node.check();
    EXPECT_EQ(checked.code, kExitUsage);
    EXPECT_THAT(checked.text, HasSubstr(node.expand(std::string("daemon.") + option +
                                                    ": a running process listens on @/taken.sock")));
    ASSERT_FALSE(node.start());
    EXPECT_NE(node.end_of_start(), kExitSuccess);
  }
}

}  // namespace
}  // namespace topolet::testing
