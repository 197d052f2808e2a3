#include "core/plugin/guard/crash_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "core/plugin/guard/crash_mark.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kMinute = 60000;

class CrashLogTest : public ::testing::Test {
 protected:
  /// Returns the file's contents after it was opened at `now_ms`.
  std::string kept(const std::string& text, std::int64_t now_ms) {
    directory_.write("crashes", text);
    log_ = *CrashLog::open(directory_.file("crashes"), now_ms);
    EXPECT_TRUE(log_->clear_new_marks().has_value());
    std::ostringstream now;
    now << std::ifstream(directory_.file("crashes")).rdbuf();
    return now.str();
  }

  TempDir directory_;
  std::unique_ptr<CrashLog> log_;
};

TEST_F(CrashLogTest, TellsWhatIsNewOnce) {
  const std::string text = kept("1000 numa SIGBUS pick\n! 2000 gpu SIGSEGV score\n", 3000);
  EXPECT_THAT(log_->new_crashes(), ElementsAre(Crash{2000, "gpu", "SIGSEGV", "score"}));
  EXPECT_EQ(text, "1000 numa SIGBUS pick\n2000 gpu SIGSEGV score\n");
  kept(text, 3000);
  EXPECT_THAT(log_->new_crashes(), IsEmpty());
}

TEST_F(CrashLogTest, TellsAWriteToLentMemoryApart) {
  kept(std::string("! 1000 gpu ") + kLentMemoryCrash + " pick\n", 3000);
  EXPECT_THAT(log_->describe_new_crashes(),
              ElementsAre("topoletd was ended by SIGSEGV (a write to memory that it was lent to read) in pick() of "
                          "plugin gpu: crash 1 in 10 minutes; the plugin is quarantined after 3"));
}

TEST_F(CrashLogTest, SaysHowManyCrashesThereHaveBeenAndWhatTheyLeadTo) {
  kept("! 1000 gpu SIGSEGV score\n", 3000);
  EXPECT_THAT(log_->describe_new_crashes(),
              ElementsAre("topoletd was ended by SIGSEGV in score() of plugin gpu: crash 1 in 10 "
                          "minutes; the plugin is quarantined after 3"));
  kept("1 numa SIGBUS pick\n1000 gpu SIGSEGV score\n! 2000 gpu SIGABRT load\n! 2500 gpu SIGABRT load\n", 3000);
  EXPECT_THAT(log_->describe_new_crashes(),
              ElementsAre("topoletd was ended by SIGABRT in load() of plugin gpu: crash 2 in 10 minutes; the "
                          "plugin is quarantined after 3",
                          "topoletd was ended by SIGABRT in load() of plugin gpu: crash 3 in 10 minutes; the "
                          "plugin is quarantined"));
}

TEST_F(CrashLogTest, CountsNoCrashThatIsLongAgo) {
  kept("0 gpu SIGSEGV score\n! 600001 gpu SIGSEGV score\n", 600002);
  EXPECT_THAT(log_->describe_new_crashes(), ElementsAre(::testing::HasSubstr("crash 1 in 10 minutes")));
  kept("! 0 gpu SIGSEGV score\n", 600002);
  EXPECT_THAT(log_->describe_new_crashes(), ElementsAre(::testing::HasSubstr("crash 1 in 10 minutes")));
}

TEST_F(CrashLogTest, ChangesNothingUntilItIsSettled) {
  const std::string text = "! 2000 gpu SIGSEGV load\n";
  directory_.write("crashes", text);
  const auto seen = CrashLog::open(directory_.file("crashes"), 3000);
  EXPECT_THAT((*seen)->new_crashes(), ElementsAre(Crash{2000, "gpu", "SIGSEGV", "load"}));
  EXPECT_EQ(std::filesystem::file_size(directory_.file("crashes")), text.size());
}

TEST_F(CrashLogTest, NotesCrashesWhileTheDiskIsFull) {
  // In a mount namespace of its own, which ends with this process.
  const std::string disk = directory_.file("disk");
  std::filesystem::create_directory(disk);
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("none", disk.c_str(), "tmpfs", 0, "size=64k,mode=700") != 0) {
    GTEST_SKIP() << "only root can mount a small file system";
  }
  const std::string file = disk + "/crashes";
  log_ = *CrashLog::open(file, 3000);
  ASSERT_TRUE(log_->clear_new_marks().has_value());
  std::ofstream fill(disk + "/fill", std::ios::binary);
  while (fill << std::string(4096, 'x') << std::flush) {
  }
  const std::string mark = "! 2000 gpu SIGSEGV load\n";
  EXPECT_EQ(::write(log_->fd(), mark.data(), mark.size()), static_cast<ssize_t>(mark.size()));
  log_ = *CrashLog::open(file, 3000);
  EXPECT_THAT(log_->new_crashes(), ElementsAre(Crash{2000, "gpu", "SIGSEGV", "load"}));
  log_.reset();
  EXPECT_EQ(::umount2(disk.c_str(), MNT_DETACH), 0);
}

