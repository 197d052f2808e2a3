#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/control/daemon_rig.hpp"

namespace topolet::testing {
namespace {

using control::v1::Plugin;
using control::v1::ReloadResponse;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReloadTest : public ::testing::Test {
 protected:
  void start(const std::string& plugins) {
    rig_.configure(plugins);
    ASSERT_TRUE(rig_.start()) << rig_.log();
  }
  ReloadResponse reload() {
    ReloadResponse response;
    const grpc::Status status = rig_.reload(&response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  std::string refusal() {
    const grpc::Status status = rig_.reload();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  }

  DaemonRig rig_;
};

TEST_F(ReloadTest, SighupEnablesAndDisablesPluginsWithoutTouchingContainers) {
  start("enable = throws");
  ASSERT_TRUE(rig_.create("web").ok());
  const std::string container = rig_.runtime().ids().at(0);
  rig_.configure("enable = nonsense\nweight.nonsense = 9\n[nonsense]\nanswer = none");
  rig_.process().signal(SIGHUP);
  EXPECT_TRUE(rig_.eventually([this] { return rig_.plugin("nonsense").weight() == 9; })) << rig_.log();
  EXPECT_EQ(rig_.plugin("throws").id(), "");
  EXPECT_THAT(rig_.runtime().recorder().calls("UpdateContainerResources"), ::testing::IsEmpty());
  EXPECT_EQ(rig_.runtime().ids().at(0), container);
  ASSERT_TRUE(rig_.create("batch").ok());
  EXPECT_GT(rig_.plugin("nonsense").calls(), 0U);
}

TEST_F(ReloadTest, AppliesOptionsAndOrder) {
  start("enable = throws\nenable = nonsense\n[nonsense]\nanswer = none");
  rig_.configure("enable = nonsense\nenable = throws\n[nonsense]\nanswer = fails");
  EXPECT_THAT(reload().plugins(), ElementsAre("nonsense", "throws"));
  EXPECT_EQ(rig_.plugin("nonsense").options(0).value(), "fails");
  ASSERT_TRUE(rig_.create("web").ok());
  EXPECT_EQ(rig_.plugin("nonsense").lost_votes().declined(), 1U);
}

TEST_F(ReloadTest, NamesWhatARestartIsNeededFor) {
  start("enable = throws");
  rig_.configure("enable = throws", "deadline-ms = 70", "max-connections = 100");
  EXPECT_THAT(reload().restart_needed(), ElementsAre("daemon.max-connections", "placement.deadline-ms"));
  EXPECT_TRUE(rig_.logs("placement.deadline-ms has changed; restart topoletd to apply it")) << rig_.log();
}

TEST_F(ReloadTest, AppliesTheLogLevel) {
  start("");
  rig_.configure("", "", "log-level = error");
  EXPECT_EQ(reload().restart_needed_size(), 0);
  rig_.configure("");
  reload();
  EXPECT_EQ(rig_.stop(), 0);
  const std::string log = rig_.log();
  EXPECT_NE(log.find("reloaded; plugins"), std::string::npos);
  EXPECT_EQ(log.find("reloaded; plugins"), log.rfind("reloaded; plugins")) << "the first reload was not to be logged";
}

TEST_F(ReloadTest, LeavesTheOldConfigurationWholeIfOneLineIsWrong) {
  start("enable = nonsense\nweight.nonsense = 3\n[nonsense]\nanswer = none");
  rig_.configure("enable = throws\nenable = ghost\nweight.throws = much");
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("plugins.weight.throws: 'much' is not a whole number"), HasSubstr("plugin ghost: ")));
  EXPECT_EQ(rig_.plugin("nonsense").weight(), 3);
  EXPECT_EQ(rig_.plugin("throws").id(), "");
  EXPECT_TRUE(rig_.logs("the configuration was not changed")) << rig_.log();
}

TEST_F(ReloadTest, LeavesTheOldConfigurationWholeIfOnePluginCannotBeMade) {
  start("enable = nonsense\nweight.nonsense = 3\n[nonsense]\nanswer = none");
  rig_.configure("enable = nonsense\nenable = create-fails\nweight.nonsense = 4\n[nonsense]\nanswer = fails");
  EXPECT_THAT(rig_.reload().error_message(), HasSubstr("plugin create-fails: create failed: the table of kinds"));
  EXPECT_EQ(rig_.plugin("nonsense").weight(), 3);
  EXPECT_EQ(rig_.plugin("nonsense").options(0).value(), "none");
}

TEST_F(ReloadTest, EndsAQuarantine) {
  start("enable = throws");
  for (const char* pod : {"a", "b", "c"}) ASSERT_TRUE(rig_.create(pod).ok());
  ASSERT_EQ(rig_.plugin("throws").state(), Plugin::QUARANTINED);
  reload();
  EXPECT_EQ(rig_.plugin("throws").state(), Plugin::ACTIVE);
}

TEST_F(ReloadTest, LeavesAnInstanceWithACallInsideAlone) {
  ASSERT_EQ(::mkfifo(rig_.file("fifo").c_str(), 0600), 0);
  std::fstream held(rig_.file("fifo"), std::ios::in | std::ios::out);
  start("enable = hangs\n[hangs]\non = " + rig_.file("fifo"));
  ASSERT_TRUE(rig_.create("web").ok());
  rig_.configure("enable = hangs");
  reload();
  EXPECT_EQ(rig_.plugin("hangs").state(), Plugin::STUCK);
  const std::uint64_t calls = rig_.plugin("hangs").calls();
  ASSERT_TRUE(rig_.create("batch").ok());
  EXPECT_EQ(rig_.plugin("hangs").calls(), calls);

  held << "go" << std::endl;
  EXPECT_TRUE(rig_.eventually([this] { return rig_.plugin("hangs").state() != Plugin::STUCK; }));
  reload();
  ASSERT_TRUE(rig_.create("cron").ok());
  EXPECT_GT(rig_.plugin("hangs").calls(), calls);
}

TEST_F(ReloadTest, ComesInStormsWhileContainersAreMadeAndACallIsInside) {
  ASSERT_EQ(::mkfifo(rig_.file("fifo").c_str(), 0600), 0);
  const std::fstream held(rig_.file("fifo"), std::ios::in | std::ios::out);
  start("enable = throws\nenable = nonsense\nenable = hangs\n[hangs]\non = " + rig_.file("fifo"));
  std::atomic<bool> storming = true;
  std::thread client([&] {
    for (int i = 0; storming; ++i) EXPECT_TRUE(rig_.create("pod-" + std::to_string(i)).ok());
  });
  for (int i = 0; i < 40; ++i) {
    EXPECT_TRUE(rig_.reload().ok());
    EXPECT_EQ(rig_.plugin("nonsense").id(), "nonsense");
  }
  storming = false;
  client.join();
  EXPECT_EQ(rig_.plugin("hangs").state(), Plugin::STUCK);
  EXPECT_EQ(rig_.stop(), 0);
}

/// A plugin-dir of one's own, with one plugin in it.
class ReplacedFileTest : public ReloadTest {
 protected:
  ReplacedFileTest() {
    rig_.plugin_dir = rig_.file("plugins");
    std::filesystem::create_directory(rig_.plugin_dir);
    ::chmod(rig_.plugin_dir.c_str(), 0755);
    put("throws");
  }
  std::string put(const std::string& name) {
    const std::string file = rig_.plugin_dir + "/" + name + ".so";
    std::filesystem::copy_file(std::string(TOPOLET_BROKEN_DIR) + "/" + name + ".so", file);
    ::chmod(file.c_str(), 0755);
    return file;
  }
  /// Writes over the file where it lies, with the size and the time it had.
  static void change_in_place(const std::string& file, const std::string& from, const std::string& to) {
    const auto time = std::filesystem::last_write_time(file);
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    std::string bytes = text.str();
    const auto at = bytes.find(from);
    ASSERT_NE(at, std::string::npos);
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(static_cast<long>(at)) << to;
    std::filesystem::last_write_time(file, time);
  }
  /// The bytes in front of a build-id: the sizes of name and description, the type, the name.
  static std::string build_id_head() { return {"\4\0\0\0\24\0\0\0\3\0\0\0GNU\0", 16}; }
};

TEST_F(ReplacedFileTest, OfAnotherBuildIsSeenThoughInodeSizeAndTimeAreTheSame) {
  start("enable = throws");
  change_in_place(rig_.plugin_dir + "/throws.so", build_id_head(), build_id_head() + "another");
  EXPECT_THAT(refusal(), HasSubstr("plugin throws: restart needed: " + rig_.plugin_dir + "/throws.so has changed"));
}

TEST_F(ReplacedFileTest, OfTheSameBuildMayBeTouched) {
  start("enable = throws");
  std::filesystem::last_write_time(rig_.plugin_dir + "/throws.so", std::filesystem::file_time_type::clock::now());
  EXPECT_THAT(reload().plugins(), ElementsAre("throws"));
}

TEST_F(ReplacedFileTest, WithoutABuildIdIsToldBySizeAndTime) {
  const std::string file = rig_.plugin_dir + "/throws.so";
  change_in_place(file, build_id_head(), std::string(4, '\0'));
  start("enable = throws");
  EXPECT_THAT(reload().plugins(), ElementsAre("throws"));
  std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now());
  EXPECT_THAT(refusal(), HasSubstr("plugin throws: restart needed: "));
}

TEST_F(ReplacedFileTest, OfAPluginThatWasRefusedNeedsARestartToo) {
  start("enable = throws");
  const std::string file = put("no-symbol");
  rig_.configure("enable = throws\nenable = no-symbol");
  EXPECT_THAT(refusal(), HasSubstr("no-symbol.so does not export topolet_plugin_v1"));
  std::filesystem::remove(file);
  std::filesystem::copy_file(std::string(TOPOLET_BROKEN_DIR) + "/nonsense.so", file);
  ::chmod(file.c_str(), 0755);
  EXPECT_THAT(refusal(), HasSubstr("it was like this when it was first loaded, and a loaded library stays until "
                                   "topoletd ends: restart topoletd if the file was replaced since"));
}

TEST_F(ReplacedFileTest, IsSeenEvenIfOnlyAFailedReloadHadLoadedIt) {
  start("enable = throws");
  const std::string file = put("create-fails");
  rig_.configure("enable = throws\nenable = create-fails");
  EXPECT_THAT(rig_.reload().error_message(), HasSubstr("create failed"));
  std::filesystem::remove(file);
  put("create-fails");
  EXPECT_THAT(refusal(), HasSubstr("plugin create-fails: restart needed: " + file));
}

TEST_F(ReplacedFileTest, AsksForARestart) {
  const std::string file = rig_.plugin_dir + "/throws.so";
  start("enable = throws\nweight.throws = 2");
  rig_.configure("enable = throws\nweight.throws = 3");
  reload();
  EXPECT_EQ(rig_.plugin("throws").weight(), 3);

  std::filesystem::copy_file(file, file + ".new");
  std::filesystem::rename(file + ".new", file);
  rig_.configure("enable = throws\nweight.throws = 4");
  EXPECT_THAT(refusal(), HasSubstr("plugin throws: restart needed: " + file + " has changed since it was loaded"));
  EXPECT_EQ(rig_.plugin("throws").weight(), 3);
}

}  // namespace
}  // namespace topolet::testing
