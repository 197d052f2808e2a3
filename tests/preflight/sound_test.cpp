// Configurations with which topoletd starts: the checks let them pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/exit_status.hpp"
#include "core/plugin/guard/strikes.hpp"
#include "tests/control/daemon_rig.hpp"
#include "tests/preflight/node_files.hpp"

namespace topolet::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

struct Sound {
  std::string name;
  std::map<std::string, std::string> daemon;
  std::string more;
  std::string warned;  ///< what the check warns of, if anything
  std::function<void(const NodeFiles&)> prepare = {};
};

void PrintTo(const Sound& sound, std::ostream* out) { *out << sound.name; }

std::vector<Sound> sound_configs() {
  return {
      {"Plain", {}, "", "daemon.runtime: cannot connect to @/runtime.sock"},
      {"DirectoriesToMake", {{"listen", "@/a/b/l.sock"}, {"control", "@/c/d/c.sock"}, {"state-dir", "@/e/f/"}}, "", ""},
      {"SocketsByAddress", {{"listen", "unix://@/l.sock"}, {"runtime", "unix://@/r.sock"}}, "", ""},
      {"Watched", {{"watch", "@/w/watch.sock"}, {"watch-group", "0"}}, "", ""},
      {"NotWatched", {{"watch", "none"}}, "", ""},
      {"WatchGroupIsNone",
       {{"watch", "@/watch.sock"}, {"watch-group", "no-such-group"}},
       "",
       "daemon.watch-group: nobody could watch: there is no group 'no-such-group' on this machine"},
      {"ImageIsTheRuntimes", {{"image", "@/x/../runtime.sock"}}, "", ""},
      {"RuntimeIsALinkToNowhere",
       {},
       "",
       "daemon.runtime",
       [](const NodeFiles& node) { fs::create_symlink("elsewhere.sock", node.expand("@/runtime.sock")); }},
      {"StateDirIsALink",
       {},
       "",
       "",
       [](const NodeFiles& node) {
         fs::create_directory(node.expand("@/real"));
         fs::permissions(node.expand("@/real"), fs::perms::owner_all);
         fs::create_symlink("real", node.expand("@/state"));
       }},
      {"AllPluginsWithOptions",
       {},
       "[plugins]\nenable = numa\nenable = gpu\nenable = smt\nweight.numa = 3\n[numa]\nreserved-memory = 1Mi\n"
       "full-pcpus-only = true\n[gpu]\ndevices = fpga: path=/dev/fpga* env=FPGA pci=sysfs\n[smt]\nround = deny",
       ""},
      {"NoPlugin", {}, "", "plugins.enable: no plugin is enabled"},
      {"PluginWithoutWeight",
       {},
       "[plugins]\nenable = numa\nweight.numa = 0",
       "plugins.weight.numa: with 0 no score of the plugin numa counts"},
      {"KeptForAMoment", {{"keep", "59m"}}, "", "daemon.keep: less than an hour"},
      {"KeptForEver", {{"keep", "0"}, {"keep-mib", "0"}}, "", ""},
      {"KeptInNoRoom", {{"keep-mib", "31"}}, "", "daemon.keep-mib: less than 32 MiB"},
      {"RoundsWithoutWholeCores",
       {},
       "[plugins]\nenable = smt\n[smt]\nround = deny",
       "conf:10: smt: round = deny has no effect without numa.full-pcpus-only = true"},
      {"MemoryOfNoNodeReserved",
       {},
       "[plugins]\nenable = numa\n[numa]\nreserved-memory = 0:1Mi,4000:1Mi",
       "conf:10: numa: reserved-memory names node 4000, which this machine does not have"},
      {"ReservedAndNotAllowed",
       {},
       "[placement]\nreserved-cpus = 1\nallowed-cpus = 0",
       "placement.reserved-cpus: CPUs 1 are not among those that containers may use, 0"},
      {"AllCpusShared", {}, "[placement]\nmin-shared-cpus = 4000", "no container can get exclusive CPUs"},
      {"OnlyIsolatedCpusWhereThereAreNone",
       {},
       "[placement]\nisolated = always",
       "placement.isolated = always, and the kernel isolates no CPU that containers may use"},
      {"MoreCpusAllowedThanThereAre", {}, "[placement]\nallowed-cpus = 0-4000", "placement.allowed-cpus: CPUs "},
      {"MessagesLargerThanTheMemory",
       {{"max-message-mib", "256"}, {"max-memory-mib", "128"}},
       "",
       "daemon.max-message-mib: 256 is more than daemon.max-memory-mib = 128"},
      {"ADecisionShorterThanACall",
       {},
       "[placement]\ndeadline-ms = 300\ndecision-ms = 250",
       "placement.decision-ms: 250 is less than placement.deadline-ms = 300"},
      {"ADecisionOfDefaultLength", {}, "[placement]\ndeadline-ms = 300", ""},
      {"NoRoomForASuccessorsName",
       {{"control", "@/" + std::string(98 - NodeFiles().directory().size() - 1, 'c')}},
       "",
       "have more than 107 bytes; choose a path of at most 97"},
      {"SuccessorsSocketIsAFolder",
       {},
       "",
       "@/control.sock.take-over exists and is not a socket; remove it",
       [](const NodeFiles& node) { fs::create_directory(node.expand("@/control.sock.take-over")); }},
      {"CrashRecordIsHuge",
       {{"state-dir", "@"}},
       "",
       "",
       [](const NodeFiles& node) {
         std::ofstream(node.expand("@/plugin-crashes")).flush();
         fs::resize_file(node.expand("@/plugin-crashes"), std::uintmax_t{1} << 40);
       }},
      {"NoPluginDirAndNoPlugin", {{"plugin-dir", "@/none"}}, "", "daemon.plugin-dir: there is no directory @/none"},
      {"DatabaseIsDamaged",
       {},
       "",
       "topoletd would move it away",
       [](const NodeFiles& node) {
         fs::create_directory(node.expand("@/state"));
         fs::permissions(node.expand("@/state"), fs::perms::owner_all);
         std::ofstream(node.expand("@/state/state.db")) << std::string(8192, 'x');
       }},
  };
}