TEST_F(CrashLogTest, ForgetsAfterTenMinutes) {
  EXPECT_EQ(kept("0 numa SIGBUS pick\n60000 numa SIGBUS pick\n", 10 * kMinute + 1), "60000 numa SIGBUS pick\n");
}

TEST_F(CrashLogTest, ThreeInTenMinutesStayUntilRemoved) {
  const std::string three = "0 numa SIGBUS pick\n60000 numa SIGBUS pick\n600000 numa SIGABRT score\n";
  EXPECT_EQ(kept(three + "600000 gpu SIGBUS pick\n", 100 * kMinute), three);
  EXPECT_EQ(log_->why_quarantined("numa"), "crashed topoletd 3 times in 10 minutes, last: SIGABRT in score()");
  EXPECT_THAT(log_->why_quarantined("gpu"), IsEmpty());
  EXPECT_TRUE(log_->remove_crashes_of("numa").has_value());
  EXPECT_THAT(log_->why_quarantined("numa"), IsEmpty());
  EXPECT_EQ(std::filesystem::file_size(directory_.file("crashes")), 0U);
}

TEST_F(CrashLogTest, ThreeInMoreThanTenMinutesDoNotCount) {
  kept("0 numa SIGBUS pick\n60000 numa SIGBUS pick\n600001 numa SIGBUS pick\n", 600001);
  EXPECT_THAT(log_->why_quarantined("numa"), IsEmpty());
}

TEST_F(CrashLogTest, KnowsAPluginThatCrashedWhenItWasMade) {
  kept("1 numa SIGBUS pick\n2 gpu SIGBUS create\n3 smt SIGABRT load\n", 3);
  EXPECT_FALSE(log_->crashed_at_start("numa"));
  EXPECT_TRUE(log_->crashed_at_start("gpu"));
  EXPECT_TRUE(log_->crashed_at_start("smt"));
}

TEST_F(CrashLogTest, DropsLinesItCannotRead) {
  EXPECT_EQ(kept("\n! \n! 5\nx numa SIGBUS pick\n! 2000 numa SIGSEGV score and more\n! 2000 numa SIGSEGV sc", 3000),
            "2000 numa SIGSEGV sc\n");
}

TEST_F(CrashLogTest, IsKeptInMemoryWhereNothingCanBeWritten) {
  directory_.write("file", "");
  const auto opened = CrashLog::open(directory_.file("file") + "/crashes", 3000);
  ASSERT_TRUE(opened.has_value());
  EXPECT_THAT((*opened)->why_not_kept(), ::testing::HasSubstr(directory_.file("file") + "/crashes: Not a directory"));
  EXPECT_GE((*opened)->fd(), 0);
  EXPECT_TRUE((*opened)->clear_new_marks().has_value());
  kept("", 3000);
  EXPECT_THAT(log_->why_not_kept(), IsEmpty());
}

TEST_F(CrashLogTest, IsKeptInMemoryWhereItsDirectoryMustNotBeMade) {
  const auto opened = CrashLog::open(directory_.file("none") + "/crashes", 3000, /*may_make_directory=*/false);
  ASSERT_TRUE(opened.has_value());
  EXPECT_THAT((*opened)->why_not_kept(), ::testing::HasSubstr(directory_.file("none") + "/crashes: No such file"));
  EXPECT_FALSE(std::filesystem::exists(directory_.file("none")));
}

TEST_F(CrashLogTest, IsForItsOwnerAloneAndNoLink) {
  ASSERT_TRUE(CrashLog::open(directory_.file("made") + "/new", 0).has_value());
  ASSERT_TRUE(CrashLog::open(directory_.file("new"), 0).has_value());
  struct stat file {};
  ASSERT_EQ(::stat(directory_.file("new").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777U, 0600U);
  std::filesystem::create_symlink("new", directory_.file("link"));
  const auto refused = CrashLog::open(directory_.file("link"), 0);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr(directory_.file("link")));
}

}  // namespace
}  // namespace topolet::plugin
