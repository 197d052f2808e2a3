// Values of plugins' options that are marked secret: wherever topoletd and the command write and answer, they must not
// turn up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/cli/run_topolet.hpp"
#include "tests/control/daemon_rig.hpp"

namespace topolet::testing {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kToken = "hunter2token";
constexpr const char* kPin = "47110";

/// No text has it.
auto has_no_secret() { return AllOf(Not(HasSubstr(kToken)), Not(HasSubstr(kPin))); }

class SecretOptions : public ::testing::Test {
 protected:
  SecretOptions() {
    const std::string plugins = rig_.file("plugins");
    fs::create_directory(plugins);
    for (const char* name : {"secretive.so", "nosy.so"})
      fs::copy_file(fs::path(TOPOLET_BROKEN_DIR) / name, fs::path(plugins) / name);
    rig_.plugin_dir = plugins;
    configure("");
  }
  /// `more`: lines of the plugin's section.
  void configure(const std::string& more) {
    const std::string own = std::string("[secretive]\ntoken = ") + kToken + "\npin = " + kPin + "\n" + more;
    rig_.configure("enable = secretive\nenable = nosy\n" + own, "",
                   "log-level = debug\nrecord = " + rig_.file("record"));
  }
  std::string said(std::vector<std::string> words) const { return topolet(std::move(words)).text; }
  Said checked_by_topoletd() const {
    return run_to_its_end({rig_.program, "--config", rig_.config(), "--check-config"});
  }
  /// All files of the rig but the configuration, one after the other.
  std::string all_files() const {
    std::string all;
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(rig_.config()).parent_path())) {
      if (!entry.is_regular_file() || entry.path() == rig_.config() || entry.path().extension() == ".so") continue;
      std::ifstream in(entry.path(), std::ios::binary);
      all.append(std::istreambuf_iterator<char>(in), {});
    }
    return all;
  }

  DaemonRig rig_;
};

TEST_F(SecretOptions, StayOutOfWhatADaemonWritesAndAnswers) {
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_TRUE(rig_.run("a").ok());
  EXPECT_TRUE(rig_.run("b", 1).ok());
  ASSERT_TRUE(rig_.reload().ok());
  EXPECT_TRUE(rig_.run("c").ok());
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"plugin", "list"}, {"plugin", "list", "--json"}, {"status"}, {"status", "--json"}}) {
    std::vector<std::string> asked = words;
    asked.insert(asked.end(), {"--socket", rig_.control_socket()});
    EXPECT_THAT(said(asked), has_no_secret());
  }
  EXPECT_EQ(rig_.stop(), 0);
  EXPECT_THAT(rig_.log(), HasSubstr("plugins.enable is secretive")) << "the other plugin is shown the configuration";
  EXPECT_FALSE(fs::is_empty(rig_.file("record")));
  EXPECT_THAT(all_files(), has_no_secret());
}

TEST_F(SecretOptions, AreStarsWhereTheConfigurationIsShown) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"config", "show"}, {"config", "show", "--json"}}) {
    std::vector<std::string> asked = words;
    asked.insert(asked.end(), {"--config", rig_.config()});
    EXPECT_THAT(said(asked), AllOf(HasSubstr("***"), has_no_secret()));
  }
}

TEST_F(SecretOptions, AreStarsInWhatIsWrongWithTheConfiguration) {
  for (const std::string wrong : {"quote = true", "token = 'hunter2token", "pin = 47110", "pin = 47110x",
                                  "pin = 471100", "token = hunter2token", "tokn = hunter2token"}) {
    configure(wrong + "\n");
    const Said by_command = topolet({"config", "check", rig_.config()});
    const Said by_daemon = checked_by_topoletd();
    EXPECT_NE(by_command.code, 0) << wrong;
    EXPECT_NE(by_daemon.code, 0) << wrong;
    EXPECT_THAT(by_command.text, has_no_secret()) << wrong;
    EXPECT_THAT(by_daemon.text, has_no_secret()) << wrong;
    EXPECT_FALSE(rig_.start()) << wrong;
    EXPECT_THAT(rig_.log(), has_no_secret()) << wrong;
  }
}

TEST_F(SecretOptions, StayOutOfMessagesAboutFlags) {
  for (const std::string flag : {"--secretive.pin=hunter2token", "--secretive.tokn=hunter2token"}) {
    const Said said = run_to_its_end({rig_.program, "--config", rig_.config(), "--check-config", flag});
    EXPECT_NE(said.code, 0);
    EXPECT_THAT(said.text, has_no_secret()) << flag;
  }
}

}  // namespace
}  // namespace topolet::testing