class SoundConfig : public ::testing::TestWithParam<Sound> {};

TEST_P(SoundConfig, PassesTheChecksBeforeTheStartDuringItAndAfterIt) {
  NodeFiles node;
  node.configure(GetParam().daemon, GetParam().more);
  if (GetParam().prepare) GetParam().prepare(node);
  const std::string before = node.listing();
  const ProgramEnd checked = node.check();
  EXPECT_EQ(checked.code, kExitSuccess) << checked.text;
  EXPECT_THAT(checked.text, HasSubstr(node.expand(GetParam().warned)));
  EXPECT_EQ(node.check_with_command().code, kExitSuccess);
  EXPECT_EQ(node.listing(), before) << "a check has changed something";

  ASSERT_TRUE(node.start()) << node.log();
  const ProgramEnd beside = node.check();
  EXPECT_EQ(beside.code, kExitSuccess) << beside.text;
  EXPECT_EQ(node.check_with_command().code, kExitSuccess);
  EXPECT_EQ(node.stop(), kExitSuccess);
  const ProgramEnd after = node.check();
  EXPECT_EQ(after.code, kExitSuccess) << after.text;
}

std::string name_of(const ::testing::TestParamInfo<Sound>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(All, SoundConfig, ::testing::ValuesIn(sound_configs()), name_of);

TEST(SoundStart, PassesWithWhatADeadTopoletdLeftBehind) {
  NodeFiles node;
  node.configure({}, "");
  ASSERT_TRUE(node.start()) << node.log();
  node.kill();
  ASSERT_TRUE(fs::is_socket(node.expand("@/topolet.sock")));
  const std::string before = node.listing();
  const ProgramEnd checked = node.check();
  EXPECT_EQ(checked.code, kExitSuccess) << checked.text;
  EXPECT_EQ(node.listing(), before);
  EXPECT_TRUE(node.start()) << node.log();
}

TEST(SoundStart, IsWarnedOfATopoletdThatRunsWithAnotherConfiguration) {
  NodeFiles node;
  node.configure({}, "");
  ASSERT_TRUE(node.start()) << node.log();
  EXPECT_THAT(node.check().text, Not(HasSubstr("another configuration")));
  node.configure({{"listen", "@/other.sock"}, {"state-dir", "@/other"}}, "");
  const ProgramEnd checked = node.check();
  EXPECT_EQ(checked.code, kExitSuccess) << checked.text;
  EXPECT_THAT(checked.text, HasSubstr("daemon.control: a topoletd that runs with another configuration has it"));
}

/// Neither knows the other's sockets or state directory.
TEST(SoundStart, OneTopoletdARuntime) {
  NodeFiles first;
  NodeFiles second;
  first.configure({}, "");
  fs::create_directory_symlink(first.directory(), second.expand("@-link"));
  second.configure({{"runtime", second.expand("@-link/runtime.sock")}}, "");
  ASSERT_TRUE(first.start()) << first.log();
  EXPECT_EQ(first.check().code, kExitSuccess);
  EXPECT_THAT(first.check().text, Not(HasSubstr("another configuration")));
  const ProgramEnd checked = second.check();
  EXPECT_EQ(checked.code, kExitSuccess) << checked.text;
  EXPECT_THAT(checked.text, HasSubstr("daemon.runtime: a topoletd that runs with another configuration has it"));
  EXPECT_FALSE(second.start());
  EXPECT_EQ(second.end_of_start(), kExitFailure);
  EXPECT_THAT(second.log(), HasSubstr(", configuration " + first.config() + ") uses the runtime at "));
  first.kill();
  EXPECT_TRUE(second.start()) << second.log();
  EXPECT_EQ(second.stop(), kExitSuccess);
  EXPECT_TRUE(first.start()) << first.log();
}

TEST(SoundStart, IsWarnedOfAFullDisk) {
  NodeFiles node;
  node.configure({}, "");
  fs::create_directory(node.expand("@/state"));
  // In a mount namespace of its own, which ends with this process.
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("none", node.expand("@/state").c_str(), "tmpfs", 0, "size=64k,mode=700") != 0) {
    GTEST_SKIP() << "only root can mount a small file system";
  }
  const ProgramEnd checked = node.check();
  EXPECT_EQ(checked.code, kExitSuccess) << checked.text;
  EXPECT_THAT(checked.text, HasSubstr(node.expand("daemon.state-dir: the file system of @/state is full")));
  EXPECT_TRUE(node.start()) << node.log();
  EXPECT_EQ(node.stop(), kExitSuccess);
  ASSERT_EQ(::umount(node.expand("@/state").c_str()), 0);
}

