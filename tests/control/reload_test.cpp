#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/control/daemon_rig.hpp"

namespace topolet::testing {
namespace {

using control::v1::Plugin;
using control::v1::ReloadResponse;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

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
  EXPECT_THAT(rig_.log(), HasSubstr("placement.deadline-ms has changed: restart needed"));
}

TEST_F(ReloadTest, AppliesTheLogLevel) {
  start("");
  rig_.configure("", "", "log-level = error");
  EXPECT_EQ(reload().restart_needed_size(), 0);
  EXPECT_THAT(rig_.log(), Not(HasSubstr("reloaded; plugins")));
  rig_.configure("");
  reload();
  EXPECT_THAT(rig_.log(), HasSubstr("reloaded; plugins"));
}

TEST_F(ReloadTest, LeavesTheOldConfigurationWholeIfOneLineIsWrong) {
  start("enable = nonsense\nweight.nonsense = 3\n[nonsense]\nanswer = none");
  rig_.configure("enable = throws\nenable = ghost\nweight.throws = much");
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("plugins.weight.throws: 'much' is not a whole number"), HasSubstr("plugin ghost: ")));
  EXPECT_EQ(rig_.plugin("nonsense").weight(), 3);
  EXPECT_EQ(rig_.plugin("throws").id(), "");
  EXPECT_THAT(rig_.log(), HasSubstr("the configuration stays as it was"));
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
  EXPECT_EQ(rig_.plugin("hangs").state(), Plugin::CALL_INSIDE);
  const std::uint64_t calls = rig_.plugin("hangs").calls();
  ASSERT_TRUE(rig_.create("batch").ok());
  EXPECT_EQ(rig_.plugin("hangs").calls(), calls);

  held << "go" << std::endl;
  EXPECT_TRUE(rig_.eventually([this] { return rig_.plugin("hangs").state() != Plugin::CALL_INSIDE; }));
  reload();
  ASSERT_TRUE(rig_.create("cron").ok());
  EXPECT_GT(rig_.plugin("hangs").calls(), calls);
}

TEST_F(ReloadTest, AsksForARestartIfAPluginsFileHasChanged) {
  rig_.plugin_dir = rig_.file("plugins");
  std::filesystem::create_directory(rig_.plugin_dir);
  ::chmod(rig_.plugin_dir.c_str(), 0755);
  const std::string file = rig_.plugin_dir + "/throws.so";
  std::filesystem::copy_file(std::string(TOPOLET_BROKEN_DIR) + "/throws.so", file);
  ::chmod(file.c_str(), 0755);
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
