#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/control/daemon_rig.hpp"

namespace topolet::testing {
namespace {

using ::testing::HasSubstr;

class MischiefTest : public ::testing::Test {
 protected:
  void configure(const std::string& how) { rig_.configure("enable = mischief\n[mischief]\nhow = " + how, placement_); }

  std::string placement_;
  DaemonRig rig_;
};

class CostsAVoteAtMost : public MischiefTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(CostsAVoteAtMost, NotThePodAndNotTheDaemon) {
  configure(GetParam());
  ASSERT_TRUE(rig_.start()) << rig_.log();
  for (const char* pod : {"a", "b", "c", "d"}) {
    const grpc::Status made = rig_.create(pod);
    EXPECT_TRUE(made.ok()) << made.error_message();
  }
  EXPECT_EQ(rig_.plugin("mischief").id(), "mischief");
  rig_.audited();
  EXPECT_FALSE(rig_.process().has_ended());
  EXPECT_EQ(rig_.stop(), 0);
  // Nothing is left that holds the state directory or a socket.
  configure("nothing");
  EXPECT_TRUE(rig_.start()) << rig_.log();
}

INSTANTIATE_TEST_SUITE_P(All, CostsAVoteAtMost,
                         ::testing::Values("throw-int", "throw-wordless", "throw-bad-words", "throw-long",
                                           "throw-at-end", "no-memory", "bad-reason", "bad-error", "long-reason",
                                           "log-flood", "bad-log", "locale", "fork", "bad-annotation", "bad-variable",
                                           "bad-variable-name", "state-flood"));

TEST_F(MischiefTest, FloodsTheLogWithAThousandLinesAndNoMore) {
  configure("log-flood");
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_TRUE(rig_.create("web").ok());
  EXPECT_EQ(rig_.stop(), 0);
  const std::string log = rig_.log();
  std::size_t lines = 0;
  for (auto at = log.find("mischief: flood"); at != std::string::npos; at = log.find("mischief: flood", at + 1))
    ++lines;
  EXPECT_GT(lines, 100U);
  EXPECT_LT(lines, 3000U);
}

class EndsTheDaemon : public MischiefTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(EndsTheDaemon, AndIsStampedForIt) {
  placement_ = "deadline-ms = 5000";
  configure(GetParam());
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_EQ(rig_.create("web").error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_NE(rig_.wait_for_end(), 0);
  configure("nothing");
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_TRUE(rig_.logs("of plugin mischief: crash 1 in 10 minutes; the plugin is quarantined after 3")) << rig_.log();
  EXPECT_TRUE(rig_.create("web").ok());
}

TEST_F(MischiefTest, IsStampedForACrashAtAnInstancesEnd) {
  configure("crash-at-end");
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_FALSE(rig_.reload().ok());
  EXPECT_EQ(rig_.wait_for_end(), 128 + SIGSEGV);
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_TRUE(rig_.logs("topoletd was ended by SIGSEGV in destroy() of plugin mischief")) << rig_.log();
  EXPECT_EQ(rig_.stop(), 128 + SIGSEGV);
}

TEST_F(MischiefTest, IsStampedForAnExitWhenItIsMade) {
  configure("exit-at-create");
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(rig_.start());
    EXPECT_EQ(rig_.wait_for_end(), 1);
  }
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_TRUE(rig_.logs("topoletd was ended by exit in create() of plugin mischief")) << rig_.log();
  EXPECT_EQ(rig_.plugin("mischief").state(), control::v1::Plugin::QUARANTINED);
}

TEST_F(MischiefTest, OnAThreadOfItsOwnQuarantinesItAfterThree) {
  placement_ = "deadline-ms = 5000";
  configure("own-crash");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(rig_.start()) << rig_.log();
    EXPECT_FALSE(rig_.create("web").ok());
    EXPECT_EQ(rig_.wait_for_end(), 128 + SIGSEGV);
  }
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_EQ(rig_.plugin("mischief").reason(),
            "crashed topoletd 3 times in 10 minutes, last: SIGSEGV in a thread of its own");
  EXPECT_TRUE(rig_.create("web").ok());
}

TEST_F(MischiefTest, ThatBreaksCreateIsToldInCleanWords) {
  configure("bad-create-error");
  EXPECT_FALSE(rig_.start());
  EXPECT_EQ(rig_.wait_for_end(), 1);
  EXPECT_THAT(rig_.log(), HasSubstr("plugin mischief: create failed: caf? ?( ??? ???  2J end"));
}

INSTANTIATE_TEST_SUITE_P(All, EndsTheDaemon,
                         ::testing::Values("exit", "quick-exit", "terminate", "noexcept", "pthread-exit", "illegal",
                                           "bus", "fpe", "own-crash", "own-abort", "own-throw", "own-exit",
                                           "handlers"));

#ifndef TOPOLET_SANITIZED
// The sanitizers report this one themselves.
INSTANTIATE_TEST_SUITE_P(Fault, EndsTheDaemon, ::testing::Values("own-null"));
#endif

}  // namespace
}  // namespace topolet::testing
