#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/cli/run_topolet.hpp"
#include "tests/control/daemon_rig.hpp"

namespace topolet::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BackupTest : public ::testing::Test {
 protected:
  BackupTest() {
    state_.open();
    fs::create_directory(state_.file("copies"));
  }
  Said back_up(const std::string& name) const { return state_.topolet({"backup", copy(name)}); }
  std::string copy(const std::string& name) const { return state_.file("copies/" + name); }
  std::vector<std::string> copies() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(state_.file("copies"))) names.push_back(entry.path().filename());
    return names;
  }

  StateDir state_;
};

TEST(Backup, CopiesTheDatabaseOfARunningDaemon) {
  DaemonRig rig;
  rig.configure("enable = nonsense\n[nonsense]\nanswer = none");
  ASSERT_TRUE(rig.start()) << rig.log();
  ASSERT_TRUE(rig.create("web").ok());
  const std::string copy = rig.file("copy.db");
  const Said said = topolet({"backup", copy, "--config", rig.config()});
  EXPECT_EQ(said.code, 0) << said.text;
  ASSERT_TRUE(rig.create("later").ok());
  EXPECT_THAT(topolet({"query", "PRAGMA integrity_check", "--database", copy}).text, HasSubstr("\nok\n"));
  EXPECT_THAT(topolet({"ps", "--database", copy}).text, AllOf(HasSubstr("web"), ::testing::Not(HasSubstr("later"))));
  EXPECT_THAT(topolet({"explain", "web/main", "--database", copy}).text, HasSubstr("default/web/main"));
}

TEST_F(BackupTest, IsOneFileForItsOwnerAlone) {
  EXPECT_EQ(back_up("a.db").code, 0);
  EXPECT_EQ(fs::status(copy("a.db")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  // Bytes 18 and 19 of SQLite's file format: 2 for a file that may have a write-ahead log.
  std::string header(20, '\0');
  std::ifstream(copy("a.db")).read(header.data(), 20);
  EXPECT_EQ(header.substr(18), "\x01\x01");
  EXPECT_EQ(topolet({"query", "SELECT 1", "--database", copy("a.db")}).code, 0);
  EXPECT_THAT(copies(), ElementsAre("a.db"));
}

TEST_F(BackupTest, CanBePutInThePlaceOfTheDatabase) {
  EXPECT_EQ(back_up("state.db").code, 0);
  const auto opened = store::Store::open({.directory = state_.file("copies"), .boot_id = "boot", .now_ms = 2});
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  EXPECT_TRUE((*opened)->report().set_aside.empty());
}

TEST_F(BackupTest, OverwritesNothing) {
  state_.directory().write("copies/a.db", "precious");
  const Said said = back_up("a.db");
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.text, HasSubstr(copy("a.db") + " exists"));
  EXPECT_EQ(fs::file_size(copy("a.db")), 8U);
  EXPECT_THAT(copies(), ElementsAre("a.db"));
}

TEST_F(BackupTest, LeavesNothingWhenTheDiskIsFull) {
  const Said said = shell("trap '' XFSZ; ulimit -f 40; $topolet backup " + copy("a.db") + " --state-dir " +
                          state_.path() + "; echo $?");
  EXPECT_THAT(said.text, AllOf(HasSubstr("cannot write the copy"), ::testing::EndsWith("\n1\n")));
  EXPECT_THAT(copies(), ElementsAre());
}

TEST_F(BackupTest, NamesADirectoryThatIsNotThere) {
  const Said said = state_.topolet({"backup", state_.file("none/a.db")});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.text, HasSubstr("cannot create a file in " + state_.file("none")));
}

}  // namespace
}  // namespace topolet::testing
