// Plugins whose threads and exit handlers outlive their instances.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <iterator>

#include "tests/control/daemon_rig.hpp"

namespace topolet::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LivesTest : public ::testing::Test {
 protected:
  void configure(const std::string& how) {
    rig_.configure("enable = outlives\n[outlives]\nhow = " + how + "\nnotes = " + rig_.file("notes"));
  }
  std::string notes() const {
    std::ifstream in(rig_.file("notes"));
    return {std::istreambuf_iterator<char>(in), {}};
  }

  DaemonRig rig_;
};

class LeavesSomethingBehind : public LivesTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(LeavesSomethingBehind, AndEndsNeitherAReloadNorTheDaemonBadly) {
  configure(GetParam());
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_TRUE(rig_.create("before").ok());
  for (int i = 0; i < 3; ++i) {
    const grpc::Status reloaded = rig_.reload();
    EXPECT_TRUE(reloaded.ok()) << reloaded.error_message();
    EXPECT_TRUE(rig_.create("after-" + std::to_string(i)).ok());
  }
  EXPECT_EQ(rig_.stop(), 0) << rig_.log();
  EXPECT_THAT(rig_.log(), Not(HasSubstr("crashes:")));
  EXPECT_THAT(notes(), Not(HasSubstr("exit handler"))) << "no foreign code runs once the store is closed";
  EXPECT_THAT(notes(), Not(HasSubstr("static destructor")));
}

INSTANTIATE_TEST_SUITE_P(All, LeavesSomethingBehind,
                         ::testing::Values("joins", "detaches", "exit-handler", "static", "thread-local"));

TEST_F(LivesTest, MakesTheNewInstanceBeforeTheOldOneEnds) {
  configure("nothing");
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_TRUE(rig_.reload().ok());
  EXPECT_EQ(notes(), "created\ncreated\ndestroyed\n");
  EXPECT_EQ(rig_.stop(), 0);
  EXPECT_EQ(notes(), "created\ncreated\ndestroyed\ndestroyed\n");
}

TEST_F(LivesTest, NamesThePluginThatForgetsToJoinItsThread) {
  configure("forgets");
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_FALSE(rig_.reload().ok());
  EXPECT_EQ(rig_.wait_for_end(), 128 + SIGABRT);
  EXPECT_TRUE(rig_.logs("topoletd crashes: SIGABRT in destroy() of plugin outlives")) << rig_.log();
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_TRUE(rig_.logs("topoletd was ended by SIGABRT in destroy() of plugin outlives")) << rig_.log();
  EXPECT_EQ(rig_.stop(), 128 + SIGABRT);
}

TEST_F(LivesTest, NamesThePluginWhoseDestroyThrows) {
  configure("throws");
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_TRUE(rig_.reload().ok());
  EXPECT_TRUE(rig_.logs("plugin outlives: destroy threw: the last of it")) << rig_.log();
  EXPECT_EQ(rig_.stop(), 0);
}

}  // namespace
}  // namespace topolet::testing
