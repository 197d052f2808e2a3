#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "tests/control/daemon_rig.hpp"

namespace topolet::testing {
namespace {

using control::v1::Plugin;
using ::testing::HasSubstr;

class NeverBackTest : public ::testing::Test {
 protected:
  void configure(const std::string& plugins) { rig_.configure(plugins, "plugin-timeout = 500ms"); }
  void start(const std::string& plugins) {
    configure(plugins);
    ASSERT_TRUE(rig_.start()) << rig_.log();
  }
  static std::string from(const std::string& call) { return "enable = never-back\n[never-back]\nfrom = " + call; }

  DaemonRig rig_;
};

class NeverMadeTest : public NeverBackTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(NeverMadeTest, EndsAStartWithAClearWord) {
  configure(from(GetParam()));
  EXPECT_FALSE(rig_.start());
  EXPECT_EQ(rig_.wait_for_end(), 1);
  EXPECT_THAT(rig_.log(), HasSubstr("topoletd cannot start: plugin never-back: create did not return within 500 ms"));
}

TEST_P(NeverMadeTest, LeavesTheOldConfigurationWholeInAReload) {
  start("enable = throws\nweight.throws = 3");
  configure("enable = throws\nweight.throws = 4\n" + from(GetParam()));
  std::thread reload([this] {
    EXPECT_THAT(rig_.reload().error_message(), HasSubstr("plugin never-back: create did not return within 500 ms"));
  });
  // Meanwhile the daemon answers as ever.
  EXPECT_EQ(rig_.plugin("throws").weight(), 3);
  EXPECT_TRUE(rig_.create("meanwhile").ok());
  reload.join();
  EXPECT_EQ(rig_.plugin("throws").weight(), 3);
  EXPECT_TRUE(rig_.create("web").ok());

  // The plugin is not made again beside the call that is still inside; others are.
  EXPECT_THAT(rig_.reload().error_message(), HasSubstr("plugin never-back: restart needed: create was abandoned"));
  configure("enable = throws\nweight.throws = 5");
  EXPECT_TRUE(rig_.reload().ok());
  EXPECT_EQ(rig_.plugin("throws").weight(), 5);
  EXPECT_EQ(rig_.stop(), 0);
}

INSTANTIATE_TEST_SUITE_P(All, NeverMadeTest, ::testing::Values("create", "capability"));

TEST_F(NeverBackTest, AnOldInstanceThatDoesNotEndHoldsUpNeitherReloadsNorTheStop) {
  start(from("destroy"));
  ASSERT_TRUE(rig_.reload().ok());
  EXPECT_TRUE(rig_.logs("plugin never-back: destroy did not return within 500 ms")) << rig_.log();
  EXPECT_EQ(rig_.plugin("never-back").state(), Plugin::STUCK);
  EXPECT_THAT(rig_.plugin("never-back").reason(), HasSubstr("restart needed: destroy was abandoned"));
  EXPECT_THAT(rig_.reset("never-back").error_message(), HasSubstr("restart needed: destroy was abandoned"));
  EXPECT_THAT(rig_.reload().error_message(), HasSubstr("restart needed: destroy was abandoned"));
  EXPECT_TRUE(rig_.create("web").ok());
  EXPECT_EQ(rig_.stop(), 0);
}

TEST_F(NeverBackTest, AnInstanceThatDoesNotEndAtTheStopIsLeft) {
  start(from("destroy"));
  EXPECT_EQ(rig_.stop(), 0);
  EXPECT_THAT(rig_.log(), HasSubstr("plugin never-back: destroy did not return within 500 ms"));
}

TEST_F(NeverBackTest, ALibraryWhoseConstructorsDoNotEndEndsAStart) {
  const AtLoad at_load("wait");
  configure("enable = at-load");
  EXPECT_FALSE(rig_.start());
  EXPECT_EQ(rig_.wait_for_end(), 2);
  EXPECT_THAT(rig_.log(), HasSubstr("plugin at-load: load did not return within 500 ms"));
}

TEST_F(NeverBackTest, ALibraryWhoseConstructorsDoNotEndIsRefusedByAReload) {
  const AtLoad at_load("wait");
  start("enable = throws");
  configure("enable = throws\nenable = at-load");
  EXPECT_THAT(rig_.reload().error_message(), HasSubstr("plugin at-load: load did not return within 500 ms"));
  configure("enable = throws\nenable = nonsense");
  EXPECT_THAT(rig_.reload().error_message(),
              HasSubstr("plugin nonsense: restart needed: loading plugin at-load has not returned"));
  configure("enable = throws\nweight.throws = 5");
  EXPECT_TRUE(rig_.reload().ok());
  EXPECT_TRUE(rig_.create("web").ok());
  EXPECT_EQ(rig_.stop(), 0);
}

TEST_F(NeverBackTest, ACrashOfALibrarysConstructorsIsStampedAndItIsNotLoadedAFourthTime) {
  configure("enable = throws\nenable = at-load\n[at-load]\nkey = of-nobody-knows-what");
  {
    const AtLoad at_load("abort");
    for (int i = 0; i < 3; ++i) {
      EXPECT_FALSE(rig_.start());
      EXPECT_EQ(rig_.wait_for_end(), 128 + SIGABRT);
    }
    ASSERT_TRUE(rig_.start()) << rig_.log();
  }
  EXPECT_TRUE(rig_.logs("topoletd crashes: SIGABRT in load() of plugin at-load")) << rig_.log();
  EXPECT_TRUE(rig_.logs("topoletd was ended by SIGABRT in load() of plugin at-load")) << rig_.log();
  EXPECT_EQ(rig_.plugin("at-load").state(), Plugin::QUARANTINED);
  EXPECT_EQ(rig_.plugin("at-load").reason(), "crashed topoletd 3 times in 10 minutes, last: SIGABRT in load()");
  EXPECT_EQ(rig_.plugin("throws").state(), Plugin::ACTIVE);
  EXPECT_TRUE(rig_.create("web").ok());
  ASSERT_EQ(rig_.stop(), 0);

  // As long as it is held against it, nothing of it runs, and a reset alone does not load it.
  configure("enable = throws\nenable = at-load");
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_THAT(rig_.reset("at-load").error_message(), HasSubstr("reload topoletd (SIGHUP) to start it"));
  EXPECT_EQ(rig_.plugin("at-load").version(), "");
  const grpc::Status reloaded = rig_.reload();
  EXPECT_TRUE(reloaded.ok()) << reloaded.error_message();
  EXPECT_EQ(rig_.plugin("at-load").state(), Plugin::ACTIVE);
  EXPECT_EQ(rig_.plugin("at-load").version(), "1");
}

}  // namespace
}  // namespace topolet::testing