TEST(SoundStart, ManyChecksAtOnceDoNotKeepTopoletdFromStarting) {
  NodeFiles node;
  node.configure({}, "");
  std::vector<std::unique_ptr<Process>> checks;
  const TempDir output;
  for (int i = 0; i < 8; ++i) {
    checks.push_back(std::make_unique<Process>(
        std::vector<std::string>{TOPOLET_DAEMON, "--check-config", "--config", node.config()}, output.file("out")));
  }
  EXPECT_TRUE(node.start()) << node.log();
  for (const auto& check : checks) EXPECT_EQ(check->wait(), kExitSuccess);
}

TEST(SoundStart, APluginThatIsQuarantinedForItsCrashesIsLeftAlone) {
  NodeFiles node;
  node.configure({{"plugin-dir", TOPOLET_BROKEN_DIR}}, "[plugins]\nenable = at-create\n[at-create]\nhow = abort");
  EXPECT_EQ(node.check().code, kExitUsage);
  std::size_t failed_starts = 0;
  while (!node.start() && failed_starts < 10) ++failed_starts;
  EXPECT_EQ(failed_starts, plugin::kStrikes) << node.log();
  const ProgramEnd checked = node.check();
  EXPECT_EQ(checked.code, kExitSuccess) << checked.text;
  EXPECT_THAT(checked.text, HasSubstr("plugin at-create: it crashed topoletd 3 times"));
  EXPECT_EQ(node.stop(), kExitSuccess);
}

}  // namespace
}  // namespace topolet::testing
