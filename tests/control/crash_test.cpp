#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/control/daemon_rig.hpp"

namespace topolet::testing {
namespace {

using control::v1::Plugin;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class CrashTest : public ::testing::Test {
 protected:
  void configure(const std::string& how) { rig_.configure("enable = crashes\n[crashes]\nhow = " + how); }

  /// Starts, crashes in a create, and gives how the process ended.
  int crash_once() {
    if (!rig_.start()) ADD_FAILURE() << rig_.log();
    EXPECT_EQ(rig_.create("web").error_code(), grpc::StatusCode::UNAVAILABLE);
    return rig_.wait_for_end();
  }

  DaemonRig rig_;
};

/// How it crashes, and with which signal.
class CrashKinds : public CrashTest, public ::testing::WithParamInterface<std::pair<const char*, int>> {};

TEST_P(CrashKinds, AreStampedWithTheirPluginAndEndTheProcessAsEver) {
  configure(GetParam().first);
  EXPECT_EQ(crash_once(), 128 + GetParam().second);
  configure("not");
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_TRUE(rig_.logs(std::string("topoletd was ended by SIG") + sigabbrev_np(GetParam().second) +
                        " in score() of plugin crashes: crash 1 in 10 minutes; the plugin is quarantined after 3"))
      << rig_.log();
  EXPECT_EQ(rig_.plugin("crashes").state(), Plugin::ACTIVE);
}

#ifdef TOPOLET_SANITIZED
// The sanitizers have handlers of their own for what is theirs to report.
INSTANTIATE_TEST_SUITE_P(All, CrashKinds, ::testing::Values(std::pair("abort", SIGABRT), std::pair("segv", SIGSEGV)));
#else
INSTANTIATE_TEST_SUITE_P(All, CrashKinds,
                         ::testing::Values(std::pair("abort", SIGABRT), std::pair("segv", SIGSEGV),
                                           std::pair("null", SIGSEGV), std::pair("overflow", SIGSEGV)));
#endif

#ifndef TOPOLET_SANITIZED
TEST_F(CrashTest, AWriteToReadOnlyPagesIsNamedAndCountsAsOthersDo) {
  for (const char* target : {"topology-words", "sink", "host"}) {
    rig_.configure(std::string("enable = scribbles\n[scribbles]\nto = ") + target);
    EXPECT_EQ(crash_once(), 128 + SIGSEGV) << target;
    EXPECT_TRUE(
        rig_.logs("topoletd crashes: SIGSEGV (a write to memory that it was lent to read) in score() of plugin "
                  "scribbles"))
        << rig_.log();
  }
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_EQ(rig_.plugin("scribbles").state(), Plugin::QUARANTINED);
  EXPECT_EQ(rig_.plugin("scribbles").reason(),
            "crashed topoletd 3 times in 10 minutes, last: SIGSEGV (a write to memory that it was lent to read) in "
            "score()");
  EXPECT_TRUE(rig_.create("web").ok());
}
#endif

TEST_F(CrashTest, ThreeQuarantineThePluginUntilReset) {
  configure("abort");
  for (int i = 0; i < 3; ++i) crash_once();
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_TRUE(rig_.logs("of plugin crashes: crash 3 in 10 minutes; the plugin is quarantined")) << rig_.log();
  EXPECT_EQ(rig_.plugin("crashes").state(), Plugin::QUARANTINED);
  EXPECT_EQ(rig_.plugin("crashes").reason(), "crashed topoletd 3 times in 10 minutes, last: SIGABRT in score()");
  EXPECT_TRUE(rig_.eventually([this] { return !rig_.audited().empty(); }));
  EXPECT_THAT(rig_.audited(), ElementsAre("quarantined: plugin crashes is not asked any more: crashed topoletd 3 times "
                                          "in 10 minutes, last: SIGABRT in score()"));
  EXPECT_TRUE(rig_.create("calm").ok());
  EXPECT_EQ(rig_.plugin("crashes").calls(), 0U);

  // A restart alone forgives nothing; a reset does, also for the start after it.
  ASSERT_EQ(rig_.stop(), 0);
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_EQ(rig_.plugin("crashes").state(), Plugin::QUARANTINED);
  configure("not");
  EXPECT_TRUE(rig_.reset("crashes").ok());
  EXPECT_EQ(rig_.plugin("crashes").state(), Plugin::ACTIVE);
  ASSERT_EQ(rig_.stop(), 0);
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_EQ(rig_.plugin("crashes").state(), Plugin::ACTIVE);
}

TEST_F(CrashTest, APluginThatCrashesWhenMadeIsNotMadeAFourthTime) {
  configure("create");
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(rig_.start());
    EXPECT_EQ(rig_.wait_for_end(), 128 + SIGABRT);
  }
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_EQ(rig_.plugin("crashes").state(), Plugin::QUARANTINED);
  EXPECT_TRUE(rig_.create("web").ok());
  EXPECT_THAT(rig_.reset("crashes").error_message(), HasSubstr("reload topoletd (SIGHUP) to start it"));
  configure("not");
  const grpc::Status reloaded = rig_.reload();
  EXPECT_TRUE(reloaded.ok()) << reloaded.error_message();
  EXPECT_EQ(rig_.plugin("crashes").state(), Plugin::ACTIVE);
}

/// The thread of a process that bears this name; 0 if there is none.
pid_t thread_named(pid_t process, const std::string& name) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    std::string found;
    std::getline(std::ifstream(task.path() / "comm"), found);
    if (found == name) return std::stoi(task.path().filename().string());
  }
  return 0;
}

TEST_F(CrashTest, AKillFromOutsideBlamesNobodyNotEvenWhoIsInACall) {
  ASSERT_EQ(::mkfifo(rig_.file("fifo").c_str(), 0600), 0);
  const std::fstream held(rig_.file("fifo"), std::ios::in | std::ios::out);
  rig_.configure("enable = hangs\n[hangs]\non = " + rig_.file("fifo"), "deadline-ms = 60000");
  for (const int signal : {SIGKILL, SIGABRT, SIGSEGV}) {
    ASSERT_TRUE(rig_.start()) << rig_.log();
    std::thread client([this] { rig_.create("web"); });
    ASSERT_TRUE(rig_.eventually([this] { return rig_.plugin("hangs").calls() == 1; }));
    const pid_t policy_thread = thread_named(rig_.process().pid(), "topolet-policy");
    EXPECT_NE(policy_thread, 0);
    EXPECT_EQ(::tgkill(rig_.process().pid(), policy_thread, signal), 0);
    EXPECT_EQ(rig_.wait_for_end(), 128 + signal);
    client.join();
  }
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_THAT(rig_.log(), Not(HasSubstr("of plugin")));
  EXPECT_EQ(rig_.plugin("hangs").state(), Plugin::ACTIVE);
}

}  // namespace
}  // namespace topolet::testing
