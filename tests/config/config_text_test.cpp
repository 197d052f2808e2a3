#include "core/config/config_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temp_dir.hpp"

namespace topolet::config {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

RawConfig read(const std::string& text) {
  RawConfig raw;
  read_config_text(raw, "t.conf", text);
  return raw;
}

std::vector<std::string> settings(const RawConfig& raw) {
  std::vector<std::string> lines;
  for (const ConfigEntry& entry : raw.entries) {
    lines.push_back(std::to_string(entry.line) + ":" + entry.section + "." + entry.key + "=" + entry.value);
  }
  return lines;
}

std::vector<std::string> mistakes(const RawConfig& raw) {
  std::vector<std::string> lines;
  for (const ConfigMistake& mistake : raw.mistakes) lines.push_back(mistake.to_string());
  return lines;
}

TEST(ConfigText, HoldsSectionsKeysAndValues) {
  EXPECT_THAT(settings(read("[a]\nx = 1\n\n [ b ] \r\n\ty=two words\r\nz =\n")),
              ElementsAre("2:a.x=1", "5:b.y=two words", "6:b.z="));
}

TEST(ConfigText, MayBeginWithAByteOrderMarkAndEndWithoutALineEnd) {
  EXPECT_THAT(settings(read("\xEF\xBB\xBF[a]\nx=1")), ElementsAre("2:a.x=1"));
}

TEST(ConfigText, KnowsCommentsFromValues) {
  EXPECT_THAT(settings(read("# [b]\n; x = 0\n[a] # here\nx = 1 # one\ny = a#b\nz = a;b ; c\n  # no = thing\n")),
              ElementsAre("4:a.x=1", "5:a.y=a#b", "6:a.z=a;b ; c"));
}

TEST(ConfigText, GoesOnBehindAMistake) {
  const RawConfig raw = read("[a]\nwhat is this\nx = 1\n[b\n= 3\n[]\ny = 2");
  EXPECT_THAT(mistakes(raw), ElementsAre("t.conf:2: 'what is this' has no '='; write key = value",
                                         "t.conf:4: '[b' has no closing ]; write [section]",
                                         "t.conf:5: '= 3' has no key before '='; write key = value",
                                         "t.conf:6: the section has no name"));
}

TEST(Arguments, AreSettingsAndSwitches) {
  const auto none = [](const auto&) { return Result<std::string>(Error{Code::kNotFound, "none"}); };
  const RawConfig raw = read_raw(
      {"--check-config", "--daemon.listen=/a=b", "--plugins.weight.numa", "3", "--help", "--placement.x="}, none);
  EXPECT_TRUE(raw.check_config);
  EXPECT_TRUE(raw.help);
  EXPECT_FALSE(raw.version);
  EXPECT_THAT(settings(raw), ElementsAre("0:daemon.listen=/a=b", "0:plugins.weight.numa=3", "0:placement.x="));
  EXPECT_THAT(raw.mistakes, IsEmpty());
}

TEST(Arguments, ThatAreNoOptionsAreMistakes) {
  const auto none = [](const auto&) { return Result<std::string>(Error{Code::kNotFound, "none"}); };
  EXPECT_THAT(mistakes(read_raw({"start", "-v", "--version=2", "--daemon.listen", "--help"}, none)),
              ElementsAre("command line: unexpected argument 'start'; options are written --section.key=value",
                          "command line: unexpected argument '-v'; options are written --section.key=value",
                          "command line: --version takes no value",
                          "command line: --daemon.listen needs a value; write --daemon.listen=VALUE"));
}

TEST(ConfigFile, IsTheNamedOneOrTheDefault) {
  std::filesystem::path asked;
  const auto remember = [&asked](const std::filesystem::path& file) {
    asked = file;
    return Result<std::string>("[a]\nx = 1");
  };
  read_raw({}, remember);
  EXPECT_EQ(asked, "/etc/topolet/topolet.conf");
  const RawConfig raw = read_raw({"--config=/my.conf", "--b.y=2"}, remember);
  EXPECT_EQ(asked, "/my.conf");
  EXPECT_THAT(settings(raw), ElementsAre("2:a.x=1", "0:b.y=2"));
}

TEST(ConfigFile, MayBeMissingUnlessItIsNamed) {
  const auto none = [](const auto&) { return Result<std::string>(Error{Code::kNotFound, "No such file"}); };
  EXPECT_THAT(read_raw({}, none).mistakes, IsEmpty());
  EXPECT_THAT(mistakes(read_raw({"--config", "/my.conf"}, none)),
              ElementsAre("/my.conf: cannot read the configuration: No such file"));
}

TEST(ConfigFile, ThatCannotBeReadIsAMistakeEvenByDefault) {
  const auto denied = [](const auto&) { return Result<std::string>(Error{Code::kPermissionDenied, "no"}); };
  EXPECT_THAT(mistakes(read_raw({}, denied)),
              ElementsAre("/etc/topolet/topolet.conf: cannot read the configuration: no"));
}

TEST(TextFile, IsReadWhole) {
  const TempDir directory;
  EXPECT_EQ(*read_text_file(directory.write("f", "a\nb")), "a\nb");
  EXPECT_EQ(*read_text_file(directory.write("empty", "")), "");
  EXPECT_EQ(read_text_file(directory.path() / "none").error().code, Code::kNotFound);
  EXPECT_EQ(read_text_file(directory.path()).error().message, "Is a directory");
  EXPECT_EQ(*read_text_file("/dev/null"), "");
  EXPECT_EQ(read_text_file("/dev/zero").error().message, "it is not a regular file");
}

}  // namespace
}  // namespace topolet::config
