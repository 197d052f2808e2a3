// topoletd as deploy/topoletd.service starts it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "core/plugin/guard/strikes.hpp"
#include "tests/control/daemon_rig.hpp"

namespace topolet::testing {
namespace {

using control::v1::Plugin;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// The values that the unit gives a key, in their order.
std::vector<std::string> values_of(const std::string& key) {
  std::vector<std::string> values;
  std::ifstream unit(TOPOLET_SERVICE_FILE);
  for (std::string line; std::getline(unit, line);) {
    if (line.rfind(key + "=", 0) == 0) values.push_back(line.substr(key.size() + 1));
  }
  return values;
}

std::vector<std::string> words_of(const std::string& command) {
  std::istringstream text(command);
  return {std::istream_iterator<std::string>(text), {}};
}

class ServiceTest : public ::testing::Test {
 protected:
  /// Starts the daemon as systemd does: all commands before it must succeed.
  bool start_as_the_unit_says() {
    for (const std::string& command : values_of("ExecStartPre")) {
      Process before(with_our_topoletd(command), rig_.file("log"));
      if (before.wait() != 0) return false;
    }
    const std::vector<std::string> commands = values_of("ExecStart");
    EXPECT_THAT(commands, SizeIs(1));
    const std::vector<std::string> words = words_of(commands.at(0));
    EXPECT_EQ(std::filesystem::path(words.at(0)).filename(), "topoletd");
    return rig_.start({words.begin() + 1, words.end()});
  }

  std::vector<std::string> with_our_topoletd(const std::string& command) const {
    std::vector<std::string> words = words_of(command);
    if (std::filesystem::path(words.at(0)).filename() != "topoletd") return words;
    words[0] = TOPOLET_DAEMON;
    words.insert(words.end(), {"--config", rig_.config()});
    return words;
  }

  DaemonRig rig_;
};

TEST_F(ServiceTest, APluginThatCrashesWhileItIsLoadedIsQuarantinedAndTheOthersServe) {
  rig_.configure("enable = throws\nenable = at-load");
  const AtLoad at_load("abort");
  std::size_t failed_starts = 0;
  while (!start_as_the_unit_says() && failed_starts < 10) ++failed_starts;
  EXPECT_EQ(failed_starts, plugin::kStrikes) << rig_.log();
  EXPECT_EQ(rig_.plugin("at-load").state(), Plugin::QUARANTINED);
  EXPECT_EQ(rig_.plugin("throws").state(), Plugin::ACTIVE);
  EXPECT_TRUE(rig_.create("web").ok());
}

TEST_F(ServiceTest, IsStartedAgainHoweverItEndedAndReloadedByTheCommand) {
  EXPECT_THAT(values_of("Restart"), ElementsAre("always"));
  EXPECT_THAT(values_of("StartLimitIntervalSec"), ElementsAre("0"));
  EXPECT_THAT(values_of("ExecReload"), ElementsAre(EndsWith("/bin/topolet reload")));
  EXPECT_THAT(values_of("ExecStartPre"), IsEmpty()) << "it would have to end well before topoletd counts a crash";
}

}  // namespace
}  // namespace topolet::testing
