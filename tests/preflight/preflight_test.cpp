// Files that may be given as a configuration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/exit_status.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::testing {
namespace {

using ::testing::HasSubstr;

/// That topoletd and both checks refuse it, saying why.
void expect_refused(const std::string& file, const std::string& why) {
  const std::vector<std::vector<std::string>> commands = {{TOPOLET_DAEMON, "--config", file},
                                                          {TOPOLET_DAEMON, "--check-config", "--config", file},
                                                          {TOPOLET_COMMAND, "config", "check", file}};
  for (const std::vector<std::string>& command : commands) {
    const TempDir output;
    EXPECT_NE(Process(command, output.file("out")).wait(), kExitSuccess);
    std::ostringstream text;
    text << std::ifstream(output.file("out")).rdbuf();
    EXPECT_THAT(text.str(), HasSubstr(file + ": cannot read the configuration: " + why));
  }
}

TEST(ConfigFile, IsARegularFile) {
  const TempDir directory;
  const std::string fifo = directory.file("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  expect_refused("/dev/zero", "it is not a regular file");
  expect_refused(fifo, "it is not a regular file");
  expect_refused(directory.path().string(), "Is a directory");
  expect_refused(directory.file("none"), "No such file");
}

TEST(ConfigFile, IsNotEnormous) {
  const TempDir directory;
  const std::string file = directory.write("enormous.conf", "");
  std::filesystem::resize_file(file, std::uintmax_t{1} << 40);
  expect_refused(file, "it has more than 1 MiB");
}

}  // namespace
}  // namespace topolet::testing
