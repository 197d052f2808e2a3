// Plugins whose threads and exit handlers outlive their instances.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <iterator>

#include "tests/control/daemon_rig.hpp"

namespace topolet::testing {
namespace {

using ::testing::ElementsAre;
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

TEST_F(LivesTest, KeepsWhatAPluginReadsOfItsStateInTheRecordAndNotWithTheDecision) {
  const std::string record = rig_.file("record");
  rig_.configure("enable = outlives\n[outlives]\nhow = reads\nnotes = " + rig_.file("notes"), "", "record = " + record);
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_TRUE(rig_.create("web").ok());
  EXPECT_EQ(rig_.stop(), 0);
  std::ifstream in(record);
  const std::string recorded{std::istreambuf_iterator<char>(in), {}};
  const auto pod = recorded.find(R"({"op":"run_pod")");
  ASSERT_NE(pod, std::string::npos);
  EXPECT_NE(recorded.find(R"({"op":"state","plugin":"outlives","get":"name")", pod), std::string::npos);
  EXPECT_NE(recorded.find("canary of the state"), std::string::npos);
  EXPECT_THAT(rig_.query("SELECT count(*) FROM plugin_state WHERE instr(value, 'canary') > 0"), ElementsAre("1"));
  const auto searches = rig_.query(
      "SELECT 'SELECT count(*) FROM \"' || t.name || '\" WHERE instr(CAST(\"' || c.name || '\" AS TEXT), ''canary'') > "
      "0' "
      "FROM sqlite_master t JOIN pragma_table_info(t.name) c WHERE t.type = 'table' AND t.name <> 'plugin_state'");
  EXPECT_FALSE(searches.empty());
  for (const std::string& search : searches) EXPECT_THAT(rig_.query(search), ElementsAre("0")) << search;
}

TEST_F(LivesTest, CallsAPluginForATickWhenItWantsOne) {
  rig_.configure("enable = wakes\n[wakes]\nnotes = " + rig_.file("notes"));
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_TRUE(rig_.eventually([this] { return notes().size() >= 5 * std::string("tick\n").size(); })) << rig_.log();
  EXPECT_TRUE(rig_.reload().ok());
  const std::string before = notes();
  EXPECT_TRUE(rig_.eventually([&] { return notes().size() > before.size(); })) << "the new instance too";
  EXPECT_EQ(rig_.stop(), 0) << rig_.log();
}

}  // namespace
}  // namespace topolet::testing
